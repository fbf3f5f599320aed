"""Evaluations, comparisons, recipes and the pages of a run, from Python."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from largest import COUNTDOWN, RECIPE, ROWS, forget, larger

import rlvrlab
from rlvrlab import Run, UserError, load_recipe
from rlvrlab.record.evaluation import read_evaluation

NOTEBOOK = Path(__file__).parents[2] / "docs" / "python.ipynb"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return rlvrlab.train(RECIPE, env=larger(), overrides={"output_dir": str(folder), "grpo.steps": 12}, progress=False)


def test_evaluate_and_compare(run: Run) -> None:
    before = run.evaluate("base", progress=False)
    after = rlvrlab.evaluate(run, progress=False)
    assert after.accuracy > before.accuracy == 0 and after.interval[0] < after.accuracy <= after.interval[1]
    assert (after.data, after.protocol, after.problems) == ("largest", "EVAL@1", len(after.samples()))
    assert after.by_skill.keys() == {"far", "near"} and len(after.samples(as_frame=True)) == after.problems
    assert json.loads(json.dumps(after.to_dict()))["total"] == after.metrics
    assert [one.folder for one in run.evaluations] == [before.folder, after.folder]
    comparison = rlvrlab.compare(before, after)
    assert comparison.verdict == "higher" and comparison.p < 0.05 and comparison.difference == after.accuracy
    assert json.loads(json.dumps(comparison.to_dict()))["measures"][0]["what"] == "accepted@1"
    assert repr(comparison).startswith("Comparison(largest · ") and "<table>" in comparison._repr_html_()
    shown = re.findall(r"<th>(.*?)</th>", comparison._repr_html_())
    assert "".join(f"<th>{cell}</th>" for cell in shown) in NOTEBOOK.read_text(encoding="utf-8"), "make_notebook.py"
    assert rlvrlab.compare([before], [str(after.folder)]) == comparison
    with pytest.raises(UserError, match="stands on both sides, so there is nothing to compare"):
        rlvrlab.compare(run, run)
    assert before.checkpoint == "base" and f"EVAL@1, {after.checkpoint}, " in repr(after)
    shown = repr(comparison)
    assert f"test problems on both sides · base against {after.checkpoint}: accepted@1 0.0 % before, " in shown
    assert f"before: {run.folder.name}; after: {run.folder.name}" in shown and "One run on each side: " in shown
    assert all(line.strip() in unescape(comparison._repr_html_()) for line in shown.splitlines()[1:])
    assert rlvrlab.compare(f"{run.folder}@base", run).difference == comparison.difference
    assert run.result["grpo"]["test"]["accuracy"] == after.accuracy
    assert "Result: test " in (run.folder / "EXPERIMENT.md").read_text(encoding="utf-8")
    with pytest.raises(UserError, match="not a run folder"):
        rlvrlab.evaluate(run.folder.parent, progress=False)


def test_one_answer_is_greedy_and_several_are_drawn(tmp_path: Path) -> None:
    one, two = (
        rlvrlab.evaluate(COUNTDOWN, n=n, size=2, output=tmp_path / str(n), progress=False).protocol for n in (1, 2)
    )
    assert (one, two) == ("EVAL@1", "EVAL@k")


def test_a_comparison_shows_who_was_compared_and_what_changes_the_reading(run: Run, tmp_path: Path) -> None:
    """An earlier checkpoint of another run: part of the difference may be how long they ran."""
    other = rlvrlab.train(
        RECIPE, env=larger(), overrides={"output_dir": str(tmp_path), "name": "short", "seed": 1}, progress=False
    )
    told = rlvrlab.compare(other, run)
    (warning,) = told.notes
    assert warning.startswith("The sides are at different stages of training: step 14 before, step 20 after")
    assert f"\n  note: {warning}" in repr(told) and warning in told._repr_html_()
    assert f"before: {other.folder.name}; after: {run.folder.name}" in repr(told)
    arms = rlvrlab.compare([other, f"{run.folder}@14"], [f"{other.folder}@8", f"{run.folder}@8"])
    assert "(2 seeds); after: " in repr(arms)


def test_different_problems_are_told_as_such_and_not_as_a_scorer(run: Run, tmp_path: Path) -> None:
    fewer = larger(rows=ROWS[:120])
    other = rlvrlab.evaluate(run, env=fewer, output=tmp_path / "fewer", progress=False)
    with pytest.raises(UserError) as error:
        rlvrlab.compare(run, other)
    assert " differ in their problems: keys.data " in str(error.value) and "anyway=True" in str(error.value)
    told = rlvrlab.compare(run, other, anyway=True)
    assert told.problems == other.problems and "note: " in repr(told)


def test_evaluate_takes_environment_reward_and_data_as_train_does(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    env = rlvrlab.environment(verify=lambda problem, text: text.strip() == problem.reference, name="asks")
    fresh = rlvrlab.evaluate(RECIPE, env=env, data=ROWS, size=4, progress=False)
    assert fresh.data == "asks" and fresh.problems == 4
    trained = run.evaluate(env=env, data=ROWS, role="dev", progress=False)
    assert trained.data == "asks" and trained.accuracy > 0.5 and trained.folder.is_relative_to(run.folder)
    paid = rlvrlab.evaluate(COUNTDOWN, env="countdown", reward="partial", size=3, progress=False)
    assert paid.problems == 3


def test_the_test_results_of_every_phase_are_reachable(tmp_path: Path) -> None:
    words = {"output_dir": str(tmp_path), "eval.test_size": 10, "grpo.steps": 2}
    tested = rlvrlab.train(RECIPE, env=larger(), overrides=words, progress=False)
    cards = tested.cards()
    assert [(card["phase"], card["step"]) for card in cards] == [("baseline", 0), ("sft", 8), ("grpo", 10)]
    assert cards[0]["accuracy"] == 0 and cards[1]["low"] < cards[1]["accuracy"] and cards[2]["problems"] == 10
    assert cards[2]["accuracy"] == tested.result["grpo"]["test"]["accuracy"] == cards[2]["metrics"]["accepted_at_1"]
    assert list(tested.cards(as_frame=True)["phase"]) == ["baseline", "sft", "grpo"]


def test_a_run_of_another_output_dir_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.folder.parent.parent)
    here = run.folder.relative_to(Path.cwd())
    with pytest.raises(UserError, match=f"no run 'largest' .*; with another output_dir there is .*{here}.*: name that"):
        Run("largest")


def test_protocols_roles_and_folders(run: Run, tmp_path: Path) -> None:
    many = rlvrlab.evaluate(f"{run.folder}@best", n=4, size=5, role="dev", output=tmp_path / "many", progress=False)
    assert many.protocol == "EVAL@k" and "pass@4" in many.metrics and many.folder == tmp_path / "many"
    assert {row["sample"] for row in many.samples()} == {0, 1, 2, 3}
    budget = run.evaluate(budget=("tokens", 8), size=3, progress=False)
    spent = read_evaluation(budget.folder).examined["protocol"]["budget"]
    assert budget.protocol == "EVAL@budget" and repr(spent["amount"]) == "8.0", "as `rlvr eval` has it: one hash"
    for options in ({"protocol": "@1", "n": 3}, {"protocol": "@budget"}, {"protocol": "@2"}):
        with pytest.raises(UserError, match="evaluate: "):
            run.evaluate(**options)


def test_a_recipe_is_evaluated_untrained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rlvrlab.evaluate(COUNTDOWN, size=4, progress=False).folder.parent == Path("evaluations")


def test_a_run_whose_reward_is_gone_can_still_be_evaluated(tmp_path: Path) -> None:
    trained = rlvrlab.train(
        COUNTDOWN, reward=lambda problem, completion, verdict: 1.0, progress=False,
        overrides={"output_dir": str(tmp_path), "grpo.steps": 2},
    )  # fmt: skip
    forget()
    assert Run(trained.folder).evaluate(size=3, progress=False).problems == 3


def test_a_run_whose_environment_is_gone_says_so(run: Run) -> None:
    forget()
    with pytest.raises(UserError, match=r"'python:largest:\w+' was made in another Python process"):
        Run(run.folder).evaluate(progress=False)
    assert Run(run.folder, env=larger()).evaluate(size=3, progress=False).problems == 3


def test_metrics_and_rollouts_as_records_and_frames(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, table = run.metrics(), run.metrics(as_frame=True)
    assert len(rows) == len(table) and table["step"].iloc[-1] == 20 and "train/acc" in table.columns
    assert run.rollouts(9, as_frame=True)["step"].unique().tolist() == [9]
    with pytest.raises(UserError, match="no rollouts of step 999"):
        run.rollouts(999)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        run.metrics(as_frame=True)


def test_what_a_notebook_shows_is_escaped_and_has_no_script(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "warnings", ["<script>alert(1)</script>"])
    shown = run._repr_html_()
    assert "&lt;script&gt;" in shown and "<script" not in shown and "grpo" in shown
    assert "<script" not in run.evaluate(size=4, progress=False)._repr_html_()


def test_report_and_export(run: Run, tmp_path: Path) -> None:
    assert "<html" in run.report().read_text() and run.report(tmp_path / "deep" / "page.html").is_file()
    with pytest.raises(UserError, match="holds no model"):
        run.export(tmp_path / "model")


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        Run(tmp_path)
    with pytest.raises(UserError, match="no run 'a' below"):
        rlvrlab.compare(tmp_path / "a", tmp_path / "b")


def test_a_misspelt_run_is_told_with_the_nearest_names(run: Run) -> None:
    folder = run.folder.parent
    with pytest.raises(UserError) as error:
        rlvrlab.evaluate(f"{run.folder}x@best", progress=False)
    assert f"{run.folder}x: no such run folder" in str(error.value) and f"nearest: {run.folder.name}" in str(
        error.value
    )
    with pytest.raises(UserError, match=rf"no run 'zzzz' below {folder}/ \(newest: {run.folder.name}"):
        rlvrlab.evaluate(folder / "zzzz", progress=False)
    with pytest.raises(UserError, match=r"no recipe of that name \(did you mean 'toy_countdown'"):
        rlvrlab.evaluate("toy_countdwn", progress=False)


def test_recipes_of_files_texts_and_dicts(tmp_path: Path) -> None:
    text = '[rollout]\nn = 4\n[grpo]\nsteps = 3\n[env]\ntype = "countdown"\nnumbers = [2]\n'
    (tmp_path / "a.toml").write_text(text)
    same = [load_recipe(tmp_path / "a.toml"), load_recipe(str(tmp_path / "a.toml")), load_recipe(text)]
    same += [load_recipe({"rollout.n": 4, "grpo": {"steps": 3}, "env": {"type": "countdown", "numbers": (2,)}})]
    assert all(one.recipe == same[0].recipe for one in same)
    assert load_recipe(same[0]) is same[0]
    for changes in ("rollout.n=8", ["rollout.n=8"], {"rollout.n": 8}, {"rollout": {"n": 8}}):
        for one in same:
            again = load_recipe(one, changes)
            assert again.recipe.rollout.n == 8 and again.origins["rollout.n"] == "override"
            assert again.recipe.env == same[0].recipe.env and again.origins["grpo.steps"] == one.origins["grpo.steps"]


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("[rollout]\nm = 4", "text:2: rollout.m: unknown key"),
        ({"rollout": {"m": 4}}, "rollout.m: unknown key"),
        ("[rollout\n", "text:1: not TOML"),
        ("no.toml", "no such recipe"),
        (3, "a file, TOML text, a dict or a loaded recipe, not 3"),
    ],
)
def test_mistakes_in_recipes(recipe: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_recipe(recipe)
