"""The policy of a run, for whoever examines it: at a checkpoint, or before training.

Nothing in the folder is touched: the run may still be going on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.engines.base import Engine
from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved
from rlvrlab.record.final import BASE, BEST, LAST, step_named
from rlvrlab.train import checkpoint
from rlvrlab.train.lab import engine_alone
from rlvrlab.train.session import resolved_of


class Policy(NamedTuple):
    """An engine with its parameters loaded."""

    resolved: Resolved
    engine: Engine
    facts: dict[str, Any]
    """Run, checkpoint and step."""


def policy_of(run: Path, which: str = LAST) -> Policy:
    """`last` is the newest complete checkpoint, `best` that of the best held-out score, `base` before training."""
    resolved = resolved_of(run)  # first, for it says what is no run
    path = checkpoint_of(run, which)
    engine = engine_alone(resolved)
    facts: dict[str, Any] = {"run": run.name, "checkpoint": "none: before training", "step": 0}
    facts |= {"training_seed": resolved.recipe.seed}
    if path is not None:
        facts |= {"checkpoint": path.name, "step": checkpoint.load(path, engine).step}
    engine.publish()
    return Policy(resolved, engine, facts)


def checkpoint_of(run: Path, which: str = LAST) -> Path | None:
    """Its folder; None for the policy before training."""
    if which == LAST:
        found = checkpoint.complete(run / "checkpoints")
        if not found:
            raise UserError(f"{run}: no complete checkpoint yet; wait for one, or name another run")
        state = checkpoint.read_state(found[0])
        # A run that ends with a control arm has, as its result, the policy that the arm started from.
        return run / "checkpoints" / f"global_step_{state.origin}" if state.returns else found[0]
    step = step_named(run, which)
    if step is None:
        raise UserError(f"{run}: has not been evaluated yet, so there is no best; try @last")
    if step == 0 and which in (BASE, BEST):  # the policy before training may have been the best
        return None
    path = checkpoint.at_step(run / "checkpoints", step)
    if path is None:
        there = checkpoint.named_steps(run / "checkpoints")
        raise UserError(f"{run}@{step}: no checkpoint of step {step}; there are {there or 'none'}, best, last, base")
    return path
