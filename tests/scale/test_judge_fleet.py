"""Judge servers behind one address: more with the queue, fewer without one, and one that dies costs no verdict."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from click.testing import CliRunner
from judge_servers import DOUBLE, RIGHT, WRONG, JudgeProcess, isolated, wait_until

from rlvrlab.cli.serve import command as serve
from rlvrlab.errors import UserError
from rlvrlab.http_client import Host
from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.scale.judge_fleet import JudgeFleet


class Standin:
    """A judge server that answers when it is let, in threads of this process."""

    def __init__(self, gate: threading.Event) -> None:
        answered: list[str] = []

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                gate.wait(60)
                answered.append(self.headers["Authorization"])
                body = b'{"verdicts": []}'
                self.send_response(200)
                for name, text in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.answered = answered
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.gone = False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def announced(self) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self.server.server_address[1]}", "workers": 1}

    def ended(self) -> bool:
        return self.gone

    def stop(self) -> None:
        if not self.gone:
            self.gone = True
            self.server.shutdown()
            self.server.server_close()


async def until(true: Any) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


def test_a_look_that_fails_is_said_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlvrlab.scale.judge_fleet.LOOK_S", 0.01)
    gate, starts = threading.Event(), []
    gate.set()

    def start_one() -> Standin:
        starts.append(len(starts))
        if 0 < starts[-1] < 4:
            raise OSError("no more processes can be had")
        return Standin(gate)

    async def go() -> None:
        fleet = JudgeFleet(start_one, 1, "inner", port=0)
        await fleet.start()
        fleet.members[0].started.stop()
        await until(lambda: len(starts) == 5)
        caller = Host(f"http://127.0.0.1:{fleet.port}")
        answered = await caller.request("/judge", {})
        assert answered.status == 200 and fleet.lost == 1
        await caller.close()
        await fleet.stop()

    asyncio.run(go())
    assert capsys.readouterr().err.count("no more processes can be had; trying again") == 1


def test_it_grows_with_its_queue_and_shrinks_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.scale.judge_fleet.LOOK_S", 0.02)
    gate, started = threading.Event(), []

    def start_one() -> Standin:
        started.append(Standin(gate))
        return started[-1]

    async def go() -> None:
        fleet = JudgeFleet(start_one, 3, "inner", port=0, queue=40, idle_s=0.3)
        await fleet.start()
        caller = Host(f"http://127.0.0.1:{fleet.port}")
        asked = [asyncio.create_task(caller.request("/judge", {"i": i})) for i in range(8)]
        await until(lambda: fleet.load == 8)
        await asyncio.sleep(0.2)
        assert len(fleet.members) == 1, "eight requests are no reason for another server"
        asked += [asyncio.create_task(caller.request("/judge", {"i": i})) for i in range(32)]
        await until(lambda: len(fleet.members) == 3)
        await until(lambda: fleet.waiting == 40 - 3 * 2)  # the new servers take their share of what was there before
        turned_away = await caller.request("/judge", {"i": 40})
        assert turned_away.status == 429 and turned_away.headers["retry-after"] == "1"
        gate.set()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
        assert all(len(one.answered) > 2 for one in started)
        assert {words for one in started for words in one.answered} == {"Bearer inner"}
        await until(lambda: len(fleet.members) == 1)
        told = fleet.report()
        assert (told["answered"], told["refused"], told["most_servers"], told["lost_servers"]) == (40, 1, 3, 0)
        await caller.close()
        await fleet.stop()

    asyncio.run(go())
    assert all(one.gone for one in started)


@pytest.mark.slow
@pytest.mark.skipif(not isolated(), reason="this machine cannot isolate code")
def test_a_server_that_dies_costs_no_verdict_and_is_replaced() -> None:
    programs = [f"{WRONG if i % 3 == 0 else RIGHT}  # {i}" for i in range(200)]

    async def go() -> list[bool | None]:
        client = FusionClient((fleet.url,), concurrency=len(programs))
        work = [asyncio.create_task(client.judge(code, DOUBLE)) for code in programs]
        while sum(task.done() for task in work) < 20:
            await asyncio.sleep(0.005)
        os.kill(servers(fleet.process.pid)[0], signal.SIGKILL)
        found = [(await task).correct for task in work]
        await client.close()
        return found

    with JudgeProcess("--servers", "2") as fleet:
        assert asyncio.run(go()) == [i % 3 != 0 for i in range(200)]
        facts = fleet.facts()
        assert facts["answered"] >= 200 and facts["lost_servers"] == 1 and facts["load"] == 0
        alone = servers(fleet.process.pid)
        fleet.kill()
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in alone))


def servers(parent: int) -> list[int]:
    """The judge servers that a fleet has started."""
    listed = subprocess.run(["ps", "--ppid", str(parent), "-o", "pid=,args="], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "serve judge" in line]


def test_from_elsewhere_it_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVR_JUDGE_TOKEN", raising=False)
    words = ["judge", "--servers", "2", "--host", "0.0.0.0", "--port", "0", "--allow-weak"]
    told = CliRunner().invoke(serve, words, standalone_mode=False).exception
    assert isinstance(told, UserError) and "RLVR_JUDGE_TOKEN" in str(told)


@pytest.mark.slow
@pytest.mark.skipif(not isolated(), reason="this machine cannot isolate code")
def test_servers_as_actors_of_a_ray_cluster() -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'rlvrlab[ray]'")
    with JudgeProcess("--servers", "2", "--ray", "local") as fleet:
        item = {"code": RIGHT, "task": {"kind": "none"}}
        request = urllib.request.Request(
            f"{fleet.url}/judge", json.dumps({"items": [item]}).encode(), {"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError, match="422"):  # what a server refuses is refused here
            urllib.request.urlopen(request, timeout=120)

        async def go() -> list[bool | None]:
            client = FusionClient((fleet.url,))
            found = [(await client.judge(code, DOUBLE)).correct for code in (RIGHT, WRONG)]
            await client.close()
            return found

        assert asyncio.run(go()) == [True, False]
        assert fleet.facts()["servers"] == 1
