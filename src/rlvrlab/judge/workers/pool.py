"""Workers of one kind, one more than there are cores; a dead one is replaced before the next job."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.worker import Worker


def default_size() -> int:
    """One worker more than cores: while one hands its result over, another runs."""
    return (os.cpu_count() or 1) + 1


@dataclass
class Pool:
    """Workers of one image, one job each at a time; a dead worker is replaced before the next job."""

    image: Image = field(default_factory=Image)
    size: int = field(default_factory=default_size)
    restarts: int = 0
    """Workers that had to be replaced."""
    _idle: deque[Worker] = field(default_factory=deque)
    _workers: set[Worker] = field(default_factory=set)
    _free: asyncio.Semaphore | None = None

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """Borrow a worker; waiting here is queueing, not running."""
        if self._free is None:
            self._free = asyncio.Semaphore(self.size)
        async with self._free:
            worker = await self._take()
            try:
                yield worker
            finally:
                # A job that was cancelled half-way may have left children: the next job must not meet them.
                if worker.children or not worker.alive:
                    self._drop(worker)
                else:
                    self._idle.append(worker)

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            self._drop(worker)
        worker = Worker(self.image)
        self._workers.add(worker)
        try:
            await worker.ready()
        except BaseException:  # also when whoever asked has gone: nobody else would end it
            self._drop(worker)
            raise
        return worker

    def _drop(self, worker: Worker) -> None:
        self.restarts += 1
        self._workers.discard(worker)
        worker.close()

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
        """End all workers."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        self._idle.clear()
