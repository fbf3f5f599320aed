"""Decoding on a GPU: one CUDA graph per batch size, replayed once per token, over buffers that never move.

A step is eight kernels per layer and none of them waits for the host. Lengths live in device memory: the attention
kernel loops as far as each row's prompt and the step counter say, so a graph serves every length (the plain-torch
operations, used where Triton is missing, need one graph per 64 new tokens instead). Rows end on the device; every few
steps the host looks who is left and moves the living to the front once a smaller graph can take over.
Suffixes: R rows, G groups, T new tokens, V vocabulary, I any width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Bools, Ints
from rlvrlab.engines.hf.blocks import new_cache, prefill
from rlvrlab.engines.hf.operations import TorchOperations, new_state
from rlvrlab.engines.hf.wave import Drawn, Ended, Stopped, Wave, swap_out
from rlvrlab.engines.hf.weights import Weights

LOOK_EVERY = 8
"""Steps between two looks at who has ended."""
BUCKETS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Batch sizes that get a graph of their own."""


def bucket(rows: int) -> int:
    """The smallest graph that holds so many rows."""
    return next((size for size in BUCKETS if size >= rows), rows)


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
    """Keeps buffers and graphs between waves; both are made anew when a wave does not fit."""

    def __init__(self, weights: Weights, ops: TorchOperations | None = None) -> None:
        self.weights = weights
        self.ops = ops or operations(weights)
        self._room: Room | None = None

    @property
    def cache_bytes(self) -> int:
        """Memory that keys and values hold between waves."""
        return self._room.cache_bytes if self._room else 0

    def forget(self) -> None:
        """Give buffers and graphs back."""
        self._room = None

    def decode(self, wave: Wave, stopped: Stopped | None, ended: Ended | None = None) -> Drawn:
        """All rows of a wave until each has ended; what is drawn behind a row's end is to be ignored."""
        room = self._fitting(wave)
        room.load(wave)
        rows, nucleus = len(wave.group_R), bool((wave.top_p_R < 1).any())
        logits_GV = prefill(self.weights, wave.prompts, wave.begun_G, room.cache)
        self.ops.choose(logits_GV[room.state.group[:rows].long()], room.state, nucleus)
        alive = rows
        for t in range(wave.new_tokens - 1):
            if t % LOOK_EVERY == 0:
                alive = room.look(alive, t, stopped, ended)
                if alive == 0:
                    break
            room.advance(bucket(alive), t, nucleus)
        return room.drawn(np.arange(rows))

    def _fitting(self, wave: Wave) -> Room:
        """Buffers that hold the wave, in steps of 64 positions; they grow to hold earlier ones too, unless many short
        rows before and few long ones now would make that far larger than either."""
        longest = max(len(p) for p in wave.prompts)
        positions = (-(-n // 64) * 64 for n in (longest, wave.new_tokens))
        wanted = Sizes(bucket(len(wave.group_R)), bucket(len(wave.prompts)), *positions)
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
        self._graphs: dict[tuple[int, int, bool], Any] = {}
        self._pool = torch.cuda.graph_pool_handle() if weights.device.type == "cuda" else None

    def load(self, wave: Wave) -> None:
        """Forget the last wave; every row of this one is alive and has no token yet."""
        state, rows = self.state, len(wave.group_R)
        length_G = np.array([len(p) for p in wave.prompts])
        for buffer, values in (
            (state.group, wave.group_R),
            (state.length, length_G[wave.group_R]),
            (state.row, np.arange(rows)),
            (state.limit, wave.limit_R),
            (state.temperature, wave.temperature_R),
            (state.top_p, wave.top_p_R),
        ):
            buffer[:rows].copy_(torch.from_numpy(np.ascontiguousarray(values)))
        state.uniform[:rows, : wave.new_tokens].copy_(torch.from_numpy(wave.uniform_RT))
        for buffer in (state.out_token, state.out_logp, state.step, state.dead):
            buffer.zero_()
        state.end.fill_(wave.end)
        self._told_R: Bools = np.zeros(rows, dtype=bool)
        self._vacate(rows)

    def _vacate(self, rows: int) -> None:
        """Places without a row are computed too: mark them dead, with group 0 and the spare line to write to."""
        self.state.dead[rows:] = 1
        self.state.group[rows:] = self.state.length[rows:] = 0
        self.state.row[rows:] = self.sizes.rows

    def drawn(self, row_R: Ints) -> Drawn:
        """What stands in the output lines of these rows."""
        row = torch.from_numpy(row_R).to(self.weights.device)
        token_RT, logp_RT = self.state.out_token[row], self.state.out_logp[row]
        return Drawn(token_RT.cpu().numpy(), logp_RT.double().cpu().numpy())

    def look(self, alive: int, t: int, stopped: Stopped | None, ended: Ended | None = None) -> int:
        """Places still to compute, 0 once all rows ended; the living move to the front when a smaller graph fits."""
        state = self.state
        dead_R = state.dead[:alive].cpu().numpy() != 0
        if stopped is not None:
            row_R = state.row[:alive].cpu().numpy()
            hit_R = ~dead_R
            hit_R[hit_R] = stopped(row_R[hit_R], state.out_token[row_R[hit_R], : t + 1].cpu().numpy())
            state.dead[:alive] |= torch.from_numpy(hit_R).to(state.dead.device)
            dead_R |= hit_R
        left = int((~dead_R).sum())
        if ended is not None and left and left < alive:
            gone = state.row[:alive].cpu().numpy()[dead_R]
            gone = gone[~self._told_R[gone]].astype(np.int64)
            self._told_R[gone] = True
            if len(gone):
                ended(gone, self.drawn(gone))
        if not left or bucket(left) >= bucket(alive):
            return alive if left else 0
        moves, device = swap_out(dead_R), self.weights.device
        to, source = torch.from_numpy(moves.to).to(device), torch.from_numpy(moves.source).to(device)
        settings = (state.limit, state.temperature, state.top_p)
        for buffer in (state.token, state.group, state.length, state.row, state.dead, *settings):
            buffer[to] = buffer[source]
        self._vacate(moves.alive)
        for kv in (*self.cache.own_k, *self.cache.own_v):
            kv[to, :, :t] = kv[source, :, :t]
        return left

    def advance(self, rows: int, t: int, nucleus: bool) -> None:
        """One step for `rows` places. The first of its kind runs eagerly: it compiles what the capture then records."""
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
        state.step.add_(1)
        ops.choose(weights.score(h), state, nucleus)
