"""A run's judged answers become training data, unless they are not for training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.loading import protected_prompts
from rlvrlab.data.manifest import manifest_of, write_manifest
from rlvrlab.data.own_runs import is_run, rows_from_run
from rlvrlab.errors import UserError
from rlvrlab.types import Problem


def answer(problem: str, text: str, correct: bool | None, **change: Any) -> dict[str, Any]:
    fixed = {"problem": problem, "prompt": f"ask {problem}", "completion": text, "correct": correct, "finish": "stop"}
    return {**fixed, "flags": [], "id": f"1/{problem}/{text}", **change}


def a_run(folder: Path, *steps: list[dict[str, Any]]) -> Path:
    run = folder / "run"
    (run / "rollouts").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    for step, rows in enumerate(steps, 9):  # 10 sorts before 9 by name
        (run / "rollouts" / f"step_{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert is_run(run) and not is_run(folder)
    return run


STEPS = (
    [answer("a", "good", True), answer("a", "good", True), answer("a", "bad", False), answer("b", "worse", False)],
    [answer("a", "fine", True), answer("a", "cut", True, finish="length"),
     answer("a", "trick", True, flags=["early_exit"]),
     answer("a", "lost", None), answer("c", "right", True)],
)  # fmt: skip


def said(rows: list[dict[str, Any]], column: str) -> list[str]:
    return [row[column][0]["content"] for row in rows]


def test_right_answers_become_sft_rows(tmp_path: Path) -> None:
    rows = rows_from_run(a_run(tmp_path, *STEPS), "sft", 4, {})
    assert said(rows, "completion") == ["good", "fine", "right"] and said(rows, "prompt") == ["ask a", "ask a", "ask c"]
    assert rows[0]["extra_info"] == {"problem": "a", "run": "run", "id": "1/a/good"}
    assert said(rows_from_run(tmp_path / "run", "sft", 1, {}), "completion") == ["good", "right"]


def test_right_against_wrong_answers_become_pairs(tmp_path: Path) -> None:
    rows = rows_from_run(a_run(tmp_path, *STEPS), "preference", 4, {})
    assert list(zip(said(rows, "chosen"), said(rows, "rejected"), strict=True)) == [("good", "bad"), ("fine", "bad")]


@pytest.mark.parametrize("shape", ["sft", "preference"])
@pytest.mark.parametrize("role", ["dev", "test"])
def test_what_is_not_for_training_is_refused(tmp_path: Path, shape: Any, role: str) -> None:
    run = a_run(tmp_path, [*STEPS[0], answer("secret", "x", True, role=role)])
    with pytest.raises(UserError, match=rf"1 row is not for .*which takes role train: secret \({role}\)"):
        rows_from_run(run, shape, 4, {})


def test_a_manifest_protects_its_test_prompts(tmp_path: Path) -> None:
    held = Problem("held", "s", "s", "ASK  a", None, {}, "test")
    write_manifest(manifest_of(Path("t.jsonl"), [held]), tmp_path / "manifests" / "t.jsonl")
    protected = protected_prompts(tmp_path)
    assert protected == {prompt_sha256("ask a"): "manifests/t.jsonl"}
    with pytest.raises(UserError, match=r"a \(test in manifests/t.jsonl\)"):
        rows_from_run(a_run(tmp_path, *STEPS), "sft", 4, protected)


def test_nothing_to_take_and_damaged_rows(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no accepted answer among 1 problems"):
        rows_from_run(a_run(tmp_path / "1", [answer("b", "worse", False)]), "sft", 4, {})
    with pytest.raises(UserError, match="no stored answers"):
        rows_from_run(a_run(tmp_path / "2"), "sft", 4, {})
    with pytest.raises(UserError, match=r"step_9\.jsonl:1: column 'flags' is missing"):
        rows_from_run(a_run(tmp_path / "3", [{k: v for k, v in STEPS[0][0].items() if k != "flags"}]), "sft", 4, {})
