"""From hidden states to log-probs and entropies and back, a chunk of the vocabulary matrix at a time.

    log p = z_token − lse(z)        dz = c_logp (onehot − p) − c_entropy p (log p + H)
    KL(p* ‖ p) = Σ p* (log p* − log p)        dz = p − p*

The logits of all positions at once would be the largest tensor of a training step, so they are made in chunks, kept for
the backward pass where they are small and made again where they are not. Arithmetic on logits is float32.
Suffixes as in packing.py: K places, E edges, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from rlvrlab.engines.hf.slopes import along

CHUNK = {"cpu": 1 << 23, "cuda": 1 << 27}
"""Logits made at a time."""
KEPT = {"cpu": 1 << 26, "cuda": 1 << 30}
"""Logits kept for the backward pass."""


class Piece(NamedTuple):
    """A chunk of places with the edges that leave them."""

    hidden: Tensor
    logits: Tensor | None
    """With their autograd graph; None where the backward pass computes them again."""
    lse_K: Tensor
    entropy_K: Tensor
    places: slice
    edges: slice


class Scored(NamedTuple):
    """Scores, and what their backward pass needs."""

    logp_E: Tensor
    entropy_K: Tensor
    pieces: list[Piece]


class Head:
    """The output layer of a model."""

    def __init__(self, project: Callable[[Tensor], Tensor], vocabulary: int, device: str) -> None:
        self.project, self.vocabulary = project, vocabulary
        self.chunk = max(1, CHUNK.get(device, CHUNK["cuda"]) // vocabulary)
        self.kept = KEPT.get(device, KEPT["cuda"])
        self.device = device
        self.fused = False
        """Whether kernels of one pass each score logits and make their slopes; ways.py decides."""

    def score(self, hidden: Tensor, place_E: Tensor, token_E: Tensor, *, train: bool) -> Scored:
        """Log-prob of every edge and entropy of every place; edges are sorted by place."""
        keep = train and hidden.shape[0] * self.vocabulary <= self.kept
        logps, pieces = [], []
        starts, end = list(range(0, hidden.shape[0], self.chunk)), hidden.shape[0]
        cuts = torch.searchsorted(place_E, torch.tensor([*starts, end], device=place_E.device)).tolist()
        for i, start in enumerate(starts):
            places, edges = slice(start, min(start + self.chunk, end)), slice(cuts[i], cuts[i + 1])
            part = hidden[places].detach().requires_grad_(train)
            with torch.set_grad_enabled(keep):
                logits = self.project(part)
            with torch.no_grad():
                lse, entropy = self._scores(logits)
                here = place_E[edges] - places.start
                logps.append(logits[here, token_E[edges]].float() - lse[here])
            pieces.append(Piece(part, logits if keep else None, lse, entropy, places, edges))
        if not pieces:
            return Scored(hidden.new_zeros(0, dtype=torch.float32), hidden.new_zeros(0, dtype=torch.float32), [])
        return Scored(torch.cat(logps), torch.cat([piece.entropy_K for piece in pieces]), pieces)

    def backward(
        self,
        scored: Scored,
        place_E: Tensor,
        token_E: Tensor,
        c_logp_E: Tensor,
        c_logp_K: Tensor,
        c_entropy_K: Tensor | None,
    ) -> Tensor:
        """d loss / d hidden; `c_logp_K` sums each place's edges. Trained parameters of the layer add to their .grad."""
        grads = []
        for piece in scored.pieces:
            logits = piece.logits
            if logits is None:
                with torch.enable_grad():
                    logits = self.project(piece.hidden)
            here = place_E[piece.edges] - piece.places.start
            c_entropy = None if c_entropy_K is None else c_entropy_K[piece.places]
            edges = here, token_E[piece.edges], c_logp_E[piece.edges]
            with torch.no_grad():
                dz = self._slopes(logits, piece, *edges, c_logp_K[piece.places], c_entropy)
            along(logits, dz).backward()
            assert piece.hidden.grad is not None
            grads.append(piece.hidden.grad)
        return torch.cat(grads)

    def can_be_fused(self) -> bool:
        """Is there a GPU with Triton whose kernels find what torch finds, on rows as long as the model's?"""
        if self.device != "cuda" or find_spec("triton") is None:
            return False
        made = torch.Generator().manual_seed(0)
        logits = (3 * torch.randn(3, self.vocabulary, generator=made)).to(self.device, torch.bfloat16)
        last = self.vocabulary - 1
        place, token, coefficient = (
            torch.tensor(x, device=self.device) for x in ([0, 0, 2], [last // 2, last // 2, last], [0.5, 1, -2])
        )
        c_K = torch.tensor([1.5, 0.0, -2.0], device=self.device)
        before, found = self.fused, []
        try:
            for self.fused in (False, True):
                lse, entropy = self._scores(logits)
                piece = Piece(logits, None, lse, entropy, slice(0, 3), slice(0, 3))
                slopes = [self._slopes(logits, piece, place, token, coefficient, c_K, one) for one in (None, c_K)]
                found.append(torch.cat([lse, entropy, *(one.float().flatten() for one in slopes)]))
        except Exception:  # Triton raises kinds of its own; what does not run here is not taken
            return False
        finally:
            self.fused = before
        return bool((found[1] - found[0]).abs().max() <= 1e-2)

    def _scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """log Σ exp z and the entropy of every place."""
        if self.fused:
            from rlvrlab.engines.hf.train_kernels import scores

            return scores(logits.detach())
        z = logits.float()
        lse = torch.logsumexp(z, -1)
        return lse, lse - (torch.exp(z - lse[:, None]) * z).sum(-1)

    def _slopes(
        self, logits: Tensor, piece: Piece, place_E: Tensor, token_E: Tensor, c_logp_E: Tensor, c_logp_K: Tensor,
        c_entropy_K: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """d loss / d logits, in their own precision; places count from the piece's first."""
        if self.fused:
            from rlvrlab.engines.hf.train_kernels import slopes

            scored = logits.detach(), piece.lse_K, piece.entropy_K
            return slopes(*scored, place_E, token_E, c_logp_E, c_logp_K, c_entropy_K)
        log_p, c_logp = logits.float() - piece.lse_K[:, None], c_logp_K[:, None]
        if c_entropy_K is None:
            dz = log_p.exp_().mul_(-c_logp)
        else:
            slope = log_p.add(piece.entropy_K[:, None]).mul_(c_entropy_K[:, None]).add_(c_logp)
            dz = log_p.exp_().mul_(slope).neg_()
        return dz.index_put_((place_E, token_E), c_logp_E, accumulate=True).to(logits.dtype)

    def kl(
        self,
        hidden: Tensor,
        anchor_hidden: Tensor,
        weight_K: Tensor,
        as_anchor: Callable[[], AbstractContextManager[None]],
    ) -> tuple[float, Tensor]:
        """Σ weight KL(anchor ‖ current) and its derivative by `hidden`; trained parameters add to their .grad.

        Within `as_anchor()` the output layer has the anchor's parameters, which may differ from the current ones too.
        """
        value, grads = 0.0, []
        for start in range(0, hidden.shape[0], self.chunk):
            places = slice(start, start + self.chunk)
            with torch.no_grad(), as_anchor():
                anchor_KV = torch.log_softmax(self.project(anchor_hidden[places]).float(), -1)
            part = hidden[places].detach().requires_grad_()
            with torch.enable_grad():
                logits = self.project(part)
            with torch.no_grad():
                logp_KV, weight_K1 = torch.log_softmax(logits.float(), -1), weight_K[places, None]
                value += float((weight_K1 * anchor_KV.exp() * (anchor_KV - logp_KV)).sum(dtype=torch.float64))
                dz = (logp_KV.exp_() - anchor_KV.exp_()).mul_(weight_K1)
            along(logits, dz.to(logits.dtype)).backward()
            assert part.grad is not None
            grads.append(part.grad)
        return value, torch.cat(grads)
