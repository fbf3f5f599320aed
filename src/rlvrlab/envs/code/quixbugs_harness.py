"""What QuixBugs' own test files need of pytest, so that they run in the judge's jail as they are.

Imported by nobody here: its text is put before the test file of a program (quixbugs.py), whose imports are taken out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

CASES: Any = json.loads("null")


class Skipped(Exception):
    """A case that the publisher leaves out because it takes minutes."""


class approx:
    """A number within a distance."""

    def __init__(self, expected: float, abs: float = 1e-12) -> None:
        self.expected, self.abs = expected, abs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and -self.abs <= other - self.expected <= self.abs

    def __hash__(self) -> int:
        return hash(self.expected)


class mark:
    """pytest.mark, of which one is used."""

    @staticmethod
    def parametrize(names: str, cases: Sequence[Any]) -> Callable[[Any], Any]:
        """Keep the cases with the function."""

        def with_cases(function: Any) -> Any:
            function.cases = cases
            return function

        return with_cases


class pytest:
    """The part of pytest that the test files use."""

    use_correct = run_slow = False
    mark, approx = mark, approx

    @staticmethod
    def skip(reason: str) -> None:
        """Leave the case out."""
        raise Skipped(reason)


def load_json_testcases(algorithm: str) -> Any:
    """The lines of json_testcases/NAME.json."""
    return CASES


def run_test(function: Any, case: int | None = None) -> None:
    """One test function, or one of its cases."""
    with suppress(Skipped):
        function() if case is None else function(*function.cases[case])
