"""Decoding on a GPU: one CUDA graph per batch size, replayed once per token, over buffers that never move.

A step is eight kernels per layer and none of them waits for the host. Lengths live in device memory: the attention
kernel loops as far as each place's prompt and step say, so a graph serves every length (the plain-torch operations,
used where Triton is missing, need one graph per 64 new tokens instead). Rows end on the device; every few steps the
host looks who has ended, and rows that wait take their places (places.py). Once nobody waits, the living move to the
front as soon as a smaller graph can take over.
Suffixes: R rows that begin, P places, G groups, V vocabulary, I any width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Ints
from rlvrlab.engines.hf.asked import Asked, Drawn, Ended, Moves, Stopped
from rlvrlab.engines.hf.blocks import new_cache, prefill
from rlvrlab.engines.hf.operations import TorchOperations, new_state
from rlvrlab.engines.hf.places import Arrivals, Places, bucket, rounded
from rlvrlab.engines.hf.weights import Weights

LOOK_EVERY = 8
"""Steps between two looks at who has ended."""


def operations(weights: Weights) -> TorchOperations:
    """Triton's kernels where they can run, plain torch elsewhere."""
    if weights.device.type == "cuda":
        try:
            from rlvrlab.engines.hf.kernels import TritonOperations
        except ImportError:
            return TorchOperations(weights)
        if TritonOperations.fits(weights):
            return TritonOperations(weights)
    return TorchOperations(weights)


class Sizes(NamedTuple):
    """How much fits into the buffers."""

    rows: int
    groups: int
    length: int
    """Positions of the longest prompt."""
    new_tokens: int

    @property
    def positions(self) -> int:
        """Keys the cache holds per layer and head."""
        return self.groups * self.length + self.rows * self.new_tokens


class GraphDecoder:
    """Keeps buffers and graphs between calls; both are made anew when a call does not fit."""

    def __init__(self, weights: Weights, ops: TorchOperations | None = None) -> None:
        self.weights = weights
        self.ops = ops or operations(weights)
        self._room: Room | None = None

    @property
    def cache_bytes(self) -> int:
        """Memory that keys and values hold between calls."""
        return self._room.cache_bytes if self._room else 0

    def forget(self) -> None:
        """Give buffers and graphs back."""
        self._room = None

    def decode(
        self,
        asked: Asked,
        most: int,
        stopped: Stopped | None,
        ended: Ended,
        unwanted: Callable[[int], bool],
    ) -> None:
        """Draw all rows, at most so many abreast; those that are `unwanted` when their turn comes do not begin."""
        places = Places(asked, most, unwanted)
        room = self._fitting(asked, places)
        room.clear(asked.end)
        while True:
            arrivals = places.admit()
            if arrivals is not None:
                room.begin(asked, arrivals)
            if not len(places.taken):
                return
            nucleus = bool((asked.top_p_R[places.row_P[places.taken]] < 1).any())
            steps, first = min(LOOK_EVERY, places.steps_left), places.longest
            for t in range(first, first + steps):
                room.advance(bucket(len(places.row_P)), t, nucleus)
            places.step_P += steps
            gone = room.look(places, stopped)
            if len(gone):
                row_R, drawn = places.row_P[gone], room.drawn(gone, int(places.step_P[gone].max()) + 1)
                places.leave(gone)
                room.vacate(gone)
                ended(row_R, drawn)
            moves = places.close_up()
            if moves is not None:
                room.move(moves, places.longest)

    def _fitting(self, asked: Asked, places: Places) -> Room:
        """Buffers that hold the call, in steps of 64 positions; they grow to hold earlier ones too, unless many short
        rows before and few long ones now would make that far larger than either."""
        longest = max(len(p) for p in asked.prompts)
        wanted = Sizes(bucket(len(places.row_P)), bucket(places.slots), rounded(longest), rounded(asked.new_tokens))
        if self._room is not None:
            both = Sizes(*map(max, wanted, self._room.sizes))
            if both.positions <= 2 * max(wanted.positions, self._room.sizes.positions):
                wanted = both
        if self._room is None or wanted != self._room.sizes:
            self._room = None  # gives the old memory back before the new is taken
            self._room = Room(self.weights, self.ops, wanted)
        return self._room


class Room:
    """Buffers of one size and the graphs over them."""

    def __init__(self, weights: Weights, ops: TorchOperations, sizes: Sizes) -> None:
        self.weights, self.ops, self.sizes = weights, ops, sizes
        self.cache = new_cache(weights, sizes.groups, sizes.length, sizes.rows, sizes.new_tokens)
        self.state = new_state(weights.device, sizes.rows, sizes.new_tokens)
        self.cache_bytes = sizes.positions * weights.shape.cache_values * weights.dtype.itemsize
        self._last_1V = torch.empty(0)
        """Scores after the prompt that was begun last: further samples of it may wait."""
        self._graphs: dict[tuple[int, int, bool], Any] = {}
        self._pool = torch.cuda.graph_pool_handle() if weights.device.type == "cuda" else None

    def clear(self, end: int) -> None:
        """Forget the last call."""
        self.vacate(np.arange(self.sizes.rows))
        self.state.end.fill_(end)

    def vacate(self, place_P: Ints) -> None:
        """Places without a row are computed too: they write nothing down, and have next to nothing to look at."""
        place, state = self._on_device(place_P), self.state
        for buffer in (state.living, state.step, state.group, state.length):
            buffer[place] = 0

    def begin(self, asked: Asked, new: Arrivals) -> None:
        """Compute the prompts that are new, draw the first token of each row, and put all into the rows' places."""
        rows, top_p_R = new.row_R, asked.top_p_R[new.row_R]
        part = new_state(self.weights.device, len(rows), asked.new_tokens)
        for buffer, values in (
            (part.group, new.slot_R),
            (part.length, np.array([len(asked.prompts[group]) for group in asked.group_R[rows]])),
            (part.limit, asked.limit_R[rows]),
            (part.temperature, asked.temperature_R[rows]),
            (part.top_p, top_p_R),
            (part.uniform, asked.uniform_of(rows)),
        ):
            buffer.copy_(torch.from_numpy(np.ascontiguousarray(values)))
        part.living.fill_(1)
        part.end = self.state.end
        logits_GV = self._scores(asked, new)
        self._last_1V = logits_GV[-1:].clone()
        self.ops.choose(logits_GV[self._on_device(new.prompt_R)], part, bool((top_p_R < 1).any()))
        place = self._on_device(new.place_R)
        for whole, own in zip(self.state.by_place(), part.by_place(), strict=True):
            whole[(place, slice(own.shape[1])) if own.dim() == 2 else place] = own

    def _scores(self, asked: Asked, new: Arrivals) -> Tensor:
        """Scores after each of the prompts (G, V)."""
        if not new.groups:
            return self._last_1V
        prompts, begun_G = [asked.prompts[g] for g in new.groups], [asked.begun_G[g] for g in new.groups]
        logits_GV = prefill(self.weights, prompts, begun_G, self.cache, new.slots)
        return torch.cat((self._last_1V, logits_GV)) if new.continued else logits_GV

    def look(self, places: Places, stopped: Stopped | None) -> Ints:
        """Places whose rows have ended, on the device or now because they are `stopped`."""
        taken = places.taken
        living_P = self.state.living.cpu().numpy()[taken] != 0
        if stopped is not None and living_P.any():
            going = taken[living_P]
            count_P = places.step_P[going] + 1
            token_PT = self.state.out_token[self._on_device(going), : int(count_P.max())].cpu().numpy()
            tokens = (line[:count] for line, count in zip(token_PT, count_P, strict=True))
            living_P[living_P] = ~stopped(places.row_P[going], tokens)
        return taken[~living_P]

    def drawn(self, place_P: Ints, tokens: int) -> Drawn:
        """The first so many tokens in the output lines of these places."""
        place = self._on_device(place_P)
        token_RT, logp_RT = self.state.out_token[place, :tokens], self.state.out_logp[place, :tokens]
        return Drawn(token_RT.cpu().numpy(), logp_RT.double().cpu().numpy())

    def move(self, moves: Moves, used: int) -> None:
        """Rows change places, with so many of their positions in the cache."""
        to, source = self._on_device(moves.to), self._on_device(moves.source)
        for buffer in self.state.by_place():
            buffer[to] = buffer[source]
        for kv in (*self.cache.own_k, *self.cache.own_v):
            kv[to, :, :used] = kv[source, :, :used]
        self.vacate(moves.source)

    def _on_device(self, values: Ints) -> Tensor:
        return torch.from_numpy(values).to(self.weights.device)

    def advance(self, rows: int, t: int, nucleus: bool) -> None:
        """One step for `rows` places, of which the furthest is at its token `t`. The first of its kind runs eagerly: it
        compiles what the capture then records."""
        every, most = self.ops.length_bucket, self.sizes.new_tokens
        key = (rows, most if every is None else min(most, (t // every + 1) * every), nucleus)
        if key in self._graphs:
            self._graphs[key].replay()
            return
        self._step(*key)
        if self._pool is not None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                self._step(*key)
            self._graphs[key] = graph

    def _step(self, rows: int, used: int, nucleus: bool) -> None:
        weights, ops, state = self.weights, self.ops, self.state
        x_RI = weights.embedding[state.token[:rows]]
        y_RI: Tensor | None = None
        for i, layer in enumerate(weights.layers):
            x_RI, h = ops.add_norm(x_RI, y_RI, layer.norm1)
            qkv_RI = weights.project(h, layer.qkv, layer.qkv_bias)
            attended = ops.attend(i, layer, qkv_RI, state, self.cache, used)
            y_RI = weights.project(attended, layer.out, layer.out_bias)
            x_RI, h = ops.add_norm(x_RI, y_RI, layer.norm2)
            gated = ops.gate(weights.project(h, layer.gate_up, layer.gate_up_bias))
            y_RI = weights.project(gated, layer.down, layer.down_bias)
        _, h = ops.add_norm(x_RI, y_RI, weights.norm)
        state.step.add_(state.living)
        ops.choose(weights.score(h), state, nucleus)
