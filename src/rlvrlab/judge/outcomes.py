"""The words of the code judge, and what they mean to the rest of the laboratory."""

from __future__ import annotations

from enum import StrEnum

from rlvrlab.types import ErrorKind

WEAK = "integrity: weak"
"""Flag of a verdict that an answer could forge if it were out to: the tests run beside it, or run what it returns."""


class Outcome(StrEnum):
    """What became of one program."""

    ACCEPTED = "accepted"
    """Every test passed."""
    WRONG_ANSWER = "wrong_answer"
    """It ran and answered something else."""
    COMPILE_ERROR = "compile_error"
    """It is not a program."""
    RUNTIME_ERROR = "runtime_error"
    """It raised, exited with a status or was ended by a signal of its own making."""
    TIME_LIMIT = "time_limit"
    """It used up its CPU time, or slept past its wall time."""
    MEMORY_LIMIT = "memory_limit"
    """It asked for more memory than it may have."""
    OUTPUT_LIMIT = "output_limit"
    """It wrote more than it may."""
    NO_ENTRY_POINT = "no_entry_point"
    """The function that was asked for is not there."""
    NO_CODE = "no_code"
    """There is no program in the completion."""
    TAMPERED = "tampered"
    """It wrote into the judge's own channel."""
    JUDGE_ERROR = "judge_error"
    """The judge failed: tried again, then unjudged, never a reward."""


ERROR_KINDS = {
    Outcome.ACCEPTED: ErrorKind.NONE,
    Outcome.WRONG_ANSWER: ErrorKind.WRONG,
    Outcome.COMPILE_ERROR: ErrorKind.SYNTAX,
    Outcome.RUNTIME_ERROR: ErrorKind.RUNTIME,
    Outcome.TIME_LIMIT: ErrorKind.TIMEOUT,
    Outcome.MEMORY_LIMIT: ErrorKind.MEMORY,
    Outcome.OUTPUT_LIMIT: ErrorKind.OUTPUT,
    Outcome.NO_ENTRY_POINT: ErrorKind.RUNTIME,
    Outcome.NO_CODE: ErrorKind.FORMAT,
    Outcome.TAMPERED: ErrorKind.TAMPERED,
    Outcome.JUDGE_ERROR: ErrorKind.INFRA,
}
