"""How long judging takes: percentiles over the latest checks, and the slowest of all by name."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from dataclasses import dataclass, field

SLOWEST_KEPT = 10
DURATIONS_KEPT = 20_000
"""Eight bytes each: a server that has answered 100,000 requests is no larger for it."""


@dataclass(frozen=True, slots=True)
class Latency:
    """A summary of the checks so far."""

    checks: int
    cached: int
    unjudged: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    slowest: tuple[tuple[float, str], ...]
    """Milliseconds and label, slowest first."""
    errors: dict[str, int]
    """Verdicts by error kind."""


@dataclass
class Stopwatch:
    """Collects durations; the oldest are forgotten beyond DURATIONS_KEPT."""

    durations_ms: array[float] = field(default_factory=lambda: array("d"))
    slowest: list[tuple[float, str]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    checks: int = 0
    cached: int = 0
    unjudged: int = 0

    def note(self, seconds: float, label: str, error: str, judged: bool) -> None:
        """Count one verdict and how long it took."""
        self.checks += 1
        self.errors[error] += 1
        self.unjudged += not judged
        milliseconds = seconds * 1000
        self.durations_ms.append(milliseconds)
        if len(self.durations_ms) > DURATIONS_KEPT:
            del self.durations_ms[: DURATIONS_KEPT // 2]
        heapq.heappush(self.slowest, (milliseconds, label))
        if len(self.slowest) > SLOWEST_KEPT:
            heapq.heappop(self.slowest)

    def summary(self) -> Latency:
        """Percentiles, slowest checks and error counts so far."""
        ordered = sorted(self.durations_ms)
        p50, p95, p99 = (percentile(ordered, share) for share in (0.50, 0.95, 0.99))
        slowest = tuple(sorted(self.slowest, reverse=True))
        return Latency(self.checks, self.cached, self.unjudged, p50, p95, p99, slowest, dict(self.errors))


def percentile(ordered: list[float], share: float) -> float:
    """Nearest rank; NaN of nothing."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
