"""Keys that a recipe can set and the values they allow, for completion in a shell."""

from __future__ import annotations

import json
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rlvrlab.errors import UserError
from rlvrlab.recipe.parse import Tree, flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES, Recipe, core_keys, sections
from rlvrlab.recipe.shipped import recipe_file, tables_of
from rlvrlab.registry import find, keys_of, names


def keys_for(recipe: Path | str | None) -> list[str]:
    """Core keys, and those of the plug-ins and phases that the recipe names; what cannot be read is left out.

    In place of a recipe may stand an environment, which has keys of its own.
    """
    if str(recipe) in names("env"):
        return keys_of(find("env", str(recipe)))
    return keys_in(_tables(recipe))


def keys_in(tables: Tree) -> list[str]:
    """Core keys, and those of the plug-ins and phases that these tables name, or else of the usual ones."""
    found = core_keys()
    for table, cls in _plugins(Recipe().model_dump() | tables).items():
        found += [f"{table}.{key}" for key in keys_of(cls)]
    return found


def values_for(key: str, recipe: Path | str | None = None) -> list[str]:
    """The values that a key allows where these can be counted; none otherwise."""
    if str(recipe) in names("env"):
        return _choices(get_type_hints(find("env", str(recipe)), include_extras=True).get(key))
    table, _, leaf = key.rpartition(".")
    if leaf == "type" and table in PLUGIN_TABLES:
        return names(table)
    model = sections().get(table) if table else Recipe
    if model is not None and leaf in model.model_fields:
        return _choices(model.model_fields[leaf].annotation)
    cls = _plugins(_tables(recipe)).get(table)
    return _choices(get_type_hints(cls, include_extras=True).get(leaf)) if cls else []


def _tables(recipe: Path | str | None) -> Tree:
    """The recipe's tables over the defaults."""
    usual: Tree = Recipe().model_dump()
    try:
        return usual | (tables_of(recipe_file(Path(recipe)))[0] if recipe else {})
    except UserError:
        return usual


def _plugins(tables: Tree) -> dict[str, type[Any]]:
    """Table -> class; a plug-in in a file of the user is left out, because finding it would run that file."""
    kinds = {kind: (kind, dict(flatten(tables.get(kind) or {})).get("type")) for kind in PLUGIN_TABLES}
    kinds |= {name: ("phase", name) for name in tables["phases"] if name in names("phase")}
    classes: dict[str, type[Any]] = {}
    for table, (kind, name) in kinds.items():
        if isinstance(name, str) and name in names(kind):
            classes[table] = find(kind, name)
    return classes


def _choices(annotation: Any) -> list[str]:
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [value if isinstance(value, str) else json.dumps(value) for value in get_args(annotation)]
    if get_origin(annotation) in (Union, UnionType):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return []
