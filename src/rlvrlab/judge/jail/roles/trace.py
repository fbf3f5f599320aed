"""Calls of one function, statement by statement: after each one, the values of its variables, as check sums.

    [[0, [["x", 914]]], [2, [["x", 3]]], [3, [["x", 3], ["return", 77]]]]     lines, and what they left behind

Line 0 is the beginning, with the arguments. A value that is not plain counts by the name of its type; an exception that
leaves the function is noted under "raise". Only the function's own frame is looked at, not those that it calls.
Nothing is scored by what is reported here: it says where two programs part, never whether one is right. A program that
could reach what follows it (frames, `sys.settrace`, the report) could choose what is said of it, so only those are
followed whose text shows that they cannot; of any other nothing is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from rlvrlab.judge.jail import frames, plain
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.purity import is_pure
from rlvrlab.judge.jail.roles import solution

MOST_STATES = 200
"""Statements of one call that are followed; the call ends there."""
MOST_NAMES = 100
"""Variables of one state that are looked at."""
LONGEST_VALUE = 20_000
"""Characters of a value, as text, that are looked at."""


class Enough(BaseException):
    """The call has been followed for long enough."""


def run(job: Job, report: Report) -> None:
    """Make the calls in order and report the states that each went through."""
    if not is_pure(job["code"]):
        return
    from zlib import crc32  # a library that no other role needs, and that each fork of a worker with it would copy

    function = solution.entry(solution.load(job["code"], report, job["cpu_s"]), job["entry_point"], report)
    code = solution.code_of(function)
    for arguments, named in job["calls"]:
        states: list[Any] = []
        if code is not None:
            given = plain.decode(arguments), plain.decode(named)
            sys.settrace(_Follower(code, states, crc32).enter)
            try:
                function(*given[0], **given[1])
            except BaseException as error:  # noted in the states, where it left the function
                del error
            finally:
                sys.settrace(None)
        report("states", states)


class _Follower:
    """Follows the first call of a code object; calls that it makes of itself are left alone."""

    def __init__(self, code: CodeType, states: list[Any], check_sum: Callable[[bytes], int]) -> None:
        self.code, self.states, self.check_sum = code, states, check_sum
        self.line, self.raising = 0, ""
        self.entered = False

    def enter(self, frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code is not self.code or self.entered:
            return None
        self.entered = True
        return self.follow

    def follow(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "exception":
            self.raising = value[0].__name__
        elif event == "line":
            self.note(frame)
            self.line, self.raising = frame.f_lineno, ""
            if len(self.states) >= MOST_STATES:
                raise Enough
        elif event == "return":
            raised = {"raise": self.check_sum(self.raising.encode())}
            self.note(frame, **(raised if self.raising else {"return": self.sum(value)}))
        return self.follow

    def note(self, frame: FrameType, **end: int) -> None:
        """What the statement that has just ended left behind."""
        own = [(name, value) for name, value in frame.f_locals.items() if not name.startswith(".")]
        names = [(name, self.sum(value)) for name, value in own[:MOST_NAMES]]
        self.states.append([self.line, [*names, *end.items()]])

    def sum(self, value: object) -> int:
        """The check sum of a value, or of its type's name."""
        try:
            return self.check_sum(frames.text(plain.encode(value))[:LONGEST_VALUE].encode("utf-8", "surrogatepass"))
        except (plain.NotPlain, RecursionError, ValueError, OverflowError):
            return self.check_sum(type(value).__name__.encode())
