"""What a study may look at: dev problems choose, test problems are asked once, at the end; every look is counted."""

from __future__ import annotations

import pytest
from study_lab import HEAD, RECIPE, decision, run_study, stage, write_study

from rlvrlab.errors import RecipeError
from rlvrlab.recipe import load_recipe
from rlvrlab.record.final import note_look, read_looks
from rlvrlab.rewards.pass_ratio import PassRatio
from rlvrlab.study.examine import prepared
from rlvrlab.study.load import load_study
from rlvrlab.study.plan import plan_study
from rlvrlab.study.report import report_page
from rlvrlab.study.schema import Suite
from rlvrlab.types import Problem

CHAIN = """
[[stages]]
name = "steps"
factors = { "grpo.steps" = [2, 4] }
[[stages]]
name = "n"
base = 'best("steps")'
factors = { "rollout.n" = [2, 4] }
"""
ONE = '[[stages]]\nname = "steps"\nfactors = { "grpo.steps" = [2, 4] }\n'


def answer(job):
    return 0.8 if job["settings"].get("grpo.steps") == 4 and job["settings"].get("rollout.n", 2) == 2 else 0.4


def test_suites_choose_on_dev_and_examine_the_last_update() -> None:
    assert (Suite().role, Suite().policy) == ("dev", "last")


@pytest.mark.parametrize(("env", "credit"), [(None, PassRatio(0.5)), ({"type": "zebra"}, None)])
def test_partial_credit_is_that_of_the_recipe_on_its_own_problems(tmp_path, env, credit) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE + '[reward]\ntype = "pass_ratio"\npartial = 0.5\n', encoding="utf-8")
    job = {"suite": Suite(env=env, size=2).model_dump(), "folder": str(tmp_path), "hash": ""}
    [member] = prepared("here", job, load_recipe(path)).members
    assert member.reward == credit


def test_only_the_last_winner_is_asked_test_problems_and_only_once(tmp_path) -> None:
    path = write_study(tmp_path, CHAIN)
    ended, launcher, made = run_study(path, answer)
    assert ended.status == "finished"
    assert all(suite["suite"]["role"] == "dev" for job in launcher.jobs for suite in job["suites"].values())
    assert len(launcher.finals) == 1 and launcher.finals[0]["settings"]["grpo.steps"] == 4
    last = stage(made, "final_n")
    assert last["kind"] == "final" and [arm["name"] for arm in last["arms"]] == ["n=2"] and last["arms"][0]["chosen"]
    assert last["arms"][0]["metrics"]["here@test.accepted"]["value"] == pytest.approx(0.8)
    assert [one["data"] for one in made["test_looks"]] == ["here@test"] and made["test_looks"][0]["problems"] == 200
    assert "Test problems were looked at 1 times" in report_page(made)
    _, again, after = run_study(path, lambda job: pytest.fail("looked again"))
    assert again.finals == [] and len(after["test_looks"]) == 1


def test_all_arms_of_a_stage_can_be_reported_on_test_without_choosing_from_it(tmp_path) -> None:
    text = ONE + 'final = "arms"\n'

    def flipped(job):
        good = job["settings"]["grpo.steps"] == 4
        return {"here": 0.8 if good else 0.4, "here@test": 0.3 if good else 0.6}

    _, launcher, made = run_study(write_study(tmp_path, text), flipped)
    assert len(launcher.finals) == 2 and len(made["test_looks"]) == 2
    assert decision(made, "steps")["chosen"] == "steps=4"  # what dev says, although test says otherwise
    row = stage(made, "final_steps")["comparisons"][0]
    assert (row["arm"], row["versus"]) == ("steps=4", "steps=2") and row["mean"] == pytest.approx(-0.3)
    _, launcher, made = run_study(write_study(tmp_path, ONE + 'final = "none"\n'), flipped)
    assert made["stages"][-1]["kind"] == "compare"


def test_choosing_on_test_is_refused_with_a_reason_and_anyway_is_recorded(tmp_path) -> None:
    text = HEAD.replace("size = 8", 'size = 8\nrole = "test"') + ONE
    path = write_study(tmp_path, text)
    with pytest.raises(
        RecipeError, match=r"chooses on test problems \(suites.here\); give the suite role = .dev.*anyway"
    ):
        run_study(path, answer)
    assert any("chooses on test" in note for note in plan_study(load_study(path), tmp_path, cost=False).notes)
    ended, launcher, made = run_study(path, answer, anyway=True)
    assert ended.status == "finished" and launcher.finals == []
    assert len(made["test_looks"]) == 2 and any(one["kind"] == "test" for one in made["caveats"])
    events = (tmp_path / "out" / "tried" / "events.jsonl").read_text()
    assert '"anyway": ["stages.steps: chooses on test' in events.replace('":["', '": ["')


def test_a_metric_on_test_problems_is_refused_where_dev_problems_choose(tmp_path) -> None:
    text = HEAD + '[suites.sealed]\nrole = "test"\n' + ONE + 'select = { metrics = { "sealed.accepted" = 1 } }\n'
    with pytest.raises(RecipeError, match="sealed has test problems, which are asked once, at the end"):
        load_study(write_study(tmp_path, text))


def test_a_suite_of_test_problems_waits_for_the_end(tmp_path) -> None:
    path = write_study(tmp_path, HEAD + '[suites.sealed]\nrole = "test"\n' + ONE)
    _, launcher, made = run_study(path, answer)
    assert [sorted(job["suites"]) for job in launcher.jobs] == [["here"], ["here"]]
    assert sorted(launcher.finals[0]["suites"]) == ["here", "here@test", "sealed"]
    assert sorted(one["data"] for one in made["test_looks"]) == ["here@test", "sealed"]


def test_more_seeds_are_run_while_it_is_undecided_and_at_most_as_often_as_declared(tmp_path) -> None:
    text = HEAD.replace('output = "out"', 'output = "out"\nseeds = [0, 1]')
    text += ONE + "select = { extend = 2 }\n"
    ended, launcher, made = run_study(write_study(tmp_path, text), lambda job: 0.5)
    kinds = [(one["kind"], one["look"], one["outcome"]) for one in made["decisions"]]
    assert kinds == [("extension", 1, "undecided"), ("extension", 2, "undecided"), ("choice", 3, "undecided")]
    assert sorted({job["seed"] for job in launcher.jobs}) == [0, 1, 2, 3, 4, 5] and ended.status == "finished"
    assert made["decisions"][0]["words"].startswith("2 more seeds for every arm (look 1 of 3); undecided")
    assert stage(made, "steps")["arms"][0]["metrics"]["here.accepted"]["seeds"] == 6
    _, again, _ = run_study(tmp_path / "study.toml", lambda job: pytest.fail("ran again"))
    assert again.jobs == []


def test_what_is_decided_at_the_first_look_is_not_extended(tmp_path) -> None:
    text = HEAD.replace('output = "out"', 'output = "out"\nseeds = [0, 1]')
    text += ONE + "select = { extend = 2 }\n"
    _, launcher, made = run_study(write_study(tmp_path, text), answer)
    assert [(one["kind"], one["outcome"]) for one in made["decisions"]] == [("choice", "better")]
    assert len(launcher.jobs) == 4


def test_a_person_and_an_extension_exclude_each_other(tmp_path) -> None:
    with pytest.raises(RecipeError, match="extend runs more seeds by itself and human waits"):
        load_study(write_study(tmp_path, ONE + "select = { extend = 1, human = true }\n"))


def test_the_old_name_of_the_margin_is_told(tmp_path) -> None:
    with pytest.raises(RecipeError, match="min_effect: is called margin now"):
        load_study(write_study(tmp_path, ONE + "select = { min_effect = 0.1 }\n"))


def test_the_plan_says_what_it_could_show(tmp_path) -> None:
    text = HEAD.replace("size = 8", "size = 200").replace('output = "out"', 'output = "out"\nseeds = [0, 1, 2]')
    plan = plan_study(load_study(write_study(tmp_path, text + ONE)), tmp_path / "none", cost=False)
    assert plan.stages[0].power.startswith("3 seeds × 200 problems, 2 arms: a true difference of ")
    assert "if seeds scatter by 5 points" in plan.stages[0].power
    one = plan_study(load_study(write_study(tmp_path, ONE)), tmp_path / "none", cost=False).stages[0].power
    assert "one seed says nothing about other seeds" in one
    margin = ONE + "select = { margin = 0.01 }\n"
    told = plan_study(load_study(write_study(tmp_path, text + margin)), tmp_path / "none", cost=False).stages[0].power
    assert "equivalence within 1 points cannot be shown" in told
    two = HEAD.replace('output = "out"', 'output = "out"\nseeds = [0, 1]\nseed_spread = 0.4') + ONE
    told = plan_study(load_study(write_study(tmp_path, two)), tmp_path / "none", cost=False).stages[0].power
    assert "no true difference, however large, is shown 4 times out of 5" in told


def test_a_look_is_counted_once_however_often_it_is_resumed(tmp_path) -> None:
    problems = [Problem("1", "", "", "", role="test"), Problem("2", "", "", "", role="dev")]
    for where in ("a", "a", "b"):
        note_look(tmp_path, "countdown", problems, where)
    note_look(tmp_path, "countdown", problems[1:], "c")
    assert [(one["where"], one["problems"]) for one in read_looks(tmp_path)] == [("a", 1), ("b", 1)]
