"""What is to be judged: one record per mode. All of it is plain data, so a task has a content hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlvrlab.judge.compare import EXACT, RSTRIP_LINES, Comparison
from rlvrlab.judge.jail.limits import Limits


@dataclass(frozen=True, slots=True)
class StdioTask:
    """A contest problem: a program that reads and prints. tests = (("3\\n1 2 3\\n", "6\\n"), …)."""

    tests: tuple[tuple[str, str], ...]
    """Standard input and the expected output of each test."""
    comparison: Comparison = RSTRIP_LINES
    checker: str | None = None
    """A trusted program instead of a comparison: reads JSON {input, output, expected} and exits 0 to accept."""
    limits: Limits = field(default_factory=Limits)
    packages: tuple[str, ...] = ()
    """Packages beside the standard library that may be imported: ("numpy",); see packages.py."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call and what it must return."""

    arguments: tuple[Any, ...]
    expected: Any
    named: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallsTask:
    """A function with arguments and results as plain data."""

    entry_point: str
    """`solve`, or `Solution.solve`."""
    calls: tuple[Call, ...]
    comparison: Comparison = EXACT
    limits: Limits = field(default_factory=Limits)
    packages: tuple[str, ...] = ()
    """Packages beside the standard library that may be imported: ("numpy",); see packages.py."""


@dataclass(frozen=True, slots=True)
class TestsTask:
    """Assert code (HumanEval, MBPP). It runs in a process of its own, where the function is a remote one."""

    __test__ = False  # pytest would take it for a test class

    entry_point: str
    """The function under test; also bound to the name `candidate`."""
    tests: tuple[str, ...]
    """Pieces of test code, run in order in one namespace; each counts as one test."""
    setup: str = ""
    """Trusted code run before the tests, in the tests' process."""
    preamble: str = ""
    """Trusted code put before the candidate's program, e.g. imports the prompt shows."""
    inprocess: bool = False
    """Run tests beside the candidate, for classes and other objects that cannot cross: `integrity: weak`."""
    limits: Limits = field(default_factory=Limits)
    packages: tuple[str, ...] = ()
    """Packages beside the standard library that may be imported: ("numpy",); see packages.py."""


@dataclass(frozen=True, slots=True)
class SyntaxTask:
    """Does it compile, and does it look as asked? Nothing is run."""

    functions: tuple[str, ...] = ()
    """Signatures that must be there, at the top level or as methods: `solve(xs, k)`, `Solution.solve(self, xs)`."""
    docstrings: bool = False
    """Every function must have one with words in it."""
    longest_line: int | None = None
    forbidden: tuple[str, ...] = ()
    """Names that must not be used: eval, exec, …"""
    limits: Limits = field(default_factory=Limits)


Task = StdioTask | CallsTask | TestsTask | SyntaxTask
