"""What an audit compares: the prompt, the solution and the tests of every row, wherever the columns hide them.

Files written by `rlvr data prepare` say themselves what is what. In any other file the usual columns are looked for:
HumanEval's `prompt`, `canonical_solution`, `test`, MBPP's `text`, `code`, `test_list`, GSM8K's `question`, `answer`, …
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlvrlab.data.hashes import content_sha256, prompt_sha256
from rlvrlab.data.manifest import Entry, manifest_of, verified
from rlvrlab.data.rows import from_row, is_problem_row
from rlvrlab.envs.data_files import Row, bare_name, read_rows
from rlvrlab.errors import UserError
from rlvrlab.types import Role

Part = Literal["prompt", "solution", "tests"]
PARTS: tuple[Part, ...] = ("prompt", "solution", "tests")
COLUMNS: dict[Part, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "problem", "text", "description", "instruction", "input", "content", "puzzle",
               "Question"),
    "solution": ("solution", "canonical_solution", "code", "solutions", "answer", "completion", "chosen", "query",
                 "SQL"),
    "tests": ("test", "tests", "test_list", "input_output", "private_tests", "generated_tests", "public_tests"),
}  # fmt: skip
"""The first of these that a row has; all of them for tests."""
CONTEXT = ("Body", "body", "context", "passage", "table")
"""Said before the question, where a data set keeps it apart."""
IDS = ("id", "task_id", "name", "problem_id", "unique_id", "ID", "idx")
LONGEST = 50_000
"""Characters compared; generated tests run to megabytes."""


@dataclass(frozen=True)
class Document:
    """One row, with the texts that are compared."""

    split: str
    """Name of its file, and its role where the file mixes roles."""
    row: int
    id: str
    role: Role | None
    texts: Mapping[Part, str]

    @property
    def place(self) -> dict[str, Any]:
        """Where the row stands, as reports show it."""
        return {"split": self.split, "row": self.row, "id": self.id, "role": self.role}


@dataclass(frozen=True)
class Documents:
    """A file's rows, and what its manifest says."""

    name: str
    documents: Sequence[Document]
    entries: Sequence[Entry]
    """The manifest entry of each row, as the file was when it was audited."""


def read_documents(path: Path, columns: Mapping[Part, str] | None = None) -> Documents:
    """Everything in a file; a problem file must agree with the manifest beside it."""
    chosen = {part: column for part, column in (columns or {}).items() if column}
    rows = list(read_rows(path))
    name = bare_name(path)
    if not chosen and is_problem_row(rows[0][1]):
        problems = [from_row(row, f"{path}:{number}") for number, row in rows]
        manifest = verified(path, problems) or manifest_of(path, problems)
        mixed = len({problem.role for problem in problems}) > 1
        documents = []
        for (number, _), problem in zip(rows, problems, strict=True):
            reference = problem.reference if isinstance(problem.reference, dict) else {}
            solution = problem.meta.get("solution") or reference.get("gold") or reference.get("answer") or ""
            tests = flat(reference.get("tests", ""))
            texts: dict[Part, str] = {"prompt": problem.prompt, "solution": flat(solution), "tests": tests}
            split = f"{name}:{problem.role}" if mixed else name
            documents.append(Document(split, number, problem.id, problem.role, texts))
        return Documents(name, documents, manifest.entries)
    documents = [_of_row(path, name, number, row, chosen) for number, row in rows]
    entries = [
        Entry(one.row, one.id, None, prompt_sha256(one.texts["prompt"]), content_sha256(row))
        for one, (_, row) in zip(documents, rows, strict=True)
    ]
    return Documents(name, documents, entries)


def _of_row(path: Path, split: str, number: int, row: Row, chosen: Mapping[Part, str]) -> Document:
    for column in chosen.values():
        if column not in row:
            raise UserError(f"{path}:{number}: column {column!r} is missing; there are: {', '.join(row)}")
    usual = {part: [name for name in names if row.get(name) not in (None, "")] for part, names in COLUMNS.items()}
    if not usual["prompt"] and "prompt" not in chosen:
        raise UserError(f"{path}:{number}: no prompt column; name it with --prompt, there are: {', '.join(row)}")
    texts: dict[Part, str] = {}
    for part in PARTS:
        names = [chosen[part]] if part in chosen else usual[part] if part == "tests" else usual[part][:1]
        before = [name for name in CONTEXT if row.get(name)] if part == "prompt" and part not in chosen else []
        texts[part] = "\n".join(flat(row[name]) for name in (*before, *names))[:LONGEST]
    name = next((str(row[column]) for column in IDS if row.get(column) is not None), f"row {number}")
    return Document(split, number, name, None, texts)


def flat(value: Any) -> str:
    """All the text in a value, in order: messages, lists of tests, pairs of inputs and outputs, JSON text."""
    if isinstance(value, str):
        if value[:1] in "[{" and len(value) < LONGEST:
            with suppress(ValueError, RecursionError):
                return flat(json.loads(value))
        return value[:LONGEST]
    if isinstance(value, dict):
        kept = [value["content"]] if {"role", "content"} <= value.keys() else list(value.values())
        return flat(kept)
    if isinstance(value, list | tuple):
        texts, length = [], 0
        for item in value:
            texts.append(flat(item))
            length += len(texts[-1])
            if length > LONGEST:
                break
        return "\n".join(texts)[:LONGEST]
    return "" if value is None else str(value)
