"""Everything rlvrlab raises on purpose, and the words for it that fit a line.

LabError
├── UserError            the user can fix it: shown on one line, no traceback, exit code 2
│   ├── NothingToLearn   a phase found nothing to train on; a run skips it and says so
│   ├── RecipeError      one or many problems in a recipe, all reported at once
│   ├── ModelUnavailable a model, or what loads it, is not on this machine and cannot be had now
│   ├── NotAlike         no results that may be compared with each other: none made, or differently asked
│   ├── ForeignCode      a file that a folder names and the user has not: it is not imported
│   ├── OwnCodeError     a function of the user's own failed; a run goes on once it is mended
│   └── UnknownName      a plug-in, key or verb nobody registered, with the nearest match
├── RunError             the run folder cannot be used as asked
│   ├── RunLocked        another process is writing to it
│   ├── CheckpointError  a checkpoint is incomplete or does not match its manifest
│   └── RunTouched       recipe or logs were edited since the last checkpoint
├── InfrastructureError  the machine failed, not the model: never scored as a wrong answer
│   ├── StorageError     the disk refused; who writes says what to do about it (`remedied`, `writing_to`)
│   ├── DeadlineExceeded a step or an evaluation took longer than stop.deadline_s
│   └── JudgeLost        no judge server answers any more: the run stops, nothing is scored, --resume goes on
├── AskedToStop          a signal asked for an end; the exit code is 128 and its number
└── TrainingDiverged     NaN or infinity persisted; the last good checkpoint is intact
"""

from __future__ import annotations

import difflib
import inspect
import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

PACKAGE = Path(__file__).resolve().parent
LONGEST_FOREIGN = 200
"""Characters of what another package's error says."""


class LabError(Exception):
    """Base of every deliberate error."""

    exit_code = 1


class UserError(LabError):
    """A mistake the user can fix; the message says what, where, what is allowed and the remedy."""

    exit_code = 2


class NothingToLearn(UserError):
    """A phase found nothing to train on, e.g. no problem with right and wrong answers: the run goes on without it."""


class ForeignCode(UserError):
    """A Python file that a folder names and that the user has not; see own_code.py."""


class RecipeError(UserError):
    """All problems found in one recipe."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class ModelUnavailable(UserError):
    """A model, or a package that loads it, is not on this machine and cannot be had now."""


class NotAlike(UserError):
    """What is to be compared has no results that were made alike: none at all, or answers to different questions."""


class OwnCodeError(UserError):
    """A function of the user's own raised, or returned what it must not."""


class UnknownName(UserError):
    """A name that is not registered."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, sorted(known)
        super().__init__(f"unknown {what} {name!r}{suggestion(name, self.known)}")


class RunError(LabError):
    """A run folder cannot be used as asked."""

    exit_code = 2


class RunLocked(RunError):
    """Another process holds the run folder."""


class CheckpointError(RunError):
    """A checkpoint is incomplete or does not match its manifest."""


class RunTouched(RunError):
    """Recipe or logs of a run are not what its checkpoints remember."""


class InfrastructureError(LabError):
    """The machine or a service failed; whatever was being judged stays unjudged."""


class StorageError(InfrastructureError):
    """The disk refused; what was written before is intact."""

    def __init__(self, path: Path, cause: OSError, remedy: str = "") -> None:
        self.path, self.cause, self.remedy = path, cause, remedy
        self.why = cause.strerror or str(cause)
        super().__init__(f"{path}: {self.why}; {remedy or 'free space there, or choose another place'}")


class ModelChanged(InfrastructureError):
    """A server serves another model than before; what it said since `since` (monotonic) cannot be trusted."""

    def __init__(self, server: str, since: float, message: str) -> None:
        super().__init__(f"{server}: {message}; answers of two models are never mixed")
        self.server, self.since = server, since


class JudgeLost(InfrastructureError):
    """No judge server answers any more, and waiting did not help."""


class DeadlineExceeded(InfrastructureError):
    """Something that was waited for did not come in time."""


class AskedToStop(LabError):
    """A signal asked for an end, and what was going on ended in order."""

    def __init__(self, words: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(words)


class TrainingDiverged(LabError):
    """The update stayed NaN or infinite for too long."""


@contextmanager
def remedied(remedy: str) -> Iterator[None]:
    """Around what can be gone on with: a disk that refuses is told with this remedy, unless a better one was."""
    try:
        yield
    except StorageError as error:
        if error.remedy:
            raise
        raise StorageError(error.path, error.cause, remedy) from error.cause


@contextmanager
def writing_to(target: Path, remedy: str) -> Iterator[None]:
    """Around the writing of what a command was asked for: a place that refuses is the user's to change."""
    try:
        yield
    except StorageError as error:
        raise UserError(f"{error.path}: cannot be written ({error.why}); {remedy}") from None
    except OSError as error:
        where = error.filename or target
        raise UserError(f"{where}: cannot be written ({error.strerror or error}); {remedy}") from None


def told(error: Exception, function: Any = None) -> str:
    """`AttributeError: … at my_reward.py:12`: on one line, what went wrong in code of the user's own, and where.

    A field that one of our objects does not have is answered with those it has; an error that comes through no line of
    the user's is placed where the function begins.
    """
    words = f"{type(error).__name__}: {error}".replace("\n", " ")
    if isinstance(error, AttributeError) and is_dataclass(error.obj):
        words += suggestion(str(error.name), [field.name for field in fields(error.obj)])
    where = raised_at(error) or (defined_at(function) if function is not None else "")
    return f"{words} at {where}" if where else words


def refuse_other_arguments(what: str, function: Any, *arguments: str) -> None:
    """Refuse a function of the user's own that cannot be called with these arguments, before it is called."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none that can be read
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        wanted = f"({', '.join(arguments)})"
        raise UserError(f"{what} ({defined_at(function)}) takes {signature}; it is called with {wanted}") from None


def raised_at(error: Exception) -> str:
    """`my_reward.py:12`: the last line of the user's own file that an error came through; empty if there is none."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not Path(frame.filename).is_relative_to(PACKAGE)
    ]
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    return f"{near(frames[0].filename)}:{lines[-1]}" if frames else ""


def defined_at(function: Any) -> str:
    """`my_reward.py:5`: where a function of the user's own begins; an object that is called is named by its class."""
    called = function if isinstance(function, FunctionType) else type(function).__call__
    if not isinstance(called, FunctionType):
        return type(function).__name__
    return f"{near(called.__code__.co_filename)}:{called.__code__.co_firstlineno}"


def near(file: str) -> str:
    """A path as short as it can be written from the working directory."""
    below = os.path.relpath(file)
    return file if below.startswith(os.pardir) else below


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'grpo'?` when something is close, otherwise what is allowed."""
    choices = list(known)
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; allowed: {', '.join(choices)}" if choices else ""


def first_few(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first few and how many more: `a, b, c … and 12 more`."""
    more = and_more(len(names), most)
    return between.join(names[:most]) + (f" {more}" if more else "")


def and_more(total: int, shown: int) -> str:
    """`… and 12 more` where not all are shown; else empty."""
    return f"… and {total - shown} more" if total > shown else ""


def one_line(error: BaseException, longest: int = LONGEST_FOREIGN) -> str:
    """What an error says, on one line: ours whole, with its remedy; another's cut, or its kind."""
    words = " ".join(str(error).split())
    return (words if isinstance(error, LabError) else cut(words, longest)) or type(error).__name__


def cut(text: str, longest: int) -> str:
    """The beginning of a text of somebody's, with `…` where it ends before the text does."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def quoted(value: object, longest: int = 60) -> str:
    """The same in quotation marks, for messages."""
    return repr(cut(str(value), longest))
