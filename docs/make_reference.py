"""Write docs/reference.md: every recipe key and plug-in with its default and its one-line explanation, from the code.

python docs/make_reference.py [--check]
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from rlvrlab.recipe.schema import PLUGIN_TABLES, Recipe, sections
from rlvrlab.registry import HOMES, find, keys_of, names

TARGET = Path(__file__).parent / "reference.md"


def field_docs(cls: type[Any]) -> dict[str, str]:
    """The string under each field, of the class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            body = ast.parse(inspect.getsource(base)).body[0]
        except (OSError, TypeError):
            continue
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text(text):
                found[field.target.id] = " ".join(text.value.value.split())  # type: ignore[attr-defined]
    return found


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def core_tables() -> list[str]:
    lines = ["## Core keys", "", "| key | default | meaning |", "|---|---|---|"]
    for name, info in Recipe.model_fields.items():
        if name not in {*sections(), *PLUGIN_TABLES, "phase_tables"}:
            lines.append(f"| `{name}` | `{info.get_default(call_default_factory=True)!r}` | {info.description} |")
    for table in PLUGIN_TABLES:
        default = Recipe.model_fields[table].get_default(call_default_factory=True)
        chosen, meaning = default["type"] if default else None, Recipe.model_fields[table].description
        lines.append(f"| `{table}.type` | `{chosen}` | {meaning} |")
    for section, model in sections().items():
        for key, info in model.model_fields.items():
            default = info.get_default(call_default_factory=True)
            lines.append(f"| `{section}.{key}` | `{default!r}` | {info.description} |")
    return lines


def plugin(kind: str, name: str) -> list[str]:
    cls = find(kind, name)
    docs = field_docs(cls)
    table = name if kind == "phase" else f'{kind}] type = "{name}"'
    head = f"### `[{table}]`" if kind == "phase" else f"### `[{table}`"
    lines = [head, "", (inspect.getdoc(cls) or "").split("\n")[0], ""]
    if keys_of(cls):
        lines += ["| key | default | meaning |", "|---|---|---|"]
        defaults = {f.name: f.default if f.default is not MISSING else "required" for f in fields(cls)}
        lines += [f"| `{key}` | `{defaults[key]!r}` | {docs.get(key, '')} |" for key in keys_of(cls)]
        lines.append("")
    return lines


def reference() -> str:
    lines = ["# Reference", "", "Made from the code by `make docs`; every key of a recipe, with its default.", ""]
    lines += [*core_tables(), ""]
    for kind in HOMES:
        if names(kind):
            lines += [f"## {kind.capitalize()} plug-ins", ""]
            for name in names(kind):
                lines += plugin(kind, name)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0 if TARGET.read_text(encoding="utf-8") == reference() else "docs/reference.md is stale: run `make docs`"
        )
    TARGET.write_text(reference(), encoding="utf-8")
