"""What is asked of a worker, and what is known when a child of it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvrlab.judge.jail.limits import Limits


@dataclass(frozen=True, slots=True)
class Image:
    """What a worker has imported before it forks, and how it holds its children."""

    isolation: str = "landlock"
    """landlock, bwrap or weak."""
    preload: tuple[str, ...] = ()
    """Third-party modules imported once: ("numpy",)."""
    roles: tuple[str, ...] = ()
    """Roles beyond those for code: ("sql",)."""
    readable: tuple[str, ...] = ()
    """Files and folders any child may read."""
    scratch_mb: int = 64
    """Size of the worker's own tmpfs."""

    @property
    def can_kill(self) -> bool:
        """Can a job send a SIGKILL, to itself at least? Only where it may start no process is that refused."""
        return self.isolation != "landlock"


@dataclass(frozen=True, slots=True)
class Ran:
    """What is known about a child that ended. Its exit and costs come from the kernel, the rest from the child."""

    exit: int
    """Exit status, or minus the signal that ended it."""
    killed: str
    """Why the supervisor ended it: cpu, wall, starved, cancelled; empty when it ended by itself."""
    cpu_s: float
    wall_s: float
    peak_mb: float
    stdout: bytes = b""
    stderr: bytes = b""
    report: bytes = b""
    inside: bool = True
    """Did it get into the jail? If not, nothing of the job has run, and its end is the machine's fault."""
    stolen: float = 0.0
    """If it was out of time: which share of the processors' time that was wanted was taken away meanwhile."""
    could_kill: bool = False
    """Could it have sent a SIGKILL to itself? Where it may start processes, or nothing holds it, it could."""


@dataclass(slots=True)
class Order:
    """One child to be started."""

    job: Mapping[str, Any]
    """The role and what it needs; reaches only the child. A worker adds `cpu_s`, the CPU seconds of one test."""
    limits: Limits
    stdin: bytes = b""
    readable: tuple[str, ...] = ()
    """Further files this child may read, e.g. a database."""
    scratch: bool = True
    """May it write to the worker's scratch directory?"""
    peer: int | None = None
    """A descriptor to talk to another child."""
    followed: bool = False
    """Is another child of the same job started right after this one?"""
