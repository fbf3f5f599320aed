"""Random batches for the comparison with TRL and verl, and what it means to agree.

Array suffixes: B rows, T completion positions. Everything is double precision.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import TokenBatch, scale_of

HORIZON = 9
SEEDS = range(4)
EXACT = 1e-10
NEAR = 2e-7
"""Where verl divides by (count + 1e-8), and where TRL counts in single precision."""


def agree(ours, theirs, tolerance):
    scale = max(float(np.abs(theirs).max()), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale)


def random_case(seed, rows=6, width=5, holes=True):
    """Log-probs and a batch: every row has trained tokens, row advantages, masks with holes."""
    rng = np.random.default_rng(seed)
    mask_BT = rng.random((rows, width)) < 0.7 if holes else np.arange(width) < rng.integers(1, width + 1, (rows, 1))
    mask_BT[:, 0] = True
    logp_BT = -rng.gamma(2.0, 0.6, (rows, width))
    batch = TokenBatch(
        prompts=((0,),) * rows,
        tokens_BT=np.zeros((rows, width), np.int64),
        seen_BT=np.ones_like(mask_BT),
        loss_BT=mask_BT,
        scale=scale_of(mask_BT, None, HORIZON),
        old_BT=logp_BT + 0.6 * rng.normal(size=(rows, width)),
        behaviour_BT=logp_BT + 0.9 * rng.normal(size=(rows, width)),
        reference_BT=logp_BT + 0.5 * rng.normal(size=(rows, width)),
        advantage_BT=np.broadcast_to(rng.normal(size=(rows, 1)), (rows, width)).copy(),
    )
    return logp_BT, batch
