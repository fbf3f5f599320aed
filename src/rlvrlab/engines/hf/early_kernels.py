"""Compiles a model's GPU kernels in threads while its weights are read.

The first command on a machine compiles some fifteen kernels. Each takes a third of a second, most of it in compilers
that are processes of their own, and otherwise every one of them is waited for where it is first needed. Later commands
find them in Triton's cache. A kernel is compiled by calling it on a few zeros, with the widths and precisions that
decide which code Triton makes; whatever goes wrong here goes wrong again, and is told, where the kernel is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch

from rlvrlab.engines.hf.blocks import new_cache
from rlvrlab.engines.hf.operations import new_state
from rlvrlab.engines.hf.stored import config_of
from rlvrlab.engines.hf.weights import Shape

AT_ONCE = 6
"""Kernels compiled at the same time."""
ROOM = 64
"""Positions of the small caches: the decoder's are multiples of it."""
Calls = Sequence[Callable[[], object]]


@contextmanager
def compiled_meanwhile(facts: dict[str, Any], device: torch.device, dtype: Any, *, train: bool) -> Iterator[None]:
    """While the body reads the weights of the model with this config.json, compile what samples it, and trains it."""
    if device.type != "cuda" or find_spec("triton") is None:
        yield
        return
    thread = threading.Thread(target=_compile, args=(facts, device, dtype, train), name="rlvr-kernels", daemon=True)
    thread.start()
    yield
    thread.join()


def _compile(facts: dict[str, Any], device: torch.device, dtype: Any, train: bool) -> None:
    def call(one: Callable[[], object]) -> None:
        with suppress(Exception), torch.cuda.device(device):
            one()

    with suppress(Exception):
        first, *others = [*_sampling(facts, device, dtype), *(_training(facts, device, dtype) if train else ())]
        call(first)  # alone: it finds compiler and driver, which the others would all look for at the same time
        with ThreadPoolExecutor(AT_ONCE, "rlvr-kernels") as pool:
            list(pool.map(call, others))


def _sampling(facts: dict[str, Any], device: torch.device, dtype: Any) -> Calls:
    """The calls of one step of the decoder (decode_cuda.py)."""
    from rlvrlab.engines.hf.kernels import TritonOperations

    config = config_of(facts)
    size, heads, keys = config.head_dim, config.num_attention_heads, config.num_key_value_heads
    shape = Shape(1, heads, keys, size, config.vocab_size, ROOM, config.rms_norm_eps, size**-0.5)
    zeros = partial(torch.zeros, device=device, dtype=dtype)
    weights: Any = SimpleNamespace(shape=shape, device=device, dtype=dtype)
    weights.cos_TD = weights.sin_TD = zeros(ROOM, size)
    if not TritonOperations.fits(weights):
        return []
    operations, state = TritonOperations(weights), new_state(device, 1, ROOM)
    norm = zeros(size) if config.model_type == "qwen3" else None
    layer: Any = SimpleNamespace(q_norm=norm, k_norm=norm)
    x, qkv, cache = (
        zeros(1, config.hidden_size),
        zeros(1, (heads + 2 * keys) * size),
        new_cache(weights, 1, ROOM, 1, ROOM),
    )
    return [
        partial(operations.add_norm, x, None, x[0]),
        partial(operations.add_norm, x, x, x[0]),
        partial(operations.attend, 0, layer, qkv, state, cache, ROOM),
        partial(operations.gate, zeros(1, 2 * config.intermediate_size)),
        partial(operations.choose, zeros(1, config.vocab_size), state, False),
    ]


def _training(facts: dict[str, Any], device: torch.device, dtype: Any) -> Calls:
    """Scores, slopes, norms and gated layers, forwards and backwards."""
    from rlvrlab.engines.hf.train_kernels import Gated, Normed, scores, slopes

    config = config_of(facts)
    logits = torch.zeros(1, config.vocab_size, device=device, dtype=dtype)
    place, one = torch.zeros(1, device=device, dtype=torch.int64), torch.zeros(1, device=device)
    x = torch.zeros(1, config.hidden_size, device=device, dtype=dtype, requires_grad=True)

    def there_and_back(layer: Callable[..., torch.Tensor], *given: Any) -> None:
        torch.autograd.grad(layer(*given).sum(), given[0])

    normed = [x] if config.model_type != "qwen3" else [x, x[:, : config.head_dim]]  # its heads have norms too
    return [
        *(partial(there_and_back, Normed.apply, rows, rows[0].detach(), config.rms_norm_eps) for rows in normed),
        partial(there_and_back, Gated.apply, x, x),
        partial(scores, logits),
        partial(slopes, logits, one, one, place, place, one, one, None),
        partial(slopes, logits, one, one, place, place, one, one, one),
    ]
