"""`rlvr serve judge`: SandboxFusion's /run_code, /submit, data sets and /v1/ping, and a batch /judge of our own.

Admission control instead of hanging: beyond its queue it answers 429, while it stops 503, both with Retry-After. What
runs when it is told to stop is finished first. Reached from this machine only, unless told otherwise with a token.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.http_access import admit_token, refuse_open_door
from rlvrlab.http_messages import HttpError, Request
from rlvrlab.http_server import HttpServer, JsonRoutes
from rlvrlab.judge.code import SCORER_VERSION, CodeJudge
from rlvrlab.judge.finding import tried
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.datasets import Datasets
from rlvrlab.judge.fusion.files import fetched_names, given_files
from rlvrlab.judge.fusion.submissions import Executed, judge_submission
from rlvrlab.judge.statistics import Stopwatch
from rlvrlab.judge.task_forms import shown, task_of
from rlvrlab.judge.tasks import Task
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.pool import Pool

T = TypeVar("T")
LONGEST_PAUSE_S = 30
MOST_ITEMS = 10_000
"""Programs in one request to /judge: each takes about 4 kB here, however short it is in the request."""
TOKEN_ENV = "RLVR_JUDGE_TOKEN"  # noqa: S105
WANTED: dict[type, str] = {str: "a string", dict: "an object", list: "a list"}
MARK = {wire.MARK: SCORER_VERSION}
"""By this our client knows that /judge is there, and that it scores alike."""


@dataclass
class JudgeServer:
    """The service around one pool."""

    pool: Pool = field(default_factory=Pool)
    token: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    queue: int = 256
    """Jobs waiting or running beyond which new requests are turned away."""
    hosts: Sequence[str] = ()
    """Names under which it may be asked, besides this machine's own."""
    datasets: Datasets = field(default_factory=Datasets)
    """Problems that it keeps, to be asked for and judged by their id."""

    def __post_init__(self) -> None:
        refuse_open_door(self.host, self.token, TOKEN_ENV)
        self.judge = CodeJudge(self.pool)
        self.hasty = CodeJudge(self.pool, every_test=False, reader=self.judge.reader)
        self.stopwatch = Stopwatch()
        self.load = self.most_load = self.refused = 0
        routes: dict[tuple[str, str], Callable[[Request], Any]] = {
            ("GET", "/v1/ping"): lambda request: "pong",
            ("GET", "/v1/load"): self._report,
            ("GET", "/list_datasets"): lambda request: self.datasets.names(),
            ("POST", "/list_ids"): lambda request: self.datasets.ids(request.json()),
            ("POST", "/get_prompts"): lambda request: self.datasets.prompts(request.json()),
            ("POST", "/get_prompt_by_id"): lambda request: self.datasets.prompt(request.json()),
            ("POST", "/run_code"): self._run_code,
            ("POST", "/submit"): self._submit,
            ("POST", "/judge"): self._judge,
        }
        answer = JsonRoutes(routes, mistake=422, headers=MARK)
        self.http = HttpServer(answer, lambda head: admit_token(head, self.token), self.hosts)

    async def start(self) -> None:
        """Start workers and listen; `port` becomes the real one when it was 0."""
        await self.pool.warm()
        self.port = await self.http.start(self.host, self.port)

    async def stop(self, grace_s: float = 0.0) -> None:
        """Turn new requests away, finish what runs within `grace_s`, end connections and workers."""
        await self.http.close(grace_s)
        self.pool.close()

    @asynccontextmanager
    async def _place(self, jobs: int = 1) -> AsyncIterator[None]:
        if self.load and self.load + jobs > self.queue:
            self.refused += 1
            # Half the queue is worked off by then, judging by what a request has taken lately.
            lately = self.stopwatch.durations_ms[-64:]
            each_s = sum(lately) / len(lately) / 1000 if lately else 1.0
            after_s = min(LONGEST_PAUSE_S, max(1, math.ceil(each_s / 2)))
            raise HttpError(429, f"{self.load} jobs are waiting already", Retry_After=str(after_s))
        self.load += jobs
        self.most_load = max(self.most_load, self.load)
        started = time.monotonic()
        try:
            yield
            self.stopwatch.note(time.monotonic() - started, "", "", True)
        finally:
            self.load -= jobs

    def _report(self, _: Request) -> dict[str, Any]:
        """How busy it is and was; milliseconds from a request's admission to its answer."""
        seen = self.stopwatch.summary()
        times = {name: None if math.isnan(ms) else round(ms, 3) for name, ms in
                 (("p50_ms", seen.p50_ms), ("p95_ms", seen.p95_ms), ("p99_ms", seen.p99_ms))}  # fmt: skip
        return {
            "load": self.load, "most_load": self.most_load, "queue": self.queue, "workers": self.pool.size,
            "answered": seen.checks, "refused": self.refused, "connections": self.http.connections,
            "held_bytes": self.http.held_bytes, "worker_restarts": self.pool.restarts, **times,
        }  # fmt: skip

    async def _run_code(self, request: Request) -> dict[str, Any]:
        form = request.json()
        async with self._place():
            return await run_code(self.pool, form)

    async def _submit(self, request: Request) -> dict[str, Any]:
        """SandboxFusion's own server answers with 500 where its sandbox failed, and its clients then ask again."""
        form = request.json()
        async with self._place():
            try:
                return await judge_submission(form, self._execute, self.judge, self.datasets)
            except InfrastructureError as error:
                raise HttpError(500, f"the machine failed, not the answer: {error}") from None

    async def _execute(self, form: dict[str, Any]) -> Executed:
        return await execute(self.pool, form, patient=True)

    async def _judge(self, request: Request) -> dict[str, Any]:
        items = request.json().get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UserError("items: a list of {code, task}")
        if len(items) > MOST_ITEMS:
            raise UserError(
                f"items: {len(items)} of them; at most {MOST_ITEMS} in one request, send the others in another"
            )
        judges = [self.hasty if item.get("every_test") is False else self.judge for item in items]
        async with self._place(max(1, len(items))):
            # Not on the event loop: many large fractions or tables take long to make, and others are waiting.
            pairs = await asyncio.to_thread(_programs_and_tasks, items)
            asked = zip(judges, pairs, strict=True)
            verdicts = await asyncio.gather(*(judge.judge(code, task) for judge, (code, task) in asked))
        return {"verdicts": [wire.verdict_to_wire(verdict) for verdict in verdicts]}


def _programs_and_tasks(items: list[dict[str, Any]]) -> list[tuple[str, Task]]:
    """UserError where one of them is malformed: what is no text is no program, and so no wrong answer either."""
    for at, item in enumerate(items):
        if not isinstance(item.get("code"), str):
            raise UserError(f"items[{at}].code: {shown(item.get('code'))}; a string is needed")
    return [(item["code"], task_of(item.get("task", {}))) for item in items]


def _given(form: dict[str, Any], key: str, default: T) -> T:
    """A part of a request, which is of the default's type or left out."""
    value = form.get(key)
    if value is not None and not isinstance(value, type(default)):
        raise UserError(f"{key}: {shown(value)}; {WANTED[type(default)]} is needed")
    return default if value is None else value


async def run_code(pool: Pool, form: dict[str, Any]) -> dict[str, Any]:
    """One program, as SandboxFusion runs it; a SandboxError, which clients retry, where the machine failed."""
    try:
        return (await execute(pool, form)).response
    except InfrastructureError as error:
        nothing: dict[str, Any] = {"compile_result": None, "run_result": None, "files": {}}
        return {"status": "SandboxError", "message": str(error), **nothing}


async def execute(pool: Pool, form: dict[str, Any], patient: bool = False) -> Executed:
    """Run the program of a request to /run_code; InfrastructureError where the machine did not let it end.

    Somebody who is `patient` wants a verdict: a time limit that was met in stolen time is not believed at once.
    """
    code, language = form.get("code"), form.get("language")
    if not isinstance(code, str):
        raise UserError(f"code: {shown(code)}; a string is needed")
    if language not in ("python", "python3"):
        raise UserError(f"language: {language!r:.80} is not supported; allowed: python")
    limits = wire.limits_of(form)
    stdin = _given(form, "stdin", "")
    files, names = given_files(_given(form, "files", {}), limits), fetched_names(_given(form, "fetch_files", []))
    try:
        given = stdin.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UserError("stdin: half a character (a lone surrogate) is no text") from None
    job = {
        "role": "program",
        "code": code,
        "files": files,
        "fetch_files": names,
    }

    async def run() -> Executed:
        ran = await pool.run(Order(job, limits, given))
        return Executed(ran.stdout, wire.run_code_response(ran, limits, pool.image.isolation, names))

    deadline = wire.deadline_s(form, limits)
    try:
        async with asyncio.timeout(deadline):
            return await tried(run, patient)
    except TimeoutError:
        late = f"the program was not done after {deadline:g} s, nor had it used up its time"
        raise InfrastructureError(f"the machine is too busy: {late}") from None
