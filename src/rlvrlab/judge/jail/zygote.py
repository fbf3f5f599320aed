"""The fork server: imports everything once, then forks one jailed child per job and watches it to its end.

It is told about a job over a socket: budgets in the message, the job itself as descriptors it passes on unread.
One worker of the pool is one zygote; it answers every child with one message and leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import marshal
import os
import random
import signal
import sys
from _socket import CMSG_LEN, socket
from array import array
from collections.abc import Callable
from contextlib import suppress
from os import close
from select import select
from time import monotonic
from typing import Any

from rlvrlab.judge.jail import child, heap, kernel, limits, packages, privileges, stand_ins
from rlvrlab.judge.jail.child import REPORT
from rlvrlab.judge.jail.numbers import ProcessNumbers
from rlvrlab.judge.jail.rehearsal import rehearse
from rlvrlab.judge.jail.scratch import Scratch
from rlvrlab.judge.jail.supervisor import Crew, Watch
from rlvrlab.judge.jail.walls import Terms, Walls

SYSTEM_READABLE = "/usr/lib /usr/lib64 /usr/local/lib /lib /lib64 /usr/share/zoneinfo /dev/null /dev/urandom /dev/zero"
MESSAGE_SIZE = 1 << 16
DESCRIPTORS_SIZE = CMSG_LEN(8 * array("i").itemsize)
LOOKS_FOR_PRACTICE = 20
"""The interpreter changes how it runs a function after some calls."""
ROLES = ("program", "calls", "candidate", "tester", "inprocess", "syntax", "asserts", "unaided", "trace")


fork: Callable[[], int] = ctypes.PyDLL(None).fork
"""The C library's fork: os.fork's hooks repair locks and threads, which a zygote does not have, cost 0.3 ms, and
seed `random` anew, which would make verdicts of careless programs vary."""


class Zygote:
    """A worker process: forks one child per job and reports how each ended."""

    def __init__(self, control: socket, settings: dict[str, Any], roles: dict[str, child.Role]) -> None:
        self.control, self.roles = control, roles
        jailed = settings["isolation"] != "weak"
        self.numbers = ProcessNumbers()
        folders = sorted({f"{sys.base_prefix}/lib", *sys.path} - {""})
        # Databases and the like are named by each order: they may be in a folder that is its owner's alone.
        others = bool(settings["roles"])
        reached = [*folders, *settings["readable"], settings["scratch"].rpartition("/")[0]]
        user = privileges.unused_user(reached, others) if jailed else None
        may_read = user is not None and (others or not privileges.readable_by(user, reached))
        self.scratch = Scratch(settings["scratch"], settings["scratch_mb"], user)
        if user is not None:
            privileges.become(user)
        readable = [*SYSTEM_READABLE.split(), "/etc/ld.so.cache", *folders, *settings["readable"]]
        rights = privileges.CapabilitySet([privileges.DAC_READ_SEARCH] if may_read else privileges.NONE)
        self.walls = Walls(settings["isolation"], readable, self.scratch.path, rights, settings["imported"])
        stand_ins.install(processes=settings["isolation"] == "bwrap")
        child.open_streams()
        rehearse(roles)
        child.open_streams()  # new ones: a rehearsal has read from the others
        limits.apply_to_worker()
        if jailed:
            privileges.keep()
            kernel.no_new_privileges()
        random.seed(0)
        self.leaves_processes = settings["isolation"] == "bwrap"
        self.crew = Crew()
        self._practise()
        if settings["isolation"] == "landlock":
            self.numbers.begin(self.scratch.own_mounts)

    def _practise(self) -> None:
        """Renew the scratch directory and look at a process: first times leave more in memory, which jobs would see."""
        self.walls.way((limits.Limits().fields, (), True))
        self.scratch.renew()
        self.walls.renew()
        self.walls.forget()
        pipe, ample = os.pipe(), limits.Limits(cpu_s=limits.LONGEST_S / 4, job_cpu_s=limits.LONGEST_S)
        watch = self.crew.watch(0, ample, pipe[0], 0.0)
        watch.follow(os.getpid())
        self.crew.watches.append(watch)
        for _ in range(LOOKS_FOR_PRACTICE):
            self.crew.look(monotonic())
        self.crew.watches.remove(watch)
        self.crew.rest()
        for descriptor in (*pipe, watch.pidfd):
            close(descriptor)

    def serve(self) -> None:
        """Take orders and collect ended children until the parent closes the socket."""
        self.memory = heap.UncountedCollector()
        heap.give_back()
        heap.fill_holes()
        gc.disable()
        gc.freeze()
        # Collecting in a child drags in pages it would otherwise share: only programs that allocate much should pay.
        gc.set_threshold(child.OBJECTS_BETWEEN_COLLECTIONS)
        control, watches = self.control, self.crew.watches
        pause = None
        while True:
            awaited: list[socket | Watch] = [control, *watches]
            for ready in select(awaited, (), (), pause)[0]:
                if isinstance(ready, Watch):
                    self._collect(ready)
                elif not self._obey():
                    return
            pause = self._look_around() if watches else None

    def _look_around(self) -> float:
        """Look at the children when their time has come; seconds until the next time."""
        now = monotonic()
        if now >= self.crew.next_look:
            self.crew.look(now)
        return max(0.0, self.crew.next_look - now) + 0.001

    def _obey(self) -> bool:
        """Take one order: start a child, or end one and say why."""
        message, ancillary, _, _ = self.control.recvmsg(MESSAGE_SIZE, DESCRIPTORS_SIZE)
        if not message:
            return False
        number, *rest = marshal.loads(message)  # noqa: S302 - the judge wrote it
        if len(rest) > 1:
            size, terms = rest
            self._start(number, size, terms, list(array("i", ancillary[0][2])))
        else:
            for watch in self.crew.watches:
                if watch.id == number:
                    watch.kill(*rest)
        return True

    def _start(self, number: int, size: int, terms: Terms, descriptors: list[int]) -> None:
        if not self.crew.watches:
            self.scratch.stamp()
            self.numbers.settle()
        way = self.walls.ways.get(terms) or self.walls.way(terms)
        watch = self.crew.watch(number, way.budget, descriptors[REPORT], way.first_look_s)
        pid = fork()
        if pid == 0:
            child.live(way, descriptors, size, self.roles)
        # Until the child ends, every page written here is a page copied: only what cannot wait.
        watch.follow(pid)
        self.crew.watches.append(watch)
        for descriptor in descriptors:
            if descriptor != watch.report:
                close(descriptor)

    def _collect(self, watch: Watch) -> None:
        self.crew.watches.remove(watch)
        ended = watch.reap()
        # Before the next job: no process and no file of the last one.
        if not self.crew.watches:
            if self.leaves_processes:
                with suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)  # everybody in this pid namespace but ourselves
            if self.scratch.used:
                self.scratch.renew()
                self.walls.renew()
            self.numbers.ask()
            # Nor any trace in this memory, which the next job is forked from: free lists grow with what was watched.
            self.crew.rest()
            self.memory.collect()
        self.control.send(ended)

    def close(self) -> None:
        """Kill what still runs and remove the scratch directory."""
        for watch in self.crew.watches:
            watch.kill("cancelled")
            watch.reap()
        self.scratch.close()


def main(control_descriptor: int, own_path: str, settings_text: str) -> None:
    """Entry point of the worker process."""
    os.environ.pop("LD_BIND_NOW", None)  # it was set for the start of this process; candidates must not inherit it
    # Keep 3 … 9 free of anything of ours: a child puts its own descriptors there.
    control = socket(fileno=fcntl.fcntl(control_descriptor, fcntl.F_DUPFD_CLOEXEC, child.LOWEST_OWN))
    os.close(control_descriptor)
    while os.open("/dev/null", os.O_RDONLY) < child.LOWEST_OWN:
        pass
    settings = json.loads(settings_text)
    zygote = None
    try:
        names = (*ROLES, *settings["roles"])
        site, before = settings["site"], packages.own_memory()
        sys.path += site
        packages.load(settings["preload"])
        roles = {name: importlib.import_module(f"rlvrlab.judge.jail.roles.{name}").run for name in names}
        settings["readable"] += packages.places(site)
        if "numpy" in sys.modules:
            importlib.import_module("rlvrlab.judge.jail.arrays").learn()
        settings["imported"] = [now - then for now, then in zip(packages.own_memory(), before, strict=True)]
        # The laboratory's own modules, and whatever else is installed, are not for candidates to import or read.
        sys.path[:] = [path for path in sys.path if path not in (own_path, *site)]
        zygote = Zygote(control, settings, roles)
        control.send(b"ready")
        zygote.serve()
    except Exception as error:
        control.send(f"failed {type(error).__name__}: {error}".encode())
        raise
    finally:
        if zygote is not None:
            zygote.close()
