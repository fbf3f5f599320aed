"""How long would it take? A step of each phase and part of an evaluation, measured on a throw-away policy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.evals.evaluate import greedy
from rlvrlab.recipe import Resolved
from rlvrlab.train.lab import build_lab
from rlvrlab.train.phases.base import Phase

SOME = 64
"""Held-out problems that an evaluation is judged by."""
PATIENCE_S = 20.0
"""A first step that takes longer is not repeated."""


class Estimate(NamedTuple):
    """Seconds for one phase; early answers run to max_tokens, so this errs on the long side."""

    phase: str
    step_s: float
    eval_s: float
    total_s: float


def estimate(resolved: Resolved) -> list[Estimate]:
    """Phase by phase; a phase that cannot start on an untrained policy (DPO) is left out."""
    lab = build_lab(resolved)
    some = lab.dev[:SOME]
    eval_s = _seconds(lambda: greedy(lab.engine, lab.env, some, resolved.recipe.rollout.max_tokens))
    eval_s *= len(lab.dev) / max(1, len(some))
    found = []
    with tempfile.TemporaryDirectory() as artifacts:
        for name in resolved.recipe.phases:
            phase: Phase = resolved.phase(name)
            try:
                phase.prepare(lab, Path(artifacts))
            except UserError:
                continue
            step_s = _seconds(lambda: phase.step(lab, 0))  # noqa: B023 -- called here and now
            if step_s < PATIENCE_S:  # the first one pays for caches
                step_s = _seconds(lambda: phase.step(lab, 1))  # noqa: B023
            evaluations = 2 + phase.steps // resolved.recipe.eval.every if resolved.recipe.eval.every else 2
            found.append(Estimate(name, step_s, eval_s, phase.steps * step_s + evaluations * eval_s))
    return found


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
