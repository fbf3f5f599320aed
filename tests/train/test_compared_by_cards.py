"""Two runs are compared by the cards that training made of them, where no evaluation asks the same of both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import runs

import rlvrlab
from rlvrlab.errors import NotAlike, UserError
from rlvrlab.evals.cards import change, read_cards
from rlvrlab.evals.compare_runs import compare_named
from rlvrlab.train.extension import extend
from rlvrlab.train.session import resume

SETTINGS = ("eval.test_size=12", "sft.steps=12", "grpo.steps=2", "eval.every=0")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs by name: two that were asked the same, one of fewer problems, one of longer answers, one without cards."""
    short = ('phases=["sft"]', "sft.steps=1")
    asked = {"one": ("seed=1",), "two": ("seed=2", "sft.steps=2"), "few": (*short, "eval.test_size=6"),
             "long": (*short, "rollout.max_tokens=9"), "bare": (*short, "eval.test_size=0")}  # fmt: skip
    folder = tmp_path_factory.mktemp("trained")
    return {
        name: runs.run(folder / name, *SETTINGS, *overrides, text=runs.ONLINE).folder
        for name, overrides in asked.items()
    }


@pytest.fixture
def made(trained: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """Copies, which a test may change."""
    return {name: Path(shutil.copytree(run, tmp_path / run.name)) for name, run in trained.items()}


def edit_cards(run: Path, **changes: object) -> None:
    for path in (run / "analysis" / "cards").glob("*_*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_outcomes_of_the_last_cards_are_paired(trained: dict[str, Path]) -> None:
    one, two = trained["one"], trained["two"]
    found = compare_named([one], [two])
    truth = change(read_cards(one)[-1], read_cards(two)[-1])
    [row] = found.measures
    assert (row.what, row.difference.mean, row.difference.low) == ("accepted@1", truth.mean, truth.low)
    assert row.before > row.after and (found.problems, found.left_out, found.bounds) == (12, 0, None)
    assert found.notes[0].startswith("Compared by what training measured") and found.roles == ("test",)
    assert found.runs == ((one.name,), (two.name,)) and found.checkpoints == ("step 14", "step 4")
    assert json.loads(json.dumps(found.facts()))["measures"][0]["verdict"] == row.verdict


def test_the_same_answers_on_both_sides_are_noted(trained: dict[str, Path], tmp_path: Path) -> None:
    """One recipe and seed trained twice make one policy, which is no finding about a difference."""
    again = runs.run(tmp_path / "again", *SETTINGS, "seed=1", text=runs.ONLINE).folder
    [note] = [one for one in compare_named([trained["one"]], [again]).notes if "hold the same answers" in one]
    assert trained["one"].name in note and again.name in note
    assert "hold the same answers" not in "".join(compare_named([again], [trained["two"]]).notes)
    for path in (again / "analysis" / "cards").glob("*.answers.jsonl"):
        path.unlink()
    assert "hold the same answers" not in "".join(compare_named([trained["one"]], [again]).notes), "nothing is known"


def test_a_checkpoint_is_compared_by_its_own_card(trained: dict[str, Path]) -> None:
    one = trained["one"]
    found = compare_named([Path(f"{one}@base")], [Path(f"{one}@12")])
    first, second, _ = read_cards(one)
    assert found.measures[0].difference.mean == change(first, second).mean > 0
    assert found.checkpoints == ("base", "step 12")
    with pytest.raises(NotAlike, match="has none of step 13, only of base, step 12, step 14"):
        compare_named([Path(f"{one}@13")], [one])
    with pytest.raises(UserError, match="@14 stands on both sides, so there is nothing to compare"):
        compare_named([one], [one])
    with pytest.raises(UserError, match="are evaluations of one run"):
        compare_named([one, Path(f"{one}@12")], [trained["two"]])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("few", "were asked different problems (12 and 6)"),
        (
            "long",
            "differ in their protocol: rollout.max_tokens (rlvr eval --max-tokens) 8 and 9; evaluate both alike",
        ),
        ("bare", "has none (eval.test_size makes them)"),
    ],
)
def test_what_was_not_asked_alike_is_told_with_the_command_that_helps(
    trained: dict[str, Path], other: str, why: str
) -> None:
    with pytest.raises(NotAlike) as refused:
        compare_named([trained["one"]], [trained[other]])
    text = str(refused.value)
    assert why in text and f"`rlvr eval --run {trained['one']}` does" in text and "\n" not in text


@pytest.mark.parametrize("cards", ["two", "bare"])
def test_runs_of_two_tasks_are_not_told_to_be_evaluated(made: dict[str, Path], cards: str) -> None:
    path = made[cards] / "run_info.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"data": facts["data"] | {"environment": "my_task"}}))
    with pytest.raises(NotAlike, match=r"^compare: .* differ in their data set: countdown and my_task; ") as refused:
        compare_named([made["one"]], [made[cards]])
    assert "rlvr eval" not in str(refused.value) and "`rlvr compare RUN@base RUN`" in str(refused.value)


def test_with_anyway_only_the_problems_must_be_the_same(trained: dict[str, Path]) -> None:
    found = compare_named([trained["one"]], [trained["long"]], anyway=True)
    assert found.problems == 12 and any("--max-tokens) 8 and 9" in note for note in found.notes)
    with pytest.raises(NotAlike, match="different problems"):
        compare_named([trained["one"]], [trained["few"]], anyway=True)


def test_the_card_from_before_a_run_was_made_longer_is_still_there(made: dict[str, Path]) -> None:
    extend(made["two"], ["grpo.steps=+2"])
    resume(made["two"], runs.quiet)
    found = compare_named([Path(f"{made['two']}@4")], [made["two"]])
    assert found.checkpoints == ("step 4", "step 6") and found.problems == 12


def test_another_scorer_or_an_older_card_is_refused(made: dict[str, Path]) -> None:
    asked = read_cards(made["two"])[-1].asked
    edit_cards(made["two"], asked=asked | {"scorer": asked["scorer"] | {"version": "another"}})
    with pytest.raises(NotAlike, match="differ in their scorer: version"):
        compare_named([made["one"]], [made["two"]])
    edit_cards(made["two"], asked=None)
    with pytest.raises(NotAlike, match="are of an earlier version and do not record what was asked"):
        compare_named([made["one"]], [made["two"]])


def test_what_could_not_be_judged_is_left_out_and_bounded(made: dict[str, Path]) -> None:
    outcomes = {key: float(i % 2) for i, key in enumerate(sorted(read_cards(made["one"])[-1].outcomes))}
    edit_cards(made["one"], outcomes=outcomes)
    edit_cards(made["two"], outcomes=dict(list(outcomes.items())[3:]))
    found = compare_named([made["one"]], [made["two"]])
    assert (found.problems, found.left_out) == (9, 3) and found.measures[0].difference.mean == 0
    assert found.bounds == pytest.approx((5 / 12 - 6 / 12, 8 / 12 - 6 / 12))
    assert "between -8.3 and +16.7 points" in found.notes[-1]


def test_an_evaluation_that_matches_goes_before_cards_and_python_makes_one_only_without(made: dict[str, Path]) -> None:
    one, two = (str(made[name]) for name in ("one", "two"))
    by_cards = rlvrlab.compare(one, two)
    assert by_cards.notes[0].startswith("Compared by what training measured") and not list(
        made["one"].glob("evaluations/*")
    )
    rlvrlab.evaluate(one, size=12, progress=False)
    assert rlvrlab.compare(one, two).notes == by_cards.notes, "one side alone is no pair"
    rlvrlab.evaluate(two, size=12, progress=False)
    found = rlvrlab.compare(one, two)
    assert len(found.compared.measures) > 1 and not any("cards" in note for note in found.notes)
    assert found.difference == pytest.approx(by_cards.difference), "the same policies on the same problems"
    bare = rlvrlab.compare(f"{made['bare']}@base", str(made["bare"]))
    assert len(list(made["bare"].glob("evaluations/*"))) == 2 and bare.problems
