"""Two functions have one fingerprint exactly when they do the same."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from rlvrlab.fingerprint import fingerprint, same_code, without_fingerprints

BASE = """
import re
WORTH = {"a": 0.1}
PATTERN = re.compile("x+")
count = 3

def helper(text):
    return len(text) * WORTH["a"]

def score(problem, completion, verdict, weight=2, *, floor=0.0):
    return helper(completion) + weight * bool(PATTERN.match(completion)) if completion in {"a", "b", "c"} else floor
"""


def of(text: str) -> str:
    names: dict[str, Any] = {"__name__": "mine"}
    exec(text, names)
    return fingerprint(names["score"])


@pytest.mark.parametrize(
    ("old", "new"),
    [("\ndef score", "\n\n# why\n\ndef score"), ("count = 3", "count = 4"), ("import re", "import re, os")],
)
def test_what_does_not_matter(old: str, new: str) -> None:
    assert old in BASE and of(BASE.replace(old, new)) == of(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.1", "0.2"), ('"x+"', '"y+"'), ("len(text) *", "len(text) +"), ("weight=2", "weight=3"),
     ("floor=0.0", "floor=1.0"), ('"b", ', ""), ("bool(", "int(")],
)  # fmt: skip
def test_what_matters(old: str, new: str) -> None:
    assert old in BASE and of(BASE.replace(old, new)) != of(BASE)


def test_closures_partials_methods_and_objects() -> None:
    def weighted(weight: float) -> Any:
        return lambda problem, completion, verdict: weight

    class Callable:
        def __init__(self, weight: float) -> None:
            self.weight = weight

        def __call__(self) -> float:
            return self.weight

        def method(self) -> float:
            return self.weight

    def recursive(depth: int) -> int:
        return recursive(depth - 1) if depth else 0

    for make in (weighted, Callable, lambda w: partial(max, w), lambda w: Callable(w).method):
        assert fingerprint(make(1.0)) == fingerprint(make(1.0)), make
    for make in (weighted, Callable, lambda w: partial(max, w)):
        assert fingerprint(make(1.0)) != fingerprint(make(2.0)), make
    assert fingerprint(recursive) == fingerprint(recursive)


def test_sets_have_no_order_and_versions_of_python_do_not_compare() -> None:
    text = "from test_fingerprints import BASE, of\nprint(of(BASE))"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    told = set()
    for seed in ("1", "2"):
        command, env = [sys.executable, "-c", text], here | {"PYTHONHASHSEED": seed}
        told.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(told) == 1
    assert same_code("3.11-a", "3.11-a") and same_code("3.11-a", "3.12-b") and not same_code("3.11-a", "3.11-b")


def test_only_fingerprints_on_record_are_taken_out_of_a_table() -> None:
    digest = "3.11-0123456789ab"
    table = {"code": digest, "code_of": digest, "parts": [{"code": "def f(): pass", "rate": 1}, {"code": digest}]}
    assert without_fingerprints(table) == {
        "code_of": digest, "parts": [{"code": "def f(): pass", "rate": 1}, {}],
    }  # fmt: skip
