"""The worker process: imports everything once, starts a template, and watches the children that this one forks.

The judge gives its orders to the template: budgets in the message, the job itself as descriptors. The template forks,
with this process as the parent, and says so here. This process watches every child to its end, answers the judge with
one message for each, and leaves nothing behind. What it learns meanwhile stays in its memory, which no job is forked
from.
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
from _socket import AF_UNIX, CMSG_SPACE, SOCK_SEQPACKET, socket, socketpair
from array import array
from collections.abc import Callable
from contextlib import suppress
from select import select
from time import monotonic
from typing import Any

from rlvrlab.judge.jail import (
    child,
    heap,
    kernel,
    large_pages,
    library,
    limits,
    namespaces,
    packages,
    privileges,
    stand_ins,
    template,
)
from rlvrlab.judge.jail.jobfile import HEAD_SIZE, INSIDE, terms_of
from rlvrlab.judge.jail.numbers import ProcessNumbers
from rlvrlab.judge.jail.rehearsal import rehearse
from rlvrlab.judge.jail.scratch import Scratch
from rlvrlab.judge.jail.supervisor import Crew, Watch
from rlvrlab.judge.jail.walls import Walls

ROLES = ("program", "calls", "candidate", "tester", "inprocess", "syntax", "asserts", "unaided", "faults", "trace")

fork: Callable[[], int] = ctypes.PyDLL(None).fork
"""The C library's fork: os.fork's hooks repair locks and threads, which there are none of, and seed `random` anew,
which would make verdicts of careless programs vary."""

_kept: list[object] = []
"""What a child has others of its own in place of: to take the old ones apart it would copy the pages beside them."""
MESSAGE_SIZE = 1 << 10
DESCRIPTORS_SIZE = CMSG_SPACE(3 * array("i").itemsize)


class Zygote:
    """A worker process: watches the children that its template forks, and reports how each ended."""

    def __init__(self, control: socket, orders: socket, settings: dict[str, Any], roles: dict[str, child.Role]) -> None:
        self.control = control
        jailed, processes = settings["isolation"] != "weak", settings["isolation"] == "bwrap"
        numbers = ProcessNumbers()
        # Databases and the like are named by each order: they may be in a folder that is its owner's alone.
        others = bool(settings["roles"])
        reached = [*library.folders(), *settings["readable"], settings["scratch"].rpartition("/")[0]]
        user = privileges.unused_user(reached, others) if jailed else None
        may_read = user is not None and (others or not privileges.readable_by(user, reached))
        self.scratch = Scratch(settings["scratch"], settings["scratch_mb"], user, processes)
        if self.scratch.own_mounts:
            library.cover(settings["site"])
        if user is not None:
            privileges.become(user)
        readable = library.readable(settings["libraries"], settings["readable"], processes)
        rights = privileges.CapabilitySet([privileges.DAC_READ_SEARCH] if may_read else privileges.NONE)
        walls = Walls(settings["isolation"], readable, self.scratch, rights)
        stand_ins.install(processes)
        child.open_streams()
        rehearse(roles)
        child.open_streams()  # new ones: a rehearsal has read from the others
        limits.apply_to_worker()
        heap.make_threads_small()
        if jailed:
            privileges.keep()
            kernel.no_new_privileges()
        random.seed(0)
        self.leaves_processes = processes
        self.crew = Crew()
        self.started = 0
        """Children so far; the judge counts the orders that it gives likewise."""
        self.cancelled: dict[int, str] = {}
        """Children that the judge wanted ended before the template had told of them, and why."""
        self.another_follows = False
        """Has the judge announced a further child of the same job?"""
        self.any_may_write = not jailed
        """Might any job use the scratch directory, even one that is not allowed to?"""
        self.written_to = False
        """Might the job that runs have used it?"""
        make_ready_to_fork()
        match settings["isolation"]:
            case "landlock":
                numbers.begin(self.scratch.own_mounts)
            case "bwrap":
                numbers.stay()
            case _:
                numbers.end()
        self.template, self.template_pid = self._fork_template(orders, walls, roles, numbers.counter)
        self.held = namespaces.hold(self.crew.proc)

    def _fork_template(
        self, orders: socket, walls: Walls, roles: dict[str, child.Role], counter: int
    ) -> tuple[socket, int]:
        """Start the template as a copy of this process; a socket to hear from it, and its number."""
        if "clone" not in kernel.NUMBERS:
            raise OSError(f"clone: its number is not known on {kernel.MACHINE}")
        ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        pid = fork()
        if pid == 0:
            try:
                template.live(orders.fileno(), theirs.fileno(), counter, walls, roles)
            finally:
                os._exit(1)
        gc.enable()
        for one in (theirs, orders):
            one.close()
        return ours, pid

    def serve(self) -> None:
        """Hear of new children, end those that the judge wants ended, collect the ended; until the judge has gone."""
        control, watches = self.control, self.crew.watches
        pause = None
        while True:
            awaited: list[socket | Watch] = [control, self.template, *watches]
            for ready in select(awaited, (), (), pause)[0]:
                if isinstance(ready, Watch):
                    self._collect(ready)
                elif ready is self.template:
                    self._welcome()
                elif not self._obey():
                    return
            pause = self._look_around() if watches else None

    def _look_around(self) -> float:
        """Look at the children when their time has come; seconds until the next time."""
        now = monotonic()
        if now >= self.crew.next_look:
            self.crew.look(now)
        return max(0.0, self.crew.next_look - now) + 0.001

    def _welcome(self) -> None:
        """The template has forked a child."""
        message, ancillary, _, _ = self.template.recvmsg(1, DESCRIPTORS_SIZE)
        if not message:
            raise OSError("the template has ended")
        pidfd, report, job = array("i", ancillary[0][2])
        terms = terms_of(os.pread(job, HEAD_SIZE - len(INSIDE), len(INSIDE)))
        os.close(job)
        self.started += 1
        self.another_follows = terms.followed
        self.written_to |= terms.scratch or self.any_may_write
        watch = self.crew.watch(self.started, terms.limits, pidfd, report)
        if reason := self.cancelled.pop(self.started, ""):
            watch.kill(reason)

    def _obey(self) -> bool:
        """End a child and say why; False when the judge has gone."""
        message = self.control.recv(MESSAGE_SIZE)
        if not message:
            return False
        number, reason = marshal.loads(message)  # noqa: S302 - the judge wrote it
        if number > self.started:
            self.cancelled[number] = reason
        for watch in self.crew.watches:
            if watch.id == number:
                watch.kill(reason)
        return True

    def _collect(self, watch: Watch) -> None:
        self.crew.watches.remove(watch)
        ended = watch.reap()
        # Before the next job: no process and no file of the last one.
        if not self.crew.watches and not self.another_follows:
            if self.leaves_processes:
                self.crew.end_all_but({1, os.getpid(), self.template_pid})
            if self.written_to:
                self.scratch.renew()
                self.written_to = False
        self.control.send(ended)

    def close(self) -> None:
        """Kill what still runs and remove the scratch directory."""
        os.kill(self.template_pid, signal.SIGKILL)
        with suppress(OSError):  # until its end has been read
            while True:
                self._welcome()
        for watch in self.crew.watches:
            watch.kill("cancelled")
            watch.reap()
        self.scratch.close()


def make_ready_to_fork() -> None:
    """Lay this memory out so that copies of it share most of it for as long as they live."""
    _kept.extend((sys.modules["__main__"], sys.argv))
    gc.collect()
    heap.give_back()
    heap.fill_holes()
    gc.disable()
    gc.freeze()
    # Collecting in a child drags in pages it would otherwise share: only programs that allocate much should pay.
    gc.set_threshold(child.OBJECTS_BETWEEN_COLLECTIONS)
    large_pages.fill_up()
    large_pages.gather()


def main(own_path: str, settings_text: str, *sockets: str) -> None:
    """Entry point of the worker process, which inherits two sockets: its own and that of its template."""
    os.environ.pop("LD_BIND_NOW", None)  # it was set for the start of this process; candidates must not inherit it
    # Keep 3 … 9 free of anything of ours: a child puts its own descriptors there.
    given = [int(one) for one in sockets]
    control, orders = (socket(fileno=fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, child.LOWEST_OWN)) for one in given)
    for descriptor in given:
        os.close(descriptor)
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
        imported = [now - then for now, then in zip(packages.own_memory(), before, strict=True)]
        # The laboratory's own modules, and whatever else is installed, are not for candidates to import or read.
        sys.path[:] = [path for path in sys.path if path not in (own_path, *site)]
        zygote = Zygote(control, orders, settings, roles)
        control.send("ready {} {}".format(*(size + large_pages.empty() for size in imported)).encode())
        zygote.serve()
    except Exception as error:
        control.send(f"failed {type(error).__name__}: {error}".encode())
        raise
    finally:
        if zygote is not None:
            zygote.close()
