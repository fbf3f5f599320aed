"""Layers of recipe keys, and how they are written on a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.study.schema import Settings

HALF = "/2"


def layered(*layers: Mapping[str, Any]) -> Settings:
    """Later layers win; where one chooses another plug-in, the keys that earlier ones gave the old one go."""
    settings: Settings = {}
    for layer in layers:
        for kind in PLUGIN_TABLES:
            wanted = layer.get(f"{kind}.type")
            if wanted is not None and wanted != settings.get(f"{kind}.type", wanted):
                settings = {key: value for key, value in settings.items() if not key.startswith(f"{kind}.")}
        settings |= layer
    return settings


def words(settings: Mapping[str, Any]) -> list[str]:
    """`key=value` as `rlvr train` takes them; plug-in types first, since they decide which keys there are."""
    order = sorted(settings, key=lambda key: (not key.endswith(".type"), key))
    return [f"{key}={as_toml(settings[key])}" for key in order]


def as_toml(value: Any) -> str:
    """A TOML value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(as_toml(one) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
    raise UserError(f"{value!r} cannot be the value of a recipe key")


def rung_settings(ladder: list[Settings], rung: int, now: Mapping[str, Any]) -> Settings:
    """What the first `rung` rungs add to the value in force (`now`: the resolved recipe, dotted).

    `"/2"` halves a number, and a list is added to the list in force: what was set there stays.
    """
    added: Settings = {}
    for step in ladder[:rung]:
        for key, value in step.items():
            before = added.get(key, now.get(key))
            if isinstance(value, list) and isinstance(before, list | tuple):
                # Of two items `key=value` with the same key the later one counts.
                added[key] = list({str(item).partition("=")[0]: item for item in (*before, *value)}.values())
                continue
            if value != HALF:
                added[key] = value
                continue
            if not isinstance(before, int) or isinstance(before, bool) or before < 2:
                raise UserError(f"ladder: {key} is {before!r}, which cannot be halved; give the rung a number")
            added[key] = before // 2
    return added
