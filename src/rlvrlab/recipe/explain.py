"""A recipe's values and where each one comes from."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlvrlab.recipe.load import Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.registry import find


class Setting(NamedTuple):
    """One resolved value."""

    key: str
    value: Any
    origin: str


def settings(resolved: Resolved) -> list[Setting]:
    """Every value, in the schema's order; an advantage or objective left to the phases is shown as theirs."""
    rows = []
    phases = [find("phase", name, resolved.folder) for name in resolved.recipe.phases]
    left_to_phases = {
        "advantage": [phase.default_advantage for phase in phases],
        "objective": [phase.default_objective for phase in phases],
    }
    for key, value in flatten(resolved.plain()):
        origin = resolved.origins.get(key, "default")
        if value is None and key in left_to_phases:
            value, origin = ", ".join(filter(None, left_to_phases[key])) or None, "phase default"
        rows.append(Setting(key, value, origin))
    return rows
