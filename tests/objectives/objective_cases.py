"""Batches for objective tests: the vectors that TRL and verl were run on, and seeded random ones.

Array suffixes: B rows, T completion positions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlvrlab.batch import Floats, TokenBatch, scale_of
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.objectives.sft import Sft

LOGP_BT = np.array([[-1.0, -2.0, -0.5], [-0.3, -1.2, -0.7]])
OLD_BT = np.array([[-1.1, -1.5, -0.5], [-1.6, -1.2, -0.2]])
REFERENCE_BT = np.array([[-1.2, -1.9, -0.6], [-0.2, -1.0, -0.9]])
MASK_BT = np.array([[True, True, True], [True, True, False]])
ADVANTAGE_BT = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
MODES = ("token-mean", "token-sum", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")


def make(mask_BT: Any, horizon: int | None = None, pair_B: Any = None, **arrays: Any) -> TokenBatch:
    """A batch with that loss mask; every position is a seen token."""
    rows, width = mask_BT.shape
    return TokenBatch(
        prompts=((0,),) * rows,
        tokens_BT=np.zeros((rows, width), np.int64),
        seen_BT=np.ones_like(mask_BT),
        loss_BT=mask_BT,
        scale=scale_of(mask_BT, pair_B, horizon or width),
        pair_B=pair_B,
        **arrays,
    )


def vector(**changes: Any) -> TokenBatch:
    """The batch that both libraries were run on."""
    arrays = {"old_BT": OLD_BT, "reference_BT": REFERENCE_BT, "advantage_BT": ADVANTAGE_BT} | changes
    return make(MASK_BT, **arrays)


def random_batch(
    seed: int, rows: int = 6, width: int = 5, token_credit: bool = True
) -> tuple[Floats, Floats, TokenBatch]:
    """Log-probs, entropies and a batch with holes in the mask, a row without loss, weights and pairs."""
    rng = np.random.default_rng(seed)
    mask_BT = rng.random((rows, width)) < 0.7
    mask_BT[:, 0] = True
    mask_BT[-1] = False
    logp_BT = -rng.gamma(2.0, 0.6, (rows, width))
    columns = width if token_credit else 1
    advantage_BT = np.broadcast_to(rng.normal(size=(rows, columns)), (rows, width)).copy()
    batch = make(
        mask_BT,
        horizon=width + 3,
        pair_B=np.repeat(np.arange(rows // 2), 2)[rng.permutation(rows)],
        old_BT=logp_BT + 0.5 * rng.normal(size=(rows, width)),
        reference_BT=logp_BT + 0.4 * rng.normal(size=(rows, width)),
        advantage_BT=advantage_BT,
        weight_BT=rng.uniform(0.3, 2.0, (rows, width)) if token_credit else None,
        value_BT=rng.normal(size=(rows, width)),
        return_BT=rng.normal(size=(rows, width)),
    )
    assert batch.pair_B is not None
    first_B = np.array([np.flatnonzero(batch.pair_B == pair)[0] for pair in batch.pair_B])
    return logp_BT, rng.uniform(0.1, 2.0, (rows, width)), replace(batch, chosen_B=first_B == np.arange(rows))


OBJECTIVES = {
    **{f"ppo_clip {mode}": PpoClip(0.2, 0.28, aggregation=mode) for mode in MODES},
    "ppo_clip dual": PpoClip(0.2, 0.28, dual_clip=1.5),
    **{f"sft {mode}": Sft(mode) for mode in MODES},
    **{f"reinforce {mode}": Reinforce(mode) for mode in MODES},
    **{f"gspo sequence {mode}": Gspo(0.05, 0.08, "sequence", mode) for mode in MODES},
    "dpo sigmoid": Dpo(beta=0.5),
    "dpo sigmoid smooth": Dpo(beta=0.5, label_smoothing=0.1),
    "dpo robust": Dpo("robust", beta=0.5, label_smoothing=0.2),
    "dpo hinge": Dpo("hinge", beta=0.5),
    "dpo ipo": Dpo("ipo", beta=0.5),
    "dpo sft": Dpo(beta=0.5, sft_coef=0.7),
    "kl k1": Regularised(PpoClip(), 0.3, "k1"),
    "kl k2": Regularised(PpoClip(), 0.3, "k2"),
    "kl k3": Regularised(PpoClip(aggregation="seq-mean-token-mean"), 0.3, "k3"),
    "kl k3 bounded": Regularised(Sft(), 0.3, "k3", kl_bound=0.05),
    "kl + entropy": Regularised(Reinforce("seq-mean-token-sum"), 0.3, "k3", 0.2),
    "kl of pairs": Regularised(Dpo(), 0.3, "k2", 0.1),
}
"""Objectives whose coefficients are the true derivative of their value."""

HELD = {
    **{f"cispo {mode}": Cispo(1.3, 0.7, mode) for mode in MODES},
    **{f"gspo token {mode}": Gspo(0.05, 0.08, "token", mode) for mode in MODES},
    "kl k3+": Regularised(PpoClip(), 0.3, "k3+"),
}
"""Objectives that hold part of their value constant under the gradient."""
