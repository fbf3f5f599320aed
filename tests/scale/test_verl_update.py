"""The actor's update and the labels of its groups, without verl: what they decide before verl's code is reached."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.scale.verl.actor import EngineHooks
from rlvrlab.scale.verl.grouping import Labels
from rlvrlab.scale.verl.rows import Ranks
from rlvrlab.types import Completion, Finish, Problem, Reward, Rollout, Verdict

RECIPE = """
phases = ["grpo"]
[env]
type = "minicode"
skills = ["gen", "out"]
[engine]
type = "verl"
model = "owner/model"
[surgery]
type = "worst_skill"
"""


class Rows:
    """Rows with masks, as the update counts them."""

    def __init__(self, masks: list[list[int]]) -> None:
        self.masks = [np.array(mask) for mask in masks]

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, name: str) -> Any:
        assert name == "loss_mask"
        return SimpleNamespace(unbind=lambda: self.masks)


class Verl:
    """verl's engine, which must not be reached."""

    def train_batch(self, data: Any, loss_function: Any) -> Any:
        raise AssertionError("verl made a step")


class Engine(EngineHooks, Verl):
    """With surgery or without, on one rank."""

    def __init__(self, surgery: object) -> None:
        self._rlvr_surgery, self._rlvr_guard = surgery, None  # type: ignore[assignment]

    def rlvr_ranks(self) -> Ranks:
        return Ranks()


@pytest.mark.parametrize("surgery", [None, object()])
def test_a_mini_batch_in_which_everything_is_masked_makes_no_step(surgery: object) -> None:
    found = Engine(surgery).train_batch(Rows([[0, 0], [0, 0, 0]]), None)
    assert found["metrics"]["grad_norm"] == 0.0 and found["metrics"]["actor/silent_update"] == [1.0]
    assert found["loss"] == [0.0]


def answer(skill: str, group: str, right: bool) -> Rollout:
    problem = Problem(f"{skill}/{group}", "s", skill, group)
    completion = Completion("x", (1,), (0.0,), Finish.STOP, 0)
    return Rollout(f"{group}/{right}", group, problem, (1,), completion, Verdict(right), Reward(float(right), {}))


def test_the_success_of_a_group_is_that_of_the_problems_it_is_updated_with(tmp_path: Path) -> None:
    """As without verl: a group whose answers are all right is not trained on and has no say."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    rollouts = [answer("gen", "a", True), answer("gen", "a", False), answer("gen", "dead", True)]
    rollouts += [answer("gen", "dead", True), answer("out", "gone", False)]
    resolved = load_recipe(tmp_path / "recipe.toml")
    train = [rollout.problem for rollout in rollouts]
    job: Any = SimpleNamespace(resolved=resolved, train=train, phase=resolved.phase("grpo"), folder=tmp_path)
    found: Any = SimpleNamespace(rollouts=rollouts)
    _, facts = Labels(job).of(found, 0, [True, True, False, False, False])
    assert facts is not None and facts["names"] == ["gen", "out"] and facts["success"] == [0.5, 0.0]
