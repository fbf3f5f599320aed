"""A lack of memory is told from other errors, also where a library does not say what was wrong. No GPU is needed."""

from __future__ import annotations

import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf.memory import held_by_others, out_of_memory
from rlvrlab.errors import UserError

GB = 10**9
ATTENTION = "Expected mha_graph.execute(handle, variant_pack, workspace_ptr.get()).is_good() to be true, but got false."
CARD, CPU = torch.device("cuda"), torch.device("cpu")


def shared(monkeypatch, free: float, own: float, total: float = 140) -> None:
    """A card of which so many GB are free and so many are this process's."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(free * GB), int(total * GB)))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: int(own * GB))


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
