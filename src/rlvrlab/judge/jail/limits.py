"""What one job may use, and how the kernel is told."""

from __future__ import annotations

import math
import resource
import signal
from dataclasses import dataclass, replace
from functools import lru_cache

MEGABYTE = 1 << 20
PROCESSES = 64
"""Per user, in a container that allows processes at all."""
THREADS = 512
"""Of a job, where no others count with them. A machine has numbers for all its threads together, often 32,768, and a
container may be given fewer: without any left nobody can start a job. The memory for their stacks is no such bound, for
a thread of machine code needs none."""
FILES = 64
"""Open descriptors."""
LONGEST_S, LARGEST_MB, LARGEST_OUTPUT_MB = 1_000_000, 1 << 24, 1 << 10
"""Largest limits that are accepted: more would be no limit, and might not fit the kernel's types. Output has a smaller
bound because the judge holds all of it in its own memory."""
AT_MOST = {
    "cpu_s": LONGEST_S, "job_cpu_s": LONGEST_S, "wall_s": LONGEST_S,
    "memory_mb": LARGEST_MB, "output_mb": LARGEST_OUTPUT_MB, "scratch_mb": LARGEST_MB,
}  # fmt: skip
"""The largest value of each field of Limits, in their order."""
LONGEST_SQL = 100_000
"""Characters of a query."""
ADDRESS_SPACE_SPARE = 600 * MEGABYTE
MAIN_STACK = 64 * MEGABYTE
SMALL_JOB, READING, COPIES = 64 * 1024, 16, 8
"""A job of more bytes than the first gets so many megabytes to be read in, and so many times its own size."""
WALL_TIMES, WALL_SPARE_S = 3, 5.0
"""A wall limit is so many CPU limits, and at least so many seconds more than one."""
UNLIMITED = 1 << 64
"""RLIM_INFINITY is -1 in Python and UNLIMITED - 1 in the kernel; `% UNLIMITED` turns the first into the second."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of a job; CPU time is the primary one, because it does not depend on who else is running."""

    cpu_s: float = 3.0
    """CPU seconds per test."""
    job_cpu_s: float = 10.0
    """CPU seconds for all tests that share one process."""
    wall_s: float | None = None
    """Wall seconds per test while the job could run; None: max(3 × cpu_s, cpu_s + 5)."""
    memory_mb: int = 512
    """Writable memory."""
    output_mb: int = 4
    """Each of standard output, standard error and any file written."""
    scratch_mb: int = 64
    """All files together, where the worker has a tmpfs of its own."""

    def __post_init__(self) -> None:
        if not all(type(size) is int for size in (self.memory_mb, self.output_mb, self.scratch_mb)):
            raise ValueError(f"limits in MB must be whole numbers: {self}")
        seconds = (self.cpu_s, self.job_cpu_s, self.wall_or_default_s)
        if not all(isinstance(one, int | float) and one is not True for one in seconds):
            raise ValueError(f"limits in seconds must be numbers: {self}")
        for (name, most), value in zip(AT_MOST.items(), self.fields, strict=True):
            if not 0 < value <= most:
                raise ValueError(f"limits must be positive and bounded: {name} is {value!r}; allowed: at most {most}")

    @property
    def fields(self) -> tuple[float | int, ...]:
        """What `Limits(*fields)` is made from, which has the same meaning."""
        return self.cpu_s, self.job_cpu_s, self.wall_or_default_s, self.memory_mb, self.output_mb, self.scratch_mb

    @property
    def wall_or_default_s(self) -> float:
        """The wall limit in force."""
        return self.wall_s if self.wall_s is not None else max(WALL_TIMES * self.cpu_s, self.cpu_s + WALL_SPARE_S)

    @lru_cache(maxsize=64)  # noqa: B019 - of the few that a run has
    def of_one_test(self) -> Limits:
        """The same for a job that is a single test."""
        return replace(self, job_cpu_s=self.cpu_s)

    def times(self, factor: float) -> Limits:
        """The same with longer times, within what is accepted."""
        cpu, job, wall = (min(s * factor, LONGEST_S) for s in (self.cpu_s, self.job_cpu_s, self.wall_or_default_s))
        return replace(self, cpu_s=cpu, job_cpu_s=job, wall_s=wall)

    @property
    def job_wall_s(self) -> float:
        """The wall limit of all tests that share one process."""
        return self.wall_or_default_s * max(1.0, self.job_cpu_s / self.cpu_s)


def apply_to_worker() -> None:
    """What all jobs of a worker share is set once, before it forks."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    # CPython ignores SIGXFSZ: too much output would look like an OSError instead of the limit it is.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def to_be_read(size: int) -> int:
    """Bytes of memory that a job of this size needs before its program runs, beyond what any job does.

    A program or an argument is copied some times on its way, in up to four bytes for each character. Were that the
    job's own, a long comment could make an answer fail before it is inside, which is nobody's verdict.
    """
    return 0 if size < SMALL_JOB else (READING + COPIES * -(-size // MEGABYTE)) * MEGABYTE


KINDS = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK)
"""What the kernel bounds in a job."""


def in_force(limits: Limits, imported_size: int = 0, imported_data: int = 0) -> list[tuple[int, int]]:
    """A job's budgets as the kernel knows them: soft and hard for each of KINDS. The supervisor enforces times before.

    What the worker's packages hold, in bytes of address space and of data, does not count against the job.
    """
    memory, output = limits.memory_mb * MEGABYTE + imported_data, limits.output_mb * MEGABYTE
    cpu = math.ceil(max(limits.cpu_s, limits.job_cpu_s)) + 1
    # Thread stacks of 256 MB are a contest idiom: they are address space, hardly memory.
    address_space = limits.memory_mb * MEGABYTE + ADDRESS_SPACE_SPARE + imported_size
    # Raising the stack is another: it stays address space of the job's own.
    largest_stack = resource.getrlimit(resource.RLIMIT_STACK)[1] % UNLIMITED
    return [
        (cpu, cpu + 1),
        (memory, memory),
        (address_space, address_space),
        (output, output),
        (min(MAIN_STACK, largest_stack), largest_stack),
    ]
