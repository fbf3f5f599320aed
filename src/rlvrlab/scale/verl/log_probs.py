"""Log-probabilities of tokens where flash-attn is missing, many rows at a time.

verl 0.9.1 then goes through the rows of a batch one by one in Python, forward and again backward, and rounds the result
to the precision of the logits. Here it is a few large operations in single precision, as flash-attn's kernel computes it.
"""

from __future__ import annotations

from typing import Any

CHUNK = 4096
"""Rows whose probabilities exist at one time; the backward pass makes them again."""


def log_probs(logits: Any, labels: Any) -> Any:
    """log p of each label; `logits` has one dimension more than `labels`, that of the vocabulary."""
    import torch
    from torch.utils.checkpoint import checkpoint

    def some(row_RV: Any, label_R: Any) -> Any:
        exact = torch.promote_types(row_RV.dtype, torch.float32)
        return torch.log_softmax(row_RV, dim=-1, dtype=exact).gather(-1, label_R.unsqueeze(-1)).squeeze(-1)

    rows, wanted = logits.reshape(-1, logits.shape[-1]).split(CHUNK), labels.reshape(-1).split(CHUNK)
    found = [
        checkpoint(some, row_RV, label_R, use_reentrant=False, preserve_rng_state=False)
        for row_RV, label_R in zip(rows, wanted, strict=True)
    ]
    return torch.cat(found).reshape(labels.shape)
