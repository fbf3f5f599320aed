"""What a run leaves in analysis/ when it ends: pictures, their tables, and sentences with numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rlvrlab.cli import main
from rlvrlab.evals.cards import Card
from rlvrlab.report.csv_tables import write_tables
from rlvrlab.report.gather import gather
from rlvrlab.report.story.part import bars, heat
from rlvrlab.report.story.write import write_story
from rlvrlab.shares import bracket, points

RECIPE = {"name": "told", "question": "?", "phases": ["grpo"], "env": {"type": "x"}, "reward": {"type": "binary"},
          "engine": {"type": "toy"},
          "credit": {"type": "counterfactual"}, "rollout": {"n": 4}}  # fmt: skip
SUCCESS = {0: (0.10, 0.50), 10: (0.60, 0.50), 20: (0.55, 0.20)}
"""Success on a and b, of 100 problems each: b is forgotten while a is trained."""


def test_nothing_is_minus_nought() -> None:
    assert bracket(-1e-9, 0.113, 100, 1) == " [0.0, 11.3]"
    assert points(-1e-9) == "+0.0 points" and points(-0.01) == "-1.0 points"


def metrics() -> list[dict]:
    rows = []
    for step in range(21):
        row = {"step": step, "phase": "grpo", "phase_step": step}
        if step:
            row |= {"groups/zero_variance": 0.5, "train/acc": 0.3, "reward/correct": 0.3, "reward/format": 0.9}
            row |= {"surgery/cosine/a/b": -0.4 + 0.01 * (step % 2), "surgery/conflict_rate": 1.0, "credit/replays": 7.0}
            row |= {"surgery/noise_floor": 0.1, "surgery/permutation_p": 0.01, "surgery/self_cosine/a": 0.8}
        if step in SUCCESS:
            a, b = SUCCESS[step]
            row |= {"val-core/x/acc": (a + b) / 2, "val-core/x/acc_low": 0.0, "val-core/x/acc_high": 1.0}
            row |= {"val-core/x/a/acc": a, "val-core/x/a/n": 100, "val-core/x/b/acc": b, "val-core/x/b/n": 100}
        rows.append(row)
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("logs", "rollouts", "analysis"):
        (tmp_path / name).mkdir()
    config = {"schema": 1, "recipe": RECIPE, "changed": {}, "origins": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "run_info.json").write_text(json.dumps({"status": "finished", "ended": "t"}))
    (tmp_path / "logs/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics()))
    events = [{"kind": "stage", "text": f"stage {i + 1} of 2 begins: {s}", "step": 1 + 10 * i, "time": "t"} for i, s in
              enumerate("ab")]  # fmt: skip
    (tmp_path / "logs/events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    known = [(0, 4, "assign", 0.0), (5, 9, "return", 1.0), (10, 11, "expr", None)]
    steps = [dict(zip(("start", "end", "kind", "credit"), one, strict=True)) for one in known]
    row = {"id": "r", "problem": "p", "skill": "a", "completion": "x=1\n ret\n z", "correct": True, "steps": steps}
    (tmp_path / "rollouts/step_5.jsonl").write_text((json.dumps(row) + "\n") * 3)
    return tmp_path


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "analysis/tables" / f"{name}.csv").read_text().splitlines()))


def test_every_kind_of_finding_is_told_drawn_and_tabled(folder: Path) -> None:
    written = {path.name for path in write_story(folder)}
    drawn = [
        "learning",
        "forgetting_curves",
        "skills_end",
        "retention",
        "conflict_matrix",
        "conflict_cosines",
        "conflict_rate",
        "noise_floor",
        "credit_by_kind",
    ]
    drawn += ["credit_by_line", "reward_parts", "signal"]
    assert {f"{name}.svg" for name in drawn} | {f"{name}.csv" for name in drawn} <= written
    assert "tools.svg" not in written, "there were none"
    for path in (folder / "analysis/figures").iterdir():
        ElementTree.fromstring(path.read_text())
    told = (folder / "EXPERIMENT.md").read_text()
    for words in (
        "the worst is b with 20.0 % [12.6, 30.3]",
        "Lost since the peak beyond chance, in points: b 30.0 [",
        "In a step that has pairs of groups (20), 100 % of them point against each other (cosine below 0).",
        "so the conflict is more than noise",
        "return +1.00 (3), assign +0.00",
        "It took 140 replays in 20 steps",
        "**grpo** took accepted@1 on dev problems from 30.0 % to 37.5 %",
        "| grpo | 30.0 % [0.0, 100.0] | 55.0 % (10) | 37.5 % [0.0, 100.0] |",  # the best was chosen: no interval
    ):
        assert words in told, words


def test_episodes_with_tools_are_told_by_turns_and_calls(folder: Path) -> None:
    log, rows = folder / "logs/metrics.jsonl", metrics()
    for row in rows[1:]:
        row |= {"agent/turns": 2.0, "agent/calls": 0.05 * row["step"], "agent/failed_calls": 0.5}
        row["agent/calls/sql"] = 0.05 * row["step"]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {"tools.svg", "tools.csv"} <= {path.name for path in write_story(folder)}
    ElementTree.fromstring((folder / "analysis/figures/tools.svg").read_text())
    calls = "0.15 [0.05, 0.25] → 0.90 [0.80, 1.00]"
    told = f"turns 2.00 → 2.00, calls {calls}, share of calls that failed 0.50 → 0.50, calls of sql {calls}."
    assert told in (folder / "EXPERIMENT.md").read_text()
    assert {"what": "calls", "step": "20", "value": "1.0"} in table(folder, "tools")


def test_the_tables_hold_the_numbers_of_the_record(folder: Path) -> None:
    write_story(folder)
    assert table(folder, "credit_by_line") == [
        {"line": "1", "mean_credit": "0.0", "low": "", "high": "", "steps": "3", "share_with_credit": "0.0"},
        {"line": "2", "mean_credit": "1.0", "low": "", "high": "", "steps": "3", "share_with_credit": "1.0"},
    ]
    rows = {row["stage"]: (float(row["a"]), float(row["b"])) for row in table(folder, "retention")}
    assert rows == {"before": SUCCESS[0], "after a": SUCCESS[10], "after b": SUCCESS[20]}
    [pair] = table(folder, "conflict_matrix")
    assert float(pair["mean_cosine"]) == pytest.approx(-0.395) and (pair["group"], pair["other"]) == ("a", "b")


def test_a_share_of_pairs_counts_steps_that_had_one_and_says_what_is_low(folder: Path) -> None:
    """Three of four steps with a pair point against each other; thirty had one group and say 0, as older records do."""
    rows = [{"step": step, "phase": "grpo", "phase_step": step, "surgery/conflict_rate": 0.0} for step in range(1, 31)]
    for row, cosine in zip(rows[::9], (-0.2, -0.1, -0.3, 0.5), strict=True):
        row |= {"surgery/cosine/a/b": cosine, "surgery/conflict_rate": 1.0}
    (folder / "logs/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"schema": 1, "recipe": RECIPE | {"surgery": {"type": "pcgrad", "conflict_threshold": 0.9}}}
    config |= {"changed": {}, "origins": {}}
    (folder / "config.json").write_text(json.dumps(config))
    write_story(folder)
    told = (folder / "analysis/findings.md").read_text()
    against = (
        "In a step that has pairs of groups (4), 75 % [0, 100] of them point against each other (cosine below 0); "
    )
    assert f"{against}100 % have a cosine below the threshold of 0.9." in told
    assert "disagree" not in told
    shares = [float(row["share_of_pairs"]) for row in table(folder, "conflict_rate") if row["cosine"] == "below 0"]
    assert shares == [1.0, 1.0, 1.0, 0.0]


def test_what_is_told_of_skills_has_the_intervals_of_its_table(folder: Path) -> None:
    write_story(folder)
    told = (folder / "analysis/findings.md").read_text()
    rows = {row["skill"]: row for row in table(folder, "skills_end")}
    low, high = (100 * float(rows["b"][f"end_{side}"]) for side in ("low", "high"))
    assert f"the worst is b with 20.0 % [{low:.1f}, {high:.1f}]." in told
    changes = [f"{skill} {100 * float(row['change']):+.1f} [" for skill, row in rows.items()]
    assert all(f"{one}{100 * float(rows[one[0]]['change_low']):+.1f}, " in told for one in changes)
    assert "ends at 37.5 % [" in told and "learning 40.0 % [" in told and "backward transfer -5.0 [-18.3, +8.6]" in told
    metrics = {row["metric"]: float(row["value"]) for row in table(folder, "retention_metrics")}
    assert (
        metrics["backward_transfer"] == pytest.approx(-0.05) and {"forward_transfer", "oscillation"} <= metrics.keys()
    )
    assert f"forward transfer {100 * metrics['forward_transfer']:+.1f}" in told


def test_what_a_guard_did_is_told_in_numbers(folder: Path) -> None:
    log, rows = folder / "logs/metrics.jsonl", metrics()
    for row in rows[1:]:
        bent = row["step"] in (4, 8)
        row |= {"guard/active": float(bent), "guard/correction": 0.1 * row["step"] * bent, "guard/relaxed": 0.0}
        row |= {"guard/a/change": -0.001 * row["step"], "guard/a/epsilon": 0.02, "guard/b/change": 0.5}
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"schema": 1, "recipe": RECIPE | {"guard": {"type": "skill_safe"}}, "changed": {}, "origins": {}}
    (folder / "config.json").write_text(json.dumps(config))
    assert {"guard.csv", "guard.svg", "guard_change.csv"} <= {path.name for path in write_story(folder)}
    assert (
        "**Guard** (skill_safe). It bent 2 of the 20 steps in which a skill was protected, on average by 0.6 and at "
        "most by 0.8 of the step's length. The most that a step was expected to cost a protected skill (to first "
        "order, in its objective) is 0.02: a, step 20, where 0.02 was allowed."
    ) in (folder / "EXPERIMENT.md").read_text()


@pytest.mark.parametrize(("held", "told"), [
    (lambda step: float(step > 10), "**Guard** (l2). It held 1 skill at most, in 10 of 20 steps."),
    (lambda step: 0.0, "**Guard** (l2). No step had a skill that it protects, so it did nothing."),
])  # fmt: skip
def test_a_guard_that_bends_no_step_says_when_it_held_something(folder: Path, held: Any, told: str) -> None:
    log, rows = folder / "logs/metrics.jsonl", metrics()
    for row in rows[1:]:
        row |= {"guard/protected": held(row["step"])}
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"schema": 1, "recipe": RECIPE | {"guard": {"type": "l2"}}, "changed": {}, "origins": {}}
    (folder / "config.json").write_text(json.dumps(config))
    assert {"guard.csv", "guard.svg"} <= {path.name for path in write_story(folder)}
    said = (folder / "EXPERIMENT.md").read_text()
    assert told in said and "without `[guard]` (`rlvr compare`)" in said


def test_a_rounding_error_is_no_cost_of_a_guarded_step(folder: Path) -> None:
    log, rows = folder / "logs/metrics.jsonl", metrics()
    for row in rows[1:]:
        row |= {"guard/active": 1.0, "guard/correction": 0.1, "guard/a/change": -1.1e-16, "guard/a/epsilon": 0.0}
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_story(folder)
    assert "No step was expected to cost a protected skill anything" in (folder / "EXPERIMENT.md").read_text()


@pytest.mark.parametrize(("completion", "credits", "told"), [
    ("x=1\n ret", (0.0, 1.0), "By place: +0.00 on line 1, +1.00 on line 2."),
    ("x=1; ret", (0.0, 1.0), ""),
    ("x=1\n ret", (0.0, 0.001), ""),
])  # fmt: skip
def test_places_are_told_where_two_earn(folder: Path, completion: str, credits: tuple[float, ...], told: str) -> None:
    places = zip((0, 5), credits, strict=True)
    steps = [{"start": start, "end": start + 3, "kind": "k", "credit": one} for start, one in places]
    row = {"id": "r", "problem": "p", "skill": "a", "completion": completion, "correct": True, "steps": steps}
    (folder / "rollouts/step_5.jsonl").write_text(json.dumps(row) + "\n")
    write_story(folder)
    findings = (folder / "analysis/findings.md").read_text()
    assert told in findings if told else "By place" not in findings and "**Step credit**" in findings


def test_noise_is_not_called_conflict(folder: Path) -> None:
    log = folder / "logs/metrics.jsonl"
    log.write_text(log.read_text().replace('"surgery/permutation_p": 0.01', '"surgery/permutation_p": 0.6'))
    write_story(folder)
    assert "nothing here tells this conflict from noise" in (folder / "analysis/findings.md").read_text()


def test_experiment_md_points_to_an_earlier_state_that_was_better(folder: Path) -> None:
    log, rows = folder / "logs/metrics.jsonl", metrics()
    write_story(folder)
    assert "@best: `rlvr eval" not in (folder / "EXPERIMENT.md").read_text(), "it may be luck"
    for step, accuracy in ((10, 0.8), (20, 0.2)):
        ends = {"val-core/x/acc_low": accuracy - 0.1, "val-core/x/acc_high": accuracy + 0.1}
        rows[step] |= {"val-core/x/acc": accuracy, **ends}
    (folder / "analysis/findings.md").unlink()
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_story(folder)
    told = "An earlier state was better beyond chance: dev 80.0 % at step 10, 20.0 % at step 20."
    text = (folder / "EXPERIMENT.md").read_text()
    assert told in text and f"`rlvr eval --run {folder}@best`" in text


def test_a_story_is_told_once_and_a_strange_record_costs_only_its_part(folder: Path) -> None:
    (folder / "rollouts/step_5.jsonl").write_text('{"steps": [{"credit": 1, "start": "x"}]}\n')
    assert write_story(folder) and "credit: could not be told" in (folder / "analysis/findings.md").read_text()
    assert write_story(folder) == []


def test_training_ends_with_its_story(tmp_path: Path, monkeypatch, capsys) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'name = "r"\nphases = ["sft"]\n[env]\ntype = "countdown"\nnumbers = [2]\nstyle = "bare"\n'
        '[engine]\ntype = "toy"\n[data]\ntrain_size = 20\ndev_size = 4\n[sft]\nsteps = 1\nbatch_size = 4\n'
        "[eval]\ntest_size = 6\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["rlvr", "train", "r.toml"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    [run] = (tmp_path / "experiments").iterdir()
    assert (run / "analysis/figures/learning.svg").exists() and "## Answer" in (run / "EXPERIMENT.md").read_text()
    ElementTree.parse(run / "analysis/figures/phases.svg")
    ended = {path.name: path.read_bytes() for path in (run / "analysis/tables").iterdir()}
    assert {"phases.csv", "metrics.csv"} <= ended.keys(), "without a further command"
    later = {path.name: path.read_bytes() for path in write_tables(gather(run), run, tmp_path / "tables")}
    assert all(later[name] == ended[name] for name in ("phases.csv", "metrics.csv")), "a report says the same"


def test_names_in_pictures_are_text() -> None:
    drawn = heat("a<b", ["<script>"], ["&"], [[None]])
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn
    assert ElementTree.fromstring(bars("t", [("x", -1.0, None, None)], "y")) is not None


def test_where_there_are_test_problems_the_answer_is_about_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"sft": 10, "grpo": 30}
    cards = [Card(name, 0, {}, {f"p{i}": float(i < n) for i in range(40)}, False) for name, n in right.items()]
    monkeypatch.setattr("rlvrlab.report.story.learning.read_cards", lambda _: cards)
    write_story(folder)
    told = (folder / "analysis/findings.md").read_text()
    assert "grpo raised accepted@1: test 25.0 → 75.0 %, +50.0 points [" in told and "dev problems from" not in told
