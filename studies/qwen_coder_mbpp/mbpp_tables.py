"""What the tables of both questions share: the six measures of an examination, and how numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rlvrlab.batch import Floats

SAMPLES = 16


class Measure(NamedTuple):
    """One column of an examination."""

    data: str
    answers: str
    """greedy, or sampled at temperature 1."""
    reach: bool
    """Whether one right sample is enough (pass@16), instead of the share that is right."""

    def __str__(self) -> str:
        kind = "greedy" if self.answers == "greedy" else "pass@16" if self.reach else "pass@1, T=1"
        return f"{'MBPP' if self.data == 'mbpp' else 'HumanEval'} {kind}"

    @property
    def key(self) -> str:
        """As the resampling was keyed when results/summary.json was written."""
        kind = "greedy" if self.answers == "greedy" else "pass@n" if self.reach else "sampled@1"
        return f"{self.data} {kind}"


MEASURES = [
    Measure(data, answers, reach)
    for data in ("mbpp", "humaneval")
    for answers, reach in (("greedy", False), ("sampled", False), ("sampled", True))
]


def label(arm: str) -> str:
    """grpo_s0 -> grpo 0, clip_higher_s0 -> clip_higher 0."""
    return re.sub(r"_s(\d)$", r" \1", arm)


def points(share: float) -> str:
    """A difference of shares in percentage points; a bound just below zero keeps its sign, zero has none."""
    return f"{100 * share + 0.0:+.1f}".replace("-", "−")


def interval(low: float, high: float) -> str:
    """In percentage points."""
    return f"[{points(low)}, {points(high)}]"


def first_last(values: Floats, form: str) -> str:
    """The mean of the first three steps and of the last five."""
    return f"{form.format(values[:3].mean())} → {form.format(values[-5:].mean())}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
