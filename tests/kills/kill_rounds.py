"""Rounds of kills: work is killed −9 up to three times on its way, ends, and is held against an undisturbed one.

Half of the kills come at a random change of files, where the most can break; half at a random moment of the clock.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import faults
import runs
from kill_servers import SERVED, Server
from kill_works import WORKS

MOST_KILLS = 3
"""In one round: the second and third meet a process that goes on after a kill."""
SHARES = dict.fromkeys(WORKS, 1.0) | {"study": 0.4, "judge server": 1.0, "model server": 0.4}
"""Of all kills: work that loads a model, or starts processes which import everything anew, gets fewer."""
KINDS = tuple(SHARES)


class Undisturbed(NamedTuple):
    told: dict[str, Any]
    changes: int
    """How often files were changed on the way."""
    seconds: float


class Round(NamedTuple):
    kills: int
    different: list[str]
    """What of the end is not as in an undisturbed one."""


def dealt(kills: int, kinds: Sequence[str]) -> dict[str, int]:
    """How many kills each kind gets; in all, exactly so many."""
    left, shares, counts = kills, sum(SHARES[kind] for kind in kinds), dict[str, int]()
    for kind in kinds:
        counts[kind] = round(left * SHARES[kind] / shares)
        left, shares = left - counts[kind], shares - SHARES[kind]
    return counts


def parts_of(kind: str) -> str:
    return WORKS[kind].parts if kind in WORKS else SERVED[kind].parts


@cache
def undisturbed(kind: str) -> Undisturbed:
    home = Path(tempfile.mkdtemp(prefix="undisturbed_"))
    server = Server(SERVED[kind].words) if kind in SERVED else None

    def counted() -> None:
        faults.count_changes(home / "changes")
        SERVED[kind].go(home / "work", server.url) if server else WORKS[kind].go(home / "work")

    started = time.monotonic()
    ended(counted, home)
    seconds = time.monotonic() - started
    if server:
        server.kill()
    told = (SERVED if server else WORKS)[kind].told(home / "work")
    return Undisturbed(told, (home / "changes").stat().st_size, seconds)


def ended(go: Callable[[], Any], home: Path) -> None:
    assert runs.in_child(go, home / "stderr") == 0, (home / "stderr").read_text()


def one_round(kind: str, home: Path, kills: int, rng: random.Random) -> Round:
    """Kill it so often, or less often when it was at its end before, and see what came out."""
    want = undisturbed(kind)
    done = (_kill_the_server if kind in SERVED else _kill_the_work)(kind, home, kills, rng, want)
    found = (SERVED if kind in SERVED else WORKS)[kind].told(home / "work")
    return Round(done, [part for part in want.told.keys() | found.keys() if want.told.get(part) != found.get(part)])


def _kill_the_work(kind: str, home: Path, kills: int, rng: random.Random, want: Undisturbed) -> int:
    work = WORKS[kind]
    for number in range(kills):
        share = rng.random() / (number + 1)  # what is gone on with has less before it
        by_clock = rng.random() < 0.5

        def doomed(share: float = share, by_clock: bool = by_clock) -> None:
            if by_clock:
                kill_after(share * want.seconds)
            else:
                faults.kill_at_change(1 + int(share * want.changes))
            work.go(home / "work")

        code = runs.in_child(doomed, home / "stderr")
        if code != -signal.SIGKILL:
            assert code == 0, (home / "stderr").read_text()
            return number
    ended(lambda: work.go(home / "work"), home)
    return kills


def kill_after(seconds: float) -> None:
    """Have a fork kill this process; by its descriptor, since its number may be another's by then."""
    descriptor = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        time.sleep(seconds)
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os._exit(0)


def _kill_the_server(kind: str, home: Path, kills: int, rng: random.Random, want: Undisturbed) -> int:
    """The client waits for the server to come back, or fails and goes on later."""
    served, done = SERVED[kind], 0
    server = Server(served.words)
    url, port = server.url, server.port
    client = os.fork()
    if client == 0:
        os._exit(runs.in_child(lambda: served.go(home / "work", url), home / "stderr") & 0xFF)
    try:
        for number in range(kills):
            time.sleep(rng.random() * want.seconds / (number + 1))
            if os.waitid(os.P_PID, client, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            server.kill()
            done += 1
            server = Server(served.words, port)
        if os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]):
            ended(lambda: served.go(home / "work", url), home)
    finally:
        server.kill()
    return done
