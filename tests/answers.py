"""Answers as tests compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlvrlab.types import Completion


def rounded(groups: Sequence[Sequence[Completion]]) -> list[list[Completion]]:
    """With log-probabilities to nine digits: the last ones depend on how many rows a processor multiplies at once."""
    return [[replace(one, logprobs=tuple(round(p, 9) for p in one.logprobs)) for one in group] for group in groups]
