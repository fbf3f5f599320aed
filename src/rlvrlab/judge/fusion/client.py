"""A client of SandboxFusion servers, ours included: bounded retries, deadlines, Retry-After, several replicas.

Whatever goes wrong with one request is an InfrastructureError and stays unjudged: 5xx, truncated JSON, a body that is
no answer, and silence. Busy is not broken: 429 and 503 are waited out and cost no attempt, so that no request is lost
however many there are. When no server is left at all, or none lets us in, JudgeLost stops the run (see replicas.py).
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from rlvrlab.errors import InfrastructureError, JudgeLost
from rlvrlab.http_client import BadAnswer, NotConnected, Response
from rlvrlab.judge import compare
from rlvrlab.judge.code import SCORER_VERSION
from rlvrlab.judge.finding import Finding
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.replicas import LONGEST_PAUSE_S, Replica, Replicas
from rlvrlab.judge.jail.plain import NotPlain
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import StdioTask, Task
from rlvrlab.types import Verdict, unjudged

BUSY = {429, 503}
RETRIED = {408, 425, 500, 502, 504}
CLOSED_DOORS = {
    401: "set RLVR_JUDGE_TOKEN to its token",
    403: "it does not serve this host name",
    404: "it is no judge, or no `rlvr serve judge` beside others that are",
    405: "it is no judge",
}
"""Statuses that every further request would get as well."""


@dataclass
class FusionClient:
    """Programs judged elsewhere."""

    endpoints: tuple[str, ...]
    token: str | None = None
    attempts: int = 4
    """Requests broken on their way before an answer stays unjudged."""
    deadline_s: float = 120.0
    """For one request, from connecting to the last byte."""
    pause_s: float = 0.2
    """Before the second attempt; doubles, with jitter."""
    break_after: int = 5
    """Failures in a row after which a replica is left alone."""
    cooldown_s: float = 15.0
    concurrency: int = 64
    """Requests at once, over all replicas."""
    give_up_s: float = 120.0
    """Without a sign of life from any server."""
    patience_s: float = 1800.0
    """With servers that are all too busy."""
    every_test: bool = False
    """Go on after a failed test, for the true share of tests passed."""
    replicas: Replicas = field(init=False)

    def __post_init__(self) -> None:
        self.replicas = Replicas(
            self.endpoints,
            self.token,
            break_after=self.break_after,
            cooldown_s=self.cooldown_s,
            give_up_s=self.give_up_s,
            patience_s=self.patience_s,
        )
        self._places = asyncio.Semaphore(self.concurrency)
        self._ours: bool | None = None

    async def run_code(self, code: str, stdin: str = "", **options: Any) -> dict[str, Any]:
        """SandboxFusion's /run_code; a SandboxError counts as a failure of the server."""
        request = {"code": code, "language": "python", "stdin": stdin, **options}
        return _content(await self._request("/run_code", request, _run_code_answer))

    async def submit(self, request: dict[str, Any]) -> dict[str, Any]:
        """SandboxFusion's /submit."""
        return _content(await self._request("/submit", request, _submit_answer))

    async def judge(self, code: str, task: Task) -> Verdict:
        """One program. A server of ours judges it whole; any other only runs it, and the output is compared here."""
        try:
            if await self._is_ours():
                item = {"code": code, "task": wire.task_to_wire(task), "every_test": self.every_test}
                answer = _content(await self._request("/judge", {"items": [item]}, _judge_answer))
                return wire.verdict_from_wire(answer["verdicts"][0])
            if isinstance(task, StdioTask) and task.checker is None:
                return await self._judge_stdio(code, task)
        except NotPlain as error:
            trouble = f"bad task: an argument or result is a {error}, which is not plain data"
            return unjudged(trouble, isolation="remote", flags=("bad_task",))
        except JudgeLost:
            raise
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation="remote")
        return unjudged("a plain SandboxFusion server can be trusted with stdio tasks only", isolation="remote")

    async def _judge_stdio(self, code: str, task: StdioTask) -> Verdict:
        finding = Finding(total=len(task.tests))
        options = {"run_timeout": task.limits.wall_or_default_s, "memory_limit_MB": task.limits.memory_mb}
        for given, expected in task.tests:
            answer = await self.run_code(code, given, **options)
            run = answer.get("run_result") or {}
            if run.get("status") == "TimeLimitExceeded":
                finding.fail(Outcome.TIME_LIMIT, "the server's time limit")
            elif answer["status"] != "Success":
                finding.fail(Outcome.RUNTIME_ERROR, str(run.get("stderr", ""))[-200:])
            elif compare.same_text(str(run.get("stdout", "")).encode("utf-8", "replace"), expected, task.comparison):
                finding.passed += 1
                continue
            else:
                finding.fail(Outcome.WRONG_ANSWER, "another output")
            if not self.every_test:
                break
        return finding.verdict("remote")

    async def _is_ours(self) -> bool:
        if self._ours is None:
            answer = await self._request("/v1/ping", None)
            self._ours = wire.MARK in answer.headers
        return self._ours

    async def _request(self, path: str, content: dict[str, Any] | None, check: Any = None) -> Response:
        """Ask until there is an answer; only what a server took and broke counts as an attempt."""
        trouble, pause, broken, since = "", self.pause_s, 0, time.monotonic()
        async with self._places:
            while broken < self.attempts:
                replica = await self.replicas.next(since)
                try:
                    with self.replicas.asking(replica):
                        return await self._noted(replica, path, content, check)
                except (NotConnected, _Busy):
                    pass
                except _Broken as error:
                    broken, trouble = broken + 1, f"{replica.host.url}{path}: {error}"
                    if broken < self.attempts:
                        await asyncio.sleep(min(LONGEST_PAUSE_S, pause * (0.5 + random.random())))
                    pause *= 2
        raise InfrastructureError(f"{trouble} ({self.attempts} attempts)")

    async def _noted(self, replica: Replica, path: str, content: dict[str, Any] | None, check: Any) -> Response:
        try:
            answer = await self._once(replica, path, content, check)
        except NotConnected as error:
            self.replicas.absent(replica, str(error))
            raise
        except _Busy as error:
            self.replicas.busy(replica, error.after_s)
            raise
        except _Broken as error:
            self.replicas.failed(replica, str(error))
            raise
        self.replicas.answered(replica)
        return answer

    async def _once(self, replica: Replica, path: str, content: dict[str, Any] | None, check: Any) -> Response:
        host = replica.host
        try:
            async with asyncio.timeout(self.deadline_s):
                answer = await (host.get(path) if content is None else host.post(path, content))
        except NotConnected:
            raise
        except TimeoutError:
            raise _Broken(f"no answer within {self.deadline_s:g} s") from None
        except (BadAnswer, OSError) as error:
            raise _Broken(str(error) or type(error).__name__) from None
        if answer.status in BUSY:
            raise _Busy(_retry_after(answer))
        if answer.status in RETRIED:
            raise _Broken(f"HTTP {answer.status}")
        if answer.status in CLOSED_DOORS:
            raise JudgeLost(f"{host.url}{path}: HTTP {answer.status}; {CLOSED_DOORS[answer.status]}")
        if answer.status != 200:
            words = answer.body[:200].decode("utf-8", "replace")
            raise InfrastructureError(f"{host.url}{path}: HTTP {answer.status}: {words}")
        if (theirs := answer.headers.get(wire.MARK, SCORER_VERSION)) != SCORER_VERSION:
            raise JudgeLost(
                f"{host.url} scores as {theirs}, here it is {SCORER_VERSION}; run one version on both sides"
            )
        if check is not None:
            _checked(answer, check)
        return answer

    async def close(self) -> None:
        """Give the connections back."""
        for replica in self.replicas.all:
            await replica.host.close()


class _Broken(Exception):
    """A failure another attempt may mend."""


class _Busy(Exception):
    """Turned away for now."""

    def __init__(self, after_s: float | None) -> None:
        super().__init__("busy")
        self.after_s = after_s


def _retry_after(answer: Response) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _content(answer: Response) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(answer.body)
    return content


def _checked(answer: Response, check: Any) -> None:
    if "json" not in answer.headers.get("content-type", ""):
        raise _Broken("the answer is not JSON")
    try:
        content = answer.json()
    except BadAnswer as error:
        raise _Broken(str(error)) from None
    if not check(content):
        raise _Broken(f"not an answer: {str(content)[:200]}")


def _run_code_answer(content: dict[str, Any]) -> bool:
    run = content.get("run_result")
    return content.get("status") in ("Success", "Failed") and (run is None or isinstance(run, dict))


def _submit_answer(content: dict[str, Any]) -> bool:
    return isinstance(content.get("accepted"), bool) and isinstance(content.get("tests"), list)


def _judge_answer(content: dict[str, Any]) -> bool:
    return isinstance(content.get("verdicts"), list) and len(content["verdicts"]) == 1
