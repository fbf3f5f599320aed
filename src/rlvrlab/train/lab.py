"""Everything a run needs, built once from its recipe."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rlvrlab.data.loading import load
from rlvrlab.data.roles import Use, require
from rlvrlab.engines.base import Engine
from rlvrlab.errors import UserError
from rlvrlab.randomness import shuffled
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.train.rules import Rules
from rlvrlab.types import Environment, Problem, RewardFunction, Role, Sampling


@dataclass(frozen=True)
class Lab:
    """Recipe, policy, environment, problems."""

    resolved: Resolved
    engine: Engine
    env: Environment
    reward: RewardFunction
    train: tuple[Problem, ...]
    dev: tuple[Problem, ...]
    test: tuple[Problem, ...] = ()
    """For the cards between phases; nothing is chosen by them."""
    files: Mapping[str, Any] = field(default_factory=dict)
    """By role: the data file used in place of the environment's own problems, with its hashes."""
    rules: Rules = field(default=cast(Rules, None))
    """Protocol, surgery and guard, with what they remember."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", self.rules or Rules(self.resolved))

    @property
    def recipe(self) -> Recipe:
        """The settings."""
        return self.resolved.recipe

    @property
    def sampling(self) -> Sampling:
        """How training answers are drawn."""
        r = self.recipe.rollout
        return Sampling(max_tokens=r.max_tokens, temperature=r.temperature, top_p=r.top_p)

    def problems_at(self, stream: str, step: int, size: int) -> list[Problem]:
        """The `step`-th slice of an endless stream that visits every training problem once per epoch, reshuffled."""
        first, last = step * size, (step + 1) * size
        chosen: list[Problem] = []
        for epoch in range(first // len(self.train), (last - 1) // len(self.train) + 1):
            order = shuffled(self.train, self.recipe.seed, stream, "epoch", epoch)
            offset = epoch * len(self.train)
            chosen += order[max(0, first - offset) : last - offset]
        return list({p.id: p for p in chosen}.values())  # over an epoch's edge one may come twice: one group, not two

    def data_facts(self) -> dict[str, Any]:
        """What was trained and evaluated on, by content."""
        facts = {
            "environment": self.env.name,
            "version": self.env.version,
            "train": {"size": len(self.train), "sha256": content_hash(self.train)},
            "dev": {"size": len(self.dev), "sha256": content_hash(self.dev)},
        }
        return facts | {"files": dict(self.files)} if self.files else facts


def engine_alone(resolved: Resolved) -> Engine:
    """A recipe's engine with its embedded sampler: a policy is examined without the servers that helped train it."""
    config = resolved.build("engine")
    if hasattr(config, "sampler"):
        config = replace(config, sampler="embedded")
    return cast(Engine, config.build(resolved.recipe.optimizer))


def build_lab(resolved: Resolved) -> Lab:
    """Build the plug-ins and draw the problems."""
    recipe = resolved.recipe
    env: Environment = resolved.build("env")
    files: dict[str, Any] = {}
    train = _problems(resolved, env, "train", "train", files)
    dev = _problems(resolved, env, "dev", "tune", files)
    _check_roles(train, dev)
    engine = resolved.build("engine").build(recipe.optimizer)
    test = env.problems("test", recipe.eval.test_size, recipe.data.seed) if recipe.eval.test_size else []
    lab = Lab(resolved, engine, env, resolved.build("reward"), tuple(train), tuple(dev), tuple(test), files)
    lab.rules.check_phases(lab)
    return lab


def build_problems(resolved: Resolved) -> dict[Role, list[Problem]]:
    """The training and held-out problems alone, without an engine."""
    env: Environment = resolved.build("env")
    train, dev = (_problems(resolved, env, "train", "train", {}), _problems(resolved, env, "dev", "tune", {}))
    _check_roles(train, dev)
    return {"train": train, "dev": dev}


def _problems(resolved: Resolved, env: Environment, role: Role, use: Use, files: dict[str, Any]) -> list[Problem]:
    """Of the recipe's file for this role, or the environment's own; what a file says of itself is added to `files`."""
    data = resolved.recipe.data
    file, size = getattr(data, f"{role}_file"), getattr(data, f"{role}_size")
    if file is None:
        return env.problems(role, size, data.seed)
    whole = resolved.origins.get(f"data.{role}_size") == "default"
    loaded = load(resolved.folder / file, use, env, None if whole else size, data.seed)
    files[role] = loaded.facts
    return list(loaded.problems)


def content_hash(problems: tuple[Problem, ...]) -> str:
    """Hash of the problems' contents, in order."""
    return hashlib.sha256("\n".join(problem.key for problem in problems).encode()).hexdigest()[:16]


def _check_roles(train: list[Problem], dev: list[Problem]) -> None:
    if not train or not dev:
        raise UserError("data: the environment gave no problems; widen its keys or lower data.train_size")
    require(train, "train", "data")
    require(dev, "tune", "data")
    shared = {p.key for p in train} & {p.key for p in dev}
    if shared:
        raise UserError(f"data: {len(shared)} held-out problems are also in training, e.g. {sorted(shared)[:3]}")
