"""The tests' side of `tests` mode: assert code runs here against a remote function.

Nothing of the candidate's runs in this process: its results arrive as plain data or as opaque handles, its exceptions
under their own name as the nearest built-in kind that they are of, so that `except ValueError` catches a
JSONDecodeError. So `==` here is Python's own, and the verdict is this process's to give.

Tests that were made to go on after a failed assert (roles/asserts.py) have it noted here.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from time import process_time
from typing import Any, Protocol

from rlvrlab.judge.jail import arrays, plain, stretching
from rlvrlab.judge.jail.blame import IN_PROCESS
from rlvrlab.judge.jail.child import PEER, Job, Report, message_of
from rlvrlab.judge.jail.frames import Frames, PeerGone
from rlvrlab.judge.jail.roles import dataset_code, solution
from rlvrlab.judge.jail.roles.asserts import EQUAL, NOTE_FAILURE, STRETCHED

NEVER_RAISED_HERE = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
"""Exceptions that steer loops and processes: raised here, they could end `all(map(candidate, …))` early, as a pass."""
NEVER_MADE_HERE = (UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError)
"""Exceptions that read memory at the positions they are given, without a check; their common kind comes instead."""

FROM_CANDIDATE = "__from_candidate__"
"""A mark on every exception of the candidate's that is raised here, however it comes to the end of a test."""
LONGEST_REASON = 200


class CandidateGone(BaseException):
    """The candidate ended before the tests did. Not an Exception: a test's `except Exception` must not hide it."""


class CannotCross(BaseException):
    """The tests hand over something that is not plain data."""


class CandidateRaised(Exception):
    """The candidate raised something that is of no kind that may be raised here."""


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


class Peer(Protocol):
    """The other end of the conversation."""

    def send(self, message: object) -> None:
        """Hand over a call."""

    def receive(self) -> Any:
        """Take what became of it."""


class Remote:
    """The function under test, over the wire."""

    def __init__(self, peer: Peer, name: str) -> None:
        self._peer, self.__name__ = peer, name
        self.broken = ""
        """Why the conversation ended early; empty when it did not."""
        self.called = self._answered = False
        self.piece = 0
        """Which of the tests is run: its calls share a budget."""

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call the candidate's function over the wire; its exceptions are raised here."""
        self.called = True
        try:
            request = [plain.encode(arguments, _number), plain.encode(named, _number), self.piece]
        except plain.TooDeep as error:  # no test is written like that: it came from the candidate
            raise ValueError(str(error)) from None
        except plain.NotPlain as error:
            if not self._answered:  # whatever the answer is, it comes to this
                raise CannotCross(f"the tests pass a {error} to the candidate; {IN_PROCESS}") from None
            raise ValueError(f"a {error} cannot be passed to the candidate") from None
        try:
            self._peer.send(request)
            kind, *content = self._peer.receive()
            self._answered = True
            if kind == "value":
                return plain.decode(content[0], _handle)
            theirs = _exception(*content)
        except Exception as problem:  # whatever it is, the candidate sent it
            self.broken = f"{type(problem).__name__}: {message_of(problem)}"[:LONGEST_REASON]
            raise CandidateGone(self.broken) from None
        setattr(theirs, FROM_CANDIDATE, True)
        raise theirs

    def __copy__(self) -> Remote:
        """A function is its own copy, and what a copy was asked would count for nothing."""
        return self

    def __deepcopy__(self, memo: object) -> Remote:
        """As deep as it may be."""
        return self


def names_of(entry_point: str, remote: Remote) -> dict[str, Remote]:
    """How tests may call it."""
    return {"candidate": remote, entry_point.rpartition(".")[2]: remote}


def _exception(names: list[str], message: str, arguments: plain.Encoded) -> Exception:
    """The candidate's exception, of the first of these kinds that may be raised here and can be made of its parts."""
    own, given = names[0], plain.decode(arguments, _handle)
    for kind in filter(None, map(_raisable, names)):
        called = kind if kind.__name__ == own else type(own, (kind,), {})
        made = [one for parts in (given, (message,)) if (one := _made(called, parts)) is not None]
        if made:
            return next((one for one in made if message_of(one) == message), made[0])
    return CandidateRaised(f"{own}: {message}")


def _raisable(name: str) -> type[Exception] | None:
    kind = getattr(builtins, name, None)
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return None
    return None if issubclass(kind, NEVER_RAISED_HERE + NEVER_MADE_HERE) else kind


def _made(kind: type[Exception], parts: tuple[object, ...]) -> Exception | None:
    """None where the kind wants other parts: a group of exceptions cannot be made of a message."""
    try:
        return kind(*parts)
    except Exception:
        return None


def equal(result: Any, expected: Any) -> Any:
    """What `==` says, but that an array equals an array: one of a single item is as true as that, and passed for it."""
    return arrays.fit(result, expected) and result == expected


class Notes:
    """The failed asserts of a piece."""

    def __init__(self) -> None:
        self._first: str | None = None

    def __call__(self, message: Callable[[], object]) -> None:
        """Note what a failed assert says."""
        if self._first is None:
            try:
                self._first = str(message())[:LONGEST_REASON]
            except Exception:
                self._first = ""

    def taken(self) -> str | None:
        """What the first failed assert said; None where none failed. The next piece starts without it."""
        first, self._first = self._first, None
        return first


def run(job: Job, report: Report) -> None:
    """Run the pieces in order; one report line each, and a last one only when all was said and done."""
    peer, notes, module = Frames(PEER), Notes(), dataset_code.fresh_module()
    unstretched = (stretching.equals, stretching.differs, stretching.difference)
    module.__dict__.update(
        {NOTE_FAILURE: notes, EQUAL: equal, **dict(zip(STRETCHED.values(), unstretched, strict=True))}
    )
    stretching.guard()
    try:  # before anything of the candidate's has arrived
        setup, *pieces = map(dataset_code.compiled, (job["setup"], *job["tests"]))
        exec(setup, module.__dict__)  # noqa: S102 - the data set's own code, in the jail
        if (noted := notes.taken()) is not None:
            raise AssertionError(noted)
    except BaseException as error:
        report("bad_test", f"{type(error).__name__}: {message_of(error)}"[:LONGEST_REASON])
        return
    solution.spend(job["cpu_s"])
    try:
        peer.receive()
    except PeerGone:
        report("candidate_gone", "it never got ready")
        return
    report("loaded")
    remote = Remote(peer, job["entry_point"])
    module.__dict__.update(names_of(job["entry_point"], remote))
    for piece in pieces:
        remote.piece, until = remote.piece + 1, process_time() + job["cpu_s"]
        raised, noted = _failure(piece, module), notes.taken()
        if remote.broken:
            report("candidate_gone", remote.broken)
            return
        solution.spend(until)
        report(*(("failed", noted) if noted is not None else raised or ("passed",)))
    report("complete", remote.called)


def _failure(piece: types.CodeType, module: types.ModuleType) -> tuple[str, ...] | None:
    """Run one piece of the tests: None when it passes, else the kind of failure (bad_test, raised, failed) and why."""
    try:
        exec(piece, module.__dict__)  # noqa: S102 - the data set's own code, in the jail
    except CannotCross as error:
        return "bad_test", str(error)
    except BaseException as error:
        name, text = type(error).__name__, message_of(error)[:LONGEST_REASON]
        if getattr(error, FROM_CANDIDATE, False):
            return "raised", name, text
        return "failed", text if isinstance(error, AssertionError) else f"{name}: {text}"
    return None
