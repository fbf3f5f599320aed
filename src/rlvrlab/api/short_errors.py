"""A user's mistake, told without the frames of the laboratory: the line of the script, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from rlvrlab.cli.recipe_keys import keys_for, keys_in
from rlvrlab.errors import RunError, UserError, suggestion
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.meant import either, keys_meant

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def short_errors(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The same function; what it raises on purpose begins its traceback here, not deep inside.

    An argument that it does not have is such a mistake, too.
    """
    known = signature(function).parameters
    allowed = [name for name in known if name != "self"]
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            for name in kwargs.keys() - known.keys() if not takes_any else ():
                hint = ""
                if {"recipe", "overrides"} <= known.keys():
                    hint = _as_override(name, kwargs[name], kwargs.get("recipe", args[0] if args else None))
                hint = hint or suggestion(name, allowed)
                raise UserError(f"{function.__qualname__}: unknown argument {name!r}{hint}")
            return function(*args, **kwargs)
        except (UserError, RunError) as error:
            raise error.with_traceback(None) from None

    return called


def _as_override(name: str, value: object, recipe: object) -> str:
    """The line to write where a setting of the recipe was given as an argument; empty where it has no such key."""
    if isinstance(recipe, Mapping):
        keys = keys_in(dict(recipe))
    elif isinstance(recipe, Resolved):
        keys = keys_in(recipe.recipe.model_dump())
    else:
        keys = keys_for(recipe if isinstance(recipe, str | Path) else None)
    found = keys_meant(name, keys)
    lines = [f"overrides={{{json.dumps(key)}: {value!r}}}" for key in found]
    return f"; settings of the recipe are given as {either(lines)}" if found else ""
