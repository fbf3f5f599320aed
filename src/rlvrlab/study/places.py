"""What is wrong with a study file, told as for a recipe: `FILE:LINE: key: what; remedy`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rlvrlab.errors import cut, near, suggestion
from rlvrlab.recipe.parse import line_of
from rlvrlab.recipe.remedies import on_command_line, words_of
from rlvrlab.study.schema import Resources, Round, Select, Stage, Study, Suite

SECTIONS: Mapping[str, type[BaseModel]] = {
    "stages": Stage, "suites": Suite, "select": Select, "resources": Resources, "halving": Round,
}  # fmt: skip
"""Table of a study file -> what may stand in it."""
MOST = 80
"""Characters of a wrong value that are shown."""
_STAGE = re.compile(r"\s*\[\[\s*stages\s*\]\]")


def placed(path: Path, text: str, names: list[str], problems: Iterable[str]) -> list[str]:
    """Problems (`key: what`), once each, with the file and the line of their key; `names` are those of the stages."""
    found = []
    for problem in dict.fromkeys(problems):
        key = problem.partition(": ")[0].replace(", arm ", ".arms.")
        line = line_in(text, key, names)
        found.append(f"{near(str(path))}:{line}: {problem}" if line else f"{near(str(path))}: {problem}")
    return found


def line_in(text: str, key: str, names: list[str]) -> int | None:
    """The line of a key such as `stages.volume.select.margin`, as `line_of` finds it among the lines of its stage."""
    head, _, rest = key.partition(".")
    fitting = [name for name in names if head == "stages" and f"{rest}.".startswith(f"{name}.")]
    starts = [i for i, line in enumerate(text.split("\n")) if _STAGE.match(line)]
    if not fitting or len(starts) != len(names):
        return line_of(text, key)
    name = max(fitting, key=len)
    own = names.index(name)
    lines = text.split("\n")[starts[own] : [*starts, None][own + 1]]
    line = line_of("\n".join(lines), f"stages{rest[len(name) :]}")
    return starts[own] + (line or 1)


def stage_names(tree: Mapping[str, Any]) -> list[str]:
    """The stages of a file that is not checked yet, by name, or by number where one has none."""
    stages = tree.get("stages")
    return [_name(one, i) for i, one in enumerate(stages if isinstance(stages, list) else ())]


def complaints(error: ValidationError, tree: dict[str, Any]) -> Iterator[str]:
    """What the schema says, as `key: what; remedy`, with stages by name: stages.volume.factors."""
    for item in error.errors(include_url=False):
        parts: list[str] = []
        inner: Any = tree
        for part in item["loc"]:
            if isinstance(inner, list):
                inner = inner[part] if isinstance(part, int) and part < len(inner) else None
            else:
                inner = inner.get(part) if isinstance(inner, dict) else None
            parts.append(_name(inner, part) if isinstance(part, int) else str(part))
        yield f"{'.'.join(parts)}: {_what(item['type'], item['loc'], item['msg'], item['input'])}"


def _what(kind: str, loc: tuple[int | str, ...], message: str, value: Any) -> str:
    key, section = str(loc[-1]), _section(loc[:-1])
    if kind == "extra_forbidden" and key == "min_effect":
        return "is called margin now: arms within it are equivalent, and only then the cheaper is taken"
    if kind == "extra_forbidden":
        return f"unknown key{suggestion(key, list(section.model_fields))}"
    if kind == "missing":
        said = section.model_fields[key].description if key in section.model_fields else None
        remedy = f"add [{key}.NAME]" if key == "suites" else f"add [[{key}]]" if key in SECTIONS else f"add `{key} = …`"
        return f"is missing; {remedy}{f': {said}' if said else ''}"
    if kind == "too_short":
        return "is empty; give at least one"
    if kind == "list_type" and isinstance(value, dict) and key in ("stages", "halving"):
        table = ".".join(str(part) for part in loc if isinstance(part, str))
        return f"is a single table; write `[[{table}]]` with two brackets, once for each"
    got = cut(json.dumps(value, ensure_ascii=False, default=str), MOST)
    remedy = f"; write {on_command_line(key, [value])}" if kind == "list_type" and isinstance(value, str) else ""
    return f"{words_of([kind], message)}, got {got}{remedy}"


def _section(loc: tuple[int | str, ...]) -> type[BaseModel]:
    return next((SECTIONS[str(part)] for part in reversed(loc) if part in SECTIONS), Study)


def _name(table: Any, number: int) -> str:
    name = table.get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) else str(number)
