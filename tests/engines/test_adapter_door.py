"""The adapter door: whole or not at all, whoever sends what; and a trainer's way through it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvrlab.engines.openai import adapter_files, adapter_shelf, delivery
from rlvrlab.engines.openai.adapter_door import AdapterDoor
from rlvrlab.engines.openai.adapter_files import Announced
from rlvrlab.engines.openai.adapter_shelf import Shelf
from rlvrlab.engines.openai.delivery import Adapter, Delivery, send_adapter
from rlvrlab.errors import UserError
from rlvrlab.http_client import BadAnswer, Host, NotConnected, Refused, Response
from rlvrlab.http_messages import BYTES

CONFIG = {"peft_type": "LORA", "r": 4, "auto_mapping": None}
NAME = "policy-3-0a1b2c3d"


def content(numbers: int = 6, value: int = 0) -> bytes:
    size = 4 * numbers
    header = json.dumps({"a": {"dtype": "F32", "shape": [numbers], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes([value]) * size


def announced(data: bytes, name: str = NAME, **other: Any) -> dict[str, Any]:
    facts = {"name": name, "config": CONFIG, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return {**facts, **other}


def adapter(folder: Path, data: bytes, name: str = NAME) -> Adapter:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG))
    (folder / "adapter_model.safetensors").write_bytes(data)
    return Adapter(name, folder, hashlib.sha256(data).hexdigest())


def at_door(
    home: Path, work: Callable[[AdapterDoor, Host], Awaitable[Any]], token: str | None = None, key: str | None = None
) -> Any:
    async def go() -> Any:
        door = AdapterDoor(home, token)
        await door.start("127.0.0.1", 0)
        host = Host(f"http://127.0.0.1:{door.port}", key)
        try:
            return await work(door, host)
        finally:
            await host.close()
            await door.http.close()

    return asyncio.run(go())


async def piece(host: Host, data: bytes, whole: bytes, start: Any = 0, name: str = NAME) -> Response:
    digest = hashlib.sha256(whole).hexdigest()
    return await host.request(f"/pieces?name={name}&sha256={digest}&start={start}", data, BYTES)


def words(response: Response) -> tuple[int, str]:
    return response.status, str(response.json().get("detail", ""))


def test_an_adapter_goes_through_in_pieces_once_and_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PIECE", 1000)
    home, sent = tmp_path / "home", adapter(tmp_path / "mine", content(1000, 7))

    async def work(door: AdapterDoor, host: Host) -> None:
        place = Path(await send_adapter(host, sent))
        assert place == home / NAME and sorted(path.name for path in home.iterdir()) == [NAME]
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert (place / "adapter_model.safetensors").read_bytes() == content(1000, 7)
        assert json.loads((place / "adapter_config.json").read_text()) == CONFIG
        asked: list[str] = []
        plain = host.request

        async def counted(path: str, *given: Any) -> Response:
            asked.append(path)
            return await plain(path, *given)

        monkeypatch.setattr(host, "request", counted)
        assert await send_adapter(host, sent) == str(place) and asked == ["/adapters"]
        assert (await plain("/forget", {"name": NAME})).status == 200
        assert list(home.iterdir()) == []
        assert (await plain("/forget", {"name": NAME})).status == 200

    at_door(home, work)


def test_bytes_may_look_like_anything(tmp_path: Path) -> None:
    """As JSON, so many brackets would be refused for the memory that they take."""
    sent = adapter(tmp_path / "mine", content(4 << 20, ord("{")))
    assert at_door(tmp_path / "home", lambda door, host: send_adapter(host, sent))


def test_who_was_cut_off_goes_on_where_it_was_and_two_writers_help_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PIECE", 64)
    data = content(2000, 3)
    mine, theirs = adapter(tmp_path / "mine", data), adapter(tmp_path / "theirs", data)

    async def work(door: AdapterDoor, host: Host) -> None:
        assert (await host.request("/adapters", announced(data))).json() == {"have": 0}
        assert (await piece(host, data[:500], data)).json() == {"have": 500}
        assert (await piece(host, data[:500], data)).json() == {"have": 500}, "nothing is written twice"
        assert (await piece(host, data[600:700], data, 600)).json() == {"have": 500}, "nor with a gap"
        assert (await host.request("/adapters", announced(data))).json() == {"have": 500}
        other = Host(host.url)
        places = list(await asyncio.gather(send_adapter(host, mine), send_adapter(other, theirs)))
        await other.close()
        assert places == [str(tmp_path / "home" / NAME)] * 2
        assert (Path(places[0]) / "adapter_model.safetensors").read_bytes() == data

    at_door(tmp_path / "home", work)


@pytest.mark.parametrize("path", ["/adapters", "/pieces?name=x", "/forget", "/health"])
@pytest.mark.parametrize("key", [None, "wrong", "right-but-longer"])
def test_without_the_token_nothing_is_taken(tmp_path: Path, path: str, key: str | None) -> None:
    async def work(door: AdapterDoor, host: Host) -> Response:
        return await host.request(path, None if path == "/health" else {})

    response = at_door(tmp_path / "home", work, "right", key)
    assert response.status == 401 and not (tmp_path / "home").exists()


def test_it_does_not_listen_to_other_machines_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"refusing to listen on 0\.0\.0\.0 without a token; set RLVR_MODEL_TOKEN"):
        asyncio.run(AdapterDoor(tmp_path).start("0.0.0.0", 0))


def test_names_that_lead_elsewhere_and_odd_pieces_are_refused(tmp_path: Path) -> None:
    data, home = content(), tmp_path / "home"

    async def work(door: AdapterDoor, host: Host) -> None:
        for name in ("../out", "/etc/x", "policy-1-0a1b2c3d/../..", "."):
            assert words(await host.request("/adapters", announced(data, name)))[0] == 400
            assert words(await host.request("/forget", {"name": name}))[0] == 400
            assert words(await piece(host, data, data, name=name.replace("/", "%2F")))[0] == 400
        status, said = words(await piece(host, data, data))
        assert status == 409 and "not announced, or forgotten since; announce it first" in said
        await host.request("/adapters", announced(data))
        for start in ("-1", "x", "", "1e3", "9" * 30):
            assert words(await piece(host, data, data, start))[0] == 400
        assert words(await host.request(f"/pieces?name={NAME}&name={NAME}&sha256=a&start=0", b"x", BYTES))[0] == 400
        assert words(await piece(host, b"", data))[0] == 400
        assert words(await host.request("/pieces", {"name": NAME}))[0] == 415, "bytes go there alone"
        assert words(await host.request("/adapters", b"{}", BYTES))[0] == 415, "and nowhere else"
        status, said = words(await piece(host, data + b"!", data))
        assert status == 400 and "more than the" in said
        assert not (home / NAME).exists()

    at_door(home, work)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_huge_or_a_lying_body_is_refused_before_it_is_held(tmp_path: Path) -> None:
    async def raw(door: AdapterDoor, length: str, body: bytes = b"") -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        head = f"POST /pieces HTTP/1.1\r\nHost: localhost\r\nContent-Type: {BYTES}\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    async def work(door: AdapterDoor, host: Host) -> None:
        assert b" 413 " in await raw(door, str(1 << 40))
        assert b" 400 " in await raw(door, "-1")
        assert await raw(door, "1000", b"too few") == b"", "a body that is cut off is no request"
        assert door.http.held_bytes == 0
        too_large = announced(content(), size=1 << 50)
        assert words(await host.request("/adapters", too_large))[0] == 400

    at_door(tmp_path / "home", work)


def test_other_bytes_than_announced_and_broken_headers_leave_nothing_behind(tmp_path: Path) -> None:
    home, data = tmp_path / "home", content()
    broken = b"\xff" * len(data)

    async def work(door: AdapterDoor, host: Host) -> None:
        await host.request("/adapters", announced(data))
        status, said = words(await piece(host, broken, data))
        assert status == 400 and "not those that were announced (sha256)" in said and list(home.iterdir()) == []
        await host.request("/adapters", announced(broken))
        status, said = words(await piece(host, broken, broken))
        assert status == 400 and "a header of" in said and list(home.iterdir()) == []
        await host.request("/adapters", announced(data))
        assert (await piece(host, data, data)).json() == {"folder": str(home / NAME)}, "it still takes what is right"

    at_door(home, work)


def test_one_name_is_one_adapter(tmp_path: Path) -> None:
    home, data, other = tmp_path / "home", content(), content(6, 1)

    async def work(door: AdapterDoor, host: Host) -> None:
        for one in (data, other):
            assert (await host.request("/adapters", announced(one))).json() == {"have": 0}
        assert "folder" in (await piece(host, data, data)).json()
        status, said = words(await piece(host, other, other))
        assert status == 400 and "another adapter has come under this name" in said
        for changed in (announced(other), announced(data, config={**CONFIG, "r": 5})):
            status, said = words(await host.request("/adapters", changed))
            assert status == 400 and "another adapter is here under this name" in said
        assert (home / NAME / "adapter_model.safetensors").read_bytes() == data

    at_door(home, work)


def test_what_is_kept_is_bounded_and_what_others_removed_is_sent_again(tmp_path: Path) -> None:
    home, data = tmp_path / "home", content()

    async def work(door: AdapterDoor, host: Host) -> None:
        for version in range(12):
            name = f"policy-{version}-0a1b2c3d"
            await host.request("/adapters", announced(data, name))
            await piece(host, data, data, name=name)
        assert len(list(home.iterdir())) == adapter_shelf.MOST_KEPT
        for version in range(20, 30):
            await host.request("/adapters", announced(data, f"policy-{version}-0a1b2c3d"))
        drafts = list(home.glob("draft_*"))
        assert len(drafts) == adapter_shelf.MOST_DRAFTS and drafts
        (home / name / "adapter_model.safetensors").unlink()
        assert (await host.request("/adapters", announced(data, name))).json() == {"have": 0}
        assert "folder" in (await piece(host, data, data, name=name)).json()

    at_door(home, work)


def test_settings_take_no_more_room_than_they_came_in(tmp_path: Path) -> None:
    """With a line for every value, 600 kB that were 900 lists deep became 277 MB, for which all others waited."""
    within: Any = [0] * 100_000
    for _ in range(adapter_files.DEEPEST_CONFIG - 2):
        within = [within]
    shelf = Shelf(tmp_path / "home")
    data = content()
    shelf.begin(Announced.of(announced(data, config={**CONFIG, "x": within})))
    shelf.add(NAME, hashlib.sha256(data).hexdigest(), 0, data)
    file = tmp_path / "home" / NAME / "adapter_config.json"
    assert file.stat().st_size < 201_000 and json.loads(file.read_text())["x"] == within
    with pytest.raises(UserError, match="more than 16 deep"):
        Announced.of(announced(data, config={**CONFIG, "x": [within]}))


def test_a_full_disk_is_the_machines_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_shelf, "SPARE_DISK", 1 << 60)
    sent = adapter(tmp_path / "mine", content())
    with pytest.raises(Refused, match=r"status 507: .*cannot be kept here .*are free.*make room"):
        at_door(tmp_path / "home", lambda door, host: send_adapter(host, sent))


def test_room_for_what_was_announced_is_given_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk with room for one of two, which is the first one's while it is being sent."""
    home, free = tmp_path / "home", adapter_shelf.SPARE_DISK + 1500

    def usage(place: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free - sum(file.stat().st_size for file in home.glob("*/*.safetensors")))

    monkeypatch.setattr(adapter_shelf.shutil, "disk_usage", usage)
    shelf, sizes = Shelf(home), {"a": 1000, "b": 1000, "c": 500}
    drafts = {k: Announced(f"policy-1-{k * 8}", {"peft_type": "LORA"}, n, k * 64) for k, n in sizes.items()}
    assert shelf.begin(drafts["a"]) == 0
    assert shelf.add(drafts["a"].name, "a" * 64, 0, b"0" * 300) == 300
    with pytest.raises(OSError, match="1000 bytes, 700 for others"):
        shelf.begin(drafts["b"])
    assert shelf.begin(drafts["c"]) == 0, "what fits beside it is taken"
    monkeypatch.setattr(adapter_shelf, "QUIET_S", 0.0)
    assert shelf.begin(drafts["b"]) == 0, "what nobody goes on sending makes room"


def test_who_is_no_door_is_said_and_who_is_not_there_is_named(tmp_path: Path) -> None:
    sent = adapter(tmp_path / "mine", content())
    other = Host("http://127.0.0.1:1")

    async def elsewhere(door: AdapterDoor, host: Host) -> None:
        there = Host(f"{host.url}/elsewhere")
        try:
            await send_adapter(there, sent)
        finally:
            await there.close()

    with pytest.raises(UserError, match=r"is no adapter door .status 404.; write adapters=ADDRESS as `rlvr serve"):
        at_door(tmp_path / "home", elsewhere)
    with pytest.raises(NotConnected, match=r"its adapter door http://127\.0\.0\.1:1: connection refused"):
        asyncio.run(Delivery(lambda url: "http://127.0.0.1:1", None).load(other, sent))
    assert at_door(tmp_path / "home", lambda door, host: send_adapter(host, sent), "right", "right")
    with pytest.raises(UserError, match=r"status 401: .*; the key comes from RLVR_API_KEY"):
        at_door(tmp_path / "home", lambda door, host: send_adapter(host, sent), "right", "wrong")


@pytest.mark.parametrize("answer", [{"have": 0}, {"have": -1}, {"have": "5"}, {"folder": 3}, {"have": 1 << 60}, []])
def test_a_door_that_talks_nonsense_is_a_broken_one(tmp_path: Path, answer: Any) -> None:
    sent = adapter(tmp_path / "mine", content())

    class Odd:
        url = "http://there"

        async def request(self, path: str, given: Any, kind: str) -> Response:
            return Response(200, {}, json.dumps(answer).encode())

    with pytest.raises(BadAnswer):
        asyncio.run(asyncio.wait_for(send_adapter(Odd(), sent), 30))  # type: ignore[arg-type]
