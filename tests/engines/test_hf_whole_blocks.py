"""Whole blocks on a CPU: the gradients of Transformers and PEFT, and their own way where a block is something else."""

from __future__ import annotations

import platform
import resource
from typing import Any

import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import cpu_blocks, heap, plain_attention, ways, whole_blocks
from rlvrlab.objectives.sft import Sft

RAGGED = ([(3, 4, 5)] * 3 + [(7, 8, 9, 3, 2)], [(4, 5, 6, 9), (6, 5), (7, 7, 2), (2,)])
EVEN = ([(3, 4, 5)] * 2 + [(7, 8, 9)], [(4, 5, 6), (6, 5, 2), (7, 7, 2)])


def moved(kind: str, *, own: bool = True) -> Any:
    """An engine whose adapters do something."""
    engine: Any = hf(kind, 4, own=own)(0)
    engine.weights.add(torch.randn(engine.weights.size, generator=torch.Generator().manual_seed(1)) * 0.1)
    return engine


def compared(engine: Any, rows: Any) -> tuple[int, list[Any]]:
    """Blocks taken, then scores and gradients without them and with them."""
    batch, found = batch_of(*rows), []
    for blocks in (False, True):
        engine.ways = ways.choose(engine.model, engine.body, blocks=blocks)
        whole_blocks.also_small_passes(engine.model)
        found.append((engine.logprobs(batch)[0], *engine.gradient(batch, Sft())[:2]))
    return engine.ways.blocks, found


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("rows", [RAGGED, EVEN])
@pytest.mark.parametrize("short", [0, 1000])
@pytest.mark.parametrize(("own", "checkpointed"), [(True, False), (False, False), (False, True)])
def test_gradients_are_the_same(
    kind: str, rows: Any, short: int, own: bool, checkpointed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_attention, "SHORT", short)
    engine = moved(kind, own=own)
    if checkpointed:
        engine.model.gradient_checkpointing_enable({"use_reentrant": False})
        engine.model.train()
    taken, ((before, slope, value), (here, own, own_value)) = compared(engine, rows)
    assert taken == 2 and own_value == pytest.approx(value, rel=1e-5)
    assert here == pytest.approx(before, abs=1e-5)
    torch.testing.assert_close(own, slope, atol=1e-5 * float(slope.norm()), rtol=1e-4)


def test_blocks_that_are_something_else_go_their_own_way() -> None:
    engine = moved("llama")
    first, second = engine.model.model.layers
    first.self_attn.q_proj.lora_dropout["default"] = torch.nn.Dropout(0.5).eval()
    assert ways.choose(engine.model, engine.body).blocks == 1
    assert "forward" not in first.__dict__ and "forward" in second.__dict__
    second.mlp.up_proj.base_layer.weight.requires_grad_(True)
    assert ways.choose(engine.model, engine.body).blocks == 0


def test_an_adapter_that_is_off_is_not_merged() -> None:
    engine, batch = moved("llama", own=False), batch_of(*EVEN)
    engine.ways = ways.choose(engine.model, engine.body)
    whole_blocks.also_small_passes(engine.model)
    layer = engine.model.model.layers[0].mlp.gate_proj
    layer.enable_adapters(False)
    without = engine.logprobs(batch)[0]
    layer.enable_adapters(True)
    assert (engine.logprobs(batch)[0] != without).any()


def test_a_block_that_computes_something_else_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = moved("llama")
    for layer in engine.model.model.layers:  # as if a new version of Transformers changed the formula
        monkeypatch.setattr(layer.self_attn, "scaling", 3 * layer.self_attn.scaling)
    assert ways.choose(engine.model, engine.body).blocks == 2
    original = cpu_blocks.Finish.forward
    monkeypatch.setattr(cpu_blocks.Finish, "forward", lambda *given: 1.01 * original(*given))
    assert ways.choose(engine.model, engine.body).blocks == 0


def test_small_passes_do_not_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = moved("llama")
    engine.ways = ways.choose(engine.model, engine.body)
    monkeypatch.setattr(cpu_blocks.Heads, "apply", None)  # would fail if it were called
    engine.gradient(batch_of([(3, 4)], [(5, 6)]), Sft())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's heap")
def test_freed_memory_faults_in_once() -> None:
    assert heap.keep_freed_memory()

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        held = [torch.ones(1 << 20) for _ in range(40)]
        del held
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults()
    assert min(faults() for _ in range(3)) < 1000  # of 40 960 pages
