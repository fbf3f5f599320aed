"""The door of a server: connections are accepted one at a time, and who has least use for a place makes room.

A stranger is a connection none of whose requests was let in so far. Strangers cost a descriptor each and need no token:
where all places are taken, or all that one address may have, the stranger that came first is hung up on for the next.
Where strangers are few, it is the connection that has been idle longest: without a request under way, after one that
was answered. A client opens such a one again at its next request. Who is being answered is never put out. Where nobody
can go, a few more are accepted, to be told to come back (`crowded`); the rest is hung up on at once, so descriptors are
left for the work whatever comes.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter, Task
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from rlvrlab.http_access import is_loopback
from rlvrlab.http_messages import LARGEST_HEAD

BACKLOG = 1024
TOLD_TO_COME_BACK = 64
"""Connections beyond those that are served; they get a refusal in words."""
AGAIN_S = 0.1
"""Until the next try where the kernel has nothing to accept with."""
FEW = 8
"""A part of the places, one in so many, that strangers may have while idle connections make room for them."""
Serve = Callable[[StreamReader, StreamWriter], Coroutine[Any, Any, None]]


class Door:
    """Listens, and starts a task for every connection that gets a place."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.inside: dict[Task[None], str] = {}
        """Connections and where they come from."""
        self._strangers: dict[Task[None], str] = {}
        """Those of them that nobody has let in, in the order in which they came."""
        self._idle: dict[Task[None], str] = {}
        """Those that nobody is answered on, the one for longest first."""
        self._leaving: set[Task[None]] = set()
        """Put out just now; each holds its descriptor for another moment."""
        self._of_peer: Counter[str] = Counter()
        self._sockets: list[socket.socket] = []
        self._accepting: list[Task[None]] = []
        self.most = 0

    async def open(self, host: str, port: int, most: int) -> int:
        """Listen; the port. OSError and OverflowError say why that cannot be."""
        loop = asyncio.get_running_loop()
        self.most = most
        bound = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        self._sockets = [one.dup() for one in bound.sockets]
        bound.close()
        for one in self._sockets:
            one.setblocking(False)
            one.listen(BACKLOG)
        self._accepting = [asyncio.create_task(self._accept(one)) for one in self._sockets]
        return self._sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Accept nobody any more; who is inside stays."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for one in self._sockets:
            one.close()

    async def put_out_all(self) -> None:
        """End every connection."""
        tasks = [*self.inside, *self._leaving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(2):  # a transport closes its socket a turn of the loop after it was told to
            await asyncio.sleep(0)

    def let_in(self, task: Task[None]) -> None:
        """This connection has asked something that it may ask."""
        self._strangers.pop(task, None)

    def rests(self, task: Task[None]) -> None:
        """This connection was answered, and has no request under way."""
        if task in self.inside:
            self._idle[task] = self.inside[task]

    def asks(self, task: Task[None]) -> None:
        """Its next request has begun."""
        self._idle.pop(task, None)

    def crowded(self, task: Task[None]) -> bool:
        """Are there more connections than places, or more of this one's address than it may have?"""
        peer = self.inside.get(task, "")
        return len(self.inside) > self.most or self._of_peer[peer] > self._share(peer)

    def _share(self, peer: str) -> int:
        """Places that one address may have; all callers of this machine have the same one."""
        return self.most if is_loopback(peer) else max(1, self.most * 3 // 4)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                caller, address = listening.accept()
            except BlockingIOError:
                await _someone_waits(listening)
                continue
            except OSError:
                await asyncio.sleep(AGAIN_S)
                continue
            caller.setblocking(False)
            peer = address[0]
            self._make_room(peer)
            if len(self.inside) + len(self._leaving) < self.most + TOLD_TO_COME_BACK:
                await self._enter(caller, peer)
            else:
                caller.close()
                await asyncio.sleep(0)  # who has been put out needs a turn to go

    async def _enter(self, caller: socket.socket, peer: str) -> None:
        loop = asyncio.get_running_loop()
        reader = StreamReader(limit=LARGEST_HEAD)
        protocol = StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, caller)
        except OSError:
            caller.close()
            return
        except BaseException:
            caller.close()
            raise
        writer = StreamWriter(transport, protocol, reader, loop)
        task = asyncio.create_task(self._serve(reader, writer))
        self.inside[task] = self._strangers[task] = peer
        self._of_peer[peer] += 1
        task.add_done_callback(self._left)
        # Not closed, which would wait until the caller has read: what the kernel has taken is sent anyway.
        task.add_done_callback(lambda _: writer.transport.abort())

    def _make_room(self, peer: str) -> None:
        """Put out a stranger or an idle connection where the next one has no place otherwise."""
        alike = self._of_peer[peer] >= self._share(peer)
        if not alike and len(self.inside) < self.most:
            return
        strangers = [task for task, of in self._strangers.items() if not alike or of == peer]
        idle = next((task for task, of in self._idle.items() if not alike or of == peer), None)
        few = len(strangers) * FEW < self.most
        first = idle if idle is not None and few else next(iter(strangers), None)
        if first is not None:
            self._forget(first)
            self._leaving.add(first)
            first.cancel()

    def _left(self, task: Task[None]) -> None:
        self._forget(task)
        self._leaving.discard(task)

    def _forget(self, task: Task[None]) -> None:
        peer = self.inside.pop(task, None)
        self._strangers.pop(task, None)
        self._idle.pop(task, None)
        if peer is not None:
            self._of_peer[peer] -= 1
            if not self._of_peer[peer]:
                del self._of_peer[peer]


async def _someone_waits(listening: socket.socket) -> None:
    """Until a connection can be accepted.

    Accepting is left to the caller: `loop.sock_accept` loses a connection that comes in the turn in which it is
    cancelled, and whoever connected then would hear nothing.
    """
    loop, waits = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listening, waits.set)
    try:
        await waits.wait()
    finally:
        loop.remove_reader(listening)
