"""The tests' side of `tests` mode: assert code runs here against a remote function.

Nothing of the candidate's runs in this process: its results arrive as plain data or as opaque handles, its exceptions
as built-in ones of the same name. So `==` here is Python's own, and the verdict is this process's to give.
"""

from __future__ import annotations

import builtins
import types
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import PEER, Job, Report
from rlvrlab.judge.jail.frames import Frames, PeerGone

NEVER_RAISED_HERE = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
"""Exceptions that steer loops and processes: raised here, they could end `all(map(candidate, …))` early, as a pass."""


class CandidateGone(BaseException):
    """The candidate ended before the tests did. Not an Exception: a test's `except Exception` must not hide it."""


class CannotCross(BaseException):
    """The tests hand over something that is not plain data."""


class CandidateRaised(RuntimeError):
    """The candidate raised something that has no name here."""


class Handle:
    """A result that stayed with the candidate; it equals nothing but itself."""

    __slots__ = ("_kind", "_number")

    def __init__(self, number: int, kind: str) -> None:
        self._number, self._kind = number, kind

    def __eq__(self, other: object) -> bool:
        return type(other) is Handle and other._number == self._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"<{self._kind} object held by the candidate>"


def _handle(form: Any) -> Handle:
    number, kind = form
    if type(number) is not int or type(kind) is not str:
        raise ValueError("not a handle")
    return Handle(number, kind)


def _number(value: object) -> plain.Encoded:
    if type(value) is Handle:
        return ["handle", [value._number, value._kind]]
    return plain.refuse(value)


class Remote:
    """The function under test, over the wire."""

    def __init__(self, peer: Frames, name: str) -> None:
        self._peer, self.__name__ = peer, name
        self.broken = ""
        """Why the conversation ended early; empty when it did not."""
        self.raised: BaseException | None = None

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call the candidate's function over the wire; its exceptions are raised here."""
        try:
            request = [plain.encode(arguments, _number), plain.encode(named, _number)]
        except plain.TooDeep as error:  # no test is written like that: it came from the candidate
            raise ValueError(str(error)) from None
        except plain.NotPlain as error:
            raise CannotCross(f"the tests pass a {error} to the candidate; judge this task in process") from None
        try:
            self._peer.send(request)
            kind, *content = self._peer.receive()
            if kind == "value":
                return plain.decode(content[0], _handle)
            theirs = _exception(*content)
        except (PeerGone, ValueError, TypeError, KeyError, IndexError, OverflowError, ArithmeticError) as problem:
            self.broken = f"{type(problem).__name__}: {problem}"
            raise CandidateGone(self.broken) from None
        self.raised = theirs
        raise theirs


def _exception(name: Any, message: Any) -> Exception:
    kind = getattr(builtins, name, None) if type(name) is str else None
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, NEVER_RAISED_HERE):
        try:
            return kind(str(message))
        except TypeError:  # UnicodeDecodeError and its like want more than a message
            return CandidateRaised(f"{name}: {message}")
    return CandidateRaised(f"{name}: {message}")


def run(job: Job, report: Report) -> None:
    """Run the pieces in order; one report line each, and a last one only when all was said and done."""
    peer = Frames(PEER)
    try:
        peer.receive()
    except PeerGone:
        report("candidate_gone", "it never got ready")
        return
    remote = Remote(peer, job["entry_point"])
    module = types.ModuleType("tests")
    exec(compile(job["setup"], "setup", "exec"), module.__dict__)  # noqa: S102 - the data set's own code, in the jail
    module.__dict__.update({"candidate": remote, job["entry_point"].rpartition(".")[2]: remote})
    for piece in job["tests"]:
        failure = _failure(piece, module, remote)
        if remote.broken:
            report("candidate_gone", remote.broken)
            return
        report(*(failure or ("passed",)))
        if failure and job["stop"]:
            return
    report("complete")


def _failure(piece: str, module: types.ModuleType, remote: Remote) -> tuple[str, ...] | None:
    """Run one piece of the tests: None when it passes, else the kind of failure (bad_test, raised, failed) and why."""
    try:
        code = compile(piece, "tests", "exec")
    except (SyntaxError, ValueError) as error:
        return "bad_test", f"{type(error).__name__}: {error}"
    try:
        exec(code, module.__dict__)  # noqa: S102 - the data set's own code, in the jail
    except CannotCross as error:
        return "bad_test", str(error)
    except BaseException as error:
        name, text = type(error).__name__, str(error)[:200]
        if error is remote.raised:
            return "raised", name, text
        if isinstance(error, NameError):
            return "bad_test", f"{text}: the tests use other names of the solution; judge this task in process"
        return "failed", text if isinstance(error, AssertionError) else f"{name}: {text}"
    return None
