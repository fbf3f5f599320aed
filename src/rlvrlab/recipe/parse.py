"""TOML text and command-line overrides to plain nested tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError

MAX_BYTES = 1_000_000
Tree = dict[str, Any]


def read_toml(path: Path) -> tuple[Tree, str]:
    """The file's tables and its text."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: a recipe has at most {MAX_BYTES} bytes")
        text = path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text), text
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; `ls recipes/` shows the ones that come with rlvrlab") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder, not a recipe") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """`a.b=v`, `--a.b=v` and `--a.b v` to {"a.b": v}; values are TOML, or else plain text."""
    found: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if not word.startswith("--"):
                raise UserError(f"override {word!r}: write key=value or --key value")
            if not waiting or waiting[0].startswith("--"):
                raise UserError(f"override {word!r} has no value; write {word}=VALUE")
            value = waiting.pop(0)
        if not key or not all(part.isidentifier() for part in key.split(".")):
            raise UserError(f"override {word!r}: {key!r} is not a dotted key such as rollout.n")
        found[key] = parse_value(value)
    return found


def parse_value(text: str) -> Any:
    """A TOML value; what is none stays text, so `name=abc` needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def flatten(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every leaf."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def place(tree: Tree, dotted: str, value: Any) -> None:
    """Set one leaf, making tables on the way."""
    *tables, leaf = dotted.split(".")
    for table in tables:
        below = tree.get(table)
        if not isinstance(below, dict):
            below = tree[table] = {}
        tree = below
    tree[leaf] = value


def line_of(text: str, dotted: str) -> int | None:
    """The line on which a key is set, by a plain scan of headers and keys."""
    table, _, leaf = dotted.rpartition(".")
    header = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("["):
            header = line.split("]")[0].strip("[] ")
        elif line.partition("=")[0].strip() in ({leaf} if header == table else {dotted} if not header else set()):
            return number
    return None
