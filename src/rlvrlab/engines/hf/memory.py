"""Recognises errors of too little memory, and says who holds the memory of a card."""

from __future__ import annotations

import torch

CPU_WORDS = ("can't allocate memory", "not enough memory")
"""How torch tells it on a CPU: in words alone."""
LIBRARY_WORDS = ("CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED")
"""How NVIDIA's libraries tell it when they say what was wrong."""
DOUBTFUL_WORDS = ("mha_graph.execute(", "CUDNN_STATUS_EXECUTION_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED")
"""How they tell it when they do not: kernels and handles need device memory outside torch's allocator, and a call that
gets none fails without a reason. The same words have other causes, so they count only on a card that is full."""
SMALL_BYTES = 1 << 30
"""A card with less than this free is full; other processes that hold less than this are not worth telling."""


def out_of_memory(error: BaseException, device: torch.device) -> bool:
    """Is this error about memory?"""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = str(error)
    if any(words in said for words in (*CPU_WORDS, *LIBRARY_WORDS)):
        return True
    known = _free_and_total(device) if any(words in said for words in DOUBTFUL_WORDS) else None
    return known is not None and known[0] < SMALL_BYTES


def held_by_others(device: torch.device) -> str:
    """Who else is on the card, as the end of a sentence; nothing where this process is alone or it cannot be told."""
    known = _free_and_total(device)
    if known is None:
        return ""
    (free, total), own = known, torch.cuda.memory_reserved(device)
    others = total - free - own
    if others < SMALL_BYTES:
        return ""
    card = f"other processes hold about {_gb(others)} GB of the card's {_gb(total)}, this one {_gb(own)}"
    return f" ({card}; with the card to itself it may fit)"


def available(device: torch.device) -> int:
    """Bytes of a card that this process may still take: free ones, within its own limit if it has one
    (torch.cuda.set_per_process_memory_fraction), and those that torch holds without using them."""
    free, total = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device)
    # Unlike the others, torch asks for the number of the card here, and None is the current one.
    below_limit = int(torch.cuda.get_per_process_memory_fraction(device.index) * total) - held
    return max(0, min(free, below_limit)) + held - torch.cuda.memory_allocated(device)


def _free_and_total(device: torch.device) -> tuple[int, int] | None:
    if device.type != "cuda":
        return None
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # a context that an earlier error left broken answers nothing
        return None
    return free, total


def _gb(count: int) -> str:
    return f"{count / 1e9:.0f}"
