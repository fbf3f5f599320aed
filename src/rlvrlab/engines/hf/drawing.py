"""Drawing answers from an embedded or served sampler, with as many abreast as memory allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch

from rlvrlab.engines.hf.memory import held_by_others, out_of_memory
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.errors import UserError
from rlvrlab.notes import note
from rlvrlab.types import Completion, Request, Told

SHOWN_TOKENS = 16
"""Of a prompt that is too long."""


class Drawing(ABC):
    """The verbs of engines/base.py that draw answers."""

    device: torch.device
    tokenizer: HfTokenizer
    window: int
    """Longest prompt and answer together."""
    version: int
    max_rows: int | None = None
    """Answers abreast at most, once memory has been short."""
    _sampler: Any = None
    _stale = True
    """Whether the sampler's copy of the weights is older than the published policy."""

    @abstractmethod
    def _new_sampler(self) -> Any:
        """Made when the first answer is asked for."""

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Keyed sampling from the published policy."""
        return self._sample(requests, None)

    def sample_streaming(self, requests: Sequence[Request], told: Told) -> list[list[Completion]]:
        """The same; `told` hears of answers while others are still being drawn."""
        return self._sample(requests, told)

    def _sample(self, requests: Sequence[Request], told: Told | None) -> list[list[Completion]]:
        for request in requests:
            if len(request.tokens) + request.sampling.max_tokens > self.window:
                raise self._too_long(request, requests)
        if self._sampler is None:
            self._sampler = self._new_sampler()
            self._sampler.max_rows = self.max_rows or self._sampler.max_rows
        if self._stale:
            self._sampler.refresh()
            self._stale = False
        return self._sparing_rows(requests, told)

    def _too_long(self, request: Request, requests: Sequence[Request]) -> UserError:
        """Names a prompt by the first words in which it differs from the others: they often begin alike."""
        places = zip(*(one.tokens for one in requests), strict=False)
        shared = sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, places))
        own = request.tokens[0 if shared == len(request.tokens) else shared :][:SHOWN_TOKENS]
        words = " ".join(self.tokenizer.decode(own).split())
        long = f"a prompt of {len(request.tokens)} tokens ({words!r} …) and an answer of {request.sampling.max_tokens}"
        remedy = "leave this problem out, or allow shorter answers (rollout.max_tokens, --max-tokens)"
        return UserError(f"{long} do not fit the model's window of {self.window}; {remedy}")

    def _sparing_rows(self, requests: Sequence[Request], told: Told | None) -> list[list[Completion]]:
        """Out of memory halves the answers drawn abreast, as often as it takes; one at a time is the end of it."""
        while True:
            try:
                return list(self._sampler.sample(requests, self.version, told))
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error, self.device):
                    raise
                rows = min(self._sampler.max_rows, self._sampler.abreast)
                if rows <= 1:
                    remedy = "lower rollout.max_tokens or take a smaller model"
                    what = f"{self.device} while sampling one answer{held_by_others(self.device)}"
                    raise UserError(f"out of memory on {what}; {remedy}") from error
            self.max_rows = self._sampler.max_rows = rows // 2
            note("memory", f"out of memory while sampling: {self.max_rows} answers abreast from now on")
            self._free()

    def _holds_buffers(self) -> bool:
        return self._sampler is not None and bool(self._sampler.cache_bytes)

    def _free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
