"""Which of the faster ways of training an engine takes; each computes what the plain one computes, up to rounding."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlvrlab.engines.hf import adapters as lora
from rlvrlab.engines.hf import layers as plain_layers
from rlvrlab.engines.hf.body import Body


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


def choose(
    model: Any, body: Body, *, flash: bool = True, adapters: bool = True, head: bool = True, layers: bool = True
) -> Ways:
    """Take the ways that are asked for where this model and device allow them; the others are given up."""
    lora.give_back(model)
    plain_layers.give_back(model)
    body.flash = body.head.fused = False
    changed = lora.take_over(model) if adapters else 0
    faster = plain_layers.take_over(model) if layers else 0
    body.head.fused = head and body.head.can_be_fused()
    body.flash = flash and body.packs and body.flash_is_exact()
    return Ways(body.flash, changed, body.head.fused, faster)
