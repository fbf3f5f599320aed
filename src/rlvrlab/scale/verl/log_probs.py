"""Log-probabilities and entropies of tokens from padded rows of logits, many rows at a time.

Where flash-attn is missing, verl 0.9.1 goes through the rows of a batch one by one in Python, forward and again
backward, and rounds the result to the precision of the logits. Before that it takes the padded logits apart into one
piece per answer, and the gradient of every piece is as large as all logits together. Here both are a few large
operations in single precision, as in flash-attn's kernel; what is taken apart by answers are the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHUNK = 4096
"""Rows whose probabilities exist at one time; the backward pass makes them again."""


def log_probs(logits: Any, labels: Any) -> Any:
    """log p of each label; `logits` has one dimension more than `labels`, that of the vocabulary."""
    import torch

    def some(row_RV: Any, label_R: Any) -> Any:
        return torch.log_softmax(row_RV, dim=-1, dtype=_exact(row_RV)).gather(-1, label_R.unsqueeze(-1)).squeeze(-1)

    return _in_chunks(some, logits, labels)


def entropies(logits: Any) -> Any:
    """Entropy of each row's distribution in nats; `logits` has the vocabulary as its last dimension."""
    import torch

    def some(row_RV: Any) -> Any:
        logp_RV = torch.log_softmax(row_RV, dim=-1, dtype=_exact(row_RV))
        return -(logp_RV.exp() * logp_RV.clamp(min=torch.finfo(logp_RV.dtype).min)).sum(-1)

    return _in_chunks(some, logits)


def padded_outputs(logits: Any, answers: Any, labels: Any, entropy_grad: bool | None) -> dict[str, Any]:
    """What verl wants of a forward pass over padded rows: nested tensors, with a number for each token of `answers`.

    `labels` are the next tokens of all rows in one line. `entropy_grad` None leaves entropies out; False computes them
    without a gradient.
    """
    import torch

    offsets = answers.offsets()
    kept_BT = torch.arange(logits.shape[1], device=logits.device) < offsets.diff().unsqueeze(1)
    label_BT = torch.zeros(kept_BT.shape, dtype=labels.dtype, device=labels.device)
    label_BT[kept_BT] = labels
    found = {"log_probs": log_probs(logits, label_BT)}
    if entropy_grad is not None:
        with torch.set_grad_enabled(entropy_grad and torch.is_grad_enabled()):
            found["entropy"] = entropies(logits)
    return {name: torch.nested.nested_tensor_from_jagged(one[kept_BT], offsets) for name, one in found.items()}


def _exact(row_RV: Any) -> Any:
    import torch

    return torch.promote_types(row_RV.dtype, torch.float32)


def _in_chunks(some: Callable[..., Any], logits: Any, *others: Any) -> Any:
    """`some` of CHUNK rows after the other, in the shape of `logits` without the vocabulary."""
    import torch
    from torch.utils.checkpoint import checkpoint

    parts = [logits.reshape(-1, logits.shape[-1]).split(CHUNK), *(one.reshape(-1).split(CHUNK) for one in others)]
    found = [
        checkpoint(some, *part, use_reentrant=False, preserve_rng_state=False) for part in zip(*parts, strict=True)
    ]
    return torch.cat(found).reshape(logits.shape[:-1])
