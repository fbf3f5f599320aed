"""What a recipe names, and whether it is there: everything that can be looked up without loading a model."""

from __future__ import annotations

import time
from typing import Any

from rlvrlab.data.roles import Use
from rlvrlab.errors import UserError
from rlvrlab.extras import Lookup
from rlvrlab.notes import hearing
from rlvrlab.recipe import Resolved
from rlvrlab.train.checks import owns, refuse_unworkable, try_own_code
from rlvrlab.train.lab import build_supplies, places_of
from rlvrlab.types import Role

ROLES: dict[Role, Use] = {"train": "train", "dev": "tune"}
FEW, MOST_S = 32, 5.0
"""Problems by which the time of all is told, and the most seconds that are spent on drawing all."""


def lookups(resolved: Resolved) -> list[Lookup]:
    """Everything that can be looked up without loading a model; all problems are drawn where that is soon done."""
    found = list(resolved.build("engine").lookups())
    try:
        env = resolved.build("env")
    except UserError as error:
        return [*found, Lookup("env", "wrong", str(error))]
    found += [_problems(resolved, env, role) for role in ROLES]
    if any(one.state == "wrong" for one in found):
        return found
    own = any(owns(resolved.recipe))
    if not own and (seconds := _seconds_to_draw(resolved, env)) > MOST_S:
        why = f"all problems take about {seconds:.0f} s to draw; a run checks them before it begins"
        return [*found, Lookup("phases", "not checked", why)]
    return found + _as_before_training(resolved, own)


def _problems(resolved: Resolved, env: Any, role: Role) -> Lookup:
    """The files of a role where the recipe has some, else a first problem of the environment's own."""
    file = getattr(resolved.recipe.data, f"{role}_file")
    if file is not None:
        paths = places_of(resolved, file)
        lacking = [path for path in paths if not path.is_file()]
        remedy = "; no such file: make it with `rlvr data prepare`, or name another" if lacking else ""
        told = ", ".join(map(str, lacking or paths))
        return Lookup(f"data.{role}_file", "wrong" if lacking else "found", f"{told}{remedy}")
    try:
        env.problems(role, 1, resolved.recipe.data.seed)
    except UserError as error:
        return Lookup(f"env, {role} problems", "wrong", str(error))
    return Lookup(f"env, {role} problems", "found", f"{env.name} has some")


def _seconds_to_draw(resolved: Resolved, env: Any) -> float:
    """About how long it takes to draw the problems that no file holds, by the time of a few of them."""
    data, sizes = resolved.recipe.data, {"train": resolved.recipe.data.train_size, "dev": resolved.recipe.data.dev_size}
    drawn = sum(size for role, size in sizes.items() if getattr(data, f"{role}_file") is None)
    drawn += resolved.recipe.eval.test_size if data.test_file is None else 0
    began = time.perf_counter()
    env.problems("train", 1, data.seed)
    one = time.perf_counter() - began
    env.problems("train", 1 + FEW, data.seed)
    more = time.perf_counter() - began - 2 * one  # without what every call costs, however many it draws
    return one + max(more, 0.0) * drawn / FEW


def _as_before_training(resolved: Resolved, own: bool) -> list[Lookup]:
    """What a run refuses before its policy is loaded: the user's own code is tried, then the phases are checked."""
    told: list[str] = []
    what = "data"
    try:
        has = build_supplies(resolved)
        what = "own code"
        with hearing(lambda _, words: told.append(words)):
            try_own_code(has)
        what = "phases"
        refuse_unworkable(has)
    except UserError as error:
        return [Lookup(what, "wrong", str(error))]
    if not own:
        return []
    return [Lookup("own code", "wrong" if told else "found", "; ".join(told) or "tried on some problems of each role")]
