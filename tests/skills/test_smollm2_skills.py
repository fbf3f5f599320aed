"""SmolLM2 on three skills in turn: the declared choice of the rate, which seeds count, tables from made-up lines."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "studies" / "interference"
sys.path.insert(0, str(STUDY))
import smollm2_arms  # noqa: E402
import smollm2_report  # noqa: E402
import smollm2_skills  # noqa: E402
from smollm2_arms import ARMS, FALLBACK, RATES, ROUNDS, SKILLS, Study, chosen_rate, complete  # noqa: E402


def stage(*right: int) -> dict[str, str]:
    """So many of a hundred problems of each skill."""
    return {skill: "1" * n + "0" * (100 - n) for skill, n in zip(SKILLS, right, strict=True)}


def pilot(rate: float, lost: int, learnt: int = 60) -> dict:
    stages = [stage(50, 50, 50), stage(learnt, 50, 50), stage(learnt, learnt, 50)]
    return {"kind": "pilot", "rate": rate, "rights": [*stages, stage(learnt - lost, learnt - lost, learnt)]}


def ended(arm: str, seed: int, lost: int, born: str = "1", learnt: int = 60) -> dict:
    row = pilot(4e-5, lost, learnt) | {"kind": "run", "arm": arm, "seed": seed, "born": born}
    return row | {"stage_seconds": [10.0 + seed, 10.0], "seconds": 40.0, "reserved_gb": 8.0}


def lines(seeds: int, spared: dict[str, int]) -> list[dict]:
    return [ended(arm, seed, 20 + seed - spared.get(arm, 0)) for seed in range(seeds) for arm in ARMS]


def test_the_lowest_rate_that_forgets_enough_is_chosen_and_nothing_that_stops_learning() -> None:
    assert chosen_rate([pilot(rate, lost) for rate, lost in zip(RATES, (2, 9, 30, 40), strict=True)]) == RATES[1]
    assert chosen_rate([pilot(rate, lost) for rate, lost in zip(RATES, (2, 7, 5, 1), strict=True)]) == RATES[1]
    breaks = [pilot(RATES[0], 3), *(pilot(rate, 20, learnt=40) for rate in RATES[1:])]
    assert chosen_rate(breaks) == RATES[0]
    assert chosen_rate([pilot(rate, 20, learnt=40) for rate in RATES]) == FALLBACK
    assert chosen_rate([pilot(rate, 20) for rate in RATES[1:]]) == FALLBACK, "a pilot run that failed"


def test_a_seed_counts_when_all_arms_ended_from_one_start() -> None:
    names = list(ARMS)
    mixed = [ended(arm, 0, 5, born="1") for arm in names[:5]] + [ended(arm, 0, 5, born="2") for arm in names[5:]]
    assert complete(mixed) == {}
    whole = [ended(arm, 0, 5, born="2") for arm in names[:5]]
    assert list(complete(mixed + whole)) == [0] and complete(mixed + whole)[0]["plain"]["born"] == "2"


def test_four_complete_seeds_are_tested_as_declared() -> None:
    text = smollm2_report.report([pilot(rate, 9) for rate in RATES] + lines(4, {"l2": 18, "safe": 10}))
    assert "### 4 complete seeds: 0, 1, 2, 3. Plain training: something is forgotten" in text
    assert "### Pilot on the tuning seed, in %; chosen: 2e-05" in text
    row = next(line for line in text.splitlines() if line.startswith("| l2 | 4 |"))
    assert "| -18.0 [-18.0, -18.0] | 0.000 | 84 % | +0.0 [+0.0, +0.0] |" in row
    gap = next(line for line in text.splitlines() if line.startswith("| safe − l2 |"))
    assert "| -0.048 [" in gap and gap.endswith("| 0.000 |"), "0.6 of learning times 0.08 of retention"
    assert "| plain | 22 |" in text and "| safe − average |" in text


def test_a_peak_after_a_skill_s_own_stage_does_not_count_from_the_end_of_that_stage() -> None:
    rights = [stage(50, 50, 50), stage(60, 50, 50), stage(80, 60, 50), stage(56, 58, 60)]
    runs = {seed: {"plain": {"rights": rights}} for seed in range(4)}
    row = "| plain | +3.0 [+3.0, +3.0] |  | +4.0 [+4.0, +4.0] | +2.0 [+2.0, +2.0] |"
    assert row in smollm2_report.since_own_stage(runs)


def test_less_is_described_and_not_tested() -> None:
    partial = smollm2_report.report([*lines(2, {"l2": 18}), ended("plain", 2, 20), ended("l2", 2, 3)])
    assert "2 complete seeds, 4 are needed: described, not tested" in partial and "− l2" not in partial
    row = next(line for line in partial.splitlines() if line.startswith("| l2 | 3 |"))
    assert row.split("|")[8].strip() == "", "no p"
    assert smollm2_report.report([]).strip() == "### 0 complete seeds, 4 are needed: described, not tested"
    assert "| plain | 1 | 53.3 |" in smollm2_report.report([ended("plain", 0, 10)]), "of one seed the value alone"


def test_seeds_that_are_complete_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2_arms, "KEPT", tmp_path / "kept.jsonl")
    asked: list[str] = []

    def noted(queue: smollm2_skills.Queue, jobs: list) -> list[str]:
        asked.extend(job.name for job in jobs)
        return []

    monkeypatch.setattr(smollm2_skills.Queue, "run", noted)
    known = [{"kind": "rate", "rate": 4e-5}, *lines(2, {}), ended("plain", 2, 5)]
    (tmp_path / "kept.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known))
    smollm2_skills.run_all(Study(tmp_path / "work"), 2, 100)
    assert asked[:3] == ["start_2", "first_2", "run_plain_2"] and len(asked) == 4 * (2 + len(ARMS))


def test_the_second_round_has_seeds_of_its_own_and_differs_from_the_first_by_rows_alone() -> None:
    second = ROUNDS[2]
    assert second.seeds == tuple(range(6, 12)) and not {*second.seeds} & {*ROUNDS[1].seeds, smollm2_arms.PILOT}
    assert tuple(second.arms) == ("plain", "average", "l2", "kl_full_8", "kl_full_16")
    for count in (8, 16):
        changed = [word for word in second.arms[f"kl_full_{count}"] if word not in ARMS["kl_full"]]
        assert changed == [f"guard.rows={count}"] and len(second.arms[f"kl_full_{count}"]) == len(ARMS["kl_full"])
    for words in second.arms.values():
        Study(Path("nowhere")).recipe(6, *words, *(['guard.protected=["countdown"]'] if words else []))
    assert Study(Path("nowhere")).rate() == 8e-5, "chosen by the first round's pilot"


def test_rounds_are_told_apart_in_one_file_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = [
        ended(arm, seed, 20 + seed - {"kl_full_8": 18, "average": 10}.get(arm, 0))
        for seed in ROUNDS[2].seeds
        for arm in ROUNDS[2].arms
    ]
    rows = lines(4, {"l2": 18}) + second
    assert list(complete(rows)) == [3, 2, 1, 0] and sorted(complete(rows, ROUNDS[2])) == [6, 7, 8, 9, 10, 11]
    assert smollm2_report.report(rows) == smollm2_report.report(lines(4, {"l2": 18}))
    text = smollm2_report.report(rows, ROUNDS[2])
    assert "### 6 complete seeds: 6, 7, 8, 9, 10, 11." in text and "| kl_full_16 | 6 |" in text and "| safe" not in text
    row = next(line for line in text.splitlines() if line.startswith("| kl_full_8 | 6 |"))
    assert "| -18.0 [-18.0, -18.0] | 0.000 |" in row
    gap = next(line for line in text.splitlines() if line.startswith("| kl_full_8 − average |"))
    assert "| +0.048 [" in gap and gap.endswith("| 0.000 |")
    asked: list[str] = []
    monkeypatch.setattr(smollm2_arms, "KEPT", tmp_path / "kept.jsonl")
    monkeypatch.setattr(smollm2_skills.Queue, "run", lambda queue, jobs: asked.extend(job.name for job in jobs) or [])
    known = [{"kind": "rate", "rate": 8e-5}, *rows[: -len(ROUNDS[2].arms)]]
    (tmp_path / "kept.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known))
    smollm2_skills.run_all(Study(tmp_path / "work"), 2, 100, ROUNDS[2])
    assert asked == ["start_11", "first_11", *(f"run_{arm}_11" for arm in ROUNDS[2].arms)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.long), 2])
def test_every_arm_runs_on_nano_from_one_start(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="nano needs torch")
    monkeypatch.setattr(smollm2_arms, "KEPT", tmp_path / "kept.jsonl")
    small = ["engine.model=nano", "data.train_size=24", "data.dev_size=6", "rollout.n=2", "rollout.max_tokens=8",
             "sft.steps=2", "sft.batch_size=4", "sft.references=12", "grpo.batch_size=3"]  # fmt: skip
    study, began = Study(tmp_path / "work", 1, small), time.time()
    asked, seed = ROUNDS[number], ROUNDS[number].seeds[0]
    smollm2_skills.start(study, seed)
    study.note({"kind": "rate", "rate": 4e-5})
    smollm2_skills.first(study, seed)
    for arm in asked.arms:
        smollm2_skills.run(study, arm, seed)
    found = complete(study.rows("run"), asked)
    assert list(found) == [seed] and all(len(row["rights"]) == 4 for row in found[seed].values())
    assert all(0 < row["seconds"] < time.time() - began for row in found[seed].values())
    assert "### 1 complete seeds" in smollm2_report.report(study.rows("run"), asked)
