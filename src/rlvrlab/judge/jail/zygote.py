"""The fork server: imports everything once, then forks one jailed child per job and watches it to its end.

It is told about a job over a socket: budgets in the message, the job itself as descriptors it passes on unread.
One worker of the pool is one zygote; it answers every child with one message and leaves nothing behind.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import gc
import importlib
import json
import marshal
import os
import random
import select
import signal
import socket
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rlvrlab.judge.jail import child, kernel, limits
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.scratch import Scratch
from rlvrlab.judge.jail.supervisor import Watch

PRELOADED = """
array ast bisect collections contextlib copy ctypes dataclasses datetime decimal enum fractions functools heapq
itertools json math operator os pathlib random re string threading time typing
"""
"""Read from disk once instead of in every child."""

SYSTEM_READABLE = "/usr/lib /usr/lib64 /usr/local/lib /lib /lib64 /usr/share/zoneinfo /dev/null /dev/urandom /dev/zero"
MESSAGE_SIZE = 1 << 16
ROLES = ("program", "calls", "candidate", "tester", "inprocess", "syntax", "asserts")


fork: Callable[[], int] = ctypes.PyDLL(None).fork
"""The C library's, without Python's: its hooks repair locks and threads, of which a zygote has none, cost 0.3 ms, and
seed `random` anew, which would make verdicts of careless programs vary."""


class Zygote:
    """One worker process."""

    def __init__(self, control: socket.socket, settings: dict[str, Any], roles: dict[str, child.Role]) -> None:
        self.control, self.roles = control, roles
        self.scratch = Scratch(settings["scratch"], settings["scratch_mb"])
        for name in (*PRELOADED.split(), *settings["preload"]):
            importlib.import_module(name)
        readable = [*SYSTEM_READABLE.split(), "/etc/ld.so.cache", *_library_folders(), *settings["readable"]]
        self.walls = child.Walls(settings["isolation"], readable, self.scratch.path)
        child.open_streams()
        limits.apply_to_worker()
        if settings["isolation"] != "weak":
            # Forked children inherit both; from here on the worker itself has no privilege to lose either.
            kernel.drop_capabilities()
            kernel.no_new_privileges()
        random.seed(0)
        self.watches: dict[int, Watch] = {}
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Until the parent goes away."""
        gc.collect()
        gc.disable()
        gc.freeze()
        # Collecting in a child drags in pages it would otherwise share: only programs that allocate much should pay.
        gc.set_threshold(child.OBJECTS_BETWEEN_COLLECTIONS)
        while True:
            for descriptor, _ in self.poll.poll(self._pause_ms()):
                if descriptor != self.control.fileno():
                    self._collect(self.watches[descriptor])
                elif not self._obey():
                    return
            now = time.monotonic()
            for watch in self.watches.values():
                if now >= watch.next_look:
                    watch.look(now)

    def _pause_ms(self) -> float | None:
        if not self.watches:
            return None
        soonest = min(watch.next_look for watch in self.watches.values())
        return max(1.0, (soonest - time.monotonic()) * 1000 + 1)

    def _obey(self) -> bool:
        """Take one order: start a child, or end one."""
        message, descriptors = _receive(self.control)
        if not message:
            return False
        order = marshal.loads(message)  # noqa: S302 - the judge wrote it
        if "kill" in order:
            for watch in self.watches.values():
                if watch.id == order["kill"]:
                    watch.kill("cancelled")
        else:
            self._start(order, descriptors)
        return True

    def _start(self, order: dict[str, Any], descriptors: list[int]) -> None:
        rules = None
        if self.walls.filter is not None:
            rules = self.walls.rules_for(tuple(order["readable"]), order["scratch"])
        budget = Limits(*order["limits"])
        pid = fork()
        if pid == 0:
            child.live(self.walls, rules, budget, descriptors, self.roles)
        report = descriptors.pop(3)
        watch = Watch(order["id"], pid, budget, report)
        for descriptor in descriptors:
            os.close(descriptor)
        self.watches[watch.pidfd] = watch
        self.poll.register(watch.pidfd, select.POLLIN)

    def _collect(self, watch: Watch) -> None:
        self.poll.unregister(watch.pidfd)
        del self.watches[watch.pidfd]
        ended = watch.reap()
        if not self.watches:
            self._tidy()
        self.control.send(ended)

    def _tidy(self) -> None:
        """Before the next job: no process and no file of the last one."""
        if self.walls.isolation == "bwrap":
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # everybody in this pid namespace but ourselves
        self.scratch.empty()

    def close(self) -> None:
        """Kill what still runs and remove the scratch directory."""
        for watch in self.watches.values():
            watch.kill("cancelled")
            watch.reap()
        self.scratch.close()


def _load_role(name: str) -> child.Role:
    role: child.Role = importlib.import_module(f"rlvrlab.judge.jail.roles.{name}").run
    return role


def _library_folders() -> list[str]:
    """The standard library, and what was put on the path for this worker."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), f"{sys.base_prefix}/lib"}
    return sorted(folders | {path for path in sys.path if path})


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    message, ancillary, _, _ = control.recvmsg(MESSAGE_SIZE, socket.CMSG_SPACE(8 * array.array("i").itemsize))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return message, list(descriptors)


def _out_of_the_way(control: int) -> socket.socket:
    """Keep 3 … 9 free of anything of ours: a child puts its own descriptors there."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, child.LOWEST_OWN)
    os.close(control)
    while os.open("/dev/null", os.O_RDONLY) < child.LOWEST_OWN:
        pass
    return socket.socket(fileno=moved)


def main(control_descriptor: int, own_path: str, settings_text: str) -> None:
    """Entry point of the worker process."""
    control = _out_of_the_way(control_descriptor)
    settings = json.loads(settings_text)
    zygote = None
    try:
        roles = {name: _load_role(name) for name in (*ROLES, *settings["roles"])}
        if not settings["site"]:
            # The laboratory's own packages are not for candidates to import or read.
            sys.path.remove(own_path)
        zygote = Zygote(control, settings, roles)
        control.send(b"ready")
        zygote.serve()
    except Exception as error:
        control.send(f"failed {type(error).__name__}: {error}".encode())
        raise
    finally:
        if zygote is not None:
            zygote.close()
