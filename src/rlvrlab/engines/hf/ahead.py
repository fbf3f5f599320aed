"""What a GPU needs before it computes, done in threads while weights are read: nobody waits for it later.

What goes wrong in them goes wrong again, and is told, where the device is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from rlvrlab.engines.hf.flash import FlashKernels, consecutive, suits

_begun: list[threading.Thread] = []


def wake(device: torch.device) -> threading.Thread | None:
    """Begin to set a GPU up."""
    return _begin("rlvr-wake", lambda: torch.empty(1, device=device)) if device.type != "cpu" else None


def load_attention(config: Any, dtype: torch.dtype, device: torch.device) -> threading.Thread | None:
    """Begin to load the kernels of a training's attention: the first backward pass takes 2.3 s on an H200."""
    if device.type == "cpu":
        return None

    def attend() -> None:
        query, key = (
            torch.zeros(8, heads, config.head_dim, device=device, dtype=dtype)
            for heads in (config.num_attention_heads, config.num_key_value_heads)
        )
        if suits(query):
            at = consecutive(np.array([8]), device)
            for causal in (True, False):
                call = FlashKernels.forward(query, key, key, at, at, causal, 1.0)
                FlashKernels.slopes(query, query, key, key, call, at, at, causal, 1.0)

    return _begin("rlvr-attention", attend)


def finish() -> None:
    """Wait for what was begun: a graph cannot be captured while another thread loads kernels."""
    while _begun:
        _begun.pop().join()


def _begin(name: str, work: Callable[[], Any]) -> threading.Thread:
    def run() -> None:
        with suppress(Exception), torch.no_grad():
            work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    _begun.append(thread)
    thread.start()
    return thread
