"""LoRA in fewer passes over memory: PEFT's numbers, and PEFT itself where a layer is more than the formula."""

from __future__ import annotations

from typing import Any

import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import adapters
from rlvrlab.objectives.sft import Sft

ROWS = ([(3, 4, 5)] * 3, [(4, 5, 6, 9), (6, 5), (7, 7, 2)])


def moved(kind: str, *, own: bool) -> Any:
    """An engine whose adapters do something."""
    engine: Any = hf(kind, 4, own=own)(0)
    engine.weights.add(torch.randn(engine.weights.size, generator=torch.Generator().manual_seed(1)) * 0.1)
    return engine


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize(("own", "checkpointed"), [(True, False), (False, False), (False, True)])
def test_scores_and_gradients_are_pefts(kind: str, own: bool, checkpointed: bool) -> None:
    engine, batch = moved(kind, own=own), batch_of(*ROWS)
    if checkpointed:
        engine.model.gradient_checkpointing_enable({"use_reentrant": False})
        engine.model.train()
    before, (slope, value, _) = engine.logprobs(batch)[0], engine.gradient(batch, Sft())
    assert adapters.take_over(engine.model) == 14
    here, (taken, taken_value, _) = engine.logprobs(batch)[0], engine.gradient(batch, Sft())
    assert here == pytest.approx(before, abs=1e-5) and taken_value == pytest.approx(value, rel=1e-5)
    torch.testing.assert_close(taken, slope, atol=1e-5 * float(slope.norm()), rtol=1e-4)
    adapters.give_back(engine.model)
    assert (engine.logprobs(batch)[0] == before).all()


def test_what_is_more_than_the_formula_stays_pefts() -> None:
    from peft.tuners.lora.layer import Linear

    engine, batch = moved("llama", own=False), batch_of(*ROWS)
    layers = [module for module in engine.model.modules() if type(module) is Linear]
    layers[0].lora_dropout["default"] = torch.nn.Dropout(0.5)
    layers[1].base_layer.weight.requires_grad_(True)
    assert adapters.take_over(engine.model) == 12
    assert not {"forward"} & (layers[0].__dict__.keys() | layers[1].__dict__.keys())
    layers[2].enable_adapters(False)
    without = engine.logprobs(batch)[0]
    layers[2].enable_adapters(True)
    assert (engine.logprobs(batch)[0] != without).any()
