"""The trusted side of one worker: start its zygote (jail/zygote.py), order children, collect what they left.

Orders go to the template (jail/template.py), which forks the child; the zygote, its parent, tells of its end and is
told when to end it before. Everything a job is made of travels as descriptors of memory files that neither reads.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import marshal
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.jail.frames import HALVES, scan
from rlvrlab.judge.jail.jobfile import INSIDE, Terms, head
from rlvrlab.judge.jail.limits import MEGABYTE, Limits, to_be_read
from rlvrlab.judge.jail.packages import ONE_THREAD
from rlvrlab.judge.jail.supervisor import ENDED, REASONS, capacity, unread
from rlvrlab.judge.workers.bubblewrap import wrapped
from rlvrlab.judge.workers.libraries import shared_libraries
from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.stolen import Stretch, slack

START_TIMEOUT_S = 60.0
NOTHING_READABLE = b"."
"""An order that names no further files."""
LARGEST_REPLY = 1 << 16
PIPE_SIZE = 1 << 20
LOOK_EVERY_S, LOOK_AGAIN_S = 0.02, 0.001
GRACE_S, END_TIMEOUT_S = 0.01, 2.0
PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
SITE = ("site-packages", "dist-packages")
"""How the folders of installed packages are called."""
BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from rlvrlab.judge.jail.arenas import reserve; reserve(); "
    "from rlvrlab.judge.jail.heap import preload; preload(); "
    "from rlvrlab.judge.jail.zygote import main; main(*sys.argv[1:])"
)


NO_JOB = Order({"role": "program", "code": ""}, Limits())


class WorkerDied(InfrastructureError):
    """A zygote ended while it held a job; the job is innocent until proven otherwise and is tried again."""


class Child:
    """A started child: its memory files and the future of its end."""

    def __init__(self, number: int, order: Order, job: int, end: Callable[[Child, str], None], can_kill: bool) -> None:
        self.number, self.limits, self.job, self._end, self._can_kill = number, order.limits, job, end, can_kill
        self.ended: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.stdout, self.stderr = os.memfd_create("stdout"), os.memfd_create("stderr")
        # A pipe and not a file: nothing in it can be written over. The child may read it empty, its own report only.
        self.incoming, self.report = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.incoming, False)
        with suppress(OSError):
            fcntl.fcntl(self.incoming, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self.capacity = capacity(self.incoming)
        """Less than was asked for where the user's quota of pipes is used up."""
        self.heard = bytearray()
        self.next_look: asyncio.TimerHandle | None = None
        self._stretch = Stretch()

    def drain(self) -> None:
        """Take what the pipe holds; a child that reports more than it may is ended."""
        with suppress(BlockingIOError):
            while piece := os.read(self.incoming, self.capacity):
                self.heard += piece
                if len(self.heard) > self.limits.output_mb * MEGABYTE:
                    return self._end(self, "output")
        return None

    def look_later(self, seconds: float = LOOK_EVERY_S) -> None:
        """Look at the pipe now and then, so that a child with much to report never waits for long."""
        if self.next_look:
            self.next_look.cancel()
        self.next_look = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        # A pipe that is nowhere near full is left alone: its fill tells the supervisor that tests get done.
        if much := unread(self.incoming) > self.capacity // 4:
            self.drain()
        self.look_later(LOOK_AGAIN_S if much else LOOK_EVERY_S)

    def collect(self, ended: list[Any]) -> Ran:
        """Read what it wrote, never more than its limit."""
        stdout, stderr = (_beginning(file, self.limits.output_mb * MEGABYTE + 1) for file in (self.stdout, self.stderr))
        self.drain()
        code, reason, cpu_s, wall_s, peak_mb = ended
        inside = os.pread(self.job, len(INSIDE), 0) == INSIDE
        killed = REASONS[reason]
        late = killed in ("cpu", "wall") or code == -signal.SIGXCPU
        stolen = self._stretch.stolen(wall_s if killed == "wall" else 0.0) if late else 0.0
        report = bytes(self.heard)
        return Ran(code, killed, cpu_s, wall_s, peak_mb, stdout, stderr, report, inside, stolen, self._can_kill)

    def close(self) -> None:
        """Give the memory back."""
        if self.next_look:
            self.next_look.cancel()
        for file in (self.stdout, self.stderr, self.job, self.incoming, self.report):
            if file >= 0:
                os.close(file)


def _beginning(file: int, most: int) -> bytes:
    """The first bytes of a file. Memory is taken for what it holds, however many bytes it might have held."""
    pieces, size = [], 0
    while piece := os.pread(file, min(MEGABYTE, most - size), size):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def memory_file(content: bytes) -> int:
    """An anonymous file with this content, positioned at its start."""
    file = os.memfd_create("judge")
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def scratch_folder() -> str:
    """One folder per user for all workers, each of which mounts its own file system there or makes a folder inside."""
    folder = Path(tempfile.gettempdir()) / f"rlvr-judge-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise InfrastructureError(f"{folder} belongs to somebody else; remove it or set TMPDIR")
    return str(folder)


class Worker:
    """The parent's handle of one zygote."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.scratch = scratch_folder()
        self.control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.orders, their_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.children: dict[int, Child] = {}
        self.count = 0
        """Orders given so far. The zygote counts the children that it hears of, so both mean the same by a number."""
        self.imported = (0, 0)
        """Address space and data that its packages hold; known when it is ready."""
        self._dead = False
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with their_control, their_orders:
            self.process = self._launch(their_control.fileno(), their_orders.fileno())
        self.control.setblocking(False)
        self.orders.setblocking(False)
        asyncio.get_running_loop().add_reader(self.control.fileno(), self._hear)

    def _launch(self, control: int, orders: int) -> subprocess.Popen[bytes]:
        site = [path for path in sys.path if path.endswith(SITE)] if self.image.preload else []
        shared = () if self.image.isolation == "weak" else shared_libraries()
        settings = {**asdict(self.image), "scratch": self.scratch, "site": site, "libraries": shared}
        # -I would ignore the fixed hash seed, and with it the order of a candidate's sets would vary between workers.
        command = [sys.executable, "-s", "-S", "-P", "-c", BOOT, PACKAGE_ROOT, json.dumps(settings)]
        command += [str(control), str(orders)]
        if self.image.isolation == "bwrap":
            command = wrapped(command, self.scratch, self.image.scratch_mb)
        # LD_BIND_NOW: functions of shared libraries are looked up once, not by every child that first calls them.
        environment = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "LD_BIND_NOW": "1"}
        if site:
            environment |= ONE_THREAD
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            pass_fds=[control, orders],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def ready(self) -> None:
        """Wait until it can take jobs."""
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), START_TIMEOUT_S)
        except TimeoutError:
            raise InfrastructureError(f"a judge worker did not start within {START_TIMEOUT_S:.0f} s") from None
        # Every job then finds the memory that an earlier one was forked from, and none can tell that it is the first.
        await self.run(NO_JOB)

    def _hear(self) -> None:
        try:
            message = self.control.recv(LARGEST_REPLY)
        except BlockingIOError:
            return None
        except OSError:
            message = b""
        if not message:
            return self._mourn("a judge worker died")
        if message.startswith(b"failed"):
            return self._mourn(f"a judge worker {message.decode(errors='replace')}")
        if message.startswith(b"ready"):
            size, data = message.split()[1:]
            self.imported = int(size), int(data)
            self._ready.set_result(None)
        else:
            number, *ended = ENDED.unpack(message)
            child = self.children.pop(number)
            if not child.ended.done():  # nobody waits for the end of a cancelled child
                child.ended.set_result(ended)
        return None

    def _mourn(self, reason: str) -> None:
        self._dead = True
        asyncio.get_running_loop().remove_reader(self.control.fileno())
        if not self._ready.done():
            self._ready.set_exception(InfrastructureError(reason))
        for child in self.children.values():
            if not child.ended.done():
                child.ended.set_exception(WorkerDied(reason))
        self.children.clear()

    @property
    def alive(self) -> bool:
        """Can it still take jobs?"""
        return not self._dead and self.process.poll() is None

    def start(self, order: Order) -> Child:
        """Start one child; its `ended` future resolves when it is gone."""
        self.count += 1
        limits = order.limits if slack.get() == 1.0 else order.limits.times(slack.get())
        terms = Terms(limits, order.scratch, order.followed)
        content = marshal.dumps((order.peer is not None, {**order.job, "cpu_s": limits.cpu_s}))
        address_space, data = self.imported
        spare = to_be_read(len(content))
        beginning = head(terms, (address_space + spare, data + spare))
        child = Child(self.count, order, memory_file(beginning + content), self.cancel, self.image.can_kill)
        stdin = memory_file(order.stdin) if order.stdin else os.open(os.devnull, os.O_RDONLY)
        peer = stdin if order.peer is None else order.peer
        descriptors = [stdin, child.stdout, child.stderr, child.report, peer, child.job]
        # Later jobs can read this: nothing in it is a job's doing, no count, and not even how long a program is.
        message = marshal.dumps((tuple(order.readable), order.scratch)) if order.readable else NOTHING_READABLE
        self.children[child.number] = child
        try:
            socket.send_fds(self.orders, [message], descriptors)
        except OSError as error:
            child.ended.set_exception(WorkerDied(f"a judge worker takes no jobs: {error}"))
        finally:
            for descriptor in (stdin, child.report):
                os.close(descriptor)
            child.report = -1
        return child

    async def finish(self, child: Child) -> Ran:
        """Wait for a child and collect what it wrote."""
        child.look_later()
        try:
            return child.collect(await child.ended)
        finally:
            child.close()

    async def run(self, order: Order) -> Ran:
        """One child from start to end."""
        child = self.start(order)
        try:
            return await self.finish(child)
        except asyncio.CancelledError:
            await self._end(child)
            raise

    async def _end(self, child: Child) -> None:
        """Cancel a child and wait until it is gone, so that its worker can take the next job."""
        self.cancel(child)
        until = time.monotonic() + END_TIMEOUT_S
        while self._runs(child) and time.monotonic() < until:
            await asyncio.sleep(GRACE_S)

    def cancel_soon(self, child: Child) -> None:
        """Cancel a child after GRACE_S seconds, unless it has ended by itself by then."""
        asyncio.get_running_loop().call_later(GRACE_S, self.cancel, child)

    def cancel(self, child: Child, reason: str = "cancelled") -> None:
        """End a child that is no longer wanted."""
        if self._runs(child):
            with suppress(OSError):
                self.control.send(marshal.dumps((child.number, reason)))

    def _runs(self, child: Child) -> bool:
        return self.children.get(child.number) is child

    def close(self) -> None:
        """End the zygote and everything below it, and wait until it is gone."""
        self.dismiss()
        self.reap()

    def dismiss(self) -> None:
        """Tell the zygote to end."""
        with suppress(ValueError, OSError):
            asyncio.get_running_loop().remove_reader(self.control.fileno())
        self.orders.close()
        self.control.close()

    def reap(self) -> None:
        """Wait until it has ended; may be called from any thread, and again."""
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def lines_of(report: bytes, at_most: int) -> Sequence[Any]:
    """A child's report as JSON lines; ValueError when it is not what a role writes."""
    lines = report.decode("utf-8", HALVES).split("\n")
    if len(lines) > at_most + 1 or lines[-1]:
        raise ValueError("the report is not made of whole lines")
    try:
        scanned = [(line, *scan(line, 0)) for line in lines[:-1]]
    except (StopIteration, RecursionError):
        raise ValueError("the report holds no JSON, or is nested too deeply") from None
    if any(end != len(line) for line, _, end in scanned):
        raise ValueError("a line of the report holds more than one value")
    records = [record for _, record, _ in scanned]
    if not all(type(record) is list and record and type(record[0]) is str for record in records):
        raise ValueError("the report holds something else than records")
    return records
