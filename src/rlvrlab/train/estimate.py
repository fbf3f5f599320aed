"""How long would it take? One step of each phase and one evaluation, measured on a throw-away policy."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.evals.evaluate import greedy
from rlvrlab.recipe import Resolved
from rlvrlab.train.lab import build_lab
from rlvrlab.train.phases.base import Phase


class Estimate(NamedTuple):
    """Seconds for one phase; early answers run to max_tokens, so this errs on the long side."""

    phase: str
    step_s: float
    eval_s: float
    total_s: float


def estimate(resolved: Resolved) -> list[Estimate]:
    """Phase by phase; a phase that cannot start on an untrained policy (DPO) is left out."""
    lab = build_lab(resolved)
    started = time.perf_counter()
    greedy(lab.engine, lab.env, lab.dev, resolved.recipe.rollout.max_tokens)
    eval_s = time.perf_counter() - started
    found = []
    with tempfile.TemporaryDirectory() as artifacts:
        for name in resolved.recipe.phases:
            phase: Phase = resolved.phase(name)
            try:
                phase.prepare(lab, Path(artifacts))
            except UserError:
                continue
            phase.step(lab, 0)  # the first one pays for caches
            started = time.perf_counter()
            phase.step(lab, 1)
            step_s = time.perf_counter() - started
            evaluations = 2 + phase.steps // resolved.recipe.eval.every if resolved.recipe.eval.every else 2
            found.append(Estimate(name, step_s, eval_s, phase.steps * step_s + evaluations * eval_s))
    return found
