"""What is known about one program, and how a child's end is read.

Failures are of three kinds, kept apart from here on: the answer's (a Finding), the task's (BadTask) and the machine's
(InfrastructureError, tried again). The kernel's word (exit status, signals, CPU time) comes before the child's. A
report can make a verdict worse or more precise, never turn it into `accepted`, and never leave the answer unjudged.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.jail.limits import MEGABYTE, Limits
from rlvrlab.judge.outcomes import ERROR_KINDS, Outcome
from rlvrlab.judge.workers.orders import Ran
from rlvrlab.judge.workers.stolen import slack, slack_for
from rlvrlab.judge.workers.worker import lines_of
from rlvrlab.shares import about
from rlvrlab.types import Verdict, unjudged

T = TypeVar("T")
ATTEMPTS = 3
MOST_STOLEN = 0.2
"""A time limit met while a hypervisor took more of the processors than this is not believed before the last attempt."""
_last_attempt: ContextVar[bool] = ContextVar("last_attempt", default=True)
MOST_RECORDS = 200_000
DETAIL_LENGTH = 300
STOPPED_EARLY = "stopped_early"
"""Flag of a verdict with tests that were not run: they count as failed."""
FEW = 8
"""Tests that are handed over after one that ended the program."""
MOST_TIMEOUTS = 3
"""Tests on which a program may run out of time before the others are left out."""

Failure = tuple[Outcome, str, tuple[str, ...]]
"""Outcome, one line for a reader, flags."""


class Starved(InfrastructureError):
    """The machine, not the program, was too slow or ended it; the job is tried again."""


class Stolen(Starved):
    """It ran out of time while a hypervisor had taken this share of the processors' time."""

    def __init__(self, share: float) -> None:
        super().__init__(f"{about(share)} of the processors' time was taken away while it ran")
        self.share = share


class NotInside(InfrastructureError):
    """The child could not enter the jail, so nothing of the job has run."""


class BadTask(Exception):
    """The task cannot be judged as it is written; the answer is not to blame."""


async def tried(work: Callable[[], Awaitable[T]], patient: bool = True) -> T:
    """What the work returns; it is done again when the machine failed it, and the last failure is raised.

    Where somebody waits who is not `patient`, a time limit is believed at once. An attempt that ran out of stolen time
    has its limits in proportion the next time.
    """
    longer, trouble = 1.0, InfrastructureError("it was never tried")
    for left in reversed(range(ATTEMPTS)):
        before, usual = _last_attempt.set(left == 0 or not patient), slack.set(longer)
        try:
            return await work()
        except Stolen as error:
            trouble, longer = error, max(longer, slack_for(error.share))
        except InfrastructureError as error:
            trouble = error
        except OSError as error:
            trouble = InfrastructureError(str(error))
        finally:
            _last_attempt.reset(before)
            slack.reset(usual)
    raise trouble


@dataclass(slots=True)
class Finding:
    """What is known so far about one program."""

    outcome: Outcome = Outcome.ACCEPTED
    detail: str = ""
    passed: int = 0
    total: int = 0
    flags: list[str] = field(default_factory=list)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_mb: float = 0.0
    timeouts: int = 0
    at_once: int = 0
    """How many tests are handed over next, once a test has ended the program."""

    def spent(self, *runs: Ran) -> None:
        """Add the time of these children, which ran side by side, and keep the highest peak of memory."""
        self.cpu_s += sum(run.cpu_s for run in runs)
        self.wall_s += max(run.wall_s for run in runs)
        self.peak_mb = max(self.peak_mb, *(run.peak_mb for run in runs))

    def fail(self, outcome: Outcome, detail: str, *flags: str) -> None:
        """Note the first failure; later ones only count."""
        if self.outcome is Outcome.ACCEPTED:
            self.outcome, self.detail = outcome, detail[:DETAIL_LENGTH]
        self.flags += [flag for flag in flags if flag not in self.flags]

    def next_few(self, done: int) -> int:
        """Up to which test they are handed over next: all; after an end few, then twice as many each time.

        Otherwise a program that ends at each of n tests would have n² / 2 of them handed over.
        """
        first, self.at_once = done + self.at_once, 2 * self.at_once
        return min(first, self.total) if done else self.total

    def stops(self, ended: Outcome, every_test: bool, left: int) -> bool:
        """Are the tests that are left given up after one that ended the program? If so, the verdict is flagged.

        It never depends on whether an answer was right, for a program could tell from what is started next.
        """
        self.timeouts += ended is Outcome.TIME_LIMIT
        self.at_once = FEW
        if not left or (every_test and self.timeouts < MOST_TIMEOUTS):
            return False
        self.flags.append(STOPPED_EARLY)
        return True

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around everything that touches what a child reported: the time is the job's, and so is any mistake in it."""
        start = time.thread_time()
        try:
            yield
        except (InfrastructureError, BadTask, MemoryError, OSError):
            raise
        except Exception as error:
            self.fail(Outcome.TAMPERED, f"its report cannot be read ({type(error).__name__})")
        finally:
            self.cpu_s += time.thread_time() - start

    def verdict(self, isolation: str) -> Verdict:
        """The record the rest of the laboratory knows."""
        correct = self.outcome is Outcome.ACCEPTED
        # In process a program can claim more than there are; and where something failed, not all is well.
        passed = min(self.passed, self.total if correct else max(0, self.total - 1))
        # What nobody measured (a server's runs) is not told: limits that are learnt would take it for no time at all.
        cost = {"cpu_s": self.cpu_s, "wall_s": self.wall_s, "peak_mb": self.peak_mb}
        return Verdict(
            correct=correct,
            score=1.0 if correct else passed / self.total if self.total else 0.0,
            error=ERROR_KINDS[self.outcome],
            passed=passed,
            total=self.total,
            detail=f"{self.outcome}: {self.detail}" if self.detail else str(self.outcome),
            isolation=isolation,
            flags=tuple(self.flags),
            cost={name: value for name, value in cost.items() if value},
        )


def judge_failed(error: Exception, isolation: str) -> Verdict:
    """The verdict where judging one answer raised: no opinion about it, and nothing to do with any other."""
    known = isinstance(error, InfrastructureError)
    words = str(error) if known else f"{type(error).__name__}: {str(error)[:DETAIL_LENGTH]}"
    return unjudged(f"{Outcome.JUDGE_ERROR}: {words}", isolation=isolation)


def records_of(ran: Ran, at_most: int = MOST_RECORDS) -> Sequence[Any] | None:
    """The child's report, or None when it is not one or has too many lines. A killed child may leave half a line."""
    report = ran.report if ran.exit == 0 and not ran.killed else ran.report[: ran.report.rfind(b"\n") + 1]
    try:
        return lines_of(report, at_most)
    except ValueError:
        return None


def failure_of(ran: Ran, limits: Limits, records: Sequence[Any] | None) -> Failure | None:
    """Why this child is no success; None when it ended well. The kernel's word comes before the child's."""
    if not ran.inside and ran.killed != "starved":
        raise NotInside(f"a child could not enter the jail (exit status {ran.exit}); `rlvr doctor` may tell why")
    if ran.exit == -signal.SIGKILL and not ran.killed and ran.peak_mb > limits.memory_mb:
        return Outcome.MEMORY_LIMIT, f"it took {ran.peak_mb:.0f} MB until the kernel ended it", ()
    if ran.killed == "starved":
        raise Starved("the machine gave it no time")
    if ran.exit == -signal.SIGKILL and not ran.killed and not (ran.could_kill and _last_attempt.get()):
        raise Starved("something outside the judge killed it")
    if ran.stolen > MOST_STOLEN and not _last_attempt.get():
        raise Stolen(ran.stolen)
    if ran.killed in ("cpu", "wall") or ran.exit == -signal.SIGXCPU:
        if ran.killed != "wall":
            return Outcome.TIME_LIMIT, f"it used {ran.cpu_s:.1f} s of CPU time", ()
        how, flags = ("slept", ("idle",)) if ran.cpu_s < limits.cpu_s / 2 else ("ran", ())
        return Outcome.TIME_LIMIT, f"it {how} past {limits.wall_or_default_s:g} s", flags
    most = limits.output_mb * MEGABYTE
    if ran.exit == -signal.SIGXFSZ or max(len(ran.stdout), len(ran.stderr), len(ran.report)) >= most:
        return Outcome.OUTPUT_LIMIT, f"it wrote more than {limits.output_mb} MB", ()
    for record in records or ():
        if record[0] == "compile":
            return Outcome.COMPILE_ERROR, f"{word(record, 1)}: {word(record, 2)}", ()
        if record[0] == "no_entry_point":
            return Outcome.NO_ENTRY_POINT, f"there is no function {word(record, 1)}", ()
        if record[0] in ("raised", "memory"):
            return raised(record)
    if ran.exit < 0:
        name = next((known.name for known in signal.Signals if known == -ran.exit), f"signal {-ran.exit}")
        return Outcome.RUNTIME_ERROR, f"ended by {name}", ()
    return (Outcome.RUNTIME_ERROR, f"exit status {ran.exit}", ()) if ran.exit else None


def raised(record: Sequence[Any]) -> Failure:
    """An exception as the child reported it."""
    name, message, line = word(record, 1), word(record, 2), record[3] if len(record) > 3 else None
    at = f" at line {line}" if isinstance(line, int) else ""
    if record[0] == "memory":
        return Outcome.MEMORY_LIMIT, f"MemoryError{at}", ()
    flags = ("blocked_syscall",) if name == "PermissionError" else ()
    return Outcome.RUNTIME_ERROR, f"{name}: {message}{at}" if message else f"{name}{at}", flags


def word(record: Sequence[Any], index: int) -> str:
    """One fact of a record as text; hostile records may be short, or hold anything where a word belongs."""
    value = record[index] if len(record) > index else None
    return value[:DETAIL_LENGTH] if isinstance(value, str) else str(value) if type(value) in (int, float, bool) else "?"


def shown(output: bytes) -> str:
    """The beginning of some output, for a reader."""
    text = output[:80].decode("utf-8", "replace")
    return repr(text if len(output) <= 80 else text + "…")
