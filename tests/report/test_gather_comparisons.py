"""Several runs or evaluations become one document that compares them as `rlvr compare` does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from gathered import sections

from rlvrlab.errors import UserError
from rlvrlab.evals.compare import compare_folders
from rlvrlab.evals.statistics import compare
from rlvrlab.record.evaluation import evaluations_of, read_evaluation
from rlvrlab.report.gather import gather
from rlvrlab.report.gather.overview import result
from rlvrlab.report.run_record import RunRecord


def test_two_evaluations_are_compared_as_rlvr_compare_does(records) -> None:
    found = sections(gather([records / "base", records / "best"]))
    truth = compare_folders([read_evaluation(records / "base")], [read_evaluation(records / "best")])
    shown = {row["what"]: row for row in found["paired"]["tables"][0]["rows"]}
    for row in truth.measures:
        assert (
            shown[row.what]["difference"]["mean"] == row.difference.mean
            and shown[row.what]["difference"]["p"] == row.difference.p
        )
    texts, columns = found["rollouts"]["texts"], found["rollouts"]["columns"]
    prompts = {
        side: {p for p, s in zip(columns["prompt"], columns["side"], strict=True) if s == side}
        for side in set(columns["side"])
    }
    one, other = prompts.values()
    assert one == other and len(one) == 12 and len({texts[side] for side in prompts}) == 2
    assert all(json.dumps(texts[side]) in json.dumps(found["paired"]) for side in prompts), "both have their names"


def test_runs_of_one_recipe_are_told_by_their_mean_with_its_interval(records) -> None:
    runs = [RunRecord(records / name) for name in ("run", "seed")]
    told = sections(gather([run.root for run in runs]))["answer"]
    assert told["word"] == "One recipe, 2 runs" and "nothing to compare it with" in told["caution"]
    role = told["role"].removeprefix("accepted@1 on ").removesuffix(" problems")
    shares = [next(one.accuracy for one in result(run) if one.role == role) for run in runs]
    assert told["after"]["value"] == pytest.approx(sum(shares) / 2, abs=1e-3)
    assert told["after"]["low"] < told["after"]["value"] < told["after"]["high"] and "mean of 2 seeds" in told["about"]


def test_runs_are_arms_and_seeds(records) -> None:
    document = gather([records / name for name in ("run", "seed", "changed")])
    found = sections(document)
    assert document["subtitle"] == "3 runs in 2 arms"
    assert [row[0] for row in found["recipe"]["rows"]] == ["grpo.learning_rate"]
    two, one = found["curves"]["main"]["series"]
    rows = [
        [json.loads(line) for line in (records / name / "logs/metrics.jsonl").read_text().splitlines()]
        for name in ("run", "seed")
    ]
    for step, mean, low, high in zip(two["x"], two["y"], two["low"], two["high"], strict=True):
        values = [
            row["val-core/countdown/acc"]
            for run in rows
            for row in run
            if row["step"] == step and "val-core/countdown/acc" in row
        ]
        assert mean == pytest.approx(sum(values) / len(values), rel=1e-4)
        assert (low, high) == (pytest.approx(min(values), rel=1e-4), pytest.approx(max(values), rel=1e-4))
    assert "seeds" not in one and two["seeds"] == 2
    sides = [
        [read_evaluation(evaluations_of(records / n)[-1]) for n in names] for names in (("run", "seed"), ("changed",))
    ]
    truth = compare_folders(*sides)
    assert found["paired"]["tables"][0]["rows"][0]["difference"]["mean"] == truth.measures[0].difference.mean


def test_runs_without_verdicts_on_the_same_problems_have_no_paired_test(records, tmp_path) -> None:
    folders = []
    for name in ("run", "changed"):
        folders.append(Path(shutil.copytree(records / name, tmp_path / name)))
        shutil.rmtree(folders[-1] / "evaluations")
    assert sections(gather(folders))["paired"]["notes"][0] == "12 test problems.", "the cards have them"
    for folder in folders:
        shutil.rmtree(folder / "analysis/cards")
    document = gather(folders)
    assert "paired" not in sections(document) and any(m["what"] == "paired test" for m in document["missing"])


def test_the_cards_that_are_compared_are_those_of_the_final_policies(records, tmp_path) -> None:
    """The eleventh card is after the second, a control's card is nobody's result, and evaluations apart are no help."""
    folders = [Path(shutil.copytree(records / name, tmp_path / name)) for name in ("run", "changed")]
    names = sorted(json.loads((folders[0] / "analysis/cards/1_sft.json").read_text())["outcomes"])
    truth = ({name: float(i < 3) for i, name in enumerate(names)}, {name: float(i < 9) for i, name in enumerate(names)})
    for folder, outcomes, index in zip(folders, truth, ("10", "3"), strict=True):
        asked = {"data": "countdown", "scorer": {"version": "2"}, "protocol_hash": f"hash {index}"}
        card = {"phase": "late", "step": 99, "metrics": {}, "outcomes": outcomes, "control": False, "asked": asked}
        (folder / f"analysis/cards/{index}_late.json").write_text(json.dumps(card))
        (folder / "analysis/cards/11_control.json").write_text(json.dumps(card | {"control": True, "phase": "control"}))
        for path in folder.glob("evaluations/*/samples.jsonl"):
            path.unlink()
    shown = sections(gather(folders))["paired"]
    [row] = shown["tables"][0]["rows"]
    assert (row["before"], row["after"], row["difference"]["mean"]) == (0.25, 0.75, 0.5)
    assert row["difference"]["p"] == compare([0.0] * 12, [1.0] * 6 + [0.0] * 6).p < 0.05, "six won, none lost"
    assert "run: late, step 99; changed: late, step 99" in shown["notes"][1]
    assert any(note.startswith("The cards differ in their protocol;") for note in shown["notes"])
    for folder in folders:
        [path] = folder.glob("analysis/cards/*_late.json")
        path.write_text(json.dumps({"outcomes": {f"{folder.name} {name}": 1.0 for name in names}}))
    document = gather(folders)
    assert "paired" not in sections(document)
    assert any("different problems" in one["why"] for one in document["missing"])


def test_compared_runs_share_the_room_for_answers_and_say_whose_steps_are_left_out(
    records, tmp_path, monkeypatch
) -> None:
    folders = [Path(shutil.copytree(records / name, tmp_path / name)) for name in ("run", "changed")]
    for folder in folders:
        shutil.rmtree(folder / "evaluations")
        line = next((folder / "rollouts").glob("step_*.jsonl")).read_text(encoding="utf-8").splitlines()[0]
        for step in range(1, 9):
            (folder / f"rollouts/step_{step}.jsonl").write_text(f"{line}\n" * 4, encoding="utf-8")
    monkeypatch.setattr("rlvrlab.report.gather.comparison.MOST", 24)
    shown = sections(gather(folders))["rollouts"]
    sides = [shown["texts"][index] for index in shown["columns"]["side"]]
    assert len(sides) == 24 and all(sides.count(side) == 12 for side in set(sides)) and len(set(sides)) == 2
    assert [note.partition(": ")[2][:6] for note in shown["notes"]] == ["3 of 8", "3 of 8"]
    assert {note.partition(": ")[0] for note in shown["notes"]} == set(sides)


def test_runs_and_evaluations_do_not_mix(records) -> None:
    with pytest.raises(UserError, match="side by side"):
        gather([records / "run", records / "base"])


def test_a_seed_that_is_there_twice_is_no_second_seed(records, tmp_path) -> None:
    again = Path(shutil.copytree(records / "run", tmp_path / "again"))
    document = gather([records / "run", again])
    assert "2 seeds" not in document["title"] and document["subtitle"] == "2 runs in 2 arms"
    assert [row[0] for row in sections(document)["arms"]["rows"]][1].endswith("(again)")
