"""Every study that comes along has its record; what nobody has run is a plan, lies in studies/plans and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import PLANS, files, home, shipped
from rlvrlab.study.chain import Chain
from rlvrlab.study.load import load_study
from rlvrlab.study.settings import words

STUDIES = {one.name: one for one in shipped() if one.kind == "study"}
PLANNED = sorted(name for name in STUDIES if name.startswith(f"{PLANS}/"))
RECORDED = sorted(STUDIES.keys() - set(PLANNED))


def record_path(name: str) -> Path:
    path = files()[name]
    return path.parent / "results" / f"{load_study(path).study.name}.study.json"


def made(name: str) -> dict[str, Any]:
    return json.loads(record_path(name).read_text(encoding="utf-8"))


def page(name: str) -> str:
    """The README of the study and its rounds."""
    folder = files()[name].parent
    pages = (folder / "README.md", *sorted(folder.glob("rounds/*.md")))
    return "\n".join(one.read_text(encoding="utf-8") for one in pages)


def test_every_study_but_a_plan_has_a_record() -> None:
    assert RECORDED and PLANNED
    assert [name for name in RECORDED if not record_path(name).is_file()] == []
    kept = set((home() / "studies").glob("*/results/*.study.json"))
    assert kept == {record_path(name) for name in RECORDED}, "a record without its study"


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_says_that_nobody_has_run_it_and_what_it_needs(name: str) -> None:
    row = next(line for line in page(name).splitlines() if line.startswith(f"| `{files()[name].name}` |"))
    assert "GPU" in row.split("|")[3] and STUDIES[name].record == "not run: a plan"


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_is_that_of_the_study_as_it_is_declared(name: str) -> None:
    """Names, seeds, arms and the settings of every trial are those that the file asks for, given what was chosen."""
    found, chain = made(name), Chain(load_study(files()[name]))
    assert record_path(name).name in page(name) and STUDIES[name].record.endswith(record_path(name).name)
    assert found["status"] == "finished" and found["question"] == chain.file.study.question
    assert found["seeds"] == list(chain.file.study.seeds) and found["code"]["commit"]
    stages = {stage["name"]: stage for stage in found["stages"]}
    choices = dict[str, str]()
    for stage in chain.order():
        arms = {arm["name"]: arm for arm in stages[stage.name]["arms"]}
        assert list(arms) == [arm.name for arm in chain.arms(stage)]
        for arm in chain.arms(stage):
            asked = [[trial.seed, trial.settings] for trial in chain.trials(stage, arm.name, choices)]
            if arms[arm.name]["dropped"] and not set(arms[arm.name]["trials"]) & set(found["trials"]):
                continue  # it lost a shorter round, and its full trials were never begun
            run = [found["trials"][trial] for trial in arms[arm.name]["trials"]]
            settings = [[trial["seed"], trial["settings"]] for trial in run if trial["seed"] in found["seeds"]]
            assert json.loads(json.dumps(asked)) == settings, f"{stage.name}: {arm.name}"
            assert arms[arm.name]["dropped"] or {trial["status"] for trial in run} == {"finished"}
        choices[stage.name] = next(arm["name"] for arm in arms.values() if arm["chosen"])


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_has_every_trial_decision_and_look_at_test(name: str) -> None:
    found = made(name)
    for stage in found["stages"]:
        assert stage["status"] == "decided" and (stage["kind"] == "final" or stage["decision"] is not None)
    looked = [(one["trial"], one["data"]) for one in found["test_looks"]]
    asked = [
        (trial, metric.partition(".")[0])
        for trial, facts in found["trials"].items()
        for metric in facts["metrics"]
        if "@test." in metric
    ]
    assert sorted(set(asked)) == sorted(looked), "a test set was asked without a count, or counted twice"
    scores = json.loads(record_path(name).with_name(f"{found['name']}.scores.json").read_text(encoding="utf-8"))
    measured = {(metric, trial) for trial, facts in found["trials"].items() for metric in facts["metrics"]}
    assert measured == {(metric, trial) for metric, by_trial in scores.items() for trial in by_trial}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_trials_leave_test_problems_to_the_end_of_the_study(name: str) -> None:
    chain = Chain(load_study(files()[name]))
    stage = chain.order()[0]
    trial = chain.trials(stage, chain.arms(stage)[0].name, {})[0]
    assert load_recipe(chain.file.recipe, words(trial.settings)).recipe.eval.test_size == 0


@pytest.mark.parametrize("name", sorted(name for name in STUDIES if "npg_muse" in name))
def test_volumes_differ_in_nothing_but_their_problems(name: str) -> None:
    """The same updates and answers, and the same references of SFT, which are the first of the training problems."""
    chain = Chain(load_study(files()[name]))
    stage = chain.order()[0]
    budgets, references = set(), set()
    for arm in chain.arms(stage):
        trial = chain.trials(stage, arm.name, {})[0]
        budgets.add((trial.budget.steps, trial.budget.answers))
        resolved = load_recipe(chain.file.recipe, words(trial.settings))
        if "sft" in resolved.recipe.phases:
            references.add(min(resolved.recipe.data.train_size, resolved.phase("sft").references))
    assert len(budgets) == 1 and len(references) <= 1
