"""Stages to arms, arms to settings, settings to trials: a pure function of the study file and the choices so far."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlvrlab.errors import RecipeError, UserError, suggestion
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.recipe.parse import flatten
from rlvrlab.study.identity import ID_LENGTH, digest, identity_of
from rlvrlab.study.load import StudyFile, parse_best
from rlvrlab.study.schema import Settings, Stage
from rlvrlab.study.settings import layered, words
from rlvrlab.study.starts import missing, of_seed
from rlvrlab.train.plan import phase_plans

Choices = Mapping[str, str]
"""Stage -> the arm chosen there."""
ONLY = "as_is"
"""The arm of a stage that compares nothing."""


class Budget(NamedTuple):
    """What one trial spends on training, known before it runs; tokens are an upper bound."""

    steps: int
    answers: int
    tokens: int


def budget_of(resolved: Resolved) -> Budget:
    """All phases together; a curriculum's response lengths count as they are, not as the longest."""
    plans = phase_plans(resolved)
    return Budget(*(sum(amounts) for amounts in zip(*((p.steps, p.answers, p.max_tokens) for p in plans), strict=True)))


@dataclass(frozen=True)
class Trial:
    """One training with one seed."""

    id: str
    hash: str
    seed: int
    settings: Settings
    """All that differs from the base recipe, the seed aside."""
    identity: dict[str, Any]
    budget: Budget


@dataclass(frozen=True)
class Arm:
    """One candidate of a stage."""

    name: str
    own: Settings
    """What tells it from the stage's other arms."""


@dataclass
class Chain:
    """A study file with its recipe; remembers what it has resolved."""

    file: StudyFile
    _resolved: dict[str, Resolved] = field(default_factory=dict)
    _asked: dict[str, tuple[Budget, dict[str, Any]]] = field(default_factory=dict)
    """Settings -> what a training costs and what makes it the same, the seed aside: a survey asks twice a second."""
    _trials: dict[str, Trial] = field(default_factory=dict)
    _arms: dict[str, dict[str, Arm]] = field(default_factory=dict)

    def arms(self, stage: Stage) -> list[Arm]:
        """Named arms × factors, in the file's order."""
        if stage.name not in self._arms:
            named: list[tuple[str, Settings]] = list(stage.arms.items()) or [("", {})]
            grids = [[(key, value) for value in values] for key, values in stage.factors.items()]
            leaves = [key.rpartition(".")[2] for key in stage.factors]
            arms = self._arms[stage.name] = {}
            for (name, own), cells in itertools.product(named, itertools.product(*grids)):
                parts = [name]  # and one per factor: `muse, lr=0.1, n=8`
                for (key, value), leaf in zip(cells, leaves, strict=True):
                    label = leaf if leaves.count(leaf) == 1 else key
                    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
                    parts.append(f"{label}={text}")
                whole = ", ".join(filter(None, parts)) or ONLY
                arms[whole] = Arm(whole, layered(own, dict(cells)))
        return list(self._arms[stage.name].values())

    def arm(self, stage: Stage, name: str) -> Arm:
        """The arm of a stage with this name; an unknown name raises UserError with the nearest one."""
        known = {arm.name: arm for arm in self.arms(stage)}
        if name not in known:
            raise UserError(f"stage {stage.name}: no arm {name!r}{suggestion(name, known)}")
        return known[name]

    def settings(self, stage: Stage, arm: str, choices: Choices) -> Settings:
        """The study's fixed keys, the winner it starts from, the stage's own, its inputs, the arm's."""
        start: Settings = {}
        if stage.base is not None:
            start = self.winner(parse_best(stage.base, "base", keyed=False).stage, choices)
        fixed = layered(self.file.study.fixed, start, stage.fixed)
        return layered(fixed, self.inputs(stage, choices), self.arm(stage, arm).own)

    def winner(self, name: str, choices: Choices) -> Settings:
        """All settings of the arm chosen at a stage."""
        if name not in choices:
            raise UserError(f'best("{name}"): the stage has no finished trial to choose from')
        return self.settings(self.file.stage(name), choices[name], choices)

    def inputs(self, stage: Stage, choices: Choices) -> Settings:
        """The values of a stage's best(…).key expressions."""
        values = {}
        for key, text in stage.inputs.items():
            best = parse_best(text, key, keyed=True)
            plain = dict(flatten(self.resolved(self.winner(best.stage, choices)).plain()))
            if best.key not in plain:
                raise UserError(
                    f"stages.{stage.name}.inputs.{key}: {text}: no such key{suggestion(best.key or '', plain)}"
                )
            values[key] = plain[best.key]
        return values

    def resolved(self, settings: Settings) -> Resolved:
        """The base recipe with these settings."""
        given = words(settings)
        key = "\n".join(given)
        if key not in self._resolved:
            self._resolved[key] = load_recipe(self.file.recipe, given)
        return self._resolved[key]

    def trials(
        self, stage: Stage, arm: str, choices: Choices, small: Settings | None = None, look: int = 1
    ) -> list[Trial]:
        """One per seed; `small` are the keys of a halving round, and each look after the first adds as many seeds."""
        settings = layered(self.settings(stage, arm, choices), small or {})
        return self.seeded(settings, self.seeds(stage, look))

    def seeds(self, stage: Stage, look: int = 1) -> list[int]:
        """The seeds that a stage has asked for at a look."""
        own = stage.seeds or self.file.study.seeds
        return [*own, *range(max(own) + 1, max(own) + 1 + (look - 1) * len(own))]

    def seeded(self, settings: Settings, seeds: Sequence[int]) -> list[Trial]:
        """Trials of the same settings with different seeds."""
        trials = []
        for seed in seeds:
            own = of_seed(settings, seed)
            budget, unseeded = self._unseeded(own)
            identity = {**unseeded, "seed": seed}
            name = digest(identity)
            # Two stages may ask for the same trial in other words; the settings of the first one stay.
            trial = Trial(name[:ID_LENGTH], name, seed, own, identity, budget)
            trials.append(self._trials.setdefault(name, trial))
        return trials

    def _unseeded(self, settings: Settings) -> tuple[Budget, dict[str, Any]]:
        key = "\n".join(words(settings))
        if key not in self._asked:
            resolved = self.resolved(settings)
            self._asked[key] = budget_of(resolved), identity_of(resolved, 0, self.file.study.code)
        return self._asked[key]

    def check(self, stage: Stage, choices: Choices) -> list[str]:
        """What is wrong with a stage's arms, all at once; the stages it starts from must be among the choices."""
        problems: list[str] = []
        budgets: dict[str, Budget] = {}
        same: dict[str, str] = {}
        for arm in self.arms(stage):
            try:
                if gone := missing(self.settings(stage, arm.name, choices), self.seeds(stage, stage.select.extend + 1)):
                    remedy = "make them first, or take {seed} out of engine.model"
                    problems.append(f"stages.{stage.name}, arm {arm.name}: no folder {', '.join(gone)}; {remedy}")
                    continue
                first = self.trials(stage, arm.name, choices)[0]
                budgets[arm.name] = first.budget
                if same.setdefault(first.id, arm.name) != arm.name:
                    problems.append(
                        f"stages.{stage.name}: arms {same[first.id]} and {arm.name} are one and the same recipe"
                    )
                for one in stage.halving:
                    self.trials(stage, arm.name, choices, one.set)
            except RecipeError as error:
                problems += [f"stages.{stage.name}, arm {arm.name}: {problem}" for problem in error.problems]
            except UserError as error:
                problems.append(f"stages.{stage.name}, arm {arm.name}: {error}")
        uneven = unequal(budgets, stage.parity)
        return [*problems, f"stages.{stage.name}: {uneven}"] if uneven else problems

    def check_first(self) -> list[str]:
        """What is wrong with the stages that need no other: mistakes to find before anything runs."""
        ready = [stage for stage in self.order() if not self.file.needs(stage)]
        return [problem for stage in ready for problem in self.check(stage, {})]

    def downstream(self, name: str) -> list[Stage]:
        """Stages that start, directly or not, from this one's winner, in the file's order."""
        return [stage for stage in self.order() if name in self.file.all_needs(stage)]

    def order(self) -> list[Stage]:
        """All stages, each after those whose winners it starts from."""
        stages = self.file.study.stages
        names = dict.fromkeys(name for stage in stages for name in [*self.file.all_needs(stage), stage.name])
        return [self.file.stage(name) for name in names]


def unequal(budgets: Mapping[str, Budget], parity: Sequence[str]) -> str | None:
    """Why arms are no fair comparison, or None."""
    for what in parity:
        spent = {arm: getattr(budget, what) for arm, budget in budgets.items()}
        if len(set(spent.values())) > 1:
            listed = ", ".join(f"{arm} {amount:,}" for arm, amount in spent.items())
            return f"parity asks for equal {what}, but: {listed}; change grpo.steps, rollout.n or the lengths"
    return None
