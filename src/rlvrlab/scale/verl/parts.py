"""A recipe of several phases on verl, phase by phase: who trains which, and the commands in their order.

    1 hf     sft, dpo    rlvr train R 'phases=["sft", "dpo"]' …              rlvr model export latest@last -o R_1
    2 verl   grpo        rlvr train R --engine verl … engine.model=R_1      rlvr model export latest@last -o R_2
    3 hf     repair      rlvr train R … engine.model=R_2                    rlvr model export latest@last -o R_3

verl trains one on-line phase in a run, so each such phase is a part of its own; neighbours that it cannot train share
one on the hf engine. Every part starts from the last model of the part before it, as the phases of one run do; a bare
`latest` would be the best on dev problems. Keys that verl cannot honour are set back for its part alone, by name; what
has no neutral value is refused, as in a recipe of one phase.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Recipe, Resolved, load_recipe
from rlvrlab.recipe.parse import parse_overrides, parse_value
from rlvrlab.record.final import LAST
from rlvrlab.scale.session import on_verl
from rlvrlab.scale.verl.convert import recipe_for_verl, verls_own
from rlvrlab.scale.verl.refusals import REFUSED, refusals, refused_keys, untrained

NO_FILES: list[str] = []
"""How a list of files is set back: None cannot be said on a command line."""


class Part(NamedTuple):
    """Phases that one run trains."""

    engine: str
    """verl or hf."""
    phases: list[str]
    why: str
    """Why verl does not train them; empty where it does."""
    left_out: list[str]
    """Keys of the recipe that verl cannot honour, each with the reason; they hold in the other parts."""
    commands: list[str]
    """Train, then export what the next part starts from."""


def several_parts(resolved: Resolved) -> bool:
    """Does it take more than one run on verl?"""
    phases = resolved.recipe.phases
    return len(phases) > 1 or bool(untrained(resolved.phase(phases[0])))


def parts(path: Path, overrides: Sequence[str]) -> list[Part]:
    """All parts of a recipe, checked: verl's would start. Raises RecipeError with what verl cannot honour."""
    given = {key: value for key, value in parse_overrides(overrides).items() if key not in ("engine.type", "phases")}
    whole = recipe_for_verl(path, overrides)
    made: list[Part] = []
    model: dict[str, Any] = {}
    why = {name: untrained(whole.phase(name)) for name in whole.recipe.phases}
    for _, names in groupby(whole.recipe.phases, key=lambda name: "" if why[name] else name):
        phases = list(names)
        reasons = "; ".join(f"{name} {why[name]}" for name in phases if why[name])  # none: verl trains this one phase
        name = f"{whole.recipe.name}_{len(made) + 1}"
        chosen = {"phases": phases, "name": name, **model}
        made.append(_beside_verl(path, given, chosen, reasons) if reasons else _on_verl(path, given, chosen))
        model = {"engine.model": name}
    return made


def _on_verl(path: Path, given: Mapping[str, Any], chosen: Mapping[str, Any]) -> Part:
    """One phase on verl; its model does not exist yet, so the settings are checked with the recipe's own."""
    base = [*_words(given), f"phases={json.dumps(chosen['phases'])}"]
    dropped = refused_keys(recipe_for_verl(path, base))
    usual = Recipe().model_dump()
    neutral = {key: usual[table][name] for key in dropped for table, name in [key.split(".")]}
    neutral |= {"data.test_file": NO_FILES} if "data.test_file" in dropped else {}
    known = {key: value for key, value in neutral.items() if value is not None}
    if problems := refusals(recipe_for_verl(path, [*base, *_words(known)])):
        raise RecipeError(problems)
    settings = {**given, **chosen, **known}
    left_out = [f"{key}: {REFUSED[key]}" for key in dropped]
    return Part("verl", chosen["phases"], "", left_out, _commands(path, settings, "--engine", "verl"))


def _beside_verl(path: Path, given: Mapping[str, Any], chosen: Mapping[str, Any], why: str) -> Part:
    """Phases on the hf engine, without the keys that only verl's table has."""
    settings = {key: value for key, value in given.items() if key not in verls_own()} | dict(chosen)
    if on_verl(load_recipe(path)):
        settings = {"engine.type": "hf", **settings}
    load_recipe(path, _words({key: value for key, value in settings.items() if key != "engine.model"}))
    return Part("hf", chosen["phases"], why, [], _commands(path, settings))


def _words(settings: Mapping[str, Any]) -> list[str]:
    """`key=value` as a command line takes them: JSON of numbers and lists is TOML, and most texts stand as they are."""
    plain = {key: isinstance(value, str) and parse_value(value) == value for key, value in settings.items()}
    return [f"{key}={value if plain[key] else json.dumps(value)}" for key, value in settings.items()]


def _commands(path: Path, settings: Mapping[str, Any], *options: str) -> list[str]:
    train = ["rlvr", "train", str(path), *options, *_words(settings)]
    return [shlex.join(train), shlex.join(["rlvr", "model", "export", f"latest@{LAST}", "-o", settings["name"]])]
