"""What a program prints is compared as contests do it: published outputs have odd blanks and rounded decimals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.envs.code import Code
from rlvrlab.judge.extract import python_block

PUBLIC = {"input": ["7\n"], "output": ["7\n"]}


@pytest.mark.parametrize(
    ("expected", "printed", "right"),
    [
        ("10                    1\n8                     2\n", "10 1\n8 2", True),
        ("1\n                        \n2\n", "1\n2\n", True),
        ("1.500000\n", "1.5\n", True),
        ("0.333333\n", "0.33333333333\n", True),
        ("0.333333\n", "0.3334\n", False),
        ("3\n", "3.0\n", False),
        ("3\n", "3.0000001\n", False),
        ("01\n", "1\n", False),
        ("1\n", "01\n", False),
        ("10 1\n", "10\n", False),
        ("10 1\n", "10 1 1\n", False),
        ("YES\n", "yes\n", False),
    ],
)
def test_words_count_and_blanks_do_not(tmp_path: Path, expected: str, printed: str, right: bool) -> None:
    path = tmp_path / "data.jsonl"
    tests = {"public_tests": PUBLIC, "private_tests": {"input": ["2\n"], "output": [expected]}}
    path.write_text(json.dumps({"name": "1_A. Ours", "description": "Print it.", **tests, "split": "test"}) + "\n")
    env = Code(path=str(path), shape="codecontests")
    [problem] = env.problems("test", 1, 0)
    program = f"n = int(input())\nprint(n if n == 7 else {printed!r}, end='')\n"
    assert env.verify(problem, python_block(program)).correct is right
