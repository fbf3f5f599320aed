"""A client of SandboxFusion servers, ours included: bounded retries, deadlines, Retry-After, circuit breaker, replicas.

Whatever goes wrong on the way is an InfrastructureError and stays unjudged: refused connections, 5xx, truncated JSON,
a body that is no answer, and silence. The extra `rlvrlab[judge-remote]` brings httpx.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge import compare
from rlvrlab.judge.finding import Finding
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import StdioTask, Task
from rlvrlab.types import Verdict, unjudged

if TYPE_CHECKING:
    import httpx

RETRIED = {408, 425, 429, 500, 502, 503, 504}
LONGEST_PAUSE_S = 30.0


@dataclass
class Replica:
    """One server and its circuit breaker."""

    url: str
    failures: int = 0
    closed_until: float = 0.0
    """Monotonic time before which it is left alone."""


@dataclass
class FusionClient:
    """Programs judged elsewhere."""

    endpoints: tuple[str, ...]
    token: str | None = None
    attempts: int = 4
    deadline_s: float = 60.0
    """For one request, from connecting to the last byte."""
    pause_s: float = 0.2
    """Before the second attempt; doubles, with jitter."""
    break_after: int = 5
    """Failures in a row after which a replica is left alone."""
    cooldown_s: float = 15.0
    concurrency: int = 32
    _http: httpx.AsyncClient | None = None
    _replicas: list[Replica] = field(default_factory=list)

    def __post_init__(self) -> None:
        for endpoint in self.endpoints:
            parts = urlsplit(endpoint)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise UserError(f"endpoint {endpoint!r}: an http:// or https:// address is needed")
        if not self.endpoints:
            raise UserError("a SandboxFusion client needs at least one endpoint")
        self._replicas = [Replica(endpoint.rstrip("/").removesuffix("/run_code")) for endpoint in self.endpoints]
        self._turn = itertools.cycle(range(len(self._replicas)))
        self._places = asyncio.Semaphore(self.concurrency)
        self._ours: bool | None = None

    async def run_code(self, code: str, stdin: str = "", **options: Any) -> dict[str, Any]:
        """SandboxFusion's /run_code; a SandboxError counts as a failure of the server."""
        request = {"code": code, "language": "python", "stdin": stdin, **options}
        return await self._post("/run_code", request, _run_code_answer)

    async def submit(self, request: dict[str, Any]) -> dict[str, Any]:
        """SandboxFusion's /submit."""
        return await self._post("/submit", request, _submit_answer)

    async def judge(self, code: str, task: Task) -> Verdict:
        """One program. A server of ours judges it whole; any other only runs it, and the output is compared here."""
        try:
            if await self._is_ours():
                form = {"items": [{"code": code, "task": wire.task_to_wire(task)}]}
                answer = await self._post("/judge", form, _judge_answer)
                return wire.verdict_from_wire(answer["verdicts"][0])
            if isinstance(task, StdioTask) and task.checker is None:
                return await self._judge_stdio(code, task)
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation="remote")
        return unjudged("a plain SandboxFusion server can be trusted with stdio tasks only", isolation="remote")

    async def _judge_stdio(self, code: str, task: StdioTask) -> Verdict:
        finding = Finding(total=len(task.tests))
        options = {"run_timeout": task.limits.wall_or_default_s, "memory_limit_MB": task.limits.memory_mb}
        for given, expected in task.tests:
            answer = await self.run_code(code, given, **options)
            run = answer["run_result"] or {}
            if run.get("status") == "TimeLimitExceeded":
                finding.fail(Outcome.TIME_LIMIT, "the server's time limit")
            elif answer["status"] != "Success":
                finding.fail(Outcome.RUNTIME_ERROR, str(run.get("stderr", ""))[-200:])
            elif compare.same_text(str(run.get("stdout", "")).encode("utf-8", "replace"), expected, task.comparison):
                finding.passed += 1
                continue
            else:
                finding.fail(Outcome.WRONG_ANSWER, "another output")
            break
        return finding.verdict("remote")

    async def _is_ours(self) -> bool:
        if self._ours is None:
            answer = await self._request("GET", "/v1/ping", None)
            self._ours = "x-rlvrlab-judge" in answer.headers
        return self._ours

    async def _post(self, path: str, content: dict[str, Any], check: Any) -> dict[str, Any]:
        answer = await self._request("POST", path, content, check)
        result: dict[str, Any] = answer.json()
        return result

    async def _request(self, method: str, path: str, content: Any, check: Any = None) -> httpx.Response:
        trouble, pause = "", self.pause_s
        async with self._places:
            for attempt in range(self.attempts):
                replica = await self._next_replica()
                try:
                    answer = await self._once(replica, method, path, content, check)
                except _TryAgain as error:
                    trouble = f"{replica.url}{path}: {error}"
                    self._note_failure(replica)
                    if attempt < self.attempts - 1:
                        await asyncio.sleep(min(LONGEST_PAUSE_S, error.after or pause * (0.5 + random.random())))
                    pause *= 2
                else:
                    replica.failures = 0
                    return answer
        raise InfrastructureError(f"{trouble} ({self.attempts} attempts)")

    async def _once(self, replica: Replica, method: str, path: str, content: Any, check: Any) -> httpx.Response:
        client, http_error = self._connected()
        try:
            async with asyncio.timeout(self.deadline_s):
                answer = await client.request(method, replica.url + path, json=content)
        except TimeoutError:
            raise _TryAgain(f"no answer within {self.deadline_s:g} s") from None
        except http_error as error:
            raise _TryAgain(f"{type(error).__name__}: {error}") from None
        if answer.status_code in RETRIED:
            raise _TryAgain(f"HTTP {answer.status_code}", _retry_after(answer))
        if answer.status_code != 200:
            raise InfrastructureError(f"{replica.url}{path}: HTTP {answer.status_code}: {answer.text[:200]}")
        if check is not None:
            _checked(answer, check)
        return answer

    def _connected(self) -> tuple[httpx.AsyncClient, type[Exception]]:
        try:
            import httpx
        except ImportError:
            raise UserError("a remote judge needs httpx: pip install 'rlvrlab[judge-remote]'") from None
        if self._http is None:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            # Redirects could lead a token, or a program, to a host nobody configured.
            self._http = httpx.AsyncClient(headers=headers, follow_redirects=False, timeout=None)  # noqa: S113
        return self._http, httpx.HTTPError

    async def _next_replica(self) -> Replica:
        now = time.monotonic()
        for _ in self._replicas:
            replica = self._replicas[next(self._turn)]
            if replica.closed_until <= now:
                return replica
        soonest = min(self._replicas, key=lambda one: one.closed_until)
        await asyncio.sleep(max(0.0, soonest.closed_until - now))
        return soonest

    def _note_failure(self, replica: Replica) -> None:
        replica.failures += 1
        if replica.failures >= self.break_after:
            replica.closed_until = time.monotonic() + self.cooldown_s
            replica.failures = self.break_after - 1

    async def close(self) -> None:
        """Give the connections back."""
        if self._http is not None:
            await self._http.aclose()


class _TryAgain(Exception):
    """A failure another attempt may mend; `after` is what the server asked for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


def _retry_after(answer: httpx.Response) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdigit() else None


def _checked(answer: httpx.Response, check: Any) -> None:
    if "json" not in answer.headers.get("content-type", ""):
        raise _TryAgain("the answer is not JSON")
    try:
        content = answer.json()
    except (ValueError, RecursionError):
        raise _TryAgain("the answer is broken JSON") from None
    if not (isinstance(content, dict) and check(content)):
        raise _TryAgain(f"not an answer: {str(content)[:200]}")


def _run_code_answer(content: dict[str, Any]) -> bool:
    return content.get("status") in ("Success", "Failed")


def _submit_answer(content: dict[str, Any]) -> bool:
    return isinstance(content.get("accepted"), bool) and isinstance(content.get("tests"), list)


def _judge_answer(content: dict[str, Any]) -> bool:
    return isinstance(content.get("verdicts"), list) and len(content["verdicts"]) == 1
