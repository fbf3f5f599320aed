"""Rows of different content that become the same question: it stands in one role, and what was prepared can be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlvrlab.data.loading import load
from rlvrlab.data.prepare import Prepared, from_preset, write
from rlvrlab.data.presets import PRESETS
from rlvrlab.recipe.schema import instantiate
from rlvrlab.record.files import write_rows


def task(number: int, name: str = "f") -> dict[str, Any]:
    """A task of MBPP: its number decides the role (20 test, 520 dev, 700 train), its text differs from the others'."""
    code = f"def {name}(x):\n    y = x + 1\n    return y\n"
    return {"task_id": number, "text": f"Task {number}.", "code": code, "test_list": [f"assert {name}(1) == 2"]}


def prepared(home: Path, rows: list[dict[str, Any]]) -> Prepared:
    write_rows(home / "mbpp.jsonl", rows)
    env = instantiate("env", {"type": "code_refactor", "shape": "mbpp", "goals": ["document"]}, home)
    return from_preset("mbpp_code_refactor", PRESETS["mbpp"], env, home / "mbpp.jsonl")


def test_one_program_of_two_tasks_is_one_task_where_it_is_rewritten(tmp_path: Path) -> None:
    made = prepared(tmp_path, [task(20, "F"), task(700), task(520), task(701, "other")])
    assert {role: [one.id for one in some] for role, some in made.problems.items()} == {
        "test": ["MBPP/20:document"], "dev": [], "train": ["MBPP/701:document"],
    }  # fmt: skip
    assert [(one["id"], one["role"], one["kept_role"]) for one in made.duplicates] == [
        ("MBPP/520:document", "dev", "test"), ("MBPP/700:document", "train", "test"),
    ]  # fmt: skip


@pytest.mark.parametrize(("role", "use"), [("train", "train"), ("test", "evaluate")])
def test_what_was_prepared_can_be_used(tmp_path: Path, role: str, use: Any) -> None:
    """The test questions of the manifests beside it are refused in training: none may have been written there."""
    made = prepared(tmp_path, [task(20), task(700), task(701, "other")])
    write(made, tmp_path / "data", "jsonl")
    loaded = load(tmp_path / "data" / f"mbpp_code_refactor_{role}.jsonl", use, made.env)
    assert len(loaded.problems) == 1


def test_the_same_question_twice_in_one_role_stays(tmp_path: Path) -> None:
    made = prepared(tmp_path, [task(20), task(21)])
    assert len(made.problems["test"]) == 2 and not made.duplicates
