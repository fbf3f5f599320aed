"""Which problems belong together.

task_type, source and tool read the problem; difficulty bins a running pass rate by its quantiles; embedding clusters
the prompts; random is the control: a finding that random groups show as well is no finding about groups. What each one
needs is in STRATEGIES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from rlvrlab.errors import UnknownName, UserError
from rlvrlab.randomness import key_bits
from rlvrlab.types import Problem

Strategy = Literal["task_type", "source", "tool", "difficulty", "embedding", "random"]
MOMENTUM = 0.7
"""Weight of the old running pass rate when a new one arrives."""
EDGES_EVERY = 10
"""Steps between new quantiles: between them a problem changes its group only by its own rate."""


def at_random(problems: Sequence[Problem], count: int, seed: int) -> dict[str, str]:
    """A fixed group per problem that means nothing."""
    return {p.id: f"random{key_bits(seed, 'random group', p.id) % count}" for p in problems}


def by_embedding(problems: Sequence[Problem], count: int, seed: int) -> dict[str, str]:
    """Spherical k-means on hashed character n-grams of the prompts; fewer distinct prompts make fewer groups."""
    from rlvrlab.skills.embedding import centres, features, nearest

    feature_PD = features([problem.prompt for problem in problems])
    index_P = nearest(feature_PD, centres(feature_PD, count, seed))
    return {problem.id: f"cluster{i}" for problem, i in zip(problems, index_P, strict=True)}


def running_rates(rates: Mapping[str, float], latest: Mapping[str, float]) -> dict[str, float]:
    """Pass rates by problem, moved towards the latest ones; a new problem starts at its first."""
    moved = {name: MOMENTUM * rates[name] + (1 - MOMENTUM) * rate for name, rate in latest.items() if name in rates}
    return {**rates, **latest, **moved}


def difficulty_edges(rates: Sequence[float], count: int) -> list[float]:
    """Inner quantiles of the pass rates; equal ones are kept once, so that no group is empty by construction."""
    if not rates:
        return []
    inner = np.quantile(np.asarray(rates, dtype=np.float64), np.arange(1, count) / count)
    return sorted({round(float(edge), 12) for edge in inner})


def by_difficulty(rates: Mapping[str, float], edges: Sequence[float]) -> dict[str, str]:
    """difficulty0 is the hardest: pass rates up to and including the first edge."""
    return {name: f"difficulty{int(np.searchsorted(edges, rate))}" for name, rate in rates.items()}


class Grouping(NamedTuple):
    """Where a strategy gets its groups from; exactly one of the three."""

    read: Callable[[Problem], str | None] | None = None
    """From the problem itself; None where the problem does not say."""
    divide: Callable[[Sequence[Problem], int, int], dict[str, str]] | None = None
    """From all training problems, once: (problems, number of groups, seed) to the group of each problem's id."""
    needs_pass_rates: bool = False
    """From pass rates that the run keeps up to date."""


STRATEGIES: dict[Strategy, Grouping] = {
    "task_type": Grouping(read=lambda problem: str(problem.meta.get("task_type", problem.skill))),
    "source": Grouping(read=lambda problem: problem.source),
    "tool": Grouping(read=lambda problem: str(problem.meta["tool"]) if "tool" in problem.meta else None),
    "difficulty": Grouping(needs_pass_rates=True),
    "embedding": Grouping(divide=by_embedding),
    "random": Grouping(divide=at_random),
}


def grouping(strategy: Strategy) -> Grouping:
    """The strategy's entry, or an error that lists the names."""
    if strategy not in STRATEGIES:
        raise UnknownName("surgery.group_strategy", strategy, STRATEGIES)
    return STRATEGIES[strategy]


def divided(strategy: Strategy, problems: Sequence[Problem], count: int, seed: int) -> dict[str, str]:
    """Groups that are worked out once from all training problems; empty for strategies that do not."""
    divide = grouping(strategy).divide
    return divide(problems, count, seed) if divide else {}


def labels(strategy: Strategy, problems: Sequence[Problem], known: Mapping[str, str]) -> list[str]:
    """The group of each problem; `known` holds those that had to be worked out (difficulty, embedding, random)."""
    read = grouping(strategy).read
    if read is None:
        return [known.get(problem.id, "unknown") for problem in problems]
    named = [read(problem) for problem in problems]
    if None in named:
        others = ", ".join(name for name in STRATEGIES if name != strategy)
        raise UserError(
            f'surgery.group_strategy = "{strategy}": problem {problems[named.index(None)].id} has no {strategy!r} in '
            f"its meta, so its group is not known; give it one or use another strategy; allowed: {others}"
        )
    return [name for name in named if name is not None]
