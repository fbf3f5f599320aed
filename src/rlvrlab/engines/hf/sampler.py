"""Embedded sampling for the Llama family: tokens in, tokens out, several times faster than `generate`.

    sampler = HfSampler(model, tokenizer, device)
    sampler.refresh()                        # after the weights moved: merges LoRA into the sampler's own copy
    sampler.sample(requests, policy_version)

Each (request, sample, position) has its uniform before anything is decoded, so answers do not depend on what shares the
batch; only rounding does: a product of another height may differ in its last bit and, rarely, flip a token.
Suffixes: R rows, T new tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from rlvrlab.batch import Bools, Ints
from rlvrlab.engines.hf.asked import Asked, Drawn, Ended
from rlvrlab.engines.hf.attention import without_cudnn
from rlvrlab.engines.hf.decode import decode
from rlvrlab.engines.hf.decode_cuda import GraphDecoder
from rlvrlab.engines.hf.memory import available
from rlvrlab.engines.hf.places import bucket_within, rounded
from rlvrlab.engines.hf.weights import Weights, obstacle
from rlvrlab.errors import TrainingDiverged, UserError
from rlvrlab.randomness import generator
from rlvrlab.types import Completion, Finish, Request, Tokenizer, Told, Unwanted

MAX_ROWS = {"cpu": 256, "cuda": 2048}
"""Most rows decoded at once."""
CACHE_BYTES_CPU = 2 << 30
"""Memory that keys and values may take on a CPU."""
CACHE_SHARE_CUDA = 0.5
"""Share of a GPU's available memory that they may take."""


class Row(NamedTuple):
    """One sample of one request."""

    request: int
    sample: int


class HfSampler:
    """Samples from its own fused copy of a model's weights."""

    def __init__(
        self, model: Any, tokenizer: Tokenizer, device: Any, dtype: Any = None, graphs: bool | None = None
    ) -> None:
        """`dtype` None is the model's own; `graphs` None means fixed buffers and CUDA graphs on a GPU alone."""
        reason = obstacle(model)
        if reason:
            raise UserError(f"no embedded sampler for this model: {reason}; use the generic path")
        self._take(Weights(model, device, dtype), tokenizer, graphs)

    @classmethod
    def over(cls, weights: Weights, tokenizer: Tokenizer) -> Self:
        """A sampler with weights that are there already."""
        sampler = cls.__new__(cls)
        sampler._take(weights, tokenizer, None)
        return sampler

    def _take(self, weights: Weights, tokenizer: Tokenizer, graphs: bool | None) -> None:
        self.weights, self.tokenizer = weights, tokenizer
        self.max_rows = self.abreast = MAX_ROWS.get(self.weights.device.type, MAX_ROWS["cpu"])
        """Answers drawn abreast at most, and in the decoding under way, fewer where memory is short."""
        fixed = self.weights.device.type == "cuda" if graphs is None else graphs
        self._graphs = GraphDecoder(self.weights) if fixed else None

    @property
    def cache_bytes(self) -> int:
        """Memory that is kept between two calls of `sample`."""
        return self._graphs.cache_bytes if self._graphs else 0

    def forget(self) -> None:
        """Give that memory back; the next `sample` takes what it needs."""
        if self._graphs:
            self._graphs.forget()

    def refresh(self) -> None:
        """Take over the model's current weights, in place; adapters are merged."""
        self.weights.refresh()

    def sample(
        self,
        requests: Sequence[Request],
        policy_version: int,
        told: Told | None = None,
        unwanted: Unwanted | None = None,
    ) -> list[list[Completion]]:
        """`n` completions for each request; `told` hears of them as rows end.

        What is `unwanted` is cut short, or not begun: such a request may have fewer completions.
        """
        self._check(requests)
        out: list[list[Completion | None]] = [[None] * request.n for request in requests]
        # One row per sample: the first samples are the same however many are asked for.
        uniform = {
            i: generator("sample", *request.key).random((request.n, request.sampling.max_tokens))
            for i, request in enumerate(requests)
        }
        with torch.inference_mode(), without_cudnn():
            for rows in self._portions(requests):

                def ended(index: Ints, drawn: Drawn, rows: list[Row] = rows) -> None:
                    some = [rows[i] for i in index]
                    made = list(zip(some, self._completions(requests, some, drawn, policy_version), strict=True))
                    for row, completion in made:
                        out[row.request][row.sample] = completion
                    if told is not None:
                        told([(*row, completion) for row, completion in made])

                self._decode(requests, rows, uniform, ended, unwanted)
        return [[one for one in group if one is not None] for group in out]

    def _check(self, requests: Sequence[Request]) -> None:
        window, vocab = self.weights.shape.window, self.weights.shape.vocab
        for i, request in enumerate(requests):
            prompt, new = len(request.tokens), request.sampling.max_tokens
            if not prompt or min(request.tokens) < 0 or max(request.tokens) >= vocab:
                raise UserError(f"request {i}: a prompt holds at least one token, all in 0…{vocab - 1}")
            if new < 1:
                raise UserError(f"request {i}: max_tokens {new}, at least 1 is needed")
            if prompt + new > window:
                what = f"prompt of {prompt} tokens + max_tokens {new} exceeds the model's window of {window}"
                raise UserError(f"request {i}: {what}; shorten the prompt or lower max_tokens")
        prompt = max((len(request.tokens) for request in requests), default=0)
        self.weights.reach(prompt + max((request.sampling.max_tokens for request in requests), default=0))

    def _portions(self, requests: Sequence[Request]) -> Iterator[list[Row]]:
        """What is decoded by one call. On a CPU: as many rows as memory allows, wave after wave (decode.py says why).
        With graphs rows that wait take free places; answers so short that memory holds twice as many of them abreast
        are a call of their own."""
        rows = self._in_order(requests)
        prompt = max((len(request.tokens) for request in requests), default=0)
        while rows:
            limit_R = [requests[row.request].sampling.max_tokens for row in rows]
            most = count = self._capacity(prompt, limit_R[0])
            if self._graphs is not None and len(rows) > most:
                short = {limit for limit in set(limit_R) if self._capacity(prompt, limit) >= 2 * most}
                count = next((i for i, limit in enumerate(limit_R) if i >= most and limit in short), len(rows))
            self.abreast = min(len(rows), most)
            yield rows[:count]
            rows = rows[count:]

    def _in_order(self, requests: Sequence[Request]) -> list[Row]:
        """The longest answers come first, requests of similar length together; equal prompts are neighbours."""
        first: dict[Any, int] = {}
        for i, request in enumerate(requests):
            first.setdefault(_prefix(request), i)

        def size(i: int) -> tuple[int, int, int]:
            return -requests[i].sampling.max_tokens, -len(requests[i].tokens), first[_prefix(requests[i])]

        return [Row(i, sample) for i in sorted(range(len(requests)), key=size) for sample in range(requests[i].n)]

    def _capacity(self, prompt: int, new_tokens: int) -> int:
        """Rows abreast that memory holds, each with a prompt of its own; with graphs as their room is rounded."""
        per_token = self.weights.shape.cache_values * self.weights.dtype.itemsize
        budget = CACHE_BYTES_CPU
        if self.weights.device.type == "cuda":
            budget = int((available(self.weights.device) + self.cache_bytes) * CACHE_SHARE_CUDA)
        if self._graphs is None:
            held = budget // (per_token * (prompt + new_tokens))
        else:
            held = bucket_within(budget // (per_token * (rounded(prompt) + rounded(new_tokens))))
        return max(1, min(self.max_rows, held))

    def _decode(
        self,
        requests: Sequence[Request],
        rows: list[Row],
        uniform: dict[int, Any],
        ended: Ended,
        unwanted: Unwanted | None,
    ) -> None:
        asked = self._asked(requests, rows, uniform)
        stops = [requests[row.request].sampling.stop for row in rows]

        def needless(row: int) -> bool:
            return unwanted is not None and unwanted(rows[row].request)

        def stopped(index: Ints, tokens: Iterable[Ints]) -> Bools:
            pairs = zip(index, tokens, strict=True)
            return np.array([needless(r) or (bool(stops[r]) and self._holds(t.tolist(), stops[r])) for r, t in pairs])

        check = stopped if any(stops) or unwanted is not None else None
        if self._graphs is not None:
            self._graphs.decode(asked, self.abreast, check, ended, needless)
        elif not all(map(needless, range(len(rows)))):
            decode(self.weights, asked, check, ended)

    def _asked(self, requests: Sequence[Request], rows: list[Row], uniform: dict[int, Any]) -> Asked:
        prefixes = [_prefix(requests[row.request]) for row in rows]
        place = {prefix: g for g, prefix in enumerate(dict.fromkeys(prefixes))}
        settings = [requests[row.request].sampling for row in rows]
        return Asked(
            prompts=tuple(tokens for tokens, *_ in place),
            begun_G=tuple(begun for *_, begun in place),
            group_R=np.array([place[prefix] for prefix in prefixes]),
            limit_R=np.array([s.max_tokens for s in settings]),
            temperature_R=np.array([s.temperature for s in settings]),
            top_p_R=np.array([s.top_p for s in settings]),
            uniform_R=[uniform[row.request][row.sample] for row in rows],
            end=self.tokenizer.end,
            more_ends=tuple(sorted(self.tokenizer.ends - {self.tokenizer.end})),
        )

    def _holds(self, tokens: Sequence[int], stop: tuple[str, ...]) -> bool:
        text = self.tokenizer.decode(tokens)
        return any(one in text for one in stop)

    def _completions(
        self, requests: Sequence[Request], rows: list[Row], drawn: Drawn, version: int
    ) -> Iterator[Completion]:
        if not np.isfinite(drawn.logp_RT).all():
            raise TrainingDiverged("the policy's scores are not finite; the last good checkpoint is intact")
        everything = zip(rows, drawn.token_RT.tolist(), drawn.logp_RT.tolist(), strict=True)
        for row, tokens, logp in everything:
            settings = requests[row.request].sampling
            tokens = tokens[: settings.max_tokens]
            last = min((tokens.index(end) for end in self.tokenizer.ends if end in tokens), default=None)
            ended = last is not None
            tokens = tokens if last is None else tokens[: last + 1]
            if settings.stop and self._holds(tokens, settings.stop):
                # The fewest of the tokens that hold a stop string.
                counts, stop = range(1, len(tokens) + 1), settings.stop
                fewest = 1 + bisect_left(counts, True, key=lambda n: self._holds(tokens[:n], stop))
                tokens, ended = tokens[:fewest], True
            finish = Finish.STOP if ended else Finish.LENGTH
            text = self.tokenizer.decode(tokens)
            yield Completion(text, tuple(tokens), tuple(logp[: len(tokens)]), finish, version)


def _prefix(request: Request) -> tuple[tuple[int, ...], int, int]:
    """Requests that agree in this are one group: their prompt is computed once, as for pass@k in an evaluation."""
    return request.tokens, request.sampling.max_tokens, request.begun
