"""Whitening over trained tokens: mean 0, standard deviation 1 (n − 1, plus 1e-8 under the root, as verl).

Array suffixes: B rows, T completion positions.
Trap: the mean is over tokens, so long rows weigh more; with fewer than two tokens there is no spread and all is 0.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Bools, Floats

VARIANCE_FLOOR = 1e-8


def whitened_BT(x_BT: Floats, mask_BT: Bools) -> Floats:
    """Whitened inside the mask, 0 outside."""
    tokens = int(mask_BT.sum())
    if tokens < 2:
        return np.zeros_like(x_BT)
    centred_BT = np.where(mask_BT, x_BT - x_BT[mask_BT].mean(), 0.0)
    variance = float((centred_BT**2).sum()) / (tokens - 1)
    return np.asarray(centred_BT / np.sqrt(variance + VARIANCE_FLOOR))
