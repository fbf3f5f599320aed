"""Data sets that a judge server keeps, as SandboxFusion: /list_datasets, /list_ids, /get_prompts, /submit by id.

What is listed without any are the kinds of rows that /submit takes in `provided_data`. Tests never leave the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.types import Problem

Form = dict[str, Any]
KINDS = ("HumanEvalDataset", "MBPPDataset", "CommonOJDataset")
"""SandboxFusion's names of the rows that /submit judges when a caller brings them along."""


class Datasets:
    """Prepared problems by the name of their set and their id."""

    def __init__(self, sets: Mapping[str, Iterable[Problem]] | None = None) -> None:
        self._rows = {name: {p.id: row_of(p) for p in problems} for name, problems in (sets or {}).items()}

    def names(self) -> list[str]:
        """The sets that are kept, or the kinds of rows that can be brought along."""
        return list(self._rows) or list(KINDS)

    def ids(self, form: Form) -> list[str]:
        """Every id of one set."""
        return list(self._set(form))

    def prompts(self, form: Form) -> list[Form]:
        """Id and prompt of every row, without its tests."""
        return [_asked(row) for row in self._set(form).values()]

    def prompt(self, form: Form) -> Form:
        """The same of one row."""
        return _asked(self.row(form))

    def row(self, form: Form) -> Form:
        """One row with its tests; for the judge alone."""
        rows, name = self._set(form), str(form.get("id"))
        if name not in rows:
            raise UserError(f"id: {name!r:.80} is not in {form.get('dataset')!r:.80}; /list_ids has those that are")
        return rows[name]

    def _set(self, form: Form) -> dict[str, Form]:
        name = str(form.get("dataset"))
        if name not in self._rows:
            kept = ", ".join(self._rows) or "none; start with --data FILE, or bring rows in config.provided_data"
            raise UserError(f"dataset: {name!r:.80} is not kept here; there are: {kept}")
        return self._rows[name]


def row_of(problem: Problem) -> Form:
    """A prepared code problem as /submit judges it."""
    reference = problem.reference
    if not isinstance(reference, dict) or not {"entry_point", "tests", "setup"} <= reference.keys():
        raise UserError(f"{problem.id}: no code problem with tests ({problem.source}); give files of `code` problems")
    row = {"id": problem.id, "prompt": problem.prompt, "labels": {"split": problem.role}}
    if not reference["entry_point"]:
        pairs = [{"input": {"stdin": given}, "output": {"stdout": wanted}} for given, wanted in reference["tests"]]
        return row | {"test": pairs}
    named = {"entry_point": reference["entry_point"], "test_setup_code": reference["setup"]}
    return row | named | {"test_list": list(reference["tests"]), "begun": reference.get("begun", "")}


def _asked(row: Form) -> Form:
    return {key: row[key] for key in ("id", "prompt", "labels")}
