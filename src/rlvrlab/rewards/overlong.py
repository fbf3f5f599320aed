"""Soft length limit around another reward (DAPO, arXiv 2503.14476, equation 13).

    length <= limit - buffer          nothing
    up to limit                       falls linearly
    beyond, or cut at the limit       -penalty

A hard limit alone punishes a good answer that is cut like a bad one; the slope tells the policy before it gets there.
Length is counted in tokens, so nothing is read twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.rewards.total import Around, judged, total
from rlvrlab.types import Completion, Count, Finish, NonNegative, Problem, Reward, Verdict


@register("reward", "overlong")
@dataclass(frozen=True)
class Overlong(Around):
    """Another reward minus a penalty for length."""

    limit: Count = 8192
    """Tokens from which the whole penalty applies."""
    buffer: Count = 1024
    """Tokens before that over which it sets in."""
    penalty: NonNegative = 1.0
    """What an answer at the limit loses."""

    def __post_init__(self) -> None:
        if self.buffer > self.limit:
            raise UserError(f"reward overlong: buffer = {self.buffer} exceeds limit = {self.limit}")

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The inner reward's parts, and `overlong` at most 0."""
        judged(verdict)
        inner = self.inner(problem, completion, verdict)
        over = (len(completion.tokens) - (self.limit - self.buffer)) / self.buffer
        cut = completion.finish is Finish.LENGTH
        return total({**inner.parts, "overlong": -self.penalty * (1.0 if cut else min(1.0, max(0.0, over)))})
