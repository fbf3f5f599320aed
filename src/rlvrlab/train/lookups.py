"""What a recipe names, and whether it is there: everything that can be looked up without loading a model."""

from __future__ import annotations

from typing import Any

from rlvrlab.data.roles import Use
from rlvrlab.errors import UserError
from rlvrlab.extras import Lookup
from rlvrlab.notes import hearing
from rlvrlab.recipe import Resolved
from rlvrlab.train.checks import owns, try_own_code
from rlvrlab.train.lab import build_supplies, places_of
from rlvrlab.types import Role

ROLES: dict[Role, Use] = {"train": "train", "dev": "tune"}


def lookups(resolved: Resolved) -> list[Lookup]:
    """Everything that can be looked up without loading a model; problems are read from one of each role."""
    found = list(resolved.build("engine").lookups())
    try:
        env = resolved.build("env")
    except UserError as error:
        return [*found, Lookup("env", "wrong", str(error))]
    found += [_problems(resolved, env, role) for role in ROLES]
    return found if any(one.state == "wrong" for one in found) else found + _own_code(resolved)


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


def _own_code(resolved: Resolved) -> list[Lookup]:
    """The user's own verifier and reward, tried as before training; nothing where all is built in."""
    if not any(owns(resolved.recipe)):
        return []
    told: list[str] = []
    try:
        with hearing(lambda _, words: told.append(words)):
            try_own_code(build_supplies(resolved))
    except UserError as error:
        return [Lookup("own code", "wrong", str(error))]
    return [Lookup("own code", "wrong" if told else "found", "; ".join(told) or "tried on some problems of each role")]
