"""The interference matrix: prediction and measurement agree where the policy is smooth, and nothing is left changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
import runs
from test_guards import trained
from test_protocols import SKILLS

from rlvrlab.cli import main
from rlvrlab.cli.interference import command as verb
from rlvrlab.engines.verl import Merged, Verl
from rlvrlab.errors import LabError, UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train import session
from rlvrlab.train.interference import interference
from rlvrlab.train.lab import build_lab


@pytest.mark.slow
def test_a_step_on_a_skill_helps_itself_as_predicted_and_is_taken_back(tmp_path: Path) -> None:
    lab, _ = trained(tmp_path, "rollout.n=16", "sft.steps=4", until=1)
    theta = lab.engine.theta
    found = interference(lab, lab.resolved.phase("grpo"), length=0.05)
    assert found.skills == ("plus", "times")
    np.testing.assert_allclose(np.diag(found.cosine_SS), 1.0)
    assert (np.diag(found.predicted_SS) > 0).all() and (np.diag(found.measured_SS) > 0).all()
    np.testing.assert_allclose(lab.engine.theta, theta, atol=1e-12)
    assert found.agreement.pairs == 2


def test_fewer_than_two_skills_with_a_gradient_is_a_clear_error(tmp_path: Path) -> None:
    lab = build_lab(runs.recipe(tmp_path, text=SKILLS))
    with pytest.raises(UserError, match="0 skills have a gradient"):
        interference(lab, lab.resolved.phase("grpo"), length=0.05)


@pytest.mark.slow
def test_the_merged_policy_of_verl_can_be_measured_too(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="a merged policy is a model of Transformers")
    words = ("engine.type=hf", "engine.model=nano", "reward.type=random", "data.train_size=16", "rollout.n=4")
    lab = build_lab(runs.recipe(tmp_path, *words, text=SKILLS))
    lab.engine.save(tmp_path / "actor")
    merged = Merged(Verl(model="nano"), Optimizer())
    with pytest.raises(UserError, match="no policy before training"):
        merged.publish()
    merged.load(tmp_path / "actor")
    found = interference(replace(lab, engine=merged), lab.resolved.phase("grpo"), length=0.05)
    assert found.skills == ("plus", "times") and np.isfinite(found.cosine_SS).all()


def test_the_verb_measures_a_checkpoint_and_leaves_tables_and_pictures(tmp_path: Path, monkeypatch, capsys) -> None:
    quick = ["grpo.steps=2", "rollout.n=8", "sft.steps=8", "data.train_size=16"]
    ended = session.start(runs.recipe(tmp_path, *quick, text=SKILLS), runs.quiet)
    monkeypatch.setattr("sys.argv", ["rlvr", "interference", f"{ended.folder}@last", "--problems", "6", "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    shown = json.loads(capsys.readouterr().out)
    assert shown["skills"] == ["plus", "times"] and len(shown["self_cosine"]) == 2
    assert np.shape(shown["interference_gradient"]) == np.shape(shown["interference_one_update"]) == (2, 2)
    table = (ended.folder / "analysis/tables/interference_one_update.csv").read_text().splitlines()
    assert table[0] == "step_on,effect_on,value" and len(table) == 5
    assert (ended.folder / "analysis/figures/interference_gradient.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--problems", "-1", "x>=0"), ("--length", "0", "x>0"), ("--problems", "0", "config")],
)
def test_0_problems_are_all_of_them_and_fewer_are_a_mistake(option: str, value: str, words: str, tmp_path) -> None:
    with pytest.raises((LabError, click.BadParameter), match=words):
        verb.main([str(tmp_path), option, value], standalone_mode=False)
