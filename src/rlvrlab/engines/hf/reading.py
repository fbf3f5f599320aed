"""A policy that is examined and not trained: tensors go from their files into the sampler, without Transformers.

Its answers are those of the hf engine: the same sampler computes with the same weights. A command begins seconds
earlier, and the weights are in memory once and not twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.hf import heap, load, threads
from rlvrlab.engines.hf.attention import without_cudnn
from rlvrlab.engines.hf.blocks import hidden_states
from rlvrlab.engines.hf.config import HfConfig
from rlvrlab.engines.hf.drawing import Drawing
from rlvrlab.engines.hf.early_kernels import compiled_meanwhile
from rlvrlab.engines.hf.head import Head
from rlvrlab.engines.hf.memory import out_of_memory
from rlvrlab.engines.hf.opening import plain_folder
from rlvrlab.engines.hf.packing import token_batches
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.hf.weights import Weights, sampling_dtype
from rlvrlab.notes import note


def reader_of(config: HfConfig) -> Reader | None:
    """The model of this table, or None where it takes Transformers to read it. An adapter that was not trained adds 0,
    so it is left out."""
    device = load.device_of(config)
    plain = plain_folder(config, device)
    if plain is None:
        return None
    dtype = sampling_dtype(load.dtype_of(config, device), device)
    with compiled_meanwhile(plain.model.facts, device, dtype, train=False):
        weights = Weights(plain.model.assembled(), device, dtype, lasting=False)
    return Reader(config, weights, plain.tokens)


class Reader(Drawing):
    """Draws answers and scores them."""

    name = "hf"
    version = 0

    def __init__(self, config: HfConfig, weights: Weights, tokens: Any) -> None:
        self.weights, self.device, self.window = weights, weights.device, weights.shape.window
        ends = load.ends_of(config.model)
        self.tokenizer = HfTokenizer(tokens, weights.shape.vocab, config.model, chat=config.chat, ends=ends)
        self.precision = str(weights.dtype).removeprefix("torch.")
        self.scored_tokens = config.tokens_at_once(self.device.type)
        self._head = Head(weights.score, weights.shape.vocab, self.device.type)
        self._stale = False
        if self.device.type == "cpu":
            threads.use_threads(threads.threads_for(weights.parameters, "cpu"))
            heap.keep_freed_memory()

    def _new_sampler(self) -> HfSampler:
        return HfSampler.over(self.weights, self.tokenizer)

    def logprobs(self, batch: TokenBatch) -> tuple[Floats, Floats]:
        """Float32 log-probs and entropies of every seen token."""
        while True:
            try:
                return self._scores(batch)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error, self.device) or self.scored_tokens <= 1:
                    raise
            if self._holds_buffers():
                self._sampler.forget()
            self.scored_tokens //= 2
            note("memory", f"out of memory: {self.scored_tokens} tokens are scored at once from now on")
            self._free()

    def _scores(self, batch: TokenBatch) -> tuple[Floats, Floats]:
        logp_BT, entropy_BT = np.zeros(batch.tokens_BT.shape), np.zeros(batch.tokens_BT.shape)
        with torch.inference_mode(), without_cudnn():
            for rows in token_batches(batch, range(len(batch)), "row", self.scored_tokens):
                seen_RT = batch.seen_BT[rows]
                written = [tuple(batch.tokens_BT[i][batch.seen_BT[i]].tolist()) for i in rows]
                whole = [batch.prompts[i] + answer for i, answer in zip(rows, written, strict=True)]
                starts = np.cumsum([0, *map(len, whole)])[:-1] + [len(batch.prompts[i]) - 1 for i in rows]
                place_E = np.concatenate([np.arange(len(one)) + at for one, at in zip(written, starts, strict=True)])
                token_E = torch.tensor([token for one in written for token in one], device=self.device)
                hidden_EI = hidden_states(self.weights, whole)[torch.from_numpy(place_E).to(self.device)]
                edge_E = torch.arange(len(token_E), device=self.device)
                found = self._head.score(hidden_EI, edge_E, token_E, train=False)
                for into_BT, score_E in ((logp_BT, found.logp_E), (entropy_BT, found.entropy_K)):
                    part_RT = np.zeros(seen_RT.shape)
                    part_RT[seen_RT] = score_E.double().cpu().numpy()
                    into_BT[rows] = part_RT
        return logp_BT, entropy_BT
