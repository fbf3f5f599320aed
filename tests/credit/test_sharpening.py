"""Learning or sharpening: matched arms from one start, and planted learning and sharpening told apart by the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"))
import sharpening
from sharpening import KS, PHASES, SAMPLES, SEEDS, STEPS


def line(name: str, seed: int, solved: int, times: int) -> dict:
    """So many of 150 problems are right in so many of 64 answers, the others in none."""
    solved -= seed % 3
    facts = {"name": name, "seed": seed, "steps": STEPS, "samples": SAMPLES, "skipped": 0, "cpu_s": 1.0}
    return facts | {
        "greedy": [int(i < solved) for i in range(150)],
        "right": [times * (i < solved) for i in range(150)],
    }


def planted(verified: tuple[int, int]) -> list[dict]:
    """The start is right on 90 problems in a quarter of its answers; a coin leaves it so, more SFT makes it surer."""
    arms = {"start": (90, 16), "verified": verified, "random": (90, 16), "more_sft": (90, 20)}
    return [line(name, seed, *arm) for seed in SEEDS for name, arm in arms.items()]


def shown(rows: list[dict]) -> dict[str, str]:
    text = sharpening.comparisons_table(sharpening.whole(rows))
    return {one.split(" | ")[0].strip("| "): one for one in text.splitlines()[2:]}


def test_the_arms_are_matched_as_declared() -> None:
    assert (len(SEEDS), STEPS, SAMPLES, KS[-1], len(sharpening.COMPARISONS)) == (8, 100, 64, 64, 5)
    tables = {}
    for arm, phases in PHASES.items():
        resolved = sharpening.recipe(60, sharpening.words_of(arm, 60, STEPS))
        trained, recipe = resolved.recipe.phase_tables[phases[-1]], resolved.recipe
        tables[arm] = (trained["steps"], trained["batch_size"], recipe.data.dev_size, recipe.seed, recipe.optimizer)
        reward = recipe.reward or {}
        assert (reward.get("type") == "random", reward.get("seed")) == (
            (True, 60) if arm == "random" else (False, None)
        )
        assert list(recipe.phases) == list(phases)
    assert len(set(map(str, tables.values()))) == 1 and tables["verified"][:4] == (100, 32, 150, 60)
    sft = sharpening.recipe(60, []).recipe.phase_tables
    assert sft["more_sft"]["references"] == sft["sft"]["references"] == 250


def test_pass_at_k_is_the_estimator_without_bias() -> None:
    row = {"samples": 4, "right": [0, 1, 4]}
    assert sharpening.pass_at(row, 1) == pytest.approx((0 + 0.25 + 1) / 3)
    assert sharpening.pass_at(row, 2) == pytest.approx((0 + 0.5 + 1) / 3), "1 − C(3, 2) / C(4, 2) = 1/2"
    assert sharpening.pass_at(row, 4) == pytest.approx(2 / 3)


def test_sharpening_raises_pass_at_1_alone_and_learning_both() -> None:
    surer = shown(planted((90, 48)))
    assert len(surer) == 10
    assert "+29.7 [" in surer["pass@1: verified − start"] and surer["pass@1: verified − random"].endswith("| 0.000 |")
    assert surer["pass@64: verified − start"].endswith("+0.0 [+0.0, +0.0] | 1.000 |")
    learnt = shown(planted((120, 48)))
    assert "+20.0 [" in learnt["pass@64: verified − start"] and learnt["pass@64: verified − start"].endswith("0.000 |")
    assert learnt["pass@1: random − start"].endswith("1.000 |")


def test_the_report_waits_for_every_run_and_keeps_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharpening, "LINES", tmp_path / "lines.jsonl")
    monkeypatch.setattr(sharpening, "RESULTS", tmp_path / "results.json")
    trial = line("verified", SEEDS[0], 90, 48) | {"steps": 2}
    rows = [trial, *planted((90, 48))]
    for some in ([], rows[:-1]):
        sharpening.LINES.write_text("".join(json.dumps(row) + "\n" for row in some))
        with pytest.raises(SystemExit, match="of 32 runs are missing"):
            sharpening.report()
    sharpening.LINES.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = sharpening.report()
    assert "| verified | 59.4 |" in text and len(json.loads(sharpening.RESULTS.read_text())) == 32
    sharpening.LINES.unlink()
    assert sharpening.report() == text, "from the kept results alone"


@pytest.mark.slow
def test_a_short_run_of_every_arm_leaves_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="nano needs torch")
    whole, few = sharpening.recipe, ["sft.steps=2", "data.dev_size=6", "data.train_size=60", "sft.references=40"]
    small = [*few, "more_sft.references=40", "grpo.batch_size=2", "more_sft.batch_size=2"]

    def little(seed: int, words: list[str]) -> sharpening.Resolved:
        phases = json.loads(words[0].removeprefix("phases="))
        return whole(seed, [*words, *(word for word in small if word.split(".")[0] in ("data", *phases))])

    monkeypatch.setattr(sharpening, "recipe", little)
    monkeypatch.setattr(sharpening, "WORK", tmp_path)
    for name in ("start", *PHASES):
        row = sharpening.run((name, 60, 2, 4))
        assert len(row["greedy"]) == len(row["right"]) == 6 and 0 <= max(row["right"]) <= 4
