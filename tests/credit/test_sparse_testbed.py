"""The sparse testbed of studies/paper_a_credit_assignment: rare rewards, and labels of credit from the product."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.recipe import load_recipe
from rlvrlab.rollout.collect import collect
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps

RECIPE = Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment" / "sparse.toml"
CREDIT = ["credit.type=counterfactual", "credit.segmentation=characters", "credit.counterfactual_k=0"]


@pytest.fixture(scope="module")
def lab() -> Lab:
    return build_lab(load_recipe(RECIPE))


def test_rewards_are_rare_and_known(lab: Lab) -> None:
    env = lab.env
    assert isinstance(env, BaseEnvironment)
    for problem in lab.dev[:4]:
        gold, (required, harmful) = env.gold(problem), problem.reference
        assert gold is not None and env.verify(problem, gold).correct and not set(required) & set(harmful)
        assert env.verify(problem, gold[::-1] + gold).correct, "order and repetition do not matter"
        assert not any(env.verify(problem, cheat).correct for cheat in env.cheats(problem).values())
    found = collect(lab.engine, env, lab.reward, lab.dev, n=16, sampling=lab.sampling, key=("first answers",))
    assert np.mean([one.verdict.correct is True for one in found]) < 0.03
    assert not {p.id for p in lab.train} & {p.id for p in lab.dev}


@pytest.mark.parametrize(("kind", "unbiased"), [("truncate", 1.0), ("delete", 0.0)])
def test_labels_are_the_products(kind: str, unbiased: float, tmp_path: Path) -> None:
    resolved = load_recipe(RECIPE, [*CREDIT, f'credit.intervention_types=["{kind}"]'])
    [outcome] = islice(bare_steps(build_lab(resolved), resolved.phase("grpo"), tmp_path), 1)
    assert outcome.metrics["credit/unbiased"] == unbiased and outcome.metrics["credit/steps"] > 14
    assert outcome.metrics["credit/verifier_calls"] > 10 * len(outcome.rollouts)
