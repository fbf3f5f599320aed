"""What every surgery shares: who the groups are, which rows count, and one scale for all methods.

A method sees the Gramian of the groups' gradients and answers with weights w; the update is Σ wᵢ gᵢ. Conventions:
weights are on the scale of a mean (PCGrad's and GradVac's sums are divided by the number of groups); a dead group (no
gradient: all its answers earned the same) is left out before any method sees it, since MGDA and CAGrad would answer a
zero row with the zero update; NaN is refused. A method that resolves conflicts acts only where a pair of groups has a
cosine below `conflict_threshold`; where none has, the gradients are simply added up (1/S each). Suffix S: groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Le

from rlvrlab.batch import Floats, Ints
from rlvrlab.skills.groups import Strategy, grouping
from rlvrlab.surgery.conflict import conflicting
from rlvrlab.types import Count, CountOrZero

Memory = dict[str, Any]
"""Plain data a method carries from step to step; saved with every checkpoint."""
DEAD = 1e-9
"""A gradient shorter than this share of the longest one is none."""


class Scene(NamedTuple):
    """What a method may look at."""

    gramian_SS: Floats
    share_S: Floats
    """What plain pooling would give each group; adds up to 1."""
    success_S: Floats
    """Pass rate in this batch."""
    names: tuple[str, ...]
    key: tuple[object, ...] = ()
    """Seeds whatever the method draws at random."""

    def rows(self, index: Ints) -> Scene:
        """The scene with only some of the groups."""
        names = tuple(self.names[i] for i in index)
        gramian = self.gramian_SS[np.ix_(index, index)]
        return Scene(gramian, self.share_S[index], self.success_S[index], names, self.key)


class Weighed(NamedTuple):
    """A method's answer."""

    weight_S: Floats
    memory: Memory


@dataclass(frozen=True)
class Surgery(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("surgery", …)."""

    group_strategy: Strategy = "difficulty"
    """What makes a group: difficulty, task_type, source, tool, embedding or random (the control)."""
    num_groups: Count = 4
    """For difficulty, embedding and random; the others have as many groups as there are values."""
    conflict_threshold: Annotated[float, Ge(-1), Le(1)] = 0.0
    """A pair of groups whose cosine is below it is in conflict; without such a pair the gradients are just added up.
    gradvac, worst_skill and the controls act in every step; for them it only says which pairs the record counts."""
    scope: Literal["global", "module"] = "global"
    """Where conflicts are looked for and resolved: in the whole gradient, or in every module by weights of its own."""
    noise_every: CountOrZero = 10
    """Steps between split-half and permutation controls; 0 never. They cost a second backward call, not more work."""

    resolves_conflicts: ClassVar[bool] = True
    """Does `conflict_threshold` decide when the method acts? Controls always act; GradVac has its own."""

    @property
    def needs_pass_rates(self) -> bool:
        """The groups follow pass rates of the whole run, which the loop must keep."""
        return grouping(self.group_strategy).needs_pass_rates

    def __call__(self, scene: Scene, memory: Memory) -> Weighed:
        """Weights for all groups; 0 for dead ones."""
        if not np.isfinite(scene.gramian_SS).all():
            raise ValueError("surgery: a group's gradient is NaN or infinite")
        norm_S = np.sqrt(np.maximum(np.diag(scene.gramian_SS), 0.0))
        live = np.flatnonzero(norm_S > DEAD * norm_S.max(initial=0.0))
        weight_S = np.zeros(len(norm_S))
        if not len(live):
            return Weighed(weight_S, memory)
        seen = scene.rows(live)
        if self.resolves_conflicts and not conflicting(seen.gramian_SS, self.conflict_threshold).any():
            weight_S[live] = 1 / len(live)
        else:
            weight_S[live], memory = self.weigh(seen, memory)
        return Weighed(weight_S, memory)

    @abstractmethod
    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Weights of at least one group, every one with a gradient."""
