"""A table of the user's own as problems: a list of dicts, a data frame or a data file, for `rlvrlab.environment`.

    {"prompt": "2+3=", "answer": "5", "role": "dev", "skill": "add", "source": "page 7"}

`columns` names them where the table calls them otherwise: {"prompt": "{note}\\n", "answer": "bay"}. A reference stays
what the table holds: a number of a data frame or of .jsonl is a number, everything in .csv is text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rlvrlab.envs.data_files import Place, Row, filled, read_row, read_rows
from rlvrlab.envs.split import ROLES, Asked, each_once, role_of_question
from rlvrlab.errors import UserError, suggestion
from rlvrlab.types import Problem, Role

KNOWN = ("prompt", "answer", "reference", "skill", "id", "role")
"""Columns with a meaning; all others go to the problem's `meta`."""


def placed_rows(table: Any) -> list[Place]:
    """Rows as plain dicts, of a list of them, a data frame, or a data file, which names its rows `FILE:ROW`."""
    if isinstance(table, str | Path):
        return [(f"{table}:{number}", row) for number, row in read_rows(Path(table))]
    if hasattr(table, "columns") and hasattr(table, "to_dict"):  # pandas, without importing it
        table = table.to_dict("records")
    rows = list(table) if isinstance(table, Iterable) and not isinstance(table, Mapping) else None
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise UserError(f"problems are a list of dicts, a data frame or a data file, not {type(table).__name__}")
    plain = [{str(key): _plain(value) for key, value in row.items() if not _is_missing(value)} for row in rows]
    return [(f"row {number}", row) for number, row in enumerate(plain, 1)]


def read_problems(name: str, placed: Sequence[Place], columns: Mapping[str, str], table: str) -> tuple[Problem, ...]:
    """The problems of a table, each once; a bad row is named by its place, with `table` before it."""
    every = tuple(dict.fromkeys(key for _, row in placed for key in row))
    names = {known: columns.get(known, known) for known in KNOWN}
    if odd := next((key for key in columns if key not in KNOWN), None):
        raise UserError(f"{table}columns: unknown key {odd!r}{suggestion(odd, KNOWN)}")
    if placed and names["prompt"] == "prompt" and "prompt" not in every:  # nobody has said which column is which
        there = f"column 'prompt' is missing; there are: {', '.join(every)}"
        mapped = "say which is which: environment(…, columns={'prompt': …, 'answer': …})"
        plain = "env={'type': 'answers', 'path': …, 'prompt': …, 'answer': …}"
        wanted = f"{mapped}, or train without a verify of your own: {plain}"
        raise UserError(f"{table}{placed[0][0]}: {there}; {wanted}")
    asked = []
    for where, row in placed:
        whole = {column: row.get(column) for column in every}  # placed_rows leaves out what is empty
        problem = read_row(whole, f"{table}{where}", partial(_problem, name, names))
        asked.append(Asked(where, problem.prompt, problem))
    kept = each_once(asked, table)
    places = {id(row.problem): row.where for row in asked}
    ids: set[str] = set()
    for problem in kept:
        if problem.id in ids:
            raise UserError(f"{table}{places[id(problem)]}: id {problem.id!r} is there twice")
        ids.add(problem.id)
    return tuple(kept)


def _problem(name: str, names: Mapping[str, str], row: Row) -> Problem:
    """The problem of a row, which has all columns of the table; KeyError and ValueError say what is wrong."""
    prompt = filled(names["prompt"], row)
    if not isinstance(prompt, str) or not prompt:
        raise ValueError(f"prompt is a text, not {prompt!r:.60}")
    given = {  # None where a column is empty, or nobody has named it
        known: row.get(column) if column == known or column in row else filled(column, row)
        for known, column in names.items()
    }
    if given["answer"] is not None and given["reference"] is not None:
        raise ValueError("answer and reference mean the same; give one of them")
    answers = [known for known in ("answer", "reference") if names[known] in row or names[known] != known]
    own = [known for known in answers if given[known] is not None]
    # A table without any answers is fine: its verifier knows better. One with some has holes.
    reference = filled(names[(own or answers)[0]], row) if answers else None
    role = given["role"] or role_of_question(prompt)
    if role not in ROLES:
        raise ValueError(f"role is one of {', '.join(get_args(Role))}, not {role!r:.60}")
    used = set(names.values())
    meta = {key: value for key, value in row.items() if key not in used and value is not None}
    problem = Problem("", name, str(given["skill"] or name), prompt, reference, meta, role)
    return replace(problem, id=str(given["id"] if given["id"] is not None else f"{name}:{problem.key}"))


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as Python's own."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
