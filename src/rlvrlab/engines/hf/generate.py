"""Sampling through the model's own cached forward pass: slower than sampler.py, and right for every architecture.

Each request draws one uniform per answer and step from a generator of its own key, and the token is the inverse of the
cumulative distribution there (draw.py), so an answer does not depend on what shares its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvrlab.engines.hf.attention import without_cudnn
from rlvrlab.engines.hf.draw import draw, scaled
from rlvrlab.randomness import generator
from rlvrlab.types import Completion, Finish, Request, Sampling, Tokenizer, Told, Unwanted

ROWS = 256
"""Answers drawn abreast."""


class PlainSampler:
    """Samples with the parameters the model has at that moment."""

    cache_bytes = 0
    """Nothing is kept between two calls."""

    def __init__(self, model: Any, tokenizer: Tokenizer, device: torch.device) -> None:
        self.model, self.tokenizer, self.device = model, tokenizer, device
        self.max_rows = self.abreast = ROWS

    def refresh(self) -> None:
        """Nothing is copied, so there is nothing to renew."""

    def sample(
        self,
        requests: Sequence[Request],
        policy_version: int,
        told: Told | None = None,
        unwanted: Unwanted | None = None,
    ) -> list[list[Completion]]:
        """Requests of equal settings go abreast, in chunks of similar prompts; `told` hears of each chunk.

        A chunk ends with the last of its requests that is not `unwanted`, and is not begun where there is none.
        """
        out: list[list[Completion | None]] = [[None] * request.n for request in requests]
        for settings in dict.fromkeys(request.sampling for request in requests):
            mine = [i for i, request in enumerate(requests) if request.sampling == settings]
            mine.sort(key=lambda i: len(requests[i].tokens))
            rows = [(i, sample) for i in mine for sample in range(requests[i].n)]
            for at in range(0, len(rows), self.max_rows):
                chunk = rows[at : at + self.max_rows]
                if unwanted is not None and all(unwanted(i) for i, _ in chunk):
                    continue
                self.abreast = len(chunk)
                with torch.no_grad(), without_cudnn():
                    asked = [(requests[i], sample) for i, sample in chunk]
                    needless = [partial(unwanted, i) for i, _ in chunk] if unwanted else []
                    drawn = self._abreast(asked, settings, needless)
                made = []
                for (i, sample), (tokens, logps) in zip(chunk, drawn, strict=True):
                    finish = Finish.STOP if self._ended(tokens, settings) else Finish.LENGTH
                    text = self.tokenizer.decode(tokens)
                    completion = Completion(text, tuple(tokens), tuple(logps), finish, policy_version)
                    out[i][sample] = completion
                    made.append((i, sample, completion))
                if told is not None:
                    told(made)
        return [[completion for completion in group if completion is not None] for group in out]

    def _abreast(
        self, rows: list[tuple[Request, int]], settings: Sampling, needless: Sequence[Callable[[], bool]]
    ) -> list[tuple[list[int], list[float]]]:
        steps = settings.max_tokens
        uniform = {request.key: generator("sample", *request.key).random((request.n, steps)) for request, _ in rows}
        uniform_NT = np.stack([uniform[request.key][sample] for request, sample in rows])
        known: dict[tuple[int, ...], int] = {}
        place_N = [known.setdefault(request.tokens, len(known)) for request, _ in rows]
        logits, cache, mask = self._prefill(list(known), place_N)
        tokens: list[list[int]] = [[] for _ in rows]
        logps: list[list[float]] = [[] for _ in rows]
        live = np.arange(len(rows))
        for t in range(steps):
            uniform_N = torch.from_numpy(uniform_NT[live, t]).to(logits.device)
            greedy_N = torch.ones_like(uniform_N, dtype=torch.bool) if settings.temperature == 0 else None
            token_N, logp_N = draw(_scaled(logits, settings), uniform_N, greedy_N)
            for i, token, logp in zip(live, token_N.tolist(), logp_N.tolist(), strict=True):
                tokens[i].append(token)
                logps[i].append(logp)
            going = np.array([not self._ended(tokens[i], settings) for i in live])
            if t == steps - 1 or not going.any() or (needless and all(nobody() for nobody in needless)):
                break
            if not going.all():
                keep = torch.from_numpy(np.flatnonzero(going)).to(self.device)
                cache.batch_select_indices(keep)
                live, token_N, mask = live[going], token_N[keep], mask[keep]
            mask = torch.cat([mask, mask.new_ones(len(live), 1)], 1)
            inputs = {"input_ids": token_N[:, None], "position_ids": mask.sum(1, keepdim=True) - 1}
            logits = self.model(**inputs, attention_mask=mask, past_key_values=cache, use_cache=True).logits[:, -1]
        return list(zip(tokens, logps, strict=True))

    def _prefill(self, prompts: list[tuple[int, ...]], place_N: list[int]) -> tuple[Tensor, Any, Tensor]:
        """Each distinct prompt once, padded left; then one cache row per answer."""
        width = max(map(len, prompts))
        ids = torch.zeros(len(prompts), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, prompt in enumerate(prompts):
            ids[i, width - len(prompt) :] = torch.tensor(prompt)
            mask[i, width - len(prompt) :] = 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        out = self.model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1)
        rows = torch.tensor(place_N, device=self.device)
        out.past_key_values.batch_select_indices(rows)
        return out.logits[:, -1][rows], out.past_key_values, mask[rows]

    def _ended(self, tokens: list[int], settings: Sampling) -> bool:
        if tokens[-1] in self.tokenizer.ends:
            return True
        return bool(settings.stop) and self.tokenizer.decode(tokens).endswith(settings.stop)


def distribution(logits_NV: Tensor, settings: Sampling) -> Tensor:
    """Log-probs actually sampled from: at the temperature, within the nucleus; greedy answers keep the policy's own."""
    return torch.log_softmax(_scaled(logits_NV, settings), -1)


def _scaled(logits_NV: Tensor, settings: Sampling) -> Tensor:
    """`draw.scaled` where all rows have the same settings."""
    rows = {"size": logits_NV.shape[:1], "dtype": torch.float32, "device": logits_NV.device}
    temperature_N = torch.full(fill_value=settings.temperature, **rows)
    top_p_N = torch.full(fill_value=settings.top_p, **rows) if settings.top_p < 1 else None
    return scaled(logits_NV, temperature_N, top_p_N)
