"""Which problems belong together.

task_type, source and tool read the problem; difficulty bins a running pass rate by its quantiles; embedding clusters
the prompts; random is the control: a finding that random groups show as well is no finding about groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.randomness import key_bits
from rlvrlab.skills.embedding import centres, features, nearest
from rlvrlab.types import Problem

Strategy = Literal["task_type", "source", "tool", "difficulty", "embedding", "random"]
MOMENTUM = 0.7
"""Of a problem's running pass rate."""
EDGES_EVERY = 10
"""Steps between new quantiles: between them a problem changes its group only by its own rate."""


def labels(strategy: Strategy, problems: Sequence[Problem], known: Mapping[str, str]) -> list[str]:
    """The group of each problem; `known` holds those that had to be worked out (difficulty, embedding, random)."""
    if strategy == "task_type":
        return [str(problem.meta.get("task_type", problem.skill)) for problem in problems]
    if strategy == "source":
        return [problem.source for problem in problems]
    if strategy == "tool":
        return [str(problem.meta.get("tool", "none")) for problem in problems]
    return [known.get(problem.id, "unknown") for problem in problems]


def at_random(problems: Sequence[Problem], count: int, seed: int) -> dict[str, str]:
    """A fixed group per problem that means nothing."""
    return {p.id: f"random{key_bits(seed, 'random group', p.id) % count}" for p in problems}


def by_embedding(problems: Sequence[Problem], count: int, seed: int) -> dict[str, str]:
    """Spherical k-means on hashed character n-grams of the prompts; fewer distinct prompts make fewer groups."""
    feature_PD = features([problem.prompt for problem in problems])
    centre_KD = centres(feature_PD, count, seed)
    index_P = nearest(feature_PD, centre_KD)
    return {problem.id: f"cluster{i}" for problem, i in zip(problems, index_P, strict=True)}


def running_rates(rates: Mapping[str, float], found: Mapping[str, float]) -> dict[str, float]:
    """Pass rates by problem, moved towards what was just found; a new problem starts at what was found."""
    moved = {name: MOMENTUM * rates[name] + (1 - MOMENTUM) * rate for name, rate in found.items() if name in rates}
    return {**rates, **found, **moved}


def difficulty_edges(rates: Sequence[float], count: int) -> list[float]:
    """Inner quantiles of the pass rates; equal ones are kept once, so that no group is empty by construction."""
    if not rates:
        return []
    inner = np.quantile(np.asarray(rates, dtype=np.float64), np.arange(1, count) / count)
    return sorted({round(float(edge), 12) for edge in inner})


def by_difficulty(rates: Mapping[str, float], edges: Sequence[float]) -> dict[str, str]:
    """difficulty0 is the hardest: pass rates up to and including the first edge."""
    return {name: f"difficulty{int(np.searchsorted(edges, rate))}" for name, rate in rates.items()}


def sizes(names: Sequence[str]) -> dict[str, int]:
    """Problems per group, in the groups' alphabetical order, so that the order of a batch does not matter."""
    return {name: list(names).count(name) for name in sorted(set(names))}


def effective_groups(counts: Sequence[float] | Floats) -> float:
    """exp of the entropy of the sizes: S for equal groups, 1 when one holds everything."""
    share = np.asarray([count for count in counts if count > 0], dtype=np.float64)
    share = share / share.sum() if len(share) else share
    return float(np.exp(-(share * np.log(share)).sum())) if len(share) else 0.0
