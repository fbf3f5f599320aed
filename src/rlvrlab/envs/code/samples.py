"""A few problems of our own in every shape, so that each environment can be tried and checked without a download."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]


def _humaneval(number: int, prompt: str, body: str, name: str, asserts: str, **more: Any) -> Row:
    test = "def check(candidate):\n" + "".join(f"    assert candidate{one}\n" for one in asserts.split("|"))
    return {
        "task_id": f"sample/{number}", "prompt": prompt, "canonical_solution": body, "entry_point": name, "test": test,
        "split": "train", **more,
    }  # fmt: skip


CLAMP = (
    'def clamp(value, low, high):\n    """The nearest number to value between low and high.\n\n'
    '    >>> clamp(12, 0, 9)\n    9\n    >>> clamp(-3, 0, 9)\n    0\n    """\n'
)
RUNS = (
    'def runs(text):\n    """Lengths of the runs of equal letters.\n\n'
    "    >>> runs('aabccc')\n    [2, 1, 3]\n    >>> runs('z')\n    [1]\n    \"\"\"\n"
)
RUNS_BODY = (
    "    found = []\n    before = None\n    for letter in text:\n        if letter == before:\n"
    "            found[-1] += 1\n        else:\n            found.append(1)\n        before = letter\n"
    "    return found\n"
)
RUNS_BUG = RUNS_BODY.replace("        before = letter\n", "            before = None\n")
CLAMP_TESTS = "(12, 0, 9) == 9|(-3, 0, 9) == 0|(4, 0, 9) == 4|(7, 7, 7) == 7|(0, 2, 5) == 2|(-8, -6, -2) == -6"
RUNS_TESTS = "('aabccc') == [2, 1, 3]|('z') == [1]|('') == []|('abab') == [1, 1, 1, 1]|('dddd') == [4]"

GENERATION_ROWS: list[Row] = [
    _humaneval(0, CLAMP, "    return max(low, min(value, high))\n", "clamp", CLAMP_TESTS),
    _humaneval(1, RUNS, RUNS_BODY, "runs", RUNS_TESTS),
    {
        "task_id": 900001,
        "text": "Write a function to find the second largest different number of a list, or None.",
        "code": "def second_largest(numbers):\n    found = sorted(set(numbers))\n"
        "    return found[-2] if len(found) > 1 else None",
        "test_list": [
            "assert second_largest([4, 9, 7]) == 7",
            "assert second_largest([3, 3]) == None",
            "assert second_largest([5, 5, 2, 1]) == 2",
            "assert second_largest([-1, -7]) == -7",
        ],
        "split": "train",
    },
    {
        "name": "sample/sums",
        "description": "The first line holds n, each of the next n lines two integers. Print their sums, one a line.",
        "public_tests": {"input": ["2\n1 2\n3 4\n"], "output": ["3\n7\n"]},
        "private_tests": {"input": ["1\n-5 5\n", "3\n10 20\n7 8\n0 0\n"], "output": ["0\n", "30\n15\n0\n"]},
        "generated_tests": {"input": ["2\n100 1\n1 100\n"], "output": ["101\n101\n"]},
        "solutions": {
            "language": [3],
            "solution": ["for _ in range(int(input())):\n    print(sum(map(int, input().split())))\n"],
        },
        "split": "train",
    },
    {
        "problem_id": 900002,
        "question": "A word is read. Print it backwards.",
        "input_output": json.dumps(
            {"inputs": ["abc\n", "x\n", "level up\n"], "outputs": ["cba\n", "x\n", "pu level\n"]}
        ),
        "solutions": json.dumps(["print(input()[::-1])"]),
        "split": "dev",
    },
    _humaneval(
        2, 'def digits(number):\n    """Sum of the decimal digits.\n\n    >>> digits(307)\n    10\n    """\n',
        "    return sum(map(int, str(abs(number))))\n", "digits", "(307) == 10|(0) == 0|(-45) == 9|(999) == 27",
        split="test",
    ),
]  # fmt: skip

REPAIR_ROWS: list[Row] = [
    _humaneval(
        0, CLAMP, "    return max(low, min(value, high))\n", "clamp", CLAMP_TESTS,
        buggy_solution="    return min(low, max(value, high))\n",
    ),
    _humaneval(1, RUNS, RUNS_BODY, "runs", RUNS_TESTS, buggy_solution=RUNS_BUG),
    {
        "name": "sample_power",
        "buggy_program": "def sample_power(base, exponent):\n    result = base\n    for _ in range(exponent):\n"
        "        result *= base\n    return result",
        "solution": "def sample_power(base, exponent):\n    result = 1\n    for _ in range(exponent):\n"
        "        result *= base\n    return result",
        "docstring": '"""\nThe product of exponent copies of base; exponent is not negative.\n"""',
        "tests": "assert sample_power(*[2, 5]) == 32\nassert sample_power(*[7, 0]) == 1\n"
        "assert sample_power(*[3, 1]) == 3",
        "split": "train",
    },
]  # fmt: skip
