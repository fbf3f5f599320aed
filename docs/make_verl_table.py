"""The tables in cluster.md of what verl can train and what is refused, found out from what the plug-ins declare.

python docs/make_verl_table.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rlvrlab.errors import LabError
from rlvrlab.recipe import resolve
from rlvrlab.registry import find, names
from rlvrlab.scale.verl.refusals import refusals

KINDS = ("phase", "advantage", "objective", "credit", "surgery", "guard", "protocol")
BASE: dict[str, Any] = {
    "env": {"type": "countdown"},
    "engine": {"type": "verl", "model": "owner/model", "gpus": 1},
}
FURTHER: dict[str, Mapping[str, Any]] = {
    "a curriculum whose answers grow (`lengths`)": {"protocol": {"type": "curriculum", "lengths": [8, 16]}},
    "surgery between groups by difficulty": {"surgery": {"type": "pcgrad", "group_strategy": "difficulty"}},
    'a protocol with `filter.dead_groups = "refill"`': {
        "protocol": {"type": "single"},
        "filter": {"dead_groups": "refill"},
    },
    'episodes with tools (`env.type = "agent"`)': {"env": {"type": "agent"}},
    'trees of answers (`rollout.type = "tree"`)': {"credit": {"type": "tree"}},
}
"""Combinations that no single setting shows."""
HEAD = "| kind | verl trains with | refused |\n|---|---|---|\n"
FURTHER_HEAD = "| asked for | on verl |\n|---|---|\n"


def refused(tables: Mapping[str, Any]) -> str | None:
    """Why verl cannot honour these tables of a recipe; "" where it can, None where no engine takes them."""
    try:
        resolved = resolve({"phases": ["grpo"], **BASE, **tables}, {}, Path())
    except LabError:
        return None
    found = refusals(resolved)
    return _reason(found[0]) if found else ""


def _reason(problem: str) -> str:
    """The middle of `key: 'name' why; remedy`."""
    why = problem.partition(": ")[2].partition(";")[0]
    return re.sub(r"^'\w+':? |^(?!verl )\w+ (?=learns )|, not \[.*\]$", "", why).replace("|", "\\|")


def named(kind: str, name: str, **settings: Any) -> str | None:
    """`refused` for one plug-in."""
    if kind != "phase":
        return refused({kind: {"type": name, **settings}})
    return refused({"phases": ["sft", name] if find("phase", name).control else [name]})  # such an arm is never first


def conditions(kind: str, name: str) -> tuple[list[str], list[str]]:
    """Choices of a plug-in as `field = value`: those that verl takes, and those it refuses."""
    taken: list[str] = []
    left: list[str] = []
    for field, value in _choices(find(kind, name)) if kind != "phase" else ():
        why = named(kind, name, **{field: [value] if field == "intervention_types" else value})
        if why is not None:
            (left if why else taken).append(f"`{field} = {str(value).lower()}`")
    return taken, left


def _choices(plugin: Any) -> Iterator[tuple[str, Any]]:
    """Fields with a closed list of values, and each of those values."""
    hints = get_type_hints(plugin)
    for field in fields(plugin):
        yield from ((field.name, value) for value in _values(hints[field.name]))


def _values(hint: Any) -> list[Any]:
    if hint is bool:
        return [True, False]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (tuple, list, Union) or type(hint).__name__ == "UnionType":
        return [value for part in get_args(hint) for value in _values(part)]
    return []


def row(kind: str) -> tuple[str, str]:
    """Of a kind, what verl trains with and what it refuses, as they are set by default unless said otherwise."""
    able: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    only: dict[str, str] = {}
    for name in names(kind):
        why = named(kind, name)
        taken, left = conditions(kind, name)
        if not why:
            able[name] = left
        elif len(taken) == 1:
            only[name] = taken[0]
        else:
            reasons.setdefault(why, []).append(f"`{name}`")
    common = set.intersection(*map(set, able.values())) if len(able) > 1 else set()
    shown = [f"`{name}`{_but([one for one in left if one not in common])}" for name, left in able.items()]
    shown += [f"`{name}` with {setting}" for name, setting in only.items()]
    none = f"; none with {', '.join(sorted(common))}" if common else ""
    return ", ".join(shown) + none, "; ".join(", ".join(who) + f": {why}" for why, who in reasons.items())


def table() -> str:
    """Both tables, as Markdown."""
    lines = [f"| {kind} | {able} | {unable} |" for kind in KINDS for able, unable in [row(kind)]]
    further = [f"| {label} | {_told(tables)} |" for label, tables in FURTHER.items()]
    return HEAD + "\n".join(lines) + "\n\n" + FURTHER_HEAD + "\n".join(further) + "\n"


def _but(left: list[str]) -> str:
    return f" (not with {', '.join(left)})" if left else ""


def _told(tables: Mapping[str, Any]) -> str:
    why = refused(tables)
    return f"refused: {why}" if why else "trained"


if __name__ == "__main__":
    print(table(), end="")
