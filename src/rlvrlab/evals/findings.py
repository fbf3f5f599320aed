"""What a monitor reports."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One metric that is not as it should be."""

    metric: str
    value: float
    text: str
    """What is wrong in plain words, with the remedy."""
    alarm: bool
    """Whether it is worth an event and a line in EXPERIMENT.md at once, not only a light."""
