"""A recipe's values, where each one comes from, and which of them are unusual."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from rlvrlab.recipe.load import Resolved, vetted
from rlvrlab.recipe.mistakes import Idle
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.presets import Preset, Vetted
from rlvrlab.registry import find, keys_of


class Setting(NamedTuple):
    """One resolved value."""

    key: str
    value: Any
    origin: str
    source: str = ""
    """Of a preset's value: who says that it fits."""


def settings(resolved: Resolved) -> list[Setting]:
    """Every value, in the schema's order; an advantage or objective left to the phases is shown as theirs."""
    rows, known = [], _vetted(resolved)
    phases = [find("phase", name, resolved.folder) for name in resolved.recipe.phases]
    left_to_phases = {
        "advantage": [phase.default_advantage for phase in phases],
        "objective": [phase.default_objective for phase in phases],
    }
    for key, value in flatten(resolved.plain()):
        origin = resolved.origins.get(key, "default")
        if value is None and key in left_to_phases:
            value, origin = ", ".join(filter(None, left_to_phases[key])) or None, "phase default"
        from_preset = key in known and origin == known[key][0].origin
        rows.append(Setting(key, value, origin, known[key][1].source if from_preset else ""))
    return rows


def unusual(resolved: Resolved) -> list[str]:
    """In words: values outside the range in which the engine's preset calls them sane, and what has no effect."""
    given = dict(flatten(resolved.plain()))
    outside = [
        f"{key} = {given[key]:g} is unusual for {preset.name}: {low:g} to {high:g} is sane, {usual:g} the preset "
        f"({source})"
        for key, (preset, (usual, low, high, source)) in _vetted(resolved).items()
        if not low <= given[key] <= high
    ]
    outside += map(_without_effect, resolved.idle, repeat(resolved.recipe.phases))
    surgery = resolved.build("surgery")
    if surgery is None or surgery.resolves_conflicts or not surgery.conflict_threshold:
        return outside
    table = resolved.recipe.surgery or {}
    why = f"{table['type']} acts in every step, and only the record tells which pairs are below it"
    return [*outside, f"surgery.conflict_threshold = {surgery.conflict_threshold:g} changes no update: {why}"]


def _without_effect(idle: Idle, phases: Sequence[str]) -> str:
    """In words, that a table is that of a phase which does not run, and whose table may have been meant."""
    kind, first, more = find("phase", idle.phase), idle.keys[0], len(idle.keys) - 1
    having = [name for name in phases if first.split(".")[1] in keys_of(find("phase", name))]
    alike = [name for name in having if find("phase", name).family == kind.family]
    near = alike or [name for name in having if find("phase", name).online == kind.online]
    has = f"and {more} more key{'s' * (more > 1)} of [{idle.phase}] have" if more else "has"
    place = f" ({idle.place})" if idle.place else ""
    meant = f"write {near[-1]}{first.removeprefix(idle.phase)} if that was meant, or " if near else ""
    why = f"{idle.phase} is not in phases, which are {', '.join(phases)}"
    return f'{first} {has} no effect{place}: {why}; {meant}add "{idle.phase}" to phases'


def unnamed_env(resolved: Resolved) -> str:
    """In words, that the environment is the default because nobody has named one; empty where somebody has."""
    if resolved.origins.get("env.type", "default") != "default":
        return ""
    return f"env: the recipe names no environment; this is the default, {resolved.recipe.env['type']}"


def _vetted(resolved: Resolved) -> dict[str, tuple[Preset, Vetted]]:
    """The values that the engine's preset has for keys of this recipe."""
    preset = resolved.build("engine").preset()
    return {key: (preset, one) for key, one in vetted(preset, resolved.recipe).items()} if preset else {}
