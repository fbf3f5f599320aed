"""TOML text and command-line overrides to plain nested tables."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import UserError, first_few, quoted

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
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
QUOTES = "'\""
TWICE = ("Cannot overwrite", "Cannot declare")
"""What the parser says of a key and of a table that are there already."""
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
        there = [str(one) for one in sorted(path.glob("*.toml"))]
        remedy = f"; name a file of it: {first_few(there)}" if there else ""
        raise UserError(f"{path}: is a folder, not a recipe{remedy}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a NUL character in the path
        raise UserError(f"{path}: not TOML: {error}") from None
    if path.suffix == ".py":
        remedy = 'a recipe names what is in it, e.g. `reward.type = "FILE.py:NAME"`; `rlvr recipes` shows some'
        raise UserError(f"{path}: is a Python file, not a recipe; {remedy}")
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
        raise UserError(f"{where}{_not_toml(text, str(error))}") from None
    if too_deep(tree):
        raise UserError(f"{where}: nested too deeply; at most {MAX_DEPTH} tables and arrays inside each other")
    return tree


def _not_toml(text: str, fault: str) -> str:
    """`:3: not TOML: invalid value; text stands in quotes: type = "countdown"`, of the parser's words."""
    found = _AT.search(fault)
    if found is None:
        return f": not TOML: {fault}"
    lines = text.split("\n")
    number = int(found[1]) if found[1] else max([i for i, line in enumerate(lines, 1) if line.strip()], default=1)
    words = fault[: found.start()].strip()
    if words.startswith(TWICE) and (twice := _twice(lines[:number])):
        return f":{number}: not TOML: {twice}"
    told = f":{number}: not TOML: {words[:1].lower()}{words[1:]}"
    key, equals, value = lines[number - 1].partition("=")
    value = value.strip().partition(" #")[0].rstrip()
    if value.lower() in ("none", "null", "nil"):
        return f"{told}; leave out a key that has no value"
    text_alone = bool(value) and not value.startswith(("[", "{", "="))
    colon, _, after = lines[number - 1].partition(":")
    for written, may_be, why in (
        (f"{key}={value.lower()}", bool(value), "true and false are written small"),
        (f'{key}="{value}"', text_alone, "text stands in quotes"),
        (f'{key}="{value.strip(QUOTES)}"', text_alone, "a quotation mark is missing"),
        (f"{colon} ={after}", not equals, "a key and its value have = between them"),
    ):
        if may_be and "\\" not in written and written != lines[number - 1] and _is_toml(written):
            left, _, right = written.partition("=")
            return f"{told}; {why}: {left.strip()} = {right.strip()}"
    return f"{told}; look there{' and in the line before it' if number > 1 else ''}"


def _twice(lines: Sequence[str]) -> str:
    """`env.high is there twice, first on line 3; leave one out`, of the lines up to the second; else empty."""
    *above, last = lines
    header, key = _HEADER.match(last), _KEY.match(last)
    table = next((found[1].strip() for line in reversed(above) if (found := _HEADER.match(line))), "")
    name = header[1].strip() if header else f"{table}.{key[1]}".strip(".") if key else ""
    first = line_of("\n".join(above), name)
    if not first:
        return ""
    remedy = "put all its keys below one header" if header else "leave one out"
    return f"{f'[{name}]' if header else name} is there twice, first on line {first}; {remedy}"


def _is_toml(line: str) -> bool:
    try:
        return len(tomllib.loads(line)) == 1
    except (ValueError, RecursionError):
        return False


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """`a.b=v`, `--a.b=v` and `--a.b v` to {"a.b": v}; values are TOML, null, or else plain text."""
    overrides: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if not word.startswith("--"):
                raise UserError(f"override {word!r}: {_unspaced(list(words), len(words) - len(waiting) - 1)}")
            if not waiting or waiting[0].startswith("--"):
                raise UserError(f"override {word!r} has no value; write {word}=VALUE")
            value = waiting.pop(0)
        cut = equals and not value and waiting and "=" not in waiting[0] and not waiting[0].startswith("-")
        more = value != value.strip() and MORE.fullmatch(value.strip())  # as TOML it would be the number alone
        if cut or more or (equals and key.strip() not in ("", key)):
            remedy = shlex.quote(f"{key.strip()}={value.strip() or (waiting[0] if cut else 'VALUE')}")
            raise UserError(f"override {word!r}: no spaces around the equals sign; write {remedy}")
        if not key or not all(part.isidentifier() for part in key.split(".")):
            raise UserError(f"override {word!r}: {key!r} is not a dotted key such as rollout.n")
        if any("\ud800" <= character <= "\udfff" for character in value):  # how the shell's non-text bytes arrive
            raise UserError(f"override {word!r}: {value!r} is not UTF-8")
        parsed = None if value == NULL else parse_value(value)
        if key.count(".") >= MAX_DEPTH or too_deep(parsed):
            raise UserError(f"override {quoted(word)}: nested too deeply")
        overrides |= dict(flatten({key: parsed}))
    return overrides


def _unspaced(words: Sequence[str], index: int) -> str:
    """What to write in the place of a word that is no override: a shell has cut one in two at a space."""
    after = words[index + 1 : index + 3]
    if after[:1] == ["="] and len(after) == 2 and all(part.isidentifier() for part in words[index].split(".")):
        return f"no spaces around the equals sign; write {shlex.quote(f'{words[index]}={after[1]}')}"
    begin = next((i for i in range(index, -1, -1) if "=" in words[i]), None)
    key, _, value = words[begin].partition("=") if begin is not None else ("", "", "")
    if begin is not None and value.startswith("[") and "]" not in "".join(words[begin:index]):
        items = [
            parse_value(item) for item in re.findall(r"[^\s,\[\]]+", " ".join([value, *words[begin + 1 : index + 1]]))
        ]
        told = ", ".join(f'"{item}"' if isinstance(item, str) else str(item) for item in items)
        return f"a list stands in quotes where it has spaces; write {shlex.quote(f'{key}=[{told}]')}"
    return "write key=value or --key value"


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
