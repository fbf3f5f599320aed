"""What a phase says about itself, and what the loop asks of it.

A phase is a frozen dataclass: its fields are the keys of its recipe table, and it has no state of its own. Everything
that other rooms must know about it (plan, budget, monitors, verl, report) is declared here with a default, so that
nobody needs to know a phase by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.batch import TokenBatch
from rlvrlab.engines.base import Engine
from rlvrlab.evals.monitors import ONLINE
from rlvrlab.objectives.base import PolicyObjective
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.registry import find
from rlvrlab.rewards.total import asks_only_whether_right
from rlvrlab.train.lab import Lab, Supplies
from rlvrlab.train.state import Memory, State
from rlvrlab.types import Count, Objective, Positive, Rollout, Sampling

if TYPE_CHECKING:
    from rlvrlab.train.limits import Limits


@dataclass(frozen=True)
class StepOutcome:
    """What one step did."""

    metrics: dict[str, float]
    memory: Memory
    """What protocol, surgery and guard remember after it."""
    rollouts: list[Rollout] = field(default_factory=list)
    """Judged answers, for the record."""
    silent: bool = False
    """No group had signal, so nothing was learnt."""
    skipped: bool = False
    """The update was not finite and was not applied."""
    notes: list[str] = field(default_factory=list)
    """Plain words for events.jsonl."""
    events: list[tuple[str, str]] = field(default_factory=list)
    """(kind, words) of what surgery, guard and protocol have to say; no warnings."""
    steps: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Steps of answers with their credit (train/credit/credited.py), by rollout; empty without [credit]."""


class Draws(NamedTuple):
    """How many answers a phase draws from the policy."""

    before: int = 0
    """Once, before its first step."""
    per_step: int = 0
    """In every step, without refills and second tries."""
    most_per_step: int = 0
    """In a step with all refills and second tries; equal to `per_step` where the number is fixed."""


class Estimators(NamedTuple):
    """What an on-line phase trains with, built once before its first step."""

    advantage: AdvantageEstimator
    objective: Objective
    """With the recipe's KL and entropy terms."""
    limits: Limits | None = None
    """Time limits learnt problem by problem, where the recipe wants that."""

    def above_floor(self, batch: TokenBatch) -> tuple[Estimators, dict[str, float]]:
        """With the entropy bonus only where these answers were drawn below the recipe's floor; and what was found.

        The mean −log p of drawn tokens is known before the update, and of dead groups too; at temperature 1 its
        expectation is the mean entropy.
        """
        from rlvrlab.objectives.base import needed, token_mean
        from rlvrlab.objectives.regularise import Regularised

        assert isinstance(self.objective, Regularised)
        drawn = -token_mean(needed(batch, "behaviour_BT", "an entropy floor"), batch)
        objective = self.objective.on_answers(drawn)
        found = {"actor/drawn_entropy": drawn, "actor/entropy_coef": objective.entropy_coef}
        return self._replace(objective=objective), found


class Critic(NamedTuple):
    """How a value function is trained beside the policy."""

    learning_rate: float
    epochs: int
    clip: float | None


class Phase(ABC):
    """A stretch of training with one kind of step."""

    steps: int
    batch_size: int

    name: ClassVar[str]
    """Registered name."""
    family: ClassVar[str] = "imitation"
    """Which of the rates of a preset fits (recipe/presets.py): imitation, preference or online."""
    online: ClassVar[bool] = False
    """Trains on answers that the current policy draws in the same step."""
    control: ClassVar[bool] = False
    """A control arm: the next phase starts from the policy before it."""
    trains_turns: ClassVar[bool] = False
    """Leaves out what a tool gave back where an answer is an episode with tools."""
    tries: ClassVar[int] = 1
    """Turns of a problem that it trains: 2 where failed tries are answered with the judge's feedback."""
    default_advantage: ClassVar[str | None] = None
    default_objective: ClassVar[str | None] = None
    health: ClassVar[tuple[str, ...]] = ()
    """Metrics whose ranges in evals/monitors.py hold in this phase."""
    rows_per_item: ClassVar[int] = 1
    """Answers trained on per item of batch_size; rollout.n for on-line phases, see `batch_rows`."""

    @property
    def updates_per_step(self) -> int:
        """Optimiser steps in one step of the phase."""
        return 1

    @property
    def critic(self) -> Critic | None:
        """The value function that the phase trains beside the policy, if any."""
        return None

    def batch_rows(self, recipe: Recipe) -> int:
        """Answers that one step trains on."""
        return self.batch_size * self.rows_per_item

    def draws(self, recipe: Recipe, available: int) -> Draws:
        """Answers drawn from the policy, with so many training problems at hand; none by default."""
        return Draws()

    def check(self, has: Supplies) -> None:
        """Refuse what this phase cannot work with; asked before a run folder is made."""
        return

    def check_files(self, has: Supplies) -> None:
        """Refuse files that this phase would read in vain; asked before a new run: a resumed one may have a copy."""
        return

    def prepare(self, lab: Lab, artifacts: Path) -> Any:
        """What the steps train on, made before the first one and kept in `artifacts`; a resumed run reads it back."""
        return None

    @abstractmethod
    def step(self, lab: Lab, data: Any, state: State, memory: Memory, /) -> StepOutcome:
        """One step on what `prepare` gave; a pure function of recipe, policy, state and memory."""


@dataclass(frozen=True)
class OnlinePhase(Phase):
    """What GRPO, PPO, REINFORCE and their kin share; the step itself is train/step.py."""

    steps: Count = 200
    """Collections."""
    batch_size: Count = 16
    """Problems per collection; each gets rollout.n answers."""
    learning_rate: Positive = 0.01
    """Peak; [optimizer] shapes it."""
    minibatches: Count = 1
    """Parts a collection is updated in."""
    epochs: Count = 1
    """Passes over a collection."""

    family: ClassVar[str] = "online"
    online: ClassVar[bool] = True
    trains_turns: ClassVar[bool] = True
    default_advantage: ClassVar[str]
    default_objective: ClassVar[str]
    health: ClassVar[tuple[str, ...]] = ONLINE

    @property
    def updates_per_step(self) -> int:
        """Parts times passes."""
        return self.minibatches * self.epochs

    def batch_rows(self, recipe: Recipe) -> int:
        """Each problem's answers."""
        return self.batch_size * recipe.rollout.n

    def draws(self, recipe: Recipe, available: int) -> Draws:
        """rollout.n answers per problem and try, and again for every refill."""
        refills = recipe.filter.max_refills if recipe.filter.dead_groups == "refill" else 0
        once = min(self.batch_size, available) * recipe.rollout.n
        return Draws(0, once, once * (1 + refills) * self.tries)

    def prepare(self, lab: Lab, artifacts: Path) -> Estimators:
        """The reference policy is frozen by the loop when the phase begins; learnt limits are kept."""
        estimators = self.estimators(lab.resolved)
        if lab.recipe.pipeline.limits != "learnt":
            return estimators
        from rlvrlab.train.limits import Limits

        only_outcome = asks_only_whether_right(lab.reward) and lab.credit is None and self.tries == 1
        return estimators._replace(limits=Limits(lab.env, artifacts, only_outcome=only_outcome))

    def estimators(self, resolved: Resolved) -> Estimators:
        """The estimator of advantages and the objective with its KL and entropy terms."""
        recipe, objective = resolved.recipe, self.objective(resolved)
        kl_in_loss = recipe.kl.coef if recipe.kl.place == "loss" else 0.0
        if not kl_in_loss and not recipe.entropy.coef:
            return Estimators(self.advantage(resolved), objective)
        from rlvrlab.objectives.regularise import Regularised

        regularised = Regularised(
            objective, kl_in_loss, recipe.kl.estimator, recipe.entropy.coef, entropy_floor=recipe.entropy.floor
        )
        return Estimators(self.advantage(resolved), regularised)

    def advantage(self, resolved: Resolved) -> AdvantageEstimator:
        """The recipe's estimator, or the phase's own."""
        return resolved.build("advantage") or find("advantage", self.default_advantage)()

    def objective(self, resolved: Resolved) -> PolicyObjective:
        """The recipe's objective, or the phase's own, without KL and entropy."""
        return resolved.build("objective") or find("objective", self.default_objective)()

    def second_tries(self, lab: Lab, firsts: Sequence[Rollout], phase_step: int, sampling: Sampling) -> list[Rollout]:
        """Answers to feedback on failed first tries, for phases with more than one."""
        return []

    def fit_critic(self, engine: Engine, batch: TokenBatch) -> dict[str, float]:
        """Train the value function, for phases that have one."""
        return {}
