"""Workers, one more than there are cores unless said otherwise; a dead one is replaced before the next job.

A job that takes long lends its place to another, so that endless programs do not hold up the others: they go on beside
them. As many as there are places may always do so, and up to `MOST_LENT` times as many while the machine has memory for
what the other jobs may still take.

Workers that have imported packages for programs (`having`) are of another kind and form a pool of their own. Kinds are
started on demand and share the places: together they run as many jobs as one kind would. Where they have twice as many
workers as places, an idle one of the kind that was not used for longest ends before another one is started.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from rlvrlab.errors import UserError
from rlvrlab.judge.workers.memory import spare_mb
from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.worker import Worker

WORKERS = "RLVR_JUDGE_WORKERS"
LONG_S = 0.3
"""A job that has run for this time lends its place."""
RESERVED_MB = 1024
"""What a job may take, as most do at most."""
MOST_LENT = 4
"""How many jobs have lent their place at most, for each place there is."""


def cores() -> int:
    """Those that this process may use, which may be fewer than the machine has: Slurm and `taskset` give some."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def default_size() -> int:
    """RLVR_JUDGE_WORKERS, or one worker more than cores: while one hands its result over, another runs.

    Processes that share a machine, such as the trials of a study, each get less by that variable.
    """
    text = os.environ.get(WORKERS) or str(cores() + 1)
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{WORKERS}={text}: a whole number above 0 is needed")
    return int(text)


class Places:
    """As many as jobs may run at once; a job that takes long is not counted any more."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._size, self._lent = size, 0

    def _may_lend(self) -> bool:
        """Those that have lent their place stay in memory and may grow, beside one job in each place."""
        if self._lent < self._size:
            return True
        jobs = self._size + self._lent + 1
        return self._lent < MOST_LENT * self._size and spare_mb() >= RESERVED_MB * jobs

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a place and hold it until the job ends, or until it lends it, `LONG_S` after it says that it begins.

        Where too many have lent theirs, it tries again after that time.
        """
        await self._free.acquire()
        lent = False
        timer: asyncio.TimerHandle | None = None

        def lend() -> None:
            nonlocal lent
            if not self._may_lend():
                return begins()
            self._lent += 1
            lent = True
            return self._free.release()

        def begins() -> None:
            nonlocal timer
            timer = asyncio.get_running_loop().call_later(LONG_S, lend)

        try:
            yield begins
        finally:
            if timer:
                timer.cancel()
            if lent:
                self._lent -= 1
            else:
                self._free.release()


@dataclass
class Pool:
    """Workers of one image, one job each at a time; a dead worker is replaced before the next job."""

    image: Image = field(default_factory=Image)
    size: int = field(default_factory=default_size)
    restarts: int = 0
    """Workers that had to be replaced."""
    _idle: deque[Worker] = field(default_factory=deque)
    _workers: set[Worker] = field(default_factory=set)
    _ending: list[Worker] = field(default_factory=list)
    """Told to end, and not gone yet."""
    places: Places | None = None
    """Shared with other pools; by default this pool's own."""
    _kinds: dict[tuple[str, ...], Pool] = field(default_factory=dict)
    """All kinds by what they have imported, the one used last at the end; one table, which all of them share."""

    def __post_init__(self) -> None:
        self._places = self.places or Places(self.size)
        self._kinds.setdefault(self.image.preload, self)

    def having(self, packages: tuple[str, ...]) -> Pool:
        """The pool whose workers have also imported these packages; it ends with this one."""
        wanted = tuple(sorted({*self.image.preload, *packages}))
        if set(wanted) == set(self.image.preload):
            return self
        kind = self._kinds.pop(wanted, None)
        if kind is None:
            kind = Pool(replace(self.image, preload=wanted), self.size, places=self._places, _kinds=self._kinds)
        self._kinds[wanted] = kind
        return kind

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """Borrow a worker; waiting here is queueing, not running."""
        async with self._places.one() as begins:
            worker = await self._take()
            begins()  # the start of a worker, which may take long on a busy machine, is no long job
            try:
                yield worker
            finally:
                # A job that was cancelled half-way may have left children: the next job must not meet them.
                if worker.children or not worker.alive:
                    self._drop(worker)
                elif len(self._idle) < self.size:
                    self._idle.append(worker)
                else:  # started for a place that was lent, and nobody waits for one now
                    self._end(worker)

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            self._drop(worker)
        self._make_room()
        worker = Worker(self.image)
        self._workers.add(worker)
        try:
            await worker.ready()
        except BaseException:  # also when whoever asked has gone: nobody else would end it
            self._drop(worker)
            raise
        return worker

    def _make_room(self) -> None:
        """End an idle worker of another kind where all kinds together have twice as many as may run."""
        if sum(len(pool._workers) for pool in self._kinds.values()) < 2 * self.size:
            return
        for pool in self._kinds.values():
            if pool._idle:
                pool._end(pool._idle.popleft())
                return

    def _drop(self, worker: Worker) -> None:
        self.restarts += 1
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        """Its end, a tenth of a second on a busy machine, is waited for in a thread: all other jobs go on meanwhile."""
        self._workers.discard(worker)
        worker.dismiss()
        self._ending = [one for one in self._ending if one.process.poll() is None] + [worker]
        threading.Thread(target=worker.reap, name="rlvr-judge-reaper", daemon=True).start()

    async def run(self, order: Order) -> Ran:
        """One child in any free worker."""
        async with self.worker() as worker:
            return await worker.run(order)

    async def warm(self) -> None:
        """Start every worker now, so that the first jobs need not wait for them."""
        async with asyncio.TaskGroup() as group:
            started = [group.create_task(self._take()) for _ in range(self.size - len(self._workers))]
        self._idle.extend(task.result() for task in started)

    def close(self) -> None:
        """End all workers, those of other kinds as well."""
        for pool in self._kinds.values():
            for worker in pool._workers:
                worker.close()
            for worker in pool._ending:
                worker.reap()
            pool._workers.clear()
            pool._idle.clear()
