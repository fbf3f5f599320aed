"""Tokens that a model has a name for and never learnt: their rows of the output layer are where they began.

A tokenizer may know `<tool_call>` as one token that no training of its model ever used. Such rows are all alike, which
no two rows that were trained are, and adapters of the layers below do not move them: the model learns everything around
the token and puts any of the others in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

ALIKE = 0.02
"""Two rows nearer than this share of their length are alike. Of Qwen2.5-Coder-1.5B's named tokens those that were
trained are 0.2 and more from every other row, and 2,230 rows are like that of `<tool_call>`."""
OTHERS = 4
"""So many other rows like it show that a token was never trained."""
CHUNK = 1 << 14
"""Rows that are compared at a time."""


def untrained(rows_VD: Tensor, tokens: Sequence[int]) -> list[int]:
    """Those of the tokens whose row of the output layer many others have too."""
    return [token for token in tokens if _like(rows_VD, token) > OTHERS]


def _like(rows_VD: Tensor, token: int) -> int:
    """How many rows are like this token's, its own among them."""
    own_D = rows_VD[token].float()
    near = ALIKE * own_D.norm()
    return sum(int(((chunk.float() - own_D).norm(dim=1) <= near).sum()) for chunk in rows_VD.split(CHUNK))
