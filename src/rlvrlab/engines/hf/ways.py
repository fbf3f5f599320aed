"""Which of the faster ways of training an engine takes; each computes what the plain one computes, up to rounding."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlvrlab.engines.hf import adapters as lora
from rlvrlab.engines.hf import layers as plain_layers
from rlvrlab.engines.hf import whole_blocks
from rlvrlab.engines.hf.body import Body

MOST_APART = 1e-4
"""How far two gradients in float32 may be apart, relative to their size."""


class Ways(NamedTuple):
    """What is taken, or how many modules of the model take it."""

    flash: bool
    """Attention of packed rows without tables."""
    adapters: int
    """LoRA layers in fewer passes over memory."""
    head: bool
    """Scores and slopes of logits in one pass each."""
    layers: int
    """Norms and gated layers in one pass each."""
    blocks: int = 0
    """Whole blocks, on a CPU."""


def choose(
    model: Any,
    body: Body,
    *,
    flash: bool = True,
    adapters: bool = True,
    head: bool = True,
    layers: bool = True,
    blocks: bool = True,
) -> Ways:
    """Take the ways that are asked for where this model and device allow them; the others are given up."""
    lora.give_back(model)
    plain_layers.give_back(model)
    whole_blocks.give_back(model)
    body.flash = body.head.fused = False
    changed = lora.take_over(model) if adapters else 0
    faster = plain_layers.take_over(model) if layers else 0
    body.head.fused = head and body.head.can_be_fused()
    body.flash = flash and body.packs and body.flash_is_exact()
    return Ways(body.flash, changed, body.head.fused, faster, _whole(model, body) if blocks else 0)


def _whole(model: Any, body: Body) -> int:
    """Take whole blocks where a gradient by them is the gradient without them; how many."""
    if not body.packs or body.device.type != "cpu":
        return 0
    count = whole_blocks.take_over(model)
    if not count:
        return 0
    whole_blocks.also_small_passes(model)
    try:
        here = body.probe_gradient()
        whole_blocks.give_back(model)
        before = body.probe_gradient()
    except (AssertionError, ValueError, TypeError, RuntimeError, MemoryError, NotImplementedError):
        whole_blocks.give_back(model)  # a pass of somebody's own will tell what is wrong, if anything is
        return 0
    return whole_blocks.take_over(model) if (here - before).norm() <= MOST_APART * before.norm() else 0
