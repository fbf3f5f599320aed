"""TOML text and command-line overrides to plain nested tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import UserError, quoted

MAX_BYTES = 250_000
MAX_LENGTH = 300_000
"""Characters; a longer text takes the parser a second and more."""
MAX_DOTS = 200
"""On one line: the parser's time grows with the square of a key's parts."""
MAX_DEPTH = 10
"""Tables and arrays inside each other; no key needs more than three."""
NULL = "null"
"""An override that unsets a key (unset.py); `"null"` in quotes is the word."""
MORE = re.compile(r"\+\d+")
"""`+20`, so many more than a run has had: text, since only `--resume` knows how many that are (train/extension.py)."""
Tree = dict[str, Any]
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]=,#]+)\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*=")


def read_toml(path: Path) -> tuple[Tree, str]:
    """The file's tables and its text; a UserError says why it cannot be had."""
    try:
        with plain_files.opened(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UserError(f"{path}: a recipe has at most {MAX_BYTES} bytes")
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; `rlvr recipes` shows the ones that come with rlvrlab") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder, not a recipe") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a NUL character in the path
        raise UserError(f"{path}: not TOML: {error}") from None
    return parse_toml(text, str(path)), text


def parse_toml(text: str, where: str) -> Tree:
    """The tables of a text; `where` begins the message of a UserError."""
    if len(text) > MAX_LENGTH:
        raise UserError(f"{where}: {len(text)} characters; at most {MAX_LENGTH}, data belongs into files of its own")
    if max(line.count(".") for line in text.split("\n")) > MAX_DOTS:
        raise UserError(f"{where}: more than {MAX_DOTS} dots on one line; nested too deeply")
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise UserError(f"{where}: nested too deeply") from None
    except ValueError as error:  # also an integer of thousands of digits, which is no TOMLDecodeError
        raise UserError(f"{where}: not TOML: {error}") from None
    if too_deep(tree):
        raise UserError(f"{where}: nested too deeply; at most {MAX_DEPTH} tables and arrays inside each other")
    return tree


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """`a.b=v`, `--a.b=v` and `--a.b v` to {"a.b": v}; values are TOML, null, or else plain text."""
    overrides: dict[str, Any] = {}
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
        if any("\ud800" <= character <= "\udfff" for character in value):  # how the shell's non-text bytes arrive
            raise UserError(f"override {word!r}: {value!r} is not UTF-8")
        parsed = None if value == NULL else parse_value(value)
        if key.count(".") >= MAX_DEPTH or too_deep(parsed):
            raise UserError(f"override {quoted(word)}: nested too deeply")
        overrides |= dict(flatten({key: parsed}))
    return overrides


def parse_value(text: str) -> Any:
    """A TOML value; what is none stays text, so `name=abc` needs no quotes, and so does `+20`."""
    if text.count(".") > MAX_DOTS or MORE.fullmatch(text):
        return text
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text  # a second line would be a second key


def too_deep(value: Any) -> bool:
    """More than MAX_DEPTH levels; walked level by level, since a deep value would overflow a recursion."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        tables = [item for item in level if isinstance(item, dict)]
        arrays = [item for item in level if isinstance(item, list)]
        level = [below for table in tables for below in table.values()] + [below for array in arrays for below in array]
        if not level:
            return False
    return True


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
    """The line on which a key is set, or else its table, by a plain scan of headers and keys."""
    lines: dict[str, int] = {}
    header = ""
    for number, line in enumerate(text.split("\n"), 1):
        if match := _HEADER.match(line):
            header = match[1].strip()
            lines.setdefault(header, number)
        elif match := _KEY.match(line):
            lines.setdefault(f"{header}.{match[1]}".strip("."), number)
    while dotted and dotted not in lines:
        dotted = dotted.rpartition(".")[0]
    return lines.get(dotted)
