"""Several servers of one model, asked abreast: round-robin, bounded retries, health checks, and a watch on the model.

A request that fails for good is a Reply with Finish.ERROR and the reason: no answer, never a wrong one. A server that
dies is left out until it passes its check again; when none is left for `give_up_s`, ServersGone ends the call. One that
turns out to serve another model ends it at once with ModelChanged: results of two models are never mixed.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import cycle
from types import TracebackType
from typing import Any, TypeVar

from rlvrlab.engines.openai.outbox import Outbox
from rlvrlab.engines.openai.replica import ModelChanged, Prepare, Refused, Replica
from rlvrlab.engines.openai.wire import CHAT, COMPLETIONS, Body, Reply, parse
from rlvrlab.errors import InfrastructureError, LabError, UserError
from rlvrlab.http_client import BadAnswer, Host, Response

RETRIED = {408, 425, 429, 500, 502, 503, 504}
LONGEST_PAUSE_S = 60.0
TOO_MANY = 429
"""Busy is not broken."""
MOST_READY = 64
CLOSE_S = 10.0
RECHECK_S = 1.0
"""Between two looks at a server that is down."""
FIRST_TRIES = 4
FAILURES = (OSError, TimeoutError, BadAnswer)
T = TypeVar("T")
R = TypeVar("R")


class ServersGone(InfrastructureError):
    """No server answers any more."""


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
    ) -> None:
        """`deadline_s` bounds one attempt, `give_up_s` the time without any server, `start_s` the first contact.

        `chat` False continues plain text, for models without a chat template. `prepare` is done at each server before
        it is asked and after it came back; `say` is told when all are lost and waited for.
        """
        if not urls:
            raise UserError("name at least one server, e.g. --server http://127.0.0.1:8000")
        if concurrency < 1 or attempts < 1 or deadline_s <= 0:
            raise UserError("servers: concurrency and attempts must be at least 1, the deadline above 0")
        self.chat = chat
        self._replicas = [Replica(url, key, chat, prepare) for url in dict.fromkeys(urls)]
        self._say, self._said = say, False
        self._wanted, self.model = model, model or ""
        self._concurrency, self._attempts, self._deadline_s = concurrency, attempts, deadline_s
        self._pause_s, self._check_s, self._give_up_s, self._start_s = pause_s, check_s, give_up_s, start_s
        self._turn = cycle(self._replicas)
        self._alive_at = time.monotonic()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End connections and the thread; may be called twice."""
        if self._thread.is_alive():
            with suppress(Exception):
                self._await(self._hang_up())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()

    def switch(self, model: str) -> None:
        """Ask for another model from now on, e.g. the next adapter; no request may be on its way."""
        self.model = model
        for replica in self._replicas:
            replica.forget()
        self._await(self._connect())

    def each(self, work: Callable[[Host], Awaitable[object]], timeout_s: float) -> None:
        """Do something else at every server; what fails is left, e.g. tidying up at one that is gone."""

        async def one(host: Host) -> None:
            with suppress(*FAILURES, Refused):
                async with asyncio.timeout(timeout_s):
                    await work(host)

        async def everyone() -> None:
            await asyncio.gather(*(one(replica.host) for replica in self._replicas))

        if self._thread.is_alive():
            self._await(everyone())

    def identity(self) -> dict[str, Any]:
        """Addresses and what each really serves."""
        return {"model": self.model, "chat": self.chat, "servers": [replica.facts() for replica in self._replicas]}

    def replies(self, orders: Iterable[tuple[T, Body]]) -> Iterator[list[tuple[T, Reply]]]:
        """The reply to each order, in lists as they become ready; `orders` is read only as fast as answers come."""
        path = CHAT if self.chat else COMPLETIONS
        pairs = ((tag, body, path) for tag, body in orders)
        for ready in self._stream(pairs):
            yield [(tag, given[0]) for tag, given in ready]

    def all_choices(self, bodies: Sequence[Body]) -> list[list[Reply]]:
        """Every choice of each completion request, in their order."""
        orders = ((index, body, COMPLETIONS) for index, body in enumerate(bodies))
        found = dict(pair for ready in self._stream(orders) for pair in ready)
        return [found[index] for index in range(len(bodies))]

    def _stream(self, orders: Iterable[tuple[T, Body, str]]) -> Iterator[list[tuple[T, list[Reply]]]]:
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
        watches = [asyncio.create_task(self._watch(replica)) for replica in self._replicas]
        workers = [asyncio.create_task(self._work(orders, outbox)) for _ in range(self._concurrency)]
        try:
            waiting: set[asyncio.Task[None]] = {*workers, *watches}
            while not all(worker.done() for worker in workers):
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in (*workers, *watches):
                task.cancel()
            await asyncio.gather(*workers, *watches, return_exceptions=True)
            outbox.finish()

    async def _work(self, orders: Iterator[tuple[T, Body, str]], outbox: Outbox[tuple[T, list[Reply]]]) -> None:
        for tag, body, path in orders:
            while len(outbox) > 4 * self._concurrency:
                await asyncio.sleep(0.01)  # judging lags behind: answers that nobody keeps yet would be lost by a kill
            outbox.put((tag, await self._ask(path, body)))

    async def _ask(self, path: str, body: Body) -> list[Reply]:
        """An answer, or a reply that says why there is none."""
        problem, attempt = "", 0
        for attempt in range(1, self._attempts + 1):
            replica = await self._next()
            pause: float | None = None
            try:
                async with asyncio.timeout(self._deadline_s):
                    response = await replica.host.post(path, {"model": self.model, **body})
                if response.status in RETRIED:
                    pause = _retry_after(response)
                replies = _checked(response)
                replica.confirm(self.model, replies[0].model)
                replica.failures = 0
                return [reply._replace(server=replica.host.url, attempts=attempt) for reply in replies]
            except Refused as error:
                problem = str(error)
                if error.status not in RETRIED:
                    await self._check(replica)  # a model that is gone is refused like a bad request
                    break
            except FAILURES as error:
                problem = _words(error, self._deadline_s)
            replica.fail(problem)
            if attempt < self._attempts:
                await asyncio.sleep(
                    self._pause_s * 2 ** (attempt - 1) * (1 + random.random()) if pause is None else pause
                )
        return [Reply(server=replica.host.url, attempts=attempt, error=problem)]

    async def _next(self) -> Replica:
        """The next server that is up; waits for one, but not for ever."""
        while True:
            for _ in self._replicas:
                replica = next(self._turn)
                if replica.up:
                    self._alive_at, self._said = time.monotonic(), False
                    return replica
            if self._say and not self._said:
                self._said = True
                self._say(f"{self._troubles()}; waiting up to {self._give_up_s:g} s")
            if time.monotonic() - self._alive_at > self._give_up_s:
                raise ServersGone(f"no server has answered for {self._give_up_s:g} s ({self._troubles()})")
            await asyncio.sleep(min(0.1, self._give_up_s / 4))

    async def _watch(self, replica: Replica) -> None:
        """Look after a server: whether it is there, and whether it is still the same."""
        while True:
            if replica.up:  # it may be down since the call before this one
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._check_s):
                        await replica.went_down.wait()
            replica.went_down.clear()
            while True:
                with suppress(*FAILURES, Refused):
                    await self._check(replica)
                    break
                await asyncio.sleep(min(RECHECK_S, self._check_s))

    async def _check(self, replica: Replica) -> None:
        async with asyncio.timeout(min(self._deadline_s, self._start_s)):
            await replica.check(self.model)

    async def _connect(self) -> None:
        """Everyone must serve the model; one that is down may come later, as long as another is up."""
        outcomes = await asyncio.gather(*(self._first_contact(r) for r in self._replicas), return_exceptions=True)
        fatal = [error for error in outcomes if isinstance(error, LabError)]
        if fatal:
            raise fatal[0]
        if not any(replica.up for replica in self._replicas):
            raise ServersGone(f"no server answers ({self._troubles()}); start one with `rlvr serve model PATH`")
        self._alive_at = time.monotonic()

    async def _first_contact(self, replica: Replica) -> None:
        for attempt in range(FIRST_TRIES):
            try:
                async with asyncio.timeout(self._start_s):
                    if not self.model:
                        names = await replica.models()
                        self.model = self.model or _only(names, replica.host.url)
                    return await replica.check(self.model)
            except Refused as error:
                if error.status not in RETRIED:
                    raise UserError(f"{replica.host.url}: {error}{_remedy(error.status)}") from None
                replica.fail(str(error), at_once=True)
            except FAILURES as error:
                replica.fail(_words(error, self._start_s), at_once=True)
                if isinstance(error, TimeoutError):
                    return None
            await asyncio.sleep(self._pause_s * (attempt + 1))
        return None

    def _troubles(self) -> str:
        return "; ".join(f"{one.host.url}: {one.trouble}" for one in self._replicas)

    async def _hang_up(self) -> None:
        for replica in self._replicas:
            await replica.host.close()

    def _await(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _checked(response: Response) -> list[Reply]:
    if response.status != 200:
        raise Refused(response)
    content = response.json()
    if "error" in content and not content.get("choices"):
        raise BadAnswer(f"an error under status 200: {str(content['error'])[:200]}")
    return parse(content)


def _retry_after(response: Response) -> float | None:
    """Seconds or a date; bounded, because a server may ask for anything."""
    text = response.headers.get("retry-after", "")
    if text.isdigit():
        return min(LONGEST_PAUSE_S, float(text))
    with suppress(ValueError, TypeError):
        return min(LONGEST_PAUSE_S, max(0.0, parsedate_to_datetime(text).timestamp() - time.time()))
    return None


def _words(error: BaseException, deadline_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline_s:g} s"
    return str(error) or type(error).__name__


def _only(names: list[str], url: str) -> str:
    if len(names) != 1:
        raise UserError(f"{url} serves {', '.join(names) or 'nothing it lists'}; choose with --model NAME")
    return names[0]


def _remedy(status: int) -> str:
    return "; put the key into the environment variable that --key-env names" if status in (401, 403) else ""


__all__ = ["ModelChanged", "Servers", "ServersGone"]
