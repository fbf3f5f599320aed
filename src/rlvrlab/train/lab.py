"""Everything a run needs, built once from its recipe."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from rlvrlab.engines.base import Engine
from rlvrlab.errors import UserError
from rlvrlab.randomness import shuffled
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.types import Environment, Problem, RewardFunction, Sampling


@dataclass(frozen=True)
class Lab:
    """Recipe, policy, environment, problems."""

    resolved: Resolved
    engine: Engine
    env: Environment
    reward: RewardFunction
    train: tuple[Problem, ...]
    dev: tuple[Problem, ...]

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
        return {
            "environment": self.env.name,
            "version": self.env.version,
            "train": {"size": len(self.train), "sha256": content_hash(self.train)},
            "dev": {"size": len(self.dev), "sha256": content_hash(self.dev)},
        }


def build_lab(resolved: Resolved) -> Lab:
    """Build the plug-ins and draw the problems."""
    recipe = resolved.recipe
    env: Environment = resolved.build("env")
    train = env.problems("train", recipe.data.train_size, recipe.data.seed)
    dev = env.problems("dev", recipe.data.dev_size, recipe.data.seed)
    _check_roles(train, dev)
    engine = resolved.build("engine").build(recipe.optimizer.settings())
    return Lab(resolved, engine, env, resolved.build("reward"), tuple(train), tuple(dev))


def content_hash(problems: tuple[Problem, ...]) -> str:
    """Hash of the problems' contents, in order."""
    return hashlib.sha256("\n".join(problem.key for problem in problems).encode()).hexdigest()[:16]


def _check_roles(train: list[Problem], dev: list[Problem]) -> None:
    if not train or not dev:
        raise UserError("data: the environment gave no problems; widen its keys or lower data.train_size")
    wrong = [p.id for p in train if p.role != "train"] + [p.id for p in dev if p.role == "train"]
    if wrong:
        raise UserError(f"data: {len(wrong)} problems are not of the role they are used for, e.g. {wrong[:3]}")
    shared = {p.key for p in train} & {p.key for p in dev}
    if shared:
        raise UserError(f"data: {len(shared)} held-out problems are also in training, e.g. {sorted(shared)[:3]}")
