"""Plug-ins declare what the loop asks of them, so that nobody has to know them by name."""

from __future__ import annotations

from typing import get_args

import pytest

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.credit.base import Label, Segmentation, StepCredit
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.edits import Invalid
from rlvrlab.objectives.base import PolicyObjective
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.registry import find, names
from rlvrlab.skills.groups import Strategy
from rlvrlab.surgery.base import Surgery
from rlvrlab.types import Aggregation, Couples


@pytest.mark.parametrize("name", names("advantage"))
def test_advantages(name: str) -> None:
    estimator = find("advantage", name)()
    assert isinstance(estimator, AdvantageEstimator)
    assert estimator.by_parts is (name == "gdpo") and estimator.needs_values is (name == "gae")


@pytest.mark.parametrize("name", names("objective"))
def test_objectives_and_their_wrapper(name: str) -> None:
    objective = find("objective", name)()
    assert isinstance(objective, PolicyObjective)
    assert objective.couples in get_args(Couples) and objective.aggregation in get_args(Aggregation)
    assert objective.uses_advantages is (name not in ("sft", "dpo"))
    wrapped = Regularised(objective, terms="token-sum")
    assert (wrapped.couples, wrapped.aggregation) == (objective.couples, objective.aggregation)


@pytest.mark.parametrize("name", names("surgery"))
@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_surgery(name: str, strategy: str) -> None:
    surgery = find("surgery", name)(group_strategy=strategy)
    assert isinstance(surgery, Surgery) and surgery.scope in ("global", "module")
    assert isinstance(surgery.num_groups, int) and isinstance(surgery.noise_every, int)
    assert isinstance(surgery.conflict_threshold, float)
    assert surgery.needs_pass_rates is (strategy == "difficulty")


@pytest.mark.parametrize("name", names("credit"))
def test_credit(name: str) -> None:
    credit = find("credit", name)()
    assert isinstance(credit, StepCredit) and credit.label in get_args(Label)
    for declared in ("needs_replays", "needs_sampling", "wants_empty", "keeps_dead_groups"):
        assert isinstance(getattr(credit, declared), bool), declared
    assert credit.segmentation in get_args(Segmentation) and credit.invalid in get_args(Invalid) and credit.samples >= 1


@pytest.mark.parametrize(
    ("declared", "plugins"),
    [("grows", {"tree"}), ("follows", {"trace"}), ("remembers", {"doubly_robust"})],
)
def test_what_only_one_kind_of_credit_needs(declared: str, plugins: set[str]) -> None:
    assert {name for name in names("credit") if getattr(find("credit", name)(), declared)} == plugins


@pytest.mark.parametrize(
    ("settings", "samples"),
    [
        ({}, False),
        ({"replay": "resample"}, True),
        ({"intervention_types": ("delete", "resample")}, True),
        ({"intervention_types": ("substitute",)}, True),
        ({"intervention_types": ("null", "reorder")}, False),
        ({"intervention_types": ("null",), "replay": "resample"}, True),
        ({"estimator": "vine"}, True),
        ({"estimator": "tail", "replay": "resample"}, False),
        ({"estimator": "shapley", "intervention_types": ("resample",)}, False),
        ({"estimator": "step_groups", "replay": "resample"}, False),
    ],
)
def test_credit_says_whether_it_asks_the_policy_again(settings: dict, samples: bool) -> None:
    assert Counterfactual(**settings).needs_sampling is samples


def test_only_the_comparison_of_a_group_needs_no_replays() -> None:
    estimators = ("leave_one_out", "prefix", "tail", "shapley", "banzhaf", "vine", "step_groups")
    assert [name for name in estimators if not Counterfactual(estimator=name).needs_replays] == ["step_groups"]
