"""One step of attention in plain torch, the reference of the GPU's kernels, against attention written out in NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from needs_torch import torch

from rlvrlab.engines.hf.blocks import Cache
from rlvrlab.engines.hf.operations import TorchOperations, new_state
from rlvrlab.engines.hf.weights import Layer

HEADS, KEY_HEADS, SIZE, PROMPT, ROOM = 4, 2, 6, 5, 4
LENGTHS, GROUPS, STEPS, USED = (3, 5, 5), (0, 1, 1), (2, 0, 3), 4
ANGLE_D = 0.7 ** np.arange(SIZE // 2)


def turned(x_D: np.ndarray, position: int) -> np.ndarray:
    """Rotary embedding as a product of complex numbers."""
    half = SIZE // 2
    z_D = (x_D[:half] + 1j * x_D[half:]) * np.exp(1j * position * ANGLE_D)
    return np.concatenate([z_D.real, z_D.imag])


def test_a_row_attends_to_its_prompt_and_to_its_own_tokens_so_far() -> None:
    rng, rows = np.random.default_rng(0), len(LENGTHS)
    prefix_kv = rng.normal(size=(2, 2, KEY_HEADS, PROMPT, SIZE))
    own_kv = rng.normal(size=(2, rows, KEY_HEADS, ROOM, SIZE))
    qkv = rng.normal(size=(rows, HEADS + 2 * KEY_HEADS, SIZE))

    expected = np.zeros((rows, HEADS, SIZE))
    for row, (length, group, step) in enumerate(zip(LENGTHS, GROUPS, STEPS, strict=True)):
        for head in range(HEADS):
            key_head = head * KEY_HEADS // HEADS
            newest = turned(qkv[row, HEADS + key_head], length + step), qkv[row, HEADS + KEY_HEADS + key_head]
            keys, values = (
                np.concatenate([prefix_kv[i, group, key_head, :length], own_kv[i, row, key_head, :step], [newest[i]]])
                for i in (0, 1)
            )
            weight = np.exp(keys @ turned(qkv[row, head], length + step) * 0.3)
            expected[row, head] = weight @ values / weight.sum()

    shape = SimpleNamespace(heads=HEADS, kv_heads=KEY_HEADS, repeat=HEADS // KEY_HEADS, head_dim=SIZE, scale=0.3)
    angle_TD = np.arange(PROMPT + ROOM)[:, None] * ANGLE_D
    tables = np.hstack([np.cos(angle_TD)] * 2), np.hstack([-np.sin(angle_TD), np.sin(angle_TD)])
    weights = SimpleNamespace(shape=shape, cos_TD=torch.tensor(tables[0]), sin_TD=torch.tensor(tables[1]))
    state = new_state(torch.device("cpu"), rows, ROOM)
    state.group[:], state.length[:], state.step[:] = map(torch.tensor, (GROUPS, LENGTHS, STEPS))
    cache = Cache(*([torch.tensor(kv[i])] for kv in (prefix_kv, own_kv) for i in (0, 1)))
    layer = Layer(*[torch.empty(0)] * 6)
    found = TorchOperations(weights).attend(0, layer, torch.tensor(qkv).reshape(rows, -1), state, cache, USED)
    np.testing.assert_allclose(found.reshape(expected.shape).numpy(), expected, rtol=1e-10)
