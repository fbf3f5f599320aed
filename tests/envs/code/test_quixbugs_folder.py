"""The folder in which QuixBugs is published, tried on a small one of our own; on a whole copy where one is given."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.data.prepare import from_preset
from rlvrlab.data.presets import PRESETS
from rlvrlab.envs.code import CodeRepair
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import python_block
from rlvrlab.types import Problem

IMPORTS = """import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.{name} import {name}
else:
    from python_programs.{name} import {name}

"""
PARAMETERS = '@pytest.mark.parametrize("input_data,expected", testdata)\n'
HALF = {
    "wrong": 'def half(x, epsilon):\n    return x\n\n"""\nHalf of x, about.\n\nInput:\n    x: a number\n"""\n',
    "right": "def half(x, epsilon):\n    return x / 2\n",
    "cases": [[[3, 0.1], 1.52], [[8, 0.5], 4]],
    "test": "testdata = load_json_testcases(half.__name__)\n\n" + PARAMETERS
    + "def test_half(input_data, expected):\n"
    "    assert half(*input_data) == pytest.approx(expected, abs=input_data[-1])\n",
}  # fmt: skip
PAIRS = {
    "wrong": 'def pairs(n):\n    return [(i, i) for i in range(n)]\n\n"""\nPairs of neighbours.\n"""\n',
    "right": "def pairs(n):\n    return [(i, i + 1) for i in range(n)]\n",
    "cases": [[[2], [[0, 1], [1, 2]]], [[99], []]],
    "test": "testdata = load_json_testcases(pairs.__name__)\n"
    "testdata = [[inp, [tuple(x) for x in out]] for inp, out in testdata]\n\n" + PARAMETERS
    + "def test_pairs(input_data, expected):\n    if input_data == [99]:\n        pytest.skip('slow')\n"
    "    assert pairs(*input_data) == expected\n",
}  # fmt: skip
LAST = {
    "wrong": 'def last(node):\n    return node.value\n\n"""\nThe last value.\n"""\n',
    "right": "def last(node):\n    return last(node.successor) if node.successor else node.value\n",
    "test": "def test1():\n    assert last(Node(1, Node(2))) == 2\n\n\ndef test2():\n    assert last(Node(3)) == 3\n",
}
NODE = """class Node:
    def __init__(self, value=None, successor=None):
        self.value, self.successor = value, successor
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in ("python_programs", "correct_python_programs", "json_testcases", "python_testcases"):
        (tmp_path / part).mkdir()
    for name, program in {"half": HALF, "pairs": PAIRS, "last": LAST}.items():
        (tmp_path / "python_programs" / f"{name}.py").write_text(str(program["wrong"]))
        (tmp_path / "correct_python_programs" / f"{name}.py").write_text(str(program["right"]))
        if "cases" in program:
            lines = "".join(json.dumps(case) + "\n" for case in program["cases"])
            (tmp_path / "json_testcases" / f"{name}.json").write_text(lines)
        node = "from node import Node\n" if name == "last" else ""
        test = IMPORTS.format(name=name) + node + str(program["test"])
        (tmp_path / "python_testcases" / f"test_{name}.py").write_text(test)
    for place in ("python_programs", "python_testcases"):
        (tmp_path / place / "node.py").write_text(NODE)
    return tmp_path


def everything(env: CodeRepair) -> list[Problem]:
    return [problem for row in env.rows() for problem in env.problems_of(row, "test")]


def wrongly_judged(env: CodeRepair) -> list[str]:
    """References that are refused, and programs with the bug (and another line) that are accepted."""
    problems = everything(env)
    gold: list[tuple[Problem, str]] = [(problem, env.gold(problem) or "") for problem in problems]
    same = [(problem, python_block(f"{problem.reference['given']}\nother = 1\n")) for problem in problems]
    verdicts = env.verify_many([*gold, *same])
    wanted = [True] * len(gold) + [False] * len(same)
    asked = [problem.id for problem, _ in (*gold, *same)]
    return [f"{i} {v.detail}" for i, v, want in zip(asked, verdicts, wanted, strict=True) if v.correct is not want]


def test_programs_are_judged_by_the_publishers_own_tests(folder: Path) -> None:
    env = CodeRepair(path=str(folder), role_of="test", inprocess=True)
    assert [problem.id for problem in everything(env)] == ["QuixBugs/half", "QuixBugs/last", "QuixBugs/pairs"]
    assert wrongly_judged(env) == []
    [half] = [problem for problem in everything(env) if problem.id == "QuixBugs/half"]
    assert "Half of x, about." in half.prompt and half.reference["given"] == "def half(x, epsilon):\n    return x\n"


def test_programs_on_nodes_are_left_out_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(everything(CodeRepair(path=str(folder), role_of="test"))) == 2
    told = capsys.readouterr().err
    assert "2 problems; tests: 4 cases; left out, tests that must run beside the answer, or would" in told
    assert "1 (QuixBugs/last)" in told


def test_without_test_files_results_are_compared_with_the_cases(folder: Path) -> None:
    (folder / "python_testcases" / "test_pairs.py").unlink()
    (folder / "json_testcases" / "pairs.json").write_text("[[2], [[0, 1], [1, 2]]]\n[0, []]\n")
    (folder / "python_testcases" / "test_last.py").unlink()
    env = CodeRepair(path=str(folder), role_of="test", inprocess=True)
    assert [problem.id for problem in everything(env)] == ["QuixBugs/half", "QuixBugs/pairs"]
    assert wrongly_judged(env) == []


@pytest.mark.parametrize("part", ["correct_python_programs/half.py", "json_testcases/half.json", "python_programs"])
def test_a_damaged_copy_is_named(folder: Path, part: str) -> None:
    if part.endswith("json"):
        (folder / part).write_text("[1]\n")
    elif part.endswith(".py"):
        (folder / part).unlink()
    else:
        (folder / part).rename(folder / "elsewhere")
    with pytest.raises(
        UserError, match=r"half\.py: cannot be read|row 1: column 'cases': a line \[arguments, result\]|own folder"
    ):
        CodeRepair(path=str(folder), role_of="test", shape="quixbugs").problems("test", 1, 0)


def test_the_folder_is_prepared_like_any_data_set(folder: Path) -> None:
    preset = PRESETS["quixbugs"]
    prepared = from_preset("quixbugs", preset, CodeRepair(shape="quixbugs"), folder)
    assert (len(prepared.problems["test"]), prepared.left_out) == (2, 1)
    assert "2 test; tests: 4 cases; " in prepared.summary() and "not judgeable: 1" in prepared.summary()
    assert "(last))" in prepared.summary()


@pytest.mark.slow
def test_a_whole_copy() -> None:
    """QUIXBUGS names a copy of the published folder."""
    keys: dict[str, Any] = {"role_of": "test", "inprocess": True, "timeout_s": 15.0}
    if "QUIXBUGS" not in os.environ:
        pytest.skip("needs QUIXBUGS, a copy of github.com/jkoppel/QuixBugs")
    env = CodeRepair(path=os.environ["QUIXBUGS"], **keys)
    assert len(everything(env)) == 40 and wrongly_judged(env) == []
