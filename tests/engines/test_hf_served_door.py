"""A served sampler and an adapter door: one door for two servers, lost with its server, or without it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import needs_torch  # noqa: F401
import pytest
from local_server import LocalServer
from test_hf_served import engine, requests, short_waits, tokens_of, train  # noqa: F401
from tiny_models import tiny

from rlvrlab.engines.hf import served
from rlvrlab.engines.openai.adapter_door import AdapterDoor
from rlvrlab.replicas import ServersGone

pytestmark = pytest.mark.slow


class LocalDoor:
    """A door in a thread of the test."""

    def __init__(self, home: Path) -> None:
        self.home, self.door = home, AdapterDoor(home)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.door.start("127.0.0.1", 0), self._loop).result(60)
        self.url = f"http://127.0.0.1:{self.door.port}"

    def die(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self.door.http.close(), self._loop).result(60)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer(tiny()) as running:
        yield running


@pytest.fixture
def door(tmp_path: Path) -> Iterator[LocalDoor]:
    running = LocalDoor(tmp_path / "door")
    yield running
    running.die()


def test_two_servers_of_one_door_are_sent_an_adapter_once(
    server: LocalServer, door: LocalDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    add = door.door.shelf.add

    def counted(name: str, sha256: str, start: int, piece: bytes) -> Path | int:
        sent.append(start)
        return add(name, sha256, start, piece)

    monkeypatch.setattr(door.door.shelf, "add", counted)
    with LocalServer(tiny()) as second:
        here, there = engine(), engine(f"{server.url} adapters={door.url}, {second.url} adapters={door.url}")
        for step in range(2):
            asked = requests(here, step=step)
            assert tokens_of(here.sample(asked)) == tokens_of(there.sample(asked))
            train(here)
            train(there)
        there.sample(requests(here))
        for one in (server, second):
            assert [each.folder.parent for each in one.server.merging.adapters.values()] == [door.home]
        assert len(list(door.home.iterdir())) == 1, "the ones before are gone"
        assert len(sent) == 3, "three policies in one piece each, for two servers"
        there._sampler._end()
        assert list(door.home.iterdir()) == [] and server.adapters == second.adapters == []


def test_server_and_door_started_again_elsewhere_in_the_middle_of_a_policy_are_the_same_server(
    server: LocalServer, door: LocalDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new door has another folder, which must not pass for other weights."""
    roster, doors = tmp_path / "servers.txt", [door]
    roster.write_text(f"{server.url} adapters={door.url}\n")
    here, there = engine(), engine(str(roster))
    missed = threading.Event()
    monkeypatch.setattr(there._sampler._servers.replicas, "say", lambda words: missed.set())

    def restart() -> None:
        missed.wait(60)
        doors.append(LocalDoor(tmp_path / "another"))
        roster.write_text(f"{server.url} adapters={doors[1].url}\n")
        server.revive()

    server.die()
    door.die()
    restarting = threading.Thread(target=restart)
    restarting.start()
    try:
        assert tokens_of(there.sample(requests(there))) == tokens_of(here.sample(requests(here)))
        restarting.join()
        assert [one.folder.parent for one in server.server.merging.adapters.values()] == [tmp_path / "another"]
    finally:
        doors[-1].die()


def test_a_door_that_is_lost_makes_its_server_lost_at_the_next_update(
    server: LocalServer, door: LocalDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "WAIT_S", 0.2)
    there = engine(f"{server.url} adapters={door.url}")
    door.die()
    assert there.sample(requests(there)), "the server has loaded it: this policy needs the door no more"
    train(there)
    with pytest.raises(ServersGone, match=rf"its adapter door {door.url}: connection refused.*go on with --resume"):
        there.sample(requests(there))
