"""What a recipe names, and whether it is there: everything that can be looked up without loading a model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from rlvrlab.data.presets import how_to_make
from rlvrlab.envs.split import Use
from rlvrlab.errors import UserError
from rlvrlab.evals.cards import ENOUGH
from rlvrlab.extras import Lookup
from rlvrlab.notes import hearing
from rlvrlab.recipe import Resolved
from rlvrlab.train.checks import owns, refuse_files, refuse_unworkable, try_own_code
from rlvrlab.train.lab import Supplies, build_supplies, places_of
from rlvrlab.train.state import Difficulty
from rlvrlab.train.surgery import Grouping
from rlvrlab.types import Role

ROLES: dict[Role, Use] = {"train": "train", "dev": "tune"}
FEW, MOST_S = 32, 5.0
"""Problems by which the time of all is told, and the most seconds that are spent on drawing all."""
OWN_CODE = "own code"
NO_REASON = {OWN_CODE, *(f"data.{role}_file" for role in get_args(Role))}
"""What a plan without a step only warns of: it may come before its files, and own code is often only doubted."""


class LookedUp(NamedTuple):
    """What was looked up."""

    found: list[Lookup]
    problems: dict[Role, int]
    """By role, how many problems a run would have; empty where that is not soon known."""


def lookups(resolved: Resolved) -> LookedUp:
    """Everything that can be looked up without loading a model; all problems are drawn where that is soon done."""
    return _looked_up(resolved, list(resolved.build("engine").lookups()))


def _looked_up(resolved: Resolved, found: Sequence[Lookup]) -> LookedUp:
    """Environment, problems and phases, behind what was found out about the engine."""
    try:
        env = resolved.build("env")
    except UserError as error:
        return LookedUp([*found, Lookup("env", "wrong", str(error))], {})
    asked: list[Role] = [*ROLES, *(("test",) if resolved.recipe.data.test_file else ())]
    roles = {role: _problems(resolved, env, role) for role in asked}
    if any(one.state == "wrong" for one in (*found, *roles.values())):
        return LookedUp([*found, *roles.values()], {})
    own = any(owns(resolved.recipe))
    if not own and (seconds := seconds_to_draw(resolved, env)) > MOST_S:
        reason = f"all problems take about {seconds:.0f} s to draw"
        later = Lookup("phases", "not checked", f"{reason}; a run checks them before it begins", reason)
        return LookedUp([*found, *roles.values(), *_without_group(resolved, env), later], {})
    try:
        has = build_supplies(resolved)
    except UserError as error:
        return LookedUp([*found, *roles.values(), Lookup("data", "wrong", str(error))], {})
    counts: dict[Role, int] = {"train": len(has.train), "dev": len(has.dev)}
    counts |= {"test": len(has.test)} if has.tests else {}
    told = [_counted(resolved, env, role, count) for role, count in counts.items()]
    return LookedUp([*found, *told, *_as_before_training(has, own)], counts)


def refuse_wrong(resolved: Resolved) -> list[str]:
    """Refuse what a run would refuse before it trains, in its words, for a plan that is made without a step.

    Returned is in words what of environment, problems and own code was not found, is doubted or was not looked at.
    """
    found = _looked_up(resolved, ()).found
    for one in found:
        if one.state == "wrong" and one.what not in NO_REASON:
            raise UserError(one.words)
    return [f"{one.what}: {one.words}" for one in found if one.state != "found"]


def _without_group(resolved: Resolved, env: Any) -> list[Lookup]:
    """Whether surgery knows the groups of a few problems, where drawing all takes long."""
    surgery, recipe = resolved.build("surgery"), resolved.recipe
    if surgery is None or surgery.needs_pass_rates or recipe.data.train_file is not None:
        return []
    some = env.problems("train", FEW, recipe.data.seed)
    try:
        Grouping(surgery, some, recipe.seed).names(some, Difficulty())
    except UserError as error:
        return [Lookup("phases", "wrong", str(error))]
    return []


def in_short(found: Sequence[Lookup]) -> str:
    """What came of all lookups, in a few words; `fine` is said only where everything was looked up and found."""
    if any(one.state == "wrong" for one in found):
        return "every key is known, but see below"
    unchecked = [f"{one.what} ({one.reason})" for one in found if one.state == "not checked"]
    missing = [one.what for one in found if one.state == "missing here"]
    told = [
        f"{len(things)} {'thing' if len(things) == 1 else 'things'} {state}: {', '.join(things)}"
        for state, things in (("not checked", unchecked), ("missing on this machine", missing))
        if things
    ]
    return "; ".join(["nothing wrong found", *told]) if told else "fine"


def too_few(resolved: Resolved, problems: Mapping[Role, int]) -> list[str]:
    """In words, which roles have so few problems that an evaluation on them shows nothing."""
    few = {role: count for role, count in problems.items() if role != "train" and count < ENOUGH}
    return [
        f"{count} {role} {'problem' if count == 1 else 'problems'}: on fewer than {ENOUGH} hardly any gain can be told "
        f"from chance; {'raise ' + _size_key(role) if count >= (_asked(resolved, role) or count + 1) else 'add rows'}"
        for role, count in few.items()
    ]


def _size_key(role: Role) -> str:
    return "eval.test_size" if role == "test" else f"data.{role}_size"


def _asked(resolved: Resolved, role: Role) -> int:
    """How many problems of a role the recipe asks for; 0: all of its file."""
    recipe = resolved.recipe
    return {"train": recipe.data.train_size, "dev": recipe.data.dev_size, "test": recipe.eval.test_size}[role]


def _counted(resolved: Resolved, env: Any, role: Role, count: int) -> Lookup:
    """How many problems of a role there are, and where they come from."""
    file = getattr(resolved.recipe.data, f"{role}_file")
    if file is not None:
        paths = ", ".join(map(str, places_of(resolved, file)))
        return Lookup(f"data.{role}_file", "found", f"{count} problems of {paths}")
    asked = _asked(resolved, role)
    limit = f"all that there are, of the {asked} asked for" if count < asked else f"{_size_key(role)}"
    return Lookup(f"env, {role} problems", "found", f"{count} of {env.name} ({limit})")


def _problems(resolved: Resolved, env: Any, role: Role) -> Lookup:
    """The files of a role where the recipe has some, else a first problem of the environment's own."""
    file = getattr(resolved.recipe.data, f"{role}_file")
    if file is not None:
        paths = places_of(resolved, file)
        lacking = [path for path in paths if not path.is_file()]
        remedy = f"; no such file: {how_to_make(lacking)}, or name another" if lacking else ""
        told = ", ".join(map(str, lacking or paths))
        return Lookup(f"data.{role}_file", "wrong" if lacking else "found", f"{told}{remedy}")
    try:
        env.problems(role, 1, resolved.recipe.data.seed)
    except UserError as error:
        return Lookup(f"env, {role} problems", "wrong", str(error))
    return Lookup(f"env, {role} problems", "found", f"{env.name} has some")


def seconds_to_draw(resolved: Resolved, env: Any) -> float:
    """About how long it takes to draw the problems that no file holds, by the time of a few of them."""
    data, roles = resolved.recipe.data, get_args(Role)
    drawn = sum(_asked(resolved, role) for role in roles if getattr(data, f"{role}_file") is None)
    began = time.perf_counter()
    env.problems("train", 1, data.seed)
    first = time.perf_counter() - began  # with what only the first call costs
    env.problems("train", 1, data.seed)
    one = time.perf_counter() - began - first
    try:
        env.problems("train", 1 + FEW, data.seed)
    except UserError:  # there are fewer; when all are drawn, it is told of as many as the recipe asks for
        return 0.0
    more = time.perf_counter() - began - first - 2 * one  # without what every call costs, however many it draws
    return first + max(more, 0.0) * drawn / FEW


def _as_before_training(has: Supplies, own: bool) -> list[Lookup]:
    """What a run refuses before it trains: the user's own code is tried, then the phases are checked."""
    told: list[str] = []
    what = OWN_CODE
    try:
        with hearing(lambda _, words: told.append(words)):
            try_own_code(has)
        what = "phases"
        refuse_files(has)
        refuse_unworkable(has)
    except UserError as error:
        return [Lookup(what, "wrong", str(error))]
    if not own:
        return []
    return [Lookup(OWN_CODE, "wrong" if told else "found", "; ".join(told) or "tried on some problems of each role")]
