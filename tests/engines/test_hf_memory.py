"""A lack of memory is told from other errors, also where a library does not say what was wrong. No GPU is needed."""

from __future__ import annotations

import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import engine as engine_module
from rlvrlab.engines.hf.memory import available, held_by_others, out_of_memory
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.types import Request, Sampling

GB = 10**9
ATTENTION = "Expected mha_graph.execute(handle, variant_pack, workspace_ptr.get()).is_good() to be true, but got false."
CARD, CPU = torch.device("cuda"), torch.device("cpu")


def shared(monkeypatch, free: float, own: float, total: float = 140, used: float = 0, limit: float = 1) -> None:
    """A card of which so many GB are free and so many are this process's, which may take a share of it."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(free * GB), int(total * GB)))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: int(own * GB))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: int(used * GB))

    def fraction(device: object) -> float:
        assert device is None or isinstance(device, int), "torch refuses a device without its number here"
        return limit

    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", fraction)


@pytest.mark.parametrize(
    "words", [ATTENTION, "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"]
)
def test_a_failed_library_call_is_a_lack_of_memory_only_on_a_full_card(words, monkeypatch) -> None:
    shared(monkeypatch, free=0.2, own=40)
    assert out_of_memory(RuntimeError(words), CARD)
    assert not out_of_memory(RuntimeError("shapes do not fit"), CARD)
    assert not out_of_memory(RuntimeError(words), CPU)
    shared(monkeypatch, free=30, own=40)
    assert not out_of_memory(RuntimeError(words), CARD)


def test_a_card_that_no_longer_answers_is_not_called_full(monkeypatch) -> None:
    def broken(device: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "mem_get_info", broken)
    assert not out_of_memory(RuntimeError(ATTENTION), CARD)
    assert held_by_others(CARD) == ""


def test_a_library_that_says_what_was_wrong_is_believed() -> None:
    assert out_of_memory(RuntimeError("cuBLAS: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), CPU)


def test_who_else_holds_the_card_is_told_only_where_there_is_someone(monkeypatch) -> None:
    shared(monkeypatch, free=2, own=40)
    assert held_by_others(CARD).startswith(" (other processes hold about 98 GB of the card's 140, this one 40;")
    shared(monkeypatch, free=99.5, own=40)
    assert held_by_others(CARD) == ""
    assert held_by_others(CPU) == ""


@pytest.mark.parametrize(
    ("free", "own", "used", "limit", "expected"),
    [
        (100, 40, 40, 1, 100),
        (100, 40, 10, 1, 130),  # what torch holds without using it is there too
        (100, 20, 10, 0.25, 25),  # 15 below the limit of 35, and 10 held
        (5, 20, 10, 0.25, 15),  # others hold the rest of the card
        (100, 40, 38, 0.25, 2),  # a limit set after more was taken
    ],
)
def test_what_a_process_may_take_is_within_its_limit(free, own, used, limit, expected, monkeypatch) -> None:
    shared(monkeypatch, free=free, own=own, used=used, limit=limit)
    assert available(CARD) == pytest.approx(expected * GB)


def test_attention_without_memory_halves_once_and_then_names_remedy_and_others(monkeypatch) -> None:
    engine, batch = hf("llama", 4)(5), batch_of([tuple(range(3, 13))] * 8, [(i + 3, 4, 5) for i in range(8)])

    def full(layout: object, **keys: object) -> None:
        raise RuntimeError(ATTENTION)

    monkeypatch.setattr(engine.body, "hidden", full)
    monkeypatch.setattr(engine, "device", CARD)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    shared(monkeypatch, free=0.1, own=40)
    told = r"out of memory on cuda .*other processes hold about 100 GB .*; lower engine\.micro_tokens"
    with pytest.warns(UserWarning, match="halved"), pytest.raises(UserError, match=told):
        engine.logprobs(batch)


def test_the_samplers_buffers_go_before_the_micro_batch_is_halved(monkeypatch) -> None:
    engine, batch = hf("llama", 4)(5), batch_of([tuple(range(3, 13))] * 8, [(i + 3, 4, 5) for i in range(8)])
    engine._sampler, notes = HfSampler(engine.model, engine.tokenizer, engine.device, graphs=True), []
    requests = [Request((3, 4, 5), 2, ("buffers",), Sampling(max_tokens=3))]
    answers, expected = engine.sample(requests), engine.gradient(batch, Sft())[0]
    plain, whole = engine.body.hidden, engine.micro_tokens
    assert engine._sampler.cache_bytes

    def hidden(*args: object, **keys: object) -> object:
        if engine._sampler.cache_bytes:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(*args, **keys)

    monkeypatch.setattr(engine.body, "hidden", hidden)
    monkeypatch.setattr(engine_module, "note", lambda kind, words: notes.append(words))
    assert torch.equal(engine.gradient(batch, Sft())[0], expected) and engine.micro_tokens == whole
    assert engine.sample(requests) == answers and engine._sampler.cache_bytes
    with pytest.warns(UserWarning, match="gave its buffers back: micro-batches are halved"):
        assert torch.allclose(engine.gradient(batch, Sft())[0], expected, rtol=1e-4, atol=1e-7)
    assert engine.micro_tokens == whole // 2 and len(notes) == 2


def test_an_evaluation_has_no_moments_and_training_has_them_before_it_samples() -> None:
    """They are twice the float32 weights, 13 GiB for 1.5B parameters: an evaluation on a shared card had no room."""
    engine = hf("llama", 4)(5)
    engine.sample([Request((3, 4, 5), 2, ("moments",), Sampling(max_tokens=3))])
    assert not {"first", "second"} & vars(engine.optimizer).keys()
    engine.fresh_optimizer()
    assert {"first", "second"} < vars(engine.optimizer).keys()
