"""Is a run still going? Found out by looking only: the lock is never taken, nothing is written.

running      says so, and its process holds the lock
stale        says so, but has been silent for long; its process is alive, or on another machine
killed       says so, but its process is gone: `rlvr train --resume` goes on with it
finished, interrupted, preempted, failed      as it said itself
damaged      its files cannot be read, or the one that says how it ended is not there

A study that says running while nobody holds its lock is interrupted: the same command goes on with it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab import plain_files
from rlvrlab.plain_files import parsed

QUIET_S = 900.0
"""Seconds of silence after which a running run counts as stale, or twenty of its steps if that is longer."""
LOCKS = Path("/proc/locks")
ACTIVE = ("running", "stale")
"""States of a run that may still write something."""


class Held(NamedTuple):
    """A file lock that some process holds, as the kernel lists it."""

    pid: int
    device: tuple[int, int]
    inode: int


def held_locks() -> list[Held] | None:
    """Every exclusive lock of this machine; None where the system does not tell."""
    held = []
    try:
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if words[1:2] != ["FLOCK"] or "WRITE" not in words:
            continue
        with suppress(ValueError, IndexError):  # a waiting one has an arrow and other columns
            major, minor, inode = words[5].split(":")
            held.append(Held(int(words[4]), (int(major, 16), int(minor, 16)), int(inode)))
    return held


def state_of(folder: Path, info: Mapping[str, Any], held: list[Held] | None = None, step_s: float = 0.0) -> str:
    """What a run or evaluation is doing, from its run_info.json and its lock."""
    said, gone = str(info.get("status", "running")), "killed" if "status" in info else "damaged"
    if said != "running":
        return said
    quiet = last_news(folder) < time.time() - max(QUIET_S, 20 * step_s)
    try:
        holder = parsed(plain_files.read_text(folder / ".lock"))
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return gone if quiet else "running"
    here = host == socket.gethostname()
    if here and not _alive(folder / ".lock", pid, held_locks() if held is None else held):
        return gone
    return "stale" if quiet else "running"


def study_state(folder: Path, said: str, held: list[Held] | None = None) -> str:
    """What a study is doing, from what its file says and its lock: a killed one says `running` for ever."""
    return "interrupted" if said == "running" and not is_held(folder, held) else said


def is_held(folder: Path, held: list[Held] | None = None) -> bool:
    """Whether a process works on a study; one of another machine does as long as it writes its document."""
    try:
        holder = parsed(plain_files.read_text(folder / ".lock"))
        pid, host = int(holder["pid"]), str(holder["host"])
        if host != socket.gethostname():
            return (folder / "study.json").stat().st_mtime > time.time() - QUIET_S
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return _alive(folder / ".lock", pid, held_locks() if held is None else held)


def last_news(folder: Path) -> float:
    """When something was last written, in seconds since 1970; 0 when nothing is there."""
    times = [0.0]
    for name in ("logs/metrics.jsonl", "logs/events.jsonl", "samples.jsonl", "run_info.json", "config.json"):
        with suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times)


def _alive(lock: Path, pid: int, held: list[Held] | None) -> bool:
    """Ask the kernel's list of locks where there is one: a dead process's number may belong to another by now."""
    if held is None:
        try:
            os.kill(pid, 0)
        except OSError as error:
            return not isinstance(error, ProcessLookupError)
        return True
    try:
        facts = lock.stat()
    except OSError:
        return False
    device = os.major(facts.st_dev), os.minor(facts.st_dev)
    # Layered file systems show a device of their own to `stat`, so the holder's name counts as well.
    return any(lock.inode == facts.st_ino and (lock.device == device or lock.pid == pid) for lock in held)
