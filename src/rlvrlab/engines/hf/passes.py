"""Forward and backward passes over a batch in micro-batches: scores, values, gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Floats, Ints, TokenBatch, add_metrics
from rlvrlab.engines.hf.body import Body
from rlvrlab.engines.hf.head import Scored
from rlvrlab.engines.hf.packing import Layout, token_batches
from rlvrlab.engines.hf.slopes import along
from rlvrlab.engines.hf.vectors import Trainable
from rlvrlab.types import Loss, Objective


class Hidden(NamedTuple):
    """The last hidden states of some rows."""

    rows: Ints
    layout: Layout
    state_KD: Tensor


def score_rows(body: Body, batch: TokenBatch, micro_tokens: int) -> tuple[Floats, Floats]:
    """Log-probs and entropies, without a graph."""
    logp_BT, entropy_BT = np.zeros(batch.tokens_BT.shape), np.zeros(batch.tokens_BT.shape)
    with torch.no_grad():
        for index in token_batches(batch, range(len(batch)), "row", micro_tokens):
            layout = body.layout(batch.rows(index))
            with body.running(layout):
                scored = _score(body, layout, body.hidden(layout), train=False)
            logp_BT[index], entropy_BT[index] = _scores_BT(layout, scored)
    return logp_BT, entropy_BT


def hidden_rows(body: Body, batch: TokenBatch, micro_tokens: int) -> list[Hidden]:
    """What a critic reads, without a graph."""
    states = []
    with torch.no_grad():
        for index in token_batches(batch, range(len(batch)), "row", micro_tokens):
            layout = body.layout(batch.rows(index))
            with body.running(layout):
                states.append(Hidden(index, layout, body.hidden(layout, last=True)))
    return states


class GradientPass:
    """One gradient: forward passes, the objective's coefficients, backward passes."""

    def __init__(self, body: Body, weights: Trainable, micro_tokens: int, batch: TokenBatch) -> None:
        self.body, self.weights, self.micro_tokens, self.batch = body, weights, micro_tokens, batch
        self.total = torch.zeros_like(weights.theta)
        self.value, self.metrics = 0.0, dict[str, float]()

    def given(self, loss: Loss) -> Tensor:
        """Back-propagate known coefficients; rows without any need no pass at all."""
        heard_B = loss.c_logp_BT.any(axis=1)
        if loss.c_entropy_BT is not None:
            heard_B = heard_B | loss.c_entropy_BT.any(axis=1)
        with self.weights.collecting(self.total):
            for index in token_batches(self.batch, np.flatnonzero(heard_B).tolist(), "row", self.micro_tokens):
                self._part(self.batch.rows(index), None, loss.rows(index))
        return self.total

    def asked(self, objective: Objective) -> Tensor:
        """Each micro-batch's scores go to the objective, its coefficients back; coupled batches are scored first."""
        if objective.couples == "batch":
            scores = score_rows(self.body, self.batch, self.micro_tokens)
            loss = objective(*scores, self.batch)
            self.value, self.metrics = loss.value, objective.metrics(*scores, self.batch)
            return self.given(loss)
        silent_B = np.zeros(len(self.batch), np.bool_)
        if objective.couples == "row":  # rows whose coefficients are probably all 0 are scored without a graph first
            credit: Any = 1.0 if self.batch.advantage_BT is None else self.batch.advantage_BT
            silent_B = np.asarray(~np.where(self.batch.loss_BT, credit, 0.0).any(axis=1))
        with self.weights.collecting(self.total):
            for silent in (False, True):
                rows = np.flatnonzero(silent_B == silent).tolist()
                for index in token_batches(self.batch, rows, objective.couples, self.micro_tokens):
                    self._part(self.batch.rows(index), objective, None, train=not silent)
        return self.total

    def anchor_kl(self, anchor: Tensor) -> Tensor:
        """KL(anchor ‖ current) on the batch's prefixes: a forward pass with either policy, one backward pass."""
        anchor = anchor.to(self.weights.dtype)
        weight_BT = self.batch.loss_BT / max(1, self.batch.scale.tokens)
        with self.weights.collecting(self.total):
            for index in token_batches(self.batch, range(len(self.batch)), "row", self.micro_tokens):
                layout = self.body.layout(self.batch.rows(index))
                weight_K = self.body.tensor(layout.gather_places(weight_BT[index]).astype(np.float32))
                with self.body.running(layout):
                    with torch.no_grad(), self.weights.swapped(anchor):
                        before = self.body.hidden(layout)
                    with torch.enable_grad():
                        hidden = self.body.hidden(layout)
                    value, slope = self.body.head.kl(hidden, before, weight_K, lambda: self.weights.swapped(anchor))
                    if hidden.requires_grad:
                        along(hidden, slope).backward()
                self.value += value
                self.weights.collect(self.total)
        return self.total

    def _part(self, part: TokenBatch, objective: Objective | None, loss: Loss | None, *, train: bool = True) -> None:
        layout = self.body.layout(part)
        with self.body.running(layout), torch.set_grad_enabled(train):
            hidden = self.body.hidden(layout)
            scored = _score(self.body, layout, hidden, train=train)
            if loss is None:
                assert objective is not None
                scores = _scores_BT(layout, scored)
                loss = objective(*scores, part)
                self.value += loss.value
                add_metrics(self.metrics, objective.metrics(*scores, part))
            if not loss.c_logp_BT.any() and (loss.c_entropy_BT is None or not loss.c_entropy_BT.any()):
                return
            if train:
                self._back(layout, hidden, scored, loss)
                return
        self._part(part, None, loss)  # some coefficient is not 0 after all (KL or entropy): again, with a graph

    def _back(self, layout: Layout, hidden: Tensor, scored: Scored, loss: Loss) -> None:
        tensor = self.body.tensor
        c_logp_E = tensor(layout.gather(loss.c_logp_BT).astype(np.float32))
        c_logp_K = tensor(layout.gather_places(loss.c_logp_BT).astype(np.float32))
        c_entropy_K = None
        if loss.c_entropy_BT is not None:
            c_entropy_K = tensor(layout.gather_places(loss.c_entropy_BT).astype(np.float32))
        place_E, token_E = tensor(layout.edge_place_E), tensor(layout.edge_token_E)
        d_hidden = self.body.head.backward(scored, place_E, token_E, c_logp_E, c_logp_K, c_entropy_K)
        if hidden.requires_grad:
            along(hidden, d_hidden).backward()
        self.weights.collect(self.total)


def _score(body: Body, layout: Layout, hidden: Tensor, *, train: bool) -> Scored:
    return body.head.score(hidden, body.tensor(layout.edge_place_E), body.tensor(layout.edge_token_E), train=train)


def _scores_BT(layout: Layout, scored: Scored) -> tuple[Floats, Floats]:
    logp_E, entropy_K = scored.logp_E.double().cpu().numpy(), scored.entropy_K.double().cpu().numpy()
    return layout.spread(logp_E), layout.spread_places(entropy_K)
