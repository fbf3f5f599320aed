"""Rows in the shapes in which EvalPlus publishes, made of problems of our own or of base data sets."""

from __future__ import annotations

import ast
from typing import Any

MEAN = '''def mean_of(values):
    """The mean of some numbers, 0 for none.

    >>> mean_of([1, 2])
    1.5
    """
'''
MEAN_SOLUTION = "    return sum(values) / len(values) if values else 0\n"
BASE_ONLY = "    return sum(values) / len(values)\n"
"""Right on the base inputs, wrong on the plus inputs."""

HUMANEVAL_RELEASE = {
    "task_id": "HumanEval/9000",
    "prompt": MEAN,
    "entry_point": "mean_of",
    "canonical_solution": MEAN_SOLUTION,
    "test": "def check(candidate):\n    assert candidate([1, 2]) == 1.5\n",
    "contract": "    assert type(values) == list\n",
    "base_input": [[[1, 2]], [[4]]],
    "plus_input": [[[]], [[0.1, 0.2, 0.3]], [[1e300, float("inf")]]],
    "atol": 1e-06,
}
MBPP_RELEASE = {
    "task_id": "Mbpp/2",
    "prompt": '"""\nWrite a function that returns what two tuples share.\nassert shared((1, 2),(2, 3)) == (2,)\n"""\n',
    "entry_point": "shared",
    "canonical_solution": "\ndef shared(a, b):\n    return tuple(sorted(set(a) & set(b)))\n",
    "contract": "",
    "assertion": "assert shared((1, 2),(2, 3)) == (2,)",
    "base_input": [[[1, 2], [2, 3]]],
    "plus_input": [[[], []], [[1, 1, 2], [1, 2, 2]]],
    "atol": 0,
}
TUPLES_WANTED = "def shared(a, b):\n    a + ()\n    return tuple(sorted(set(a) & set(b)))\n"
"""Fails on lists: JSON has no tuples, and this problem's arguments are tuples."""

ASSERTION = """import numpy as np

def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    return isinstance(x, (list, tuple)) and bool(x) and all(isinstance(i, float) for i in x)

def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match
"""


def hub_check(inputs: list[Any], results: list[Any], atol: float = 0) -> str:
    """The test column of evalplus/humanevalplus."""
    return (
        f"\n{ASSERTION}\n\ndef check(candidate):\n    inputs = {inputs}\n    results = {results}\n"
        f"    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, {atol})\n"
    )


def hub_loop(name: str, inputs: list[Any], results: list[Any], atol: float = 0) -> str:
    """The test column of evalplus/mbppplus."""
    return (
        f"import numpy as np\nfrom math import inf\n\n{ASSERTION}\n\ninputs = {inputs}\nresults = {results}\n"
        f"for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion({name}(*inp), exp, {atol})\n"
    )


def hub_poly(inputs: list[Any], results: list[Any]) -> str:
    """The test column of one problem of evalplus/humanevalplus, with its mistake."""
    return (
        f"def _poly(xs, x):\n    return sum(xs) * x\n\n\ndef check(candidate):\n    inputs = {inputs}\n"
        f"    results = {results}\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "        assert _poly(*candidate(*inp), inp) <= 0.0001\n"
    )


HUMANEVAL_HUB = {
    **{key: HUMANEVAL_RELEASE[key] for key in ("task_id", "prompt", "canonical_solution", "entry_point")},
    "test": hub_check([[[1, 2]], [[4]], [[]], [[0.1, 0.2, 0.3]]], [1.5, 4.0, 0, 0.2]),
}
MBPP_HUB = {
    "task_id": 2,
    "code": MBPP_RELEASE["canonical_solution"],
    "prompt": "Write a function that returns what two tuples share.",
    "source_file": "ours",
    "test_imports": [],
    "test_list": ["assert shared((1, 2),(2, 3)) == (2,)"],
    "test": hub_loop("shared", [[(1, 2), (2, 3)], [(), ()], [(1, 1, 2), (1, 2, 2)]], [(2,), (), (1, 2)]),
}


def examples_of(tests: str, names: set[str]) -> list[tuple[list[Any], Any]]:
    """Arguments and results of the asserts `f(1, [2]) == 3` in some test code."""
    found = []
    for node in ast.walk(ast.parse(tests)):
        match node:
            case ast.Assert(ast.Compare(ast.Call(ast.Name(name), arguments, []), [ast.Eq()], [wanted])) if (
                name in names
            ):
                try:
                    found.append(([ast.literal_eval(one) for one in arguments], ast.literal_eval(wanted)))
                except ValueError:
                    continue
    return found
