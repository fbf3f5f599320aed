"""Rows of code data sets: shapes, roles, and malformed rows named by file, row and column."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.code import Code, CodeReasoning, CodeRefactor, CodeRepair
from rlvrlab.envs.code.samples import GENERATION_ROWS, REPAIR_ROWS
from rlvrlab.envs.code.shapes import GENERATION, REPAIR
from rlvrlab.envs.python_trees import example_of
from rlvrlab.errors import UserError
from rlvrlab.registry import find, keys_of
from rlvrlab.types import Environment

HUMANEVAL, MBPP, CONTESTS, APPS = GENERATION_ROWS[0], GENERATION_ROWS[2], GENERATION_ROWS[3], GENERATION_ROWS[4]
FIX, QUIX = REPAIR_ROWS[0], REPAIR_ROWS[2]


def write(folder: Path, rows: list[Any], name: str = "data.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(
    ("row", "shape"), [(HUMANEVAL, "humaneval"), (MBPP, "mbpp"), (CONTESTS, "codecontests"), (APPS, "apps")]
)
@pytest.mark.parametrize("given", ["auto", "named"])
def test_every_shape_is_read(tmp_path: Path, row: Any, shape: str, given: str) -> None:
    env = Code(path=write(tmp_path, [row]), shape="auto" if given == "auto" else shape)
    role = row["split"]
    [problem] = env.problems(role, 1, 0)
    assert problem.role == role and problem.source == problem.skill == "code"
    assert json.loads(json.dumps([problem.reference, dict(problem.meta)])) == [problem.reference, problem.meta]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json", ".parquet"])
def test_files_of_every_kind_say_the_same(tmp_path: Path, suffix: str) -> None:
    rows = [HUMANEVAL, {**HUMANEVAL, "task_id": "other", "prompt": HUMANEVAL["prompt"].replace("nearest", "closest")}]
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    plain = Code(path=write(tmp_path, rows, "plain.jsonl")).problems("train", 2, 0)
    assert Code(path=str(path)).problems("train", 2, 0) == plain


BAD = [
    ("humaneval", {**HUMANEVAL, "prompt": None}, "'prompt': missing"),
    ("humaneval", {**HUMANEVAL, "prompt": 3}, "'prompt': a string was expected, not int"),
    ("humaneval", {**HUMANEVAL, "test": "def ("}, "'test': not Python"),
    ("humaneval", {**HUMANEVAL, "task_id": ""}, "'task_id': a name or number"),
    ("humaneval", {**HUMANEVAL, "split": "tset"}, "'split': 'tset': allowed: train"),
    ("humaneval", {**HUMANEVAL, "split": None}, "'split': missing; give the file a role"),
    ("mbpp", {**MBPP, "test_list": []}, "'test_list': no test"),
    ("mbpp", {**MBPP, "test_list": "assert 1"}, "'test_list': a list of strings"),
    ("mbpp", {**MBPP, "test_list": [1]}, "'test_list': a list of strings"),
    ("mbpp", {**MBPP, "test_list": ["assert other(1)"]}, "'test_list': no test calls a function of the code"),
    ("mbpp", {**MBPP, "code": "def"}, "'code': not Python"),
    ("codecontests", {**CONTESTS, "private_tests": [1]}, "'private_tests': an object with input and output"),
    ("codecontests", {**CONTESTS, "private_tests": {"input": ["a"], "output": []}}, "'private_tests': .* one length"),
    ("codecontests", {**CONTESTS, "public_tests": {"input": [1], "output": ["1"]}}, "'public_tests': .* strings"),
    ("codecontests", {"name": "a", "description": "b", "split": "train"}, "'private_tests': no test"),
    ("apps", {**APPS, "input_output": "{"}, "'input_output': not JSON"),
    ("apps", {**APPS, "input_output": "[]"}, "'input_output': an object"),
    ("apps", {**APPS, "input_output": '{"inputs": [], "outputs": []}'}, "'input_output': no test"),
    ("apps", {**APPS, "question": None}, "'question': missing"),
]


@pytest.mark.parametrize(("shape", "row", "says"), BAD, ids=[f"{s} {says[:25]}" for s, _, says in BAD])
def test_a_malformed_row_is_named(tmp_path: Path, shape: str, row: Any, says: str) -> None:
    good = {"humaneval": HUMANEVAL, "mbpp": MBPP, "codecontests": CONTESTS, "apps": APPS}[shape]
    path = write(tmp_path, [good, row])
    with pytest.raises(UserError, match=rf"data\.jsonl: row 2: column {says}"):
        Code(path=path, shape=shape).problems("train", 1, 0)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({**FIX, "buggy_solution": None}, "'buggy_solution': missing"),
        ({**QUIX, "tests": "assert ("}, "'tests': not Python"),
        ({**QUIX, "solution": None}, "'solution': missing"),
    ],
)
def test_a_malformed_repair_row_is_named(tmp_path: Path, row: Any, says: str) -> None:
    good = FIX if "task_id" in row else QUIX
    with pytest.raises(UserError, match=rf"row 2: column {says}"):
        CodeRepair(path=write(tmp_path, [good, row])).problems("train", 1, 0)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.jsonl"):
        Code(path=str(tmp_path / "nowhere.jsonl")).problems("train", 1, 0)
    with pytest.raises(UserError, match="no rows"):
        Code(path=write(tmp_path, [])).problems("train", 1, 0)
    with pytest.raises(UserError, match=r"row 1 has none of the shapes humaneval .*apps"):
        Code(path=write(tmp_path, [{"a": 1}])).problems("train", 1, 0)
    with pytest.raises(UserError, match=r"\.jsonl:1: .*not JSON"):
        (tmp_path / "torn.jsonl").write_text('{"a": ')
        Code(path=str(tmp_path / "torn.jsonl")).problems("train", 1, 0)


def numbered(count: int, **columns: Any) -> list[dict[str, Any]]:
    return [
        {**HUMANEVAL, "task_id": f"t/{i}", "prompt": HUMANEVAL["prompt"].replace("number", f"n{i}"), **columns}
        for i in range(count)
    ]


@pytest.mark.parametrize("role_of", ["", "train", "dev", "test"])
def test_a_rows_own_mark_beats_the_role_of_the_file(tmp_path: Path, role_of: Any) -> None:
    marks = ["train", "test", "validation", "TEST", "valid", "dev", "val"]
    rows = [{**row, "split": mark} for row, mark in zip(numbered(7), marks, strict=True)]
    env = Code(path=write(tmp_path, rows), role_of=role_of)
    assert {p.id for p in env.problems("train", 1, 0)} == {"t/0"}
    assert {p.id for p in env.problems("test", 2, 0)} == {"t/1", "t/3"}
    assert {p.id for p in env.problems("dev", 4, 0)} == {"t/2", "t/4", "t/5", "t/6"}
    for role, size in (("train", 2), ("test", 3), ("dev", 5)):
        with pytest.raises(UserError, match=f"{size} {role} problems asked for"):
            env.problems(role, size, 0)  # type: ignore[arg-type]


def test_the_role_of_a_file_covers_unmarked_rows(tmp_path: Path) -> None:
    env = Code(path=write(tmp_path, numbered(3, split=None)), role_of="dev")
    assert len(env.problems("dev", 3, 0)) == 3
    with pytest.raises(UserError, match="1 train problems asked for"):
        env.problems("train", 1, 0)


@pytest.mark.parametrize("task_id", ["HumanEval/7", "Python/7"])
def test_human_eval_is_never_training_data(tmp_path: Path, task_id: str) -> None:
    row = {**FIX, "task_id": task_id, "split": "train"}
    for env in (Code, CodeRepair, CodeRefactor, CodeReasoning):
        made = env(path=write(tmp_path, [row]), role_of="train")
        assert made.problems("test", 1, 0)
        with pytest.raises(UserError, match="train problems asked for"):
            made.problems("train", 1, 0)


def test_twins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"row 2: id 't/0' is also that of row 1"):
        Code(path=write(tmp_path, [*numbered(1), *numbered(1)])).problems("train", 1, 0)
    twin = {**numbered(1)[0], "task_id": "t/9", "split": "test"}
    with pytest.raises(UserError, match=r"row 2 \(test\) asks the same as row 1 \(train\)"):
        Code(path=write(tmp_path, [*numbered(1), twin])).problems("train", 1, 0)


def test_order_is_a_matter_of_the_seed(tmp_path: Path) -> None:
    env = Code(path=write(tmp_path, numbered(30)))
    ids = [p.id for p in env.problems("train", 30, 0)]
    assert [p.id for p in env.problems("train", 7, 0)] == ids[:7]
    assert [p.id for p in env.problems("train", 30, 1)] != ids
    assert sorted(ids) == sorted(row["task_id"] for row in numbered(30))


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    import os

    path = write(tmp_path, numbered(1))
    assert len(Code(path=path).rows()) == 1
    write(tmp_path, numbered(2))
    os.utime(path, ns=(1, 1))
    assert len(Code(path=path).rows()) == 2


def test_rows_that_cannot_be_split_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    rows = [
        {**MBPP, "task_id": 1, "text": "a", "test_list": ["assert second_largest([1], list) == None"]},
        {
            **MBPP,
            "task_id": 2,
            "text": "b",
            "test_setup_code": "top = Pair(1)",
            "code": "class Pair: pass\n" + MBPP["code"],
        },
        {**MBPP, "task_id": 3, "text": "c", "code": "def second_largest(a):\n    yield 1\n"},
        {
            **MBPP,
            "task_id": 4,
            "text": "d",
            "code": "def second_largest(a):\n    def g():\n        yield 1\n    return 1\n",
        },
    ]
    path = write(tmp_path, rows)
    assert [row.id for row in Code(path=path).rows()] == ["MBPP/4"]
    assert len(Code(path=path, inprocess=True).rows()) == 4


def calling(outputs: list[Any], **more: Any) -> dict[str, Any]:
    tests = {"fn_name": "f", "inputs": [[1, 2], [5, "a"]], "outputs": outputs}
    return {**APPS, "input_output": json.dumps(tests), "solutions": None, **more}


@pytest.mark.parametrize(
    ("outputs", "body", "right"),
    [
        ([[1, 2], [5, "a"]], "return (a, b)", True),  # JSON has no tuples
        ([[1, 2], [5, "a"]], "return [a]", False),
        ([[1, 2], [5, "a"]], "return a", False),  # not wrapped: the first item is not the result
        ([[1], [5]], "return a", True),  # may be wrapped
        ([[1], [5]], "return [a]", True),
        ([[1], [5]], "return b", False),
        ([[1], 5], "return a", False),  # not all are lists of one item, so none is wrapped
    ],
)
def test_functions_in_apps_are_called(tmp_path: Path, outputs: list[Any], body: str, right: bool) -> None:
    env = Code(path=write(tmp_path, [calling(outputs, starter_code="def f(a, b):\n")]))
    [problem] = env.problems("dev", 1, 0)
    assert "def f(a, b):" in problem.prompt and "assert f(1, 2)" in problem.prompt
    assert env.verify(problem, f"```python\ndef f(a, b):\n    {body}\n```").correct is right


def test_functions_in_apps_that_cannot_be_called(tmp_path: Path) -> None:
    method = calling([1, 2], starter_code="class Solution:\n    def f(self, a, b):\n")
    assert Code(path=write(tmp_path, [method])).rows() == []
    for bad in ({"fn_name": "f g"}, {"inputs": [1, 2]}, {"outputs": [1]}, {"inputs": [], "outputs": []}):
        tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [1, 2], **bad}
        with pytest.raises(UserError, match="row 1: column 'input_output'"):
            Code(path=write(tmp_path, [{**APPS, "input_output": json.dumps(tests)}]), shape="apps").rows()


def test_examples_are_read_from_asserts_and_docstrings() -> None:
    assert example_of("assert f(1, [2]) == {'a': 3}", "f") == ("f(1, [2])", {"a": 3})
    assert example_of("assert g(1) == 2", "f") is None
    assert example_of("assert f(1) == g(2)", "f") is None
    assert example_of("assert not f(1)", "f") is None
    assert example_of("assert f(1) != 2", "f") is None
    assert example_of("x = 1; y = 2", "f") is None
    [problem] = [p for p in Code().problems("train", 4, 0) if p.id == "sample/0"]
    assert problem.meta["examples"] == ["assert clamp(12, 0, 9) == 9", "assert clamp(-3, 0, 9) == 0"]


@pytest.mark.parametrize("env", [Code, CodeRepair, CodeRefactor, CodeReasoning])
def test_they_are_environments_found_by_name(env: Any) -> None:
    assert find("env", env.name) is env
    assert isinstance(env(), Environment)
    assert len(keys_of(env)) <= 12
    for options in ({"shape": "humanevil"}, {"role_of": "exam"}, {"style": "verse"}, {"timeout_s": 0.0}):
        with pytest.raises(UserError, match=next(iter(options))):
            env(**options)
    assert set(GENERATION) | set(REPAIR) >= set(env.shapes)


def test_goals_are_checked() -> None:
    with pytest.raises(UserError, match="document, shorten"):
        CodeRefactor(goals=("paint",))  # type: ignore[arg-type]
