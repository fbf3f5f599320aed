"""What a recipe will do and cost, before anything is trained: what `rlvr train RECIPE --plan` shows.

Sizes and numbers of answers come from what each phase declares; seconds from a step of each phase and part of an
evaluation, measured on a throw-away policy; where those are long, from a part of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from rlvrlab.errors import ModelUnavailable, UserError
from rlvrlab.evals.evaluate import greedy
from rlvrlab.recipe import Resolved
from rlvrlab.train.checks import note_surprises, owns, ready_lab
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.protocols.base import TrainingProtocol
from rlvrlab.train.state import Memory, State

SOME = 64
"""Held-out problems on which an evaluation is timed."""
PATIENCE_S = 20.0
"""What would take longer is timed on a part of it."""
GROWTH = 4
"""How many times larger each further part is."""


class PhasePlan(NamedTuple):
    """One phase in numbers."""

    name: str
    steps: int
    problems_per_step: int
    answers_per_step: int
    """Effective batch: problems × rollout.n, or references, or two per pair."""
    updates_per_step: int
    answers: int
    """Drawn and verified over the whole phase, without refills and second tries."""
    most_answers: int
    """The same with all refills and second tries that could happen."""
    max_tokens: int
    """Generated at most for `answers`."""
    also_draw: tuple[str, ...] = ()
    """Plug-ins that draw further answers, whose number only the run will tell."""
    memory_passes: float = 0.0
    """Passes, forward and backward, that the guard makes over its whole memory in one update, while it protects."""
    by_references: tuple[str, ...] = ()
    """Plug-ins that would draw answers and take references, because this engine cannot draw within a step."""


def phase_plans(resolved: Resolved) -> list[PhasePlan]:
    """What each phase will do."""
    recipe, plans = resolved.recipe, []
    protocol: TrainingProtocol | None = resolved.build("protocol")
    engine, guard, credit = (resolved.build(kind) for kind in ("engine", "guard", "credit"))
    also = [f"guard {guard.name}"] if guard is not None and guard.needs_answers else []
    by_references, also = ([], also) if engine.draws_within_steps else (also, [])
    also += [f"credit {credit.name}"] if credit is not None and credit.needs_sampling else []
    for name in recipe.phases:
        phase: Phase = resolved.phase(name)
        draws = phase.draws(recipe, recipe.data.train_size)
        answers = draws.before + phase.steps * draws.per_step
        longest = recipe.rollout.max_tokens
        lengths = protocol.lengths_in_all(phase.steps, longest) if protocol else phase.steps * longest
        plans.append(
            PhasePlan(
                name,
                phase.steps,
                phase.batch_size,
                phase.batch_rows(recipe),
                phase.updates_per_step,
                answers,
                draws.before + phase.steps * draws.most_per_step,
                draws.before * longest + draws.per_step * lengths,
                tuple(also) if phase.online else (),
                guard.passes if guard is not None and phase.online else 0.0,
                tuple(by_references) if phase.online else (),
            )
        )
    return plans


class Estimate(NamedTuple):
    """Seconds for one phase; early answers run to max_tokens, so this errs on the long side."""

    phase: str
    step_s: float
    eval_s: float
    total_s: float


MOST_DRAWN_S = 120.0
"""Seconds that a plan spends at most on drawing problems."""


def estimate_or_why(resolved: Resolved) -> tuple[list[Estimate], str]:
    """The estimate, or why there is none: the model is not on this machine, or the problems take too long to draw."""
    from rlvrlab.train.lookups import seconds_to_draw

    env = resolved.build("env")
    if not any(owns(resolved.recipe)) and (seconds := seconds_to_draw(resolved, env)) > MOST_DRAWN_S:
        sizes = "lower data.train_size, data.dev_size or eval.test_size"
        return [], f"all problems take about {seconds:,.0f} s to draw, and a plan does not wait for them; {sizes}"
    try:
        return estimate(resolved), ""
    except ModelUnavailable as error:
        return [], str(error)


def estimate(resolved: Resolved) -> list[Estimate]:
    """Phase by phase; one that cannot start on an untrained policy, or draws for long before it starts, is left out."""
    lab = ready_lab(resolved)
    note_surprises(lab)
    some, longest = lab.dev[:SOME], resolved.recipe.rollout.max_tokens
    each_s = seconds_of(lambda tokens: greedy(lab.engine, lab.env, some, tokens), longest) / max(1, len(some))
    eval_s = each_s * len(lab.dev)
    estimates = []
    with tempfile.TemporaryDirectory() as artifacts:
        for name in resolved.recipe.phases:
            phase: Phase = resolved.phase(name)
            if phase.draws(resolved.recipe, len(lab.train)).before * each_s > GROWTH * PATIENCE_S:
                continue
            try:
                data = phase.prepare(lab, Path(artifacts))
            except UserError:
                continue
            step_s = seconds_of(partial(_step, lab, phase, data), longest if phase.online else phase.batch_size)
            evaluations = 2 + phase.steps // resolved.recipe.eval.every if resolved.recipe.eval.every else 2
            estimates.append(Estimate(name, step_s, eval_s, phase.steps * step_s + evaluations * eval_s))
    return estimates


def seconds_of(work: Callable[[int], object], whole: int) -> float:
    """Seconds of work of size `whole`, timed on parts of it that grow for as long as there is patience.

    Where the next part would take too long the last one is taken in proportion, which errs on the long side.
    """
    sizes = sorted({max(1, whole // GROWTH**power) for power in range(3)})
    size, seconds = sizes[0], _seconds(lambda: work(sizes[0]))
    for larger in sizes:  # the smallest once more: the first time pays for caches
        if seconds * GROWTH > PATIENCE_S:
            break
        size, seconds = larger, _seconds(lambda: work(larger))  # noqa: B023 -- called here and now
    return seconds * whole / size


def _step(lab: Lab, phase: Phase, data: object, size: int) -> None:
    """One step: with answers of at most so many tokens where the phase draws them, else with a batch of this size.

    Rows that are drawn together take hardly longer than one alone, and tokens come one after the other.
    """
    if phase.online:
        recipe = lab.recipe
        rollout = recipe.rollout.model_copy(update={"max_tokens": size})
        short = replace(lab.resolved, recipe=recipe.model_copy(update={"rollout": rollout}))
        lab = replace(lab, resolved=short)
    else:
        phase = replace(cast(Any, phase), batch_size=size)
    if phase.step(lab, data, State(phase_step=1, step=1), Memory()).skipped:
        raise UserError(
            f"{phase.name}: the update of the measured step was not finite, and training would end after a few of "
            f"them; lower {phase.name}.learning_rate, or mend what the engine, the reward or the objective computes"
        )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
