"""How long trials take: a few steps of each kind of trial are timed, with all that a trial does beside its steps."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from rlvrlab.errors import LabError
from rlvrlab.evals.protocol import USUAL_SIZE
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.identity import digest
from rlvrlab.train.plan import estimate

MEASURED = 3
"""Kinds of trials whose steps are really timed; the others are assumed to take as long as the first of these."""
SMALL_TRAIN, SMALL_DEV = 64, 16
"""Problems that suffice to time a step."""
UNTIMED = ("data", "seed", "name", "question", "output_dir", "stop")
"""Recipe keys that do not change how long a step takes."""
LOADS = "import rlvrlab.scale.session, rlvrlab.study.worker, rlvrlab.study.examine"
"""What the process of a trial loads before it does anything."""
LONGEST_S = 120.0


class Price(NamedTuple):
    """Seconds of one kind of trial."""

    step_s: float
    """Of a step, the evaluations in between included."""
    ready_s: float
    """Of drawing problems and loading the policy, what a first step takes longer included."""
    answer_s: float
    """Of an answer to a problem of a suite."""


class Prices:
    """Seconds of trials, from a few measured steps of each kind of trial."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self._known = chain, dict[str, Price | None]()
        self._first: Price | None = None
        self._start_s: float | None = None
        self.notes: list[str] = []

    def seconds(self, trials: Sequence[Trial], suites: Sequence[str], trained: bool = True) -> float | None:
        """Of all of them, one after the other, and of asking them these suites; None when nothing could be timed."""
        total: float | None = 0.0
        asked = [self._chain.file.suite(name) for name in suites]
        answers = sum((suite.size or USUAL_SIZE) * suite.n for suite in asked)
        for trial in trials:
            price = self._of(trial)
            if price is None or total is None:
                return None
            steps = max(1, trial.budget.steps) if trained else 0
            total += self._start() + price.ready_s + steps * price.step_s + answers * price.answer_s
        return total

    def _of(self, trial: Trial) -> Price | None:
        resolved = self._chain.resolved(trial.settings)
        # Sizes, seeds, step counts and learning rates do not change how long a step takes.
        plain = {key: value for key, value in resolved.plain().items() if key not in UNTIMED}
        for phase in resolved.recipe.phases:
            plain[phase] = {k: v for k, v in plain[phase].items() if k not in ("steps", "learning_rate")}
        kind = digest(plain)
        if kind not in self._known and len([one for one in self._known.values() if one]) < MEASURED:
            self._known[kind] = self._measured(trial)
            self._first = self._first or self._known[kind]
        return self._known.get(kind) or self._first

    def _measured(self, trial: Trial) -> Price | None:
        full = self._chain.resolved(trial.settings)
        least = max(int(table.get("batch_size", 0)) for table in full.recipe.phase_tables.values())
        small = {
            "data.train_size": min(full.recipe.data.train_size, max(SMALL_TRAIN, least)),
            "data.dev_size": min(full.recipe.data.dev_size, SMALL_DEV),
        }
        started = time.perf_counter()
        try:
            times = estimate(self._chain.resolved({**trial.settings, **small}))
        except LabError as error:
            note = f"time not measured: {error}"
            self.notes += [] if note in self.notes else [note]
            return None
        if not times:
            return None
        ready = time.perf_counter() - started - times[0].eval_s - sum(one.step_s for one in times)
        scale = full.recipe.data.dev_size / small["data.dev_size"]
        steps = {phase: int(table["steps"]) for phase, table in full.recipe.phase_tables.items()}
        extra = sum((one.total_s - steps[one.phase] * one.step_s) * (scale - 1) for one in times)
        step_s = (sum(one.total_s for one in times) + extra) / max(1, trial.budget.steps)
        return Price(step_s, max(0.0, ready), times[0].eval_s / small["data.dev_size"])

    def _start(self) -> float:
        """Seconds until the process of a trial has loaded its program."""
        if self._start_s is None:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", LOADS], check=False, timeout=LONGEST_S)  # noqa: S603
            self._start_s = time.perf_counter() - started
        return self._start_s
