"""The judge server under more requests than it has places: turned away, asked again, none lost, everything bounded."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from command_line import RLVR
from hypothesis import given
from hypothesis import strategies as st
from judge_servers import DOUBLE, RIGHT, WRONG, JudgeProcess, isolated, wait_until
from texts import any_text

from rlvrlab.cli.serve import command as serve
from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.http_messages import Request, Response
from rlvrlab.http_server import HttpServer
from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.judge.fusion.wire import task_to_wire
from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.task_forms import task_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask

pytestmark = pytest.mark.skipif(not isolated(), reason="this machine cannot isolate code")


def judged(client: FusionClient, programs: list[str], task=DOUBLE) -> list[bool | None]:
    async def go() -> list[bool | None]:
        try:
            verdicts = await asyncio.gather(*(client.judge(code, task) for code in programs))
        finally:
            await client.close()
        return [verdict.correct for verdict in verdicts]

    return asyncio.run(go())


@pytest.mark.slow
def test_more_requests_than_places_and_none_is_lost() -> None:
    programs = [f"{WRONG if i % 3 == 0 else RIGHT}  # {i}" for i in range(300)]
    with JudgeProcess("--queue", "16") as server:
        before = server.open_files()
        client = FusionClient((server.url,), concurrency=len(programs))
        assert judged(client, programs) == [i % 3 != 0 for i in range(300)]
        facts = server.facts()
        assert facts["refused"] > 0 and facts["answered"] == 300
        assert facts["most_load"] <= 16 and facts["load"] == 0 and facts["held_bytes"] == 0
        assert 0 < facts["p50_ms"] <= facts["p95_ms"] <= facts["p99_ms"]
        wait_until(lambda: server.open_files() <= before + 2)


@pytest.mark.slow
def test_work_for_someone_who_hung_up_is_not_done() -> None:
    slow = StdioTask((("", ""),), limits=Limits(wall_s=60))

    async def go() -> None:
        client = FusionClient((server.url,), attempts=1, deadline_s=0.5, concurrency=8)
        program = "import time; time.sleep(50)"
        found = await asyncio.gather(*(client.judge(f"{program} # {i}", slow) for i in range(6)))
        assert [verdict.correct for verdict in found] == [None] * 6
        await client.close()

    with JudgeProcess() as server:
        asyncio.run(go())
        wait_until(lambda: server.facts()["load"] == 0, 45)  # 6 programs of 50 s on 2 workers would take 150


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JudgeProcess]:
    """A server that wants a token."""
    path = tmp_path_factory.mktemp("closed") / "token"
    path.write_text("secret\n")
    with JudgeProcess("--token-file", str(path)) as server:
        yield server


@pytest.mark.parametrize(("status", "remedy"), [("token", "RLVR_JUDGE_TOKEN"), ("path", "no judge")])
def test_a_closed_door_stops_the_run_instead_of_masking_all(closed: JudgeProcess, status: str, remedy: str) -> None:
    address = closed.url if status == "token" else f"{closed.url}/elsewhere"
    token = None if status == "token" else "secret"
    with pytest.raises(JudgeLost, match=remedy):
        judged(FusionClient((address,), token), [RIGHT])


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text(max_size=5) | st.binary()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | any_text(max_size=3) | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values, values)
def test_a_task_arrives_as_it_was_sent(argument, expected) -> None:
    import json

    task = CallsTask("f", (Call((argument,), expected, {"named": argument}),))
    sent = json.dumps(task_to_wire(task))  # as text: 1 == 1.0 == True, but not for a judge
    again = task_of(json.loads(sent))
    assert json.dumps(task_to_wire(again)) == sent
    assert [plain.decode(plain.encode(part)) for part in (again.calls[0].arguments, again.calls[0].expected)] == [
        (argument,),
        expected,
    ]


def test_every_test_runs_where_a_share_is_wanted() -> None:
    task = StdioTask(tuple((str(x), str(2 * x)) for x in range(4)))
    fails_first = "x = int(input()); print(2 * x if x > 1 else 1 // 0)"

    async def go() -> list[int]:
        found = []
        for every_test in (False, True):
            client = FusionClient((server.url,), every_test=every_test)
            found.append((await client.judge(fails_first, task)).passed)
            await client.close()
        return found

    with JudgeProcess() as server:
        assert asyncio.run(go()) == [0, 2]


@pytest.mark.parametrize(("bound", "status"), [("bytes", b"503"), ("connections", b"503")])
def test_what_does_not_fit_is_turned_away_before_its_body_is_read(monkeypatch, bound: str, status: bytes) -> None:
    async def go() -> bytes:
        server = HttpServer(answer)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        kind = b"Content-Type: application/json\r\n"
        writer.write(b"POST /x HTTP/1.1\r\nHost: localhost\r\n" + kind + b"Content-Length: 5000\r\n\r\n")  # and no body
        head = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        await server.close()
        assert server.held_bytes == 0
        return head

    async def answer(request: Request) -> Response:
        raise AssertionError("it was read")

    monkeypatch.setattr("rlvrlab.http_server.MOST_BYTES", 4000 if bound == "bytes" else 1 << 20)
    monkeypatch.setattr("rlvrlab.http_server.MOST_CONNECTIONS", 0 if bound == "connections" else 8)
    head = asyncio.run(go())
    assert head.split()[1] == status and b"Retry-After: 1" in head and b"Connection: close" in head


@pytest.mark.slow
def test_told_to_stop_it_finishes_what_runs_and_ends_well() -> None:
    program, task = "import time; time.sleep(1); print(6)", StdioTask((("", "6"),), limits=Limits(wall_s=60))

    async def go() -> bool | None:
        client = FusionClient((server.url,), attempts=1)
        running = asyncio.create_task(client.judge(program, task))
        await asyncio.to_thread(wait_until, lambda: server.facts()["load"] == 1)
        server.process.send_signal(signal.SIGTERM)
        verdict = await running
        await client.close()
        return verdict.correct

    with JudgeProcess() as server:
        assert asyncio.run(go()) is True
        assert server.process.wait(60) == 0


@pytest.mark.parametrize("kind", ["judge", "model", "report"])
def test_a_token_on_the_command_line_is_refused_with_the_remedy(kind: str) -> None:
    words = [*RLVR, "serve", kind, *(["nano"] if kind == "model" else []), "--token", "secret"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and f"RLVR_{kind.upper()}_TOKEN" in done.stderr and "--token-file" in done.stderr
    assert "secret" not in done.stderr + done.stdout


@pytest.mark.parametrize("words", [["--api-key", "secret"], ["--api-key=secret"], ["--api_key=secret"]], ids=str)
def test_nor_behind_the_words_that_go_to_a_model_server(words: list[str]) -> None:
    told = CliRunner().invoke(serve, ["model", "nano", "--", *words], standalone_mode=False).exception
    assert isinstance(told, UserError) and "RLVR_MODEL_TOKEN" in str(told) and "secret" not in str(told)
