"""What a raw file holds, and how it could be used: guesses that a person reads before they are believed.

questions.jsonl: 400 rows; question (text), answer (text)  ->  prompt = "question", answer = "answer",
matcher = "exact"
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from string import Formatter
from typing import Any

from rlvrlab.data.rows import is_problem_row
from rlvrlab.envs.amounts import amount
from rlvrlab.envs.code.rows import SPLITS
from rlvrlab.envs.data_files import Row, filled, read_rows
from rlvrlab.envs.matchers import MATCHERS
from rlvrlab.envs.mathematics.equality import letters
from rlvrlab.envs.own_data import Answers
from rlvrlab.envs.python_trees import parses
from rlvrlab.errors import UserError, suggestion
from rlvrlab.judge.extract import python_block

LOOKED_AT = 200
"""Rows by which a column is judged; all rows are counted."""
PROMPTS = ("question", "prompt", "problem", "query", "input", "instruction", "text", "content",
           "description")  # fmt: skip
TESTS = ("tests", "test_list", "test", "asserts", "unit_tests", "test_cases", "public_tests")
PROGRAMS = ("solution", "canonical_solution", "code", "program", "completion", "response")
"""Columns of programs, which may hold asserts of their own."""
ANSWERS = ("answer", "final_answer", "target", "label", "output", "response", "solution", "completion", "gold",
           "expected", "tests", "test_list", "correct_answer", "correct_option", "correct", "key")  # fmt: skip
CHOICES = ("choices", "options")
CHOICE = re.compile(r"(?:options?|choices?|opt|answer)?[ _]?([a-j]|[0-9])", re.IGNORECASE)
"""A column that holds one of the choices: `A`, `option_b`, `choice1`."""
FENCE = len(python_block(""))
"""Bytes around a program in its block."""
NOT_GIVEN = {"path", "code"}
"""Keys of the environment that nobody gives beside a file."""
ASSERT = re.compile(r"^assert\b", re.MULTILINE)
"""A test that runs where it stands."""
MARKS = ("\\frac", "\\sqrt", "^", "\\boxed", "$")


@dataclass(frozen=True)
class Column:
    """One column of a raw file."""

    name: str
    kind: str
    example: str
    empty: int
    """Rows among those looked at without a value."""


@dataclass(frozen=True)
class Raw:
    """A file that is not prepared."""

    path: Path
    rows: int
    columns: tuple[Column, ...]
    prepared: bool
    """The rows are problems already: written by `rlvr data prepare` or `make`."""
    keys: dict[str, str]
    """Guessed keys of [env] type = "answers"; empty where no question or answer was recognised."""

    @property
    def usable(self) -> bool:
        """Whether it is known which column asks and which answers."""
        return {"prompt", "answer"} <= self.keys.keys()

    longest_answer: int | None = None
    """Bytes of the longest right answer looked at: no tokenizer makes more tokens of it. None where no right answer is
    known: the answer column is not, or it holds tests and there are no solutions."""

    @property
    def in_a_block(self) -> bool:
        """Whether answers stand in a block, as programs and queries do; then no style says where."""
        return _in_a_block(self.keys)

    @property
    def recipe_lines(self) -> list[str]:
        """What a recipe needs to use the file."""
        if self.prepared:
            return ["[data]", f"train_file = {json.dumps(str(self.path))}"]
        given = {"type": "answers", "path": str(self.path), **self.keys}
        return ["[env]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())]


def look_at(path: Path, given: Mapping[str, str] | None = None) -> Raw:
    """Count the rows of a file and guess what its columns mean, as far as `given` keys do not say it."""
    rows = (row for _, row in read_rows(path))
    some = list(islice(rows, LOOKED_AT))
    count = len(some) + sum(1 for _ in rows)
    names = dict.fromkeys(name for row in some for name in row)
    columns = tuple(_column(name, [row.get(name) for row in some]) for name in names)
    prepared = is_problem_row(some[0])
    _refuse_unknown(path, given or {}, list(names))
    keys = {} if prepared else guessed(some, given or {})
    return Raw(path, count, columns, prepared, keys, _longest(some, keys))


def why_unusable(raw: Raw) -> str:
    """Why nobody knows which column asks and which answers, and what to do about it."""
    there = ", ".join(column.name for column in raw.columns)
    add = f"add prompt=COLUMN answer=COLUMN; there are: {there}"
    if len(raw.columns) == 1:
        what = f"one column alone, {there!r}; a question and its answer are two"
        return f"{what}: add a column `answer` with the right ones, or separate the columns by commas"
    asks = next((one for one in raw.columns if one.name.lower() in PROMPTS and (one.kind != "text" or one.empty)), None)
    if asks is None:
        return f"no guess which column asks and which answers; {add}"
    holds = f"has cells of type {asks.kind}" if asks.kind != "text" else f"is empty in {asks.empty} rows"
    if asks.empty and asks.kind not in ("text", "empty"):
        holds += f" and is empty in {asks.empty} rows"
    return f"column {asks.name!r} {holds}; a question is text: write text in every row, or {add}"


def _longest(rows: Sequence[Row], keys: Mapping[str, str]) -> int | None:
    if "answer" not in keys:
        return None
    column = "solution" if keys.get("matcher") == "code" else keys["answer"]
    around = FENCE if _in_a_block(keys) else 0
    lengths = []
    for row in rows:
        with suppress(KeyError, ValueError, TypeError):  # a row that cannot be read is told when it is used
            lengths.append(len(str(filled(column, row)).encode()))
    longest = max(lengths, default=0)
    return longest + around if longest else None


def _in_a_block(keys: Mapping[str, str]) -> bool:
    return keys.get("matcher") in MATCHERS and bool(MATCHERS[keys["matcher"]].block)


def _refuse_unknown(path: Path, given: Mapping[str, str], names: Sequence[str]) -> None:
    """Keys that the environment does not have, and columns that the file does not have."""
    allowed = sorted({one.name for one in fields(Answers)} - NOT_GIVEN)
    for key, value in given.items():
        if key not in allowed:
            raise UserError(f"{key}={value}: unknown key{suggestion(key, allowed)}")
        wanted: list[str] = []
        if key in ("prompt", "answer") and "{" in value and value not in names:
            with suppress(ValueError):  # a broken template is told when it is filled
                wanted = [name for _, name, _, _ in Formatter().parse(value) if name]
        elif key in ("prompt", "answer", "skill", "split"):
            wanted = [value]
        elif key == "choices" and value not in names:
            wanted = value.split(",")
        for name in wanted:
            if name and name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                raise UserError(f"{key}={value}: {path} has no column {name!r}; there are: {', '.join(names)}{meant}")


def guessed(rows: Sequence[Row], given: Mapping[str, str]) -> dict[str, str]:
    """Keys of the environment `answers` that seem to fit; empty when nothing looks like a question and an answer."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    tests = _tests_column(rows, names) if given.get("matcher", "code") == "code" and "answer" not in given else None
    texts = [name for name in names if name != tests and all(isinstance(row.get(name), str) for row in rows)]
    prompt = given.get("prompt") or _named(PROMPTS, texts) or next(iter(texts), None)
    rest = [name for name in names if name != prompt]
    answer = given.get("answer") or tests or _named(ANSWERS, rest) or (rest[0] if len(rest) == 1 else None)
    if prompt is None or answer is None:
        return dict(given)
    lists = [name for name in rest if all(isinstance(row.get(name), list) for row in rows)]
    others = [] if tests else [name for name in rest if name != answer]  # a program is no choice
    choices = _named(CHOICES, [name for name in lists if name in others]) or _choice_columns(others)
    values = [row[answer] for row in rows if row.get(answer) not in (None, "")]  # none where a template is given
    keys = {"prompt": prompt, "answer": answer, "matcher": "choice" if choices else _matcher(values)}
    roles = [name for name in rest if all(str(row.get(name)).lower() in SPLITS for row in rows)]
    keys |= {"choices": choices} if choices else {}
    return keys | ({"split": roles[0]} if roles and roles[0] != "split" else {}) | dict(given)


def _tests_column(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """The column whose every value is asserts, one text or a list: an answer is right where they hold.

    A solution beside it is one right answer of many, so its text must not decide.
    """
    texts = {name: [_as_text(row[name]) for row in rows if row.get(name) not in (None, "")] for name in names}
    found = [name for name in names if texts[name] and all("assert " in text for text in texts[name])]
    sure = [name for name in found if all(ASSERT.search(text) and parses(text) for text in texts[name])]
    other = [name for name in sure if name.lower() not in (*PROMPTS, *PROGRAMS)]
    return _named(TESTS, found) or next(iter(other), None)


def _as_text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _choice_columns(names: Sequence[str]) -> str | None:
    """`a,b,c` where columns are named like choices one after the other."""
    marks = {found[1].lower(): name for name in names if (found := CHOICE.fullmatch(name))}
    for order in ("abcdefghij", "0123456789", "123456789"):
        if 2 <= len(marks) <= len(order) and set(marks) == set(order[: len(marks)]):
            return ",".join(marks[mark] for mark in order[: len(marks)])
    return None


def _named(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[name] for name in wanted if name in lower), None)


def _matcher(values: Sequence[Any]) -> str:
    """The strictest matcher that can read every value."""
    texts = [str(value).rpartition("####")[2].strip() for value in values]
    if any(isinstance(value, dict) for value in values):
        return "json"
    if values and all("assert " in str(value) for value in values):
        return "code"
    if values and all(text.lower().startswith(("select ", "with ")) for text in texts):
        return "sql"
    if values and all(amount(text) is not None for text in texts):
        return "number"
    if any(mark in text for text in texts for mark in MARKS):
        return "mathematics"
    if values and all(len(text) == 1 and letters(text) for text in texts):
        return "choice"
    return "json" if any(isinstance(value, list) for value in values) else "exact"


KINDS = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}


def _column(name: str, values: Sequence[Any]) -> Column:
    there = [value for value in values if value not in (None, "")]
    kinds = dict.fromkeys(KINDS.get(type(value), type(value).__name__) for value in there)
    return Column(name, " or ".join(kinds) or "empty", str(there[0])[:80] if there else "", len(values) - len(there))
