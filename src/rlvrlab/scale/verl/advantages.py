"""Our advantage estimators under verl's interface.

verl gives an estimator rewards, a mask and the group of each row, and nothing else. What more ours may want (the
critic's values, the reward's named parts) the trainer lays out in `extras` before the call. An answer that could not
be judged has NaN for its reward: it enters no statistic and its advantage is 0.
Suffixes: B rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlvrlab.batch import Floats, RewardBatch
from rlvrlab.registry import find
from rlvrlab.scale.verl.job import current, has_job


@dataclass(frozen=True)
class Extras:
    """What verl does not hand on."""

    value_BT: Floats | None = None
    parts: Mapping[str, Floats] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    """Filled by the estimator: what had to be left out."""


extras: ContextVar[Extras | None] = ContextVar("extras", default=None)


@contextmanager
def laid_out(given: Extras) -> Iterator[Extras]:
    """Give these extras to the estimator that verl calls inside the block."""
    mark = extras.set(given)
    try:
        yield given
    finally:
        extras.reset(mark)


def estimator(name: str) -> Callable[..., tuple[Any, Any]]:
    """A function as verl registers it; its settings are the job's where that has the same estimator."""

    def compute(
        token_level_rewards: Any, response_mask: Any, index: Sequence[Any] | None = None, config: Any = None, **_: Any
    ) -> tuple[Any, Any]:
        import torch

        given = extras.get() or Extras()
        reward_BT = token_level_rewards.detach().cpu().double().numpy()
        mask_BT = response_mask.detach().cpu().numpy().astype(bool)
        names = list(index) if index is not None else list(range(len(reward_BT)))
        numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
        group_B = np.array([numbers[name] for name in names], dtype=np.int64)
        # NaN anywhere in a row's rewards: it was not judged. A padding row has no trained token: nobody's answer.
        judged_B = np.asarray(~np.isnan(reward_BT).any(axis=1) & mask_BT.any(axis=1))
        batch = RewardBatch(np.nan_to_num(reward_BT), mask_BT, group_B, judged_B, given.value_BT, given.parts)
        advantage = current().plugin("advantage", name) if has_job() else find("advantage", name)()
        found = advantage(batch)
        given.counts.update({f"advantage/{key}": float(value) for key, value in found.counts.items()})
        returns_BT = found.advantage_BT if found.return_BT is None else found.return_BT
        like = {"dtype": torch.float32, "device": token_level_rewards.device}
        return torch.tensor(found.advantage_BT, **like), torch.tensor(returns_BT, **like)

    return compute
