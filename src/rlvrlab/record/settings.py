"""In which settings of their recipes runs differ, names aside; seeds only where both sides have others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import LabError
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.evaluation import Stored
from rlvrlab.record.final import split_run
from rlvrlab.record.run import read_config

APART = ("seed", "name", "question", "output_dir", "data.seed")
"""Keys that do not make two runs different arms."""
UNSET = "–"
"""Stands for a value where a recipe has no such key."""
LONGEST = 40
"""Characters of a value that are shown."""
Settings = dict[str, Any]
"""Dotted key -> value."""


class Setting(NamedTuple):
    """A key whose values are not the same on two sides; several values on a side are those of its runs."""

    key: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]

    @property
    def words(self) -> str:
        """As `grpo.learning_rate: 0.02 → 0.01`."""
        return f"{self.key}: {_shown(self.before)} → {_shown(self.after)}"


def settings(recipe: Mapping[str, Any]) -> Settings:
    """Every key of a recipe, as config.json has it, that can tell runs apart; plug-ins that it has not are left out."""
    tables = recipe.get("phase_tables")
    whole = {key: value for key, value in recipe.items() if key != "phase_tables"}
    whole |= tables if isinstance(tables, dict) else {}
    return {key: value for key, value in flatten(whole) if key not in APART and (value is not None or "." in key)}


def differing(tables: Sequence[Settings]) -> list[str]:
    """Keys whose values are not the same in all of them."""
    keys = list(dict.fromkeys(key for table in tables for key in table))
    return [key for key in keys if any(table.get(key) != tables[0].get(key) for table in tables[1:])]


def told(config: Mapping[str, Any]) -> Settings:
    """The settings of a run, without those that follow from a plug-in being there and nobody has set."""
    origins = config.get("origins")
    return _given(settings(config.get("recipe") or {}), origins if isinstance(origins, dict) else {})


def between(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """What differs between two sides of runs (their config.json), not among the runs of a side.

    A key that one side does not have at all counts only where somebody has set it: else it came with a plug-in.
    """
    first, second = ([settings(one.get("recipe") or {}) for one in side] for side in (before, after))
    set_by_hand = {key for one in (*before, *after) for key in told(one)}
    keys = dict.fromkeys(key for table in (*first, *second) for key in table)
    everywhere = {key for key in keys if any(key in one for one in first) and any(key in one for one in second)}
    found = []
    for key in keys:
        values = [_values(side, key) for side in (first, second)]
        if values[0] != values[1] and (key in everywhere or key in set_by_hand):
            found.append(Setting(key, *values))
    seeds = [
        _values([{"seed": (one.get("recipe") or {}).get("seed")} for one in side], "seed") for side in (before, after)
    ]
    return tuple([*found, Setting("seed", *seeds)] if seeds[0] != seeds[1] else found)


def between_examined(before: Sequence[Stored], after: Sequence[Stored]) -> tuple[Setting, ...] | None:
    """`between` the runs whose policies answered; None where these are the same runs, or not all of them are here."""
    runs = [[_run_of(one) for one in side] for side in (before, after)]
    first, second = ([run.resolve() for run in side if run is not None] for side in runs)
    if len(first) < len(before) or len(second) < len(after) or set(first) == set(second):
        return None
    try:
        return between(list(map(read_config, first)), list(map(read_config, second)))
    except LabError:  # a damaged config.json does not keep answers from being compared
        return None


def _run_of(stored: Stored) -> Path | None:
    """The run whose policy answered: the evaluation lies in its folder, or says how it was asked for."""
    asked = (stored.info.get("request") or {}).get("run")
    places = [split_run(str(stored.folder))[0], *stored.folder.parents[:2], *([split_run(asked)[0]] if asked else [])]
    return next((place for place in places if (place / "config.json").is_file()), None)


def _given(table: Settings, origins: Mapping[str, Any]) -> Settings:
    return {key: value for key, value in table.items() if key.endswith(".type") or origins.get(key) != "default"}


def _values(side: Sequence[Settings], key: str) -> tuple[Any, ...]:
    """The different values of a key on a side, in the runs' order."""
    found: list[Any] = []
    for table in side:
        value = table.get(key, UNSET)
        if value not in found:
            found.append(value)
    return tuple(sorted(found, key=str))


def _shown(values: Sequence[Any]) -> str:
    text = ", ".join(shown_value(value) for value in values)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def shown_value(value: Any) -> str:
    """A value as a recipe would have it, without the quotes of plain words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(shown_value, value))}]"
    return UNSET if value is None else str(value)
