"""Several servers of one model, asked abreast over the pool of rlvrlab/replicas.py, with a watch on the model.

A request that fails for good is a Reply with Finish.ERROR and the reason: no answer, never a wrong one. A server that
dies is left out until it passes its check again; when none is left for `give_up_s`, ServersGone ends the call. One that
turns out to serve another model ends it at once with ModelChanged: results of two models are never mixed. Others may
join at any time (`roster`); one of those that does not pass its first check is left out, and the work goes on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from rlvrlab.engines.openai.replica import ModelReplica, Prepare
from rlvrlab.engines.openai.wire import CHAT, COMPLETIONS, Body, Reply, parse
from rlvrlab.errors import LabError, ModelChanged, UserError, cut
from rlvrlab.http_client import BadAnswer, Host, Refused, Response, reason
from rlvrlab.replicas import BUSY, FAILURES, RETRIED, Change, NoAnswer, Replicas, ServersGone, words

BREAK_AFTER = 3
"""Failures in a row after which a server must pass its check before it is asked again."""
MOST_READY = 64
"""Replies handed over at once."""
CLOSE_S = 10.0
FIRST_TRIES = 4
RETURN_S = 2.0
"""How long lost servers are waited for where others are there; then they have the time that the next call takes."""
ROSTER_S = 1.0
"""Between two looks at who is to be asked, during a call."""
T = TypeVar("T")
U = TypeVar("U")


class Servers:
    """Use as a context: entering checks every server and finds out the model."""

    def __init__(
        self,
        urls: Sequence[str],
        model: str | None = None,
        key: str | None = None,
        *,
        concurrency: int = 64,
        attempts: int = 4,
        deadline_s: float = 600.0,
        pause_s: float = 0.25,
        check_s: float = 30.0,
        give_up_s: float = 120.0,
        start_s: float = 60.0,
        chat: bool = True,
        prepare: Prepare | None = None,
        say: Callable[[str], None] | None = None,
        roster: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`deadline_s` bounds one attempt, `give_up_s` the time without any server, `start_s` the first contact.

        `chat` False continues plain text, for models without a chat template. `prepare` is done at each server before
        it is asked and after it came back; `say` is told when all are lost and waited for. `roster` says who is to be
        asked from now on: it is asked before and during every call, never returns nobody, and may be called anywhere.
        """
        if not urls:
            raise UserError("name at least one server, e.g. --server http://127.0.0.1:8000")
        if concurrency < 1 or attempts < 1 or deadline_s <= 0:
            raise UserError("servers: concurrency and attempts must be at least 1, the deadline above 0")
        self.chat, self.model = chat, model or ""
        self._replica = partial(ModelReplica, key=key, chat=chat, prepare=prepare)
        self.replicas = Replicas(
            [self._replica(url) for url in dict.fromkeys(urls)],
            attempts=attempts,
            deadline_s=deadline_s,
            pause_s=pause_s,
            break_after=BREAK_AFTER,
            give_up_s=give_up_s,
            check=self._check,
            check_s=check_s,
            say=say,
        )
        self._concurrency, self._start_s, self._roster = concurrency, start_s, roster
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)

    def __enter__(self) -> Servers:
        self._thread.start()
        try:
            self._await(self._connect())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End connections and the thread; may be called twice."""
        if self._thread.is_alive():
            with suppress(Exception):
                self._await(self.replicas.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()

    def switch(self, model: str) -> None:
        """Ask for another model from now on, e.g. the next adapter; no request may be on its way."""
        self.model = model
        self._follow_roster(idle=True)
        for replica in self.replicas.all:
            replica.forget()
        self._await(self._connect())

    def _follow_roster(self, *, idle: bool) -> list[ModelReplica]:
        """Take in whoever is new on the list, and leave out who is gone from it when no request is on its way.

        Those that are new take part when they have passed a check, as one does that was lost.
        """
        if self._roster is None:
            return []
        wanted = {replica.host.url: replica for replica in map(self._replica, self._roster())}
        known = {replica.host.url for replica in self.replicas.all}
        joining = [replica for url, replica in wanted.items() if url not in known]
        for replica in joining:
            replica.on_trial = True
        leaving = [replica for replica in self.replicas.all if idle and replica.host.url not in wanted]
        if joining or leaving:
            self.replicas.admit(joining, leaving)
        for replica in leaving:
            self._note(replica, "no longer on the list")
            self._await(replica.host.close())
        return joining

    def changes(self) -> list[Change]:
        """Who was lost and who came back since the last time this was asked."""
        kept = self.replicas.changes
        return [kept.popleft() for _ in range(len(kept))]

    def each(self, work: Callable[[Host], Awaitable[object]], timeout_s: float) -> None:
        """Do something else at every server, e.g. tidy up; one that is lost, or where it fails, is passed over."""

        async def one(host: Host) -> None:
            with suppress(*FAILURES, Refused):
                async with asyncio.timeout(timeout_s):
                    await work(host)

        async def everyone() -> None:
            await asyncio.gather(*(one(replica.host) for replica in self.replicas.all if not replica.down))

        if self._thread.is_alive():
            self._await(everyone())

    def identity(self) -> dict[str, Any]:
        """Addresses and what each really serves."""
        return {"model": self.model, "chat": self.chat, "servers": [replica.facts() for replica in self.replicas.all]}

    def replies(self, orders: Iterable[tuple[T, Body]]) -> Iterator[list[tuple[T, Reply]]]:
        """The reply to each order, in lists as they become ready; `orders` is read only as fast as answers come."""
        path = CHAT if self.chat else COMPLETIONS
        pairs = ((tag, body, path) for tag, body in orders)
        for ready in self._stream(pairs):
            yield [(tag, given[0]) for tag, given in ready]

    def all_choices(self, bodies: Sequence[Body]) -> Iterator[tuple[int, list[Reply]]]:
        """Every choice of each completion request, with its place, as they become ready."""
        orders = ((index, body, COMPLETIONS) for index, body in enumerate(bodies))
        for ready in self._stream(orders):
            yield from ready

    def _stream(self, orders: Iterable[tuple[T, Body, str]]) -> Iterator[list[tuple[T, list[Reply]]]]:
        self._follow_roster(idle=True)
        outbox: Outbox[tuple[T, list[Reply]]] = Outbox()
        running = asyncio.run_coroutine_threadsafe(self._serve(iter(orders), outbox), self._loop)
        try:
            while ready := outbox.take(MOST_READY):
                yield ready
            running.result()
        finally:
            if not running.done():
                running.cancel()
                outbox.wait_until_finished(CLOSE_S)

    async def _serve(self, orders: Iterator[tuple[T, Body, str]], outbox: Outbox[tuple[T, list[Reply]]]) -> None:
        watches = [asyncio.create_task(self.replicas.watch(replica)) for replica in self.replicas.all]

        async def work() -> None:
            for tag, body, path in orders:
                while len(outbox) > 4 * self._concurrency:
                    await asyncio.sleep(0.01)  # judging lags: answers that nobody keeps yet would be lost by a kill
                outbox.put((tag, await self._ask(path, body)))

        workers = [asyncio.create_task(work()) for _ in range(self._concurrency)]
        try:
            waiting: set[asyncio.Task[None]] = {*workers, *watches}
            while not all(worker.done() for worker in workers):
                done, waiting = await asyncio.wait(waiting, timeout=ROSTER_S, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                more = [asyncio.create_task(self.replicas.watch(one)) for one in self._follow_roster(idle=False)]
                watches += more
                waiting |= set(more)
        finally:
            for task in (*workers, *watches):
                task.cancel()
            await asyncio.gather(*workers, *watches, return_exceptions=True)
            outbox.finish()

    async def _ask(self, path: str, body: Body) -> list[Reply]:
        """An answer, or a reply that says why there is none."""

        def read(replica: ModelReplica, response: Response) -> list[Reply]:
            content = response.json()
            if "error" in content and not content.get("choices"):
                raise BadAnswer(f"an error under status 200: {cut(reason(response), 200)}")
            replies = parse(content)
            replica.confirm(self.model, replies[0].model)
            return replies

        try:
            answer = await self.replicas.ask(path, {"model": self.model, **body}, read)
        except NoAnswer as error:
            return [Reply(server=error.server, attempts=error.tries, error=error.trouble)]
        url = answer.replica.host.url
        if answer.content is None:
            await self._check(answer.replica)  # a model that is gone is refused like a bad request
            return [Reply(server=url, attempts=answer.tries, error=str(Refused(answer.response)))]
        return [reply._replace(server=url, attempts=answer.tries) for reply in answer.content]

    async def _check(self, replica: ModelReplica) -> None:
        try:
            async with asyncio.timeout(min(self.replicas.deadline_s, self._start_s)):
                await replica.check(self.model)
            if replica.down:
                for peer in [one for one in self.replicas.all if not one.down]:
                    replica.compare(peer)
        except (LabError, Refused) as error:
            if not replica.on_trial:
                raise
            if (refusal := f"not taken: {error}") != replica.trouble:
                replica.trouble = refusal
                self._note(replica, refusal)
            raise BadAnswer(refusal) from None
        replica.on_trial = False

    def _note(self, replica: ModelReplica, why: str) -> None:
        self.replicas.changes.append(Change(replica.host.url, False, time.time(), why))

    async def _connect(self) -> None:
        """Everyone must serve the model; one that is down may come later, as long as another is up."""
        lost = [replica for replica in self.replicas.all if replica.down]
        contacts = (self._first_contact(replica) for replica in self.replicas.all if not replica.down)
        outcomes = await asyncio.gather(*contacts, return_exceptions=True)
        # Then those that were lost: what they say is compared with what the others have just said.
        some_are_there = any(not replica.down for replica in self.replicas.all)
        returning = [asyncio.create_task(self._first_contact(replica)) for replica in lost]
        outcomes += await _done_within(returning, RETURN_S if some_are_there else None)
        for outcome in outcomes:
            if isinstance(outcome, LabError):
                raise outcome
        if all(replica.down for replica in self.replicas.all):
            troubles = self.replicas.troubles()
            raise ServersGone(f"no server answers ({troubles}); start one with `rlvr serve model PATH`")

    async def _first_contact(self, replica: ModelReplica) -> None:
        url, tries = replica.host.url, 1 if replica.down else FIRST_TRIES  # each update would wait for a lost one
        for attempt in range(tries):
            if attempt:
                await asyncio.sleep(self.replicas.pause_s * attempt)
            try:
                async with asyncio.timeout(self._start_s):
                    if not self.model:
                        names = await replica.models()
                        if len(names) != 1:
                            served = ", ".join(names) or "nothing it lists"
                            raise UserError(f"{url} serves {served}; choose with --model NAME")
                        self.model = self.model or names[0]
                    await self._check(replica)
                    return self.replicas.reopen(replica)
            except Refused as error:
                if error.status not in BUSY | RETRIED:
                    key = "; put the key into the environment variable that --key-env names"
                    raise UserError(f"{url}: {error}{key if error.status in (401, 403) else ''}") from None
                self.replicas.absent(replica, str(error))
            except FAILURES as error:
                self.replicas.absent(replica, words(error, self._start_s))
                if isinstance(error, TimeoutError):
                    return None
        return None

    def _await(self, work: Coroutine[Any, Any, U]) -> U:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _done_within(tasks: Sequence[asyncio.Task[None]], seconds: float | None) -> list[BaseException | None]:
    """What came of each; those that take longer are given up."""
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


class Outbox(Generic[T]):
    """A queue from the thread that asks servers to the one that judges their answers."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._change = threading.Condition()
        self._finished = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        with self._change:
            self._items.append(item)
            self._change.notify()

    def finish(self) -> None:
        with self._change:
            self._finished = True
            self._change.notify_all()

    def take(self, most: int) -> list[T]:
        """At least one as soon as there is one; nothing when it is over."""
        with self._change:
            while not self._items and not self._finished:
                self._change.wait()
            return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def wait_until_finished(self, timeout_s: float) -> None:
        with self._change:
            self._change.wait_for(lambda: self._finished, timeout_s)


__all__ = ["ModelChanged", "Servers", "ServersGone"]
