"""Our client against servers that misbehave: whatever goes wrong stays unjudged, and never for long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.http_client import BadAnswer, Host, Response
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.judge.fusion.server import JudgeServer
from rlvrlab.judge.fusion.wire import verdict_from_wire, verdict_to_wire
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.replicas import LONGEST_PAUSE_S
from rlvrlab.types import ErrorKind, Verdict, bad_task

FINE = {"status": "Success", "message": "", "run_result": {"status": "Finished", "stdout": "6\n", "return_code": 0}}
ECHO = StdioTask((("", "6\n"),))
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answered(status: int, content: Any, kind: str = "application/json", **headers: str) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    return f"{head}{extra}\r\n".encode() + body


class Flaky:
    """A server that plays one scripted answer after the other, then stays with the last."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers, self.requests = list(answers), 0
        self.connections: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self.server = await asyncio.start_server(self.play, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self.server.close()
        for _ in range(50):  # turns of the loop, not time: connections accepted a moment ago have no task yet
            await asyncio.sleep(0)
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)
        await asyncio.sleep(0)

    async def play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.answer(reader, writer)
        finally:
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /v1/ping"):
            writer.write(answered(200, "pong"))
            return
        self.requests += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            while await reader.read(1 << 16):
                pass
        writer.write(answer or b"")


def outcome(*answers: bytes | None, **settings: Any) -> tuple[Any, int]:
    """The client's verdict on a program, and how many requests it took."""

    async def go() -> tuple[Any, int]:
        flaky = Flaky(*answers)
        client = FusionClient((await flaky.start(),), **{"pause_s": 0.01, "deadline_s": 60.0, **settings})
        verdict = await client.judge("print(6)", ECHO)
        await client.close()
        await flaky.stop()
        return verdict, flaky.requests

    return asyncio.run(go())


def test_a_plain_server_runs_and_we_compare() -> None:
    verdict, requests = outcome(answered(200, FINE))
    assert (verdict.correct, verdict.isolation, requests) == (True, "remote", 1)
    wrong = {**FINE, "run_result": {**FINE["run_result"], "stdout": "7\n"}}  # type: ignore[dict-item]
    assert outcome(answered(200, wrong))[0].error is ErrorKind.WRONG


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_trouble_is_waited_out(status: int) -> None:
    verdict, requests = outcome(answered(status, {}), answered(status, {}), answered(200, FINE))
    assert (verdict.correct, requests) == (True, 3)


@pytest.mark.parametrize(
    "answer",
    [
        answered(500, {}),
        answered(200, b'{"status": "Succ'),
        answered(200, FINE, kind="text/html"),
        answered(200, {"error": "out of memory"}),
        answered(200, [1]),
        answered(200, {"status": "SandboxError", "message": "no"}),
        answered(200, {"status": "Success", "run_result": [6]}),
        answered(302, {}, Location="http://169.254.169.254/latest"),
        answered(400, {"detail": "no"}),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}",
        b"garbage",
        b"",
        None,
    ],
    ids="500 truncated html error_body list sandbox_error no_result redirect 400 short garbage closed silent".split(),  # noqa: SIM905
)
def test_lasting_trouble_is_unjudged_never_wrong(answer: bytes | None) -> None:
    verdict, requests = outcome(answer, attempts=2, deadline_s=0.2 if answer is None else 60.0)
    assert verdict.correct is None and verdict.error is ErrorKind.INFRA
    assert requests <= 2


RUN = {"status": "Finished", "stdout": "", "stderr": "", "return_code": 0}


def ran(status: str = "Success", **changes: Any) -> dict[str, Any]:
    run = {key: value for key, value in {**RUN, **changes}.items() if value != "left out"}
    return {"status": status, "run_result": run}


@pytest.mark.parametrize(
    "content",
    [
        {"status": "Success", "run_result": None},
        {"status": "Success"},
        {"status": None, "run_result": RUN},
        {"status": "Perfect", "run_result": RUN},
        {"status": ["Success"], "run_result": RUN},
        ran(stdout=None),
        ran(stdout="left out"),
        ran(stdout=6),
        ran(stderr=["x"]),
        ran(status="Failed", stdout=None, return_code=1),
        {"status": "Success", "run_result": {**RUN, "status": "Error"}},
        {"status": "Failed", "run_result": {**RUN, "status": "Error", "return_code": 1}},
        {"status": "Success", "run_result": {**RUN, "status": "TimeLimitExceeded"}},
        {"status": "Success", "run_result": {**RUN, "status": {}}},
        ran(return_code=None),
        ran(return_code="left out"),
        ran(return_code="0"),
        ran(return_code=False),
        ran(return_code=1),
        ran(status="Failed"),
        {"status": "Success", "run_result": json.loads("[" * 400 + "]" * 400)},
    ],
)
def test_an_answer_with_a_part_missing_or_odd_is_no_verdict(content: Any) -> None:
    """The program prints nothing and nothing is expected: whatever is read as an empty output would be accepted."""

    async def go() -> Any:
        flaky = Flaky(answered(200, content))
        client = FusionClient((await flaky.start(),), pause_s=0.0, attempts=2)
        verdict = await client.judge("", StdioTask((("", ""),)))
        await client.close()
        await flaky.stop()
        return verdict, flaky.requests

    verdict, requests = asyncio.run(go())
    assert (verdict.correct, verdict.error, requests) == (None, ErrorKind.INFRA, 2)


def test_the_answers_above_are_refused_for_their_odd_part_alone() -> None:
    assert outcome(answered(200, ran(stdout="6")))[0].correct is True
    assert outcome(answered(200, ran(stdout="6", stderr="left out")))[0].correct is True
    assert outcome(answered(200, ran(status="Failed", return_code=1)))[0].error is ErrorKind.RUNTIME
    slow = {"status": "Failed", "run_result": {"status": "TimeLimitExceeded", "stdout": None, "return_code": None}}
    assert outcome(answered(200, slow))[0].error is ErrorKind.TIMEOUT


VERDICT = json.loads(json.dumps(verdict_to_wire(Verdict(correct=True, score=1.0, passed=1, total=1))))


@pytest.mark.parametrize(
    "changes",
    [
        {"correct": "yes"},
        {"correct": 1},
        {"correct": False},
        {"correct": None},
        {"score": 2},
        {"score": float("nan")},
        {"score": "1"},
        {"score": True},
        {"error": "wrong_answer"},
        {"error": "unheard of"},
        {"error": None},
        {"passed": 2},
        {"passed": -1},
        {"total": 1.0},
        {"detail": None},
        {"isolation": 3},
        {"flags": "early_exit"},
        {"flags": [1]},
        {"parts": []},
        {"parts": {"format": "1"}},
        {"cost": {"cpu_s": float("inf")}},
        {"more": 1},
        {"score": 0.5},
        {"passed": 0},
        {"total": 2},
        {"score": 10**400},
        {"passed": 10**400, "total": 10**400},
        {"cost": {"cpu_s": 10**400}},
        {"correct": False, "error": "wrong_answer"},
        {"correct": False, "error": "wrong_answer", "score": 0.5},
        {"correct": None, "error": "infra", "score": 0, "passed": 1},
    ],
    ids=str,
)
def test_what_is_no_verdict_is_not_taken_for_one(changes: dict[str, Any]) -> None:
    assert verdict_from_wire(VERDICT).correct is True
    with pytest.raises(BadAnswer, match="not a verdict"):
        verdict_from_wire({**VERDICT, **changes})


def test_a_bad_task_stays_one_on_its_way_back() -> None:
    verdict = verdict_from_wire(json.loads(json.dumps(verdict_to_wire(bad_task("no tests", isolation="landlock")))))
    assert (verdict.correct, verdict.error, verdict.flags) == (None, ErrorKind.BAD_TASK, ("bad_task",))


@pytest.mark.parametrize("form", [{}, 3, None, [], {key: VERDICT[key] for key in VERDICT if key != "flags"}])
def test_half_a_verdict_is_none(form: Any) -> None:
    with pytest.raises(BadAnswer, match="not a verdict"):
        verdict_from_wire(form)


def asked_in_parts(*parts: bytes) -> Response:
    """One request to a server that sends these parts one after the other and closes."""
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        ended.set()

    async def go() -> Response:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host = Host(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            return await asyncio.wait_for(host.request("/"), 60)
        finally:
            await host.close()
            await ended.wait()
            server.close()
            await asyncio.sleep(0)

    return asyncio.run(go())


def test_a_body_without_a_length_is_read_to_its_end() -> None:
    response = asked_in_parts(b"HTTP/1.1 200 OK\r\n\r\n", b'{"a": ', b"[1, 2", b"]}")
    assert response.json() == {"a": [1, 2]}
    chunked = asked_in_parts(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}", b" \r\n0;x\r\n\r\n")
    assert chunked.json() == {}
    assert asked_in_parts(b"HTTP/1.1 204 No Content\r\n\r\n").body == b""


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 3\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nContent-Length: 1\r\n\r\n{}",
        OK + b"Content-Length: +2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        OK + b"X: y\n folded\r\n\r\n{}",
        OK + b" folded\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"\r\n{}",
        b"HTTP/2 200\r\n\r\n{}",
        b"HTTP/1.1 2000 OK\r\n\r\n{}",
    ],
)
def test_an_answer_that_could_be_read_in_two_ways_is_none(answer: bytes) -> None:
    with pytest.raises(BadAnswer):
        asked_in_parts(answer)


@pytest.mark.slow
def test_retry_after_is_honoured() -> None:
    started = time.monotonic()
    verdict, requests = outcome(answered(429, {}, Retry_After="1"), answered(200, FINE))
    assert (verdict.correct, requests) == (True, 2)
    assert 1.0 <= time.monotonic() - started < LONGEST_PAUSE_S


def test_replicas_take_turns_and_a_broken_one_is_left_alone() -> None:
    async def go() -> tuple[int, int]:
        good, bad = Flaky(answered(200, FINE)), Flaky(answered(500, {}))
        client = FusionClient((await good.start(), await bad.start()), pause_s=0.0, break_after=2, cooldown_s=60)
        for _ in range(12):
            await client.run_code("x")
        await client.close()
        await good.stop()
        await bad.stop()
        return good.requests, bad.requests

    assert asyncio.run(go()) == (12, 2)


def test_a_hundred_hangs_leave_the_client_whole() -> None:
    async def go() -> Any:
        flaky = Flaky(None)
        client = FusionClient((await flaky.start(),), attempts=1, deadline_s=0.05, concurrency=8, break_after=1000)
        results = await asyncio.gather(*(client.run_code("x") for _ in range(100)), return_exceptions=True)
        assert all(isinstance(result, InfrastructureError) for result in results)
        client.replicas.deadline_s, flaky.answers = 60.0, [answered(200, FINE)]
        answer = await client.run_code("x")
        await client.close()
        await flaky.stop()
        return answer["status"]

    assert asyncio.run(go()) == "Success"


def test_our_own_server_judges_every_kind() -> None:
    async def go() -> list[Any]:
        server = JudgeServer(Pool(size=1), port=0, token="t")
        await server.start()
        client = FusionClient((f"http://127.0.0.1:{server.port}/run_code",), token="t")
        task = CallsTask("f", (Call((2,), 4.0),), Comparison("float", abs_tol=1e-6))
        verdicts = [
            await client.judge("def f(x): return x * 2.0", task),
            await client.judge("def f(x): return 5", task),
        ]
        await client.close()
        await server.stop()
        return verdicts

    good, bad = asyncio.run(go())
    assert (good.correct, good.isolation) == (True, "remote landlock")
    assert bad.correct is False


@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "ftp://x", "127.0.0.1:8080", "", "http://"])
def test_only_http_endpoints(endpoint: str) -> None:
    with pytest.raises(UserError):
        FusionClient((endpoint,))
