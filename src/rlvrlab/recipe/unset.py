"""`KEY=null` on the command line, None in Python: the key is taken out of the recipe, so that its default holds.

`surgery.type=null` (or `surgery=null`) takes out the whole table. TOML has no null, so no file can say it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, RecipeError
from rlvrlab.recipe.meant import nearest_key
from rlvrlab.recipe.parse import Tree
from rlvrlab.recipe.schema import PLUGIN_TABLES, Recipe, core_keys, sections
from rlvrlab.registry import find, keys_of, names


def unset(tree: Tree, origins: dict[str, str], key: str, folder: Path) -> None:
    """Take a key out of the tables; RecipeError where there is no such key."""
    known = _known(tree, folder)
    tables = {*PLUGIN_TABLES, *sections(), *names("phase")}
    if key not in tables and not any(f"{key}.".startswith(f"{one}.") for one in known):
        raise RecipeError([f"override {key}: unknown key{nearest_key(key, known)}"])
    table, _, leaf = key.partition(".")
    whole = table if table in PLUGIN_TABLES and leaf == "type" else key
    *above, last = whole.split(".")
    place: Any = tree
    for part in above:
        place = place.get(part, {}) if isinstance(place, dict) else {}
    if isinstance(place, dict):
        place.pop(last, None)
    for full in [full for full in origins if f"{full}.".startswith(f"{whole}.")]:
        del origins[full]


def _known(tree: Tree, folder: Path) -> list[str]:
    """Every key that this recipe could hold: the core's, those of its plug-ins and those of all phases."""
    known = core_keys()
    usual = Recipe().model_dump()
    for kind in PLUGIN_TABLES:
        table = tree.get(kind) or usual[kind] or {}
        try:
            known += [f"{kind}.{key}" for key in keys_of(find(kind, table["type"], folder))] if "type" in table else []
        except LabError:
            continue  # an unknown plug-in is complained about later
    return known + [f"{name}.{key}" for name in names("phase") for key in keys_of(find("phase", name))]
