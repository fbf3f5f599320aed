"""A client of SandboxFusion servers, ours included, over the pool of rlvrlab/replicas.py.

Whatever goes wrong with one request is an InfrastructureError and stays unjudged: 5xx, truncated JSON, a body that is
no answer, and silence. When no server is left at all, or none lets us in, JudgeLost stops the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rlvrlab.errors import InfrastructureError, JudgeLost, UserError
from rlvrlab.http_client import BadAnswer, Host, Response
from rlvrlab.judge.code import SCORER_VERSION
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.plain_sandbox import judge_plain, refusal
from rlvrlab.judge.jail.plain import NotPlain
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import Task
from rlvrlab.replicas import NoAnswer, Replica, Replicas, ServersGone
from rlvrlab.types import Verdict, bad_task, unjudged

T = TypeVar("T")
CLOSED_DOORS = {
    401: "set RLVR_JUDGE_TOKEN to its token",
    403: "it does not serve this host name",
    404: "it is no judge, or no `rlvr serve judge` beside others that are",
    405: "it is no judge",
}
"""Statuses that every further request would get as well."""


class FusionClient:
    """Programs judged elsewhere."""

    def __init__(
        self,
        endpoints: Sequence[str],
        token: str | None = None,
        *,
        concurrency: int = 64,
        every_test: bool = True,
        plain_sandbox: bool = False,
        **pool: Any,
    ) -> None:
        """At most `concurrency` requests at once; `every_test` as in CodeJudge.

        `plain_sandbox` lets servers that only run programs judge assert code as well, which answers can forge.
        What else is given are settings of Replicas: attempts, deadline_s, give_up_s, …
        """
        if not endpoints:
            raise UserError("a remote judge needs at least one address, e.g. http://127.0.0.1:8080")
        addresses = dict.fromkeys(endpoint.rstrip("/").removesuffix("/run_code") for endpoint in endpoints)
        self.replicas = Replicas([Replica(Host(address, token)) for address in addresses], "judge server", **pool)
        self.every_test, self.plain_sandbox = every_test, plain_sandbox
        self._places = asyncio.Semaphore(concurrency)
        self._ours: bool | None = None

    async def run_code(self, code: str, stdin: str = "", **options: Any) -> dict[str, Any]:
        """SandboxFusion's /run_code; a SandboxError counts as a failure of the server."""
        form = {"code": code, "language": "python", "stdin": stdin, **options}
        return await self._ask("/run_code", form, lambda response: wire.checked_run(_object(response)))

    async def judge(self, code: str, task: Task) -> Verdict:
        """One program. A server of ours judges it whole; any other only runs it (plain_sandbox.py)."""
        try:
            if await self._judges_whole():
                return await self._judge_whole(code, task)
            return await judge_plain(self.run_code, code, task, self.every_test, self.plain_sandbox)
        except NotPlain as error:
            return bad_task(f"an argument or result is a {error}, which is not plain data", isolation="remote")
        except JudgeLost:
            raise
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation="remote")

    async def refuse(self, tasks: Sequence[Task]) -> None:
        """JudgeLost where these servers may not judge one of the tasks; asked before there is any answer."""
        if await self._judges_whole():
            return
        if words := next((words for task in tasks if (words := refusal(task, self.plain_sandbox))), ""):
            raise JudgeLost(words)

    async def _judges_whole(self) -> bool:
        """Is it a server of ours? It is asked once."""
        if self._ours is None:
            self._ours = await self._ask("/v1/ping", None, lambda response: wire.MARK in response.headers)
        return self._ours

    async def _judge_whole(self, code: str, task: Task) -> Verdict:
        def read(response: Response) -> Verdict:
            verdicts = _object(response).get("verdicts")
            if not isinstance(verdicts, list) or len(verdicts) != 1:
                raise BadAnswer(f"not one verdict: {response.excerpt()}")
            return wire.verdict_from_wire(verdicts[0])

        item = {"code": code, "task": wire.task_to_wire(task), "every_test": self.every_test}
        return await self._ask("/judge", {"items": [item]}, read)

    async def _ask(self, path: str, content: dict[str, Any] | None, read: Callable[[Response], T]) -> T:
        """What `read` makes of the first whole answer, of a judge that scores as this version does."""

        def read_of_same_scorer(replica: Replica, response: Response) -> T:
            theirs = response.headers.get(wire.MARK, SCORER_VERSION)
            if theirs != SCORER_VERSION:
                both = f"{theirs}, here it is {SCORER_VERSION}"
                raise JudgeLost(f"{replica.host.url} scores as {both}; run one version on both sides")
            return read(response)

        try:
            async with self._places:
                answer = await self.replicas.ask(path, content, read_of_same_scorer)
        except NoAnswer as error:
            raise InfrastructureError(
                f"{error.server}{path}: {error.trouble} ({self.replicas.attempts} attempts)"
            ) from None
        except ServersGone as error:
            remedy = "start `rlvr serve judge` there, or on more machines, and resume; nothing was scored meanwhile"
            raise JudgeLost(f"{error}; {remedy}") from None
        status, where = answer.response.status, f"{answer.replica.host.url}{path}"
        if status in CLOSED_DOORS:
            raise JudgeLost(f"{where}: HTTP {status}; {CLOSED_DOORS[status]}")
        if answer.content is None:
            raise InfrastructureError(f"{where}: HTTP {status}: {answer.response.excerpt()}")
        return answer.content

    async def close(self) -> None:
        """Give the connections back."""
        await self.replicas.close()


def _object(response: Response) -> dict[str, Any]:
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadAnswer("the answer is not JSON")
    return response.json()
