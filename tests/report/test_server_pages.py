"""The dashboard's addresses: who is let in, what is shown, what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from page_client import PageClient
from run_folders import lines, made_evaluation, made_run, metrics_row

from rlvrlab.record.files import utc_now
from rlvrlab.record.run import Run
from rlvrlab.report.server import app as app_room
from rlvrlab.report.server import app as pages
from rlvrlab.report.server import shelf as shelf_room
from rlvrlab.report.server import stream as stream_room
from rlvrlab.report.server.serving import create_server
from rlvrlab.report.server.shelf import Shelf
from rlvrlab.report.server.stream import News, stream

TOKEN = "a-token-nobody-guesses"


@pytest.fixture
def runs(tmp_path) -> Path:
    root = tmp_path / "runs"
    made_run(root, "alpha", question="<img src=x onerror=alert(1)>")
    made_run(root, "study/beta")
    made_evaluation(root / "base")
    return root


def client(root: Path, known: bool = True) -> PageClient:
    return PageClient(root, TOKEN, {"authorization": f"Bearer {TOKEN}"} if known else {})


def test_the_token_opens_once_and_becomes_a_cookie(runs) -> None:
    browser = client(runs, known=False)
    assert browser.get("/").status_code == 403 and "rlvr serve report" in browser.get("/").text
    for wrong in ("", "a-token", TOKEN + "x", "%00"):
        assert browser.get(f"/?token={wrong}").status_code == 403
    answer = browser.get(f"/run/alpha?token={TOKEN}&x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/run/alpha?x=1")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert TOKEN.lower() not in cookie, "browsers send it to every server of this machine"
    assert browser.get("/").status_code == 200  # by the cookie now
    other = PageClient(runs, "another", {}, cookies=browser.cookies)
    assert other.get("/").status_code == 403


@pytest.mark.parametrize("beside", ['a=b"c', "=", "a b=c", 'x="', "rlvr_report_=1", "é=1"])
def test_cookies_of_other_servers_do_not_shut_anybody_out(runs, beside: str) -> None:
    """A browser sends those of every port of this machine, in whatever form they were set."""
    browser = client(runs, known=False)
    browser.get(f"/?token={TOKEN}")
    ours = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    browser.cookies.clear()
    for cookie in (f"{beside}; {ours}", f"{ours}; {beside}"):
        assert browser.get("/", headers={"cookie": cookie}).status_code == 200
    name, _, _ = ours.partition("=")
    for wrong in (TOKEN, "", '""', "0" * 64):
        assert browser.get("/", headers={"cookie": f"{name}={wrong}"}).status_code == 403


def test_an_open_redirect_is_not_to_be_had(runs) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "/%5Cevil.example/"):
        answer = client(runs, known=False).get(f"{path}?token={TOKEN}")
        assert answer.status_code == 303 and answer.headers["location"][1:2] not in ("/", "\\")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.0.5:8000", ""]
)
def test_foreign_hosts_are_refused(runs, host: str) -> None:
    answer = client(runs).get("/runs.json", headers={"host": host})
    assert answer.status_code == 403 and "alpha" not in answer.text


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8000", "LOCALHOST:1"])
def test_this_machine_under_any_port_is_let_in(runs, host: str) -> None:
    assert client(runs).get("/runs.json", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_looking(runs, method: str) -> None:
    assert client(runs).request(method, "/runs.json").status_code == 405


def test_the_list_and_its_policy(runs) -> None:
    asking = client(runs)
    names = {run["name"]: run for run in asking.get("/runs.json").json()}
    assert set(names) == {"alpha", "study/beta", "base"}
    assert names["alpha"]["metric"]["accuracy"] == 0.5 and names["base"]["kind"] == "evaluation"
    assert str(runs) not in asking.get("/runs.json").text  # no paths of this machine
    page = asking.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "connect-src 'self'" in policy
    assert "<img" not in page.text and "alpha" not in page.text  # the script puts runs in, as text
    assert "innerHTML" not in page.text and "eval(" not in page.text
    for answer in (page, asking.get("/runs.json"), asking.get("/nowhere"), asking.get("/run/none")):
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"


def test_a_runs_document_and_when_it_changes(runs) -> None:
    asking = client(runs)
    answer = asking.get("/document/study/beta")
    assert answer.status_code == 200 and answer.json()["kind"] == "run"
    tag = answer.headers["etag"]
    assert asking.get("/document/study/beta", headers={"if-none-match": tag}).status_code == 304
    with (runs / "study/beta/logs/metrics.jsonl").open("a") as file:
        file.write(lines([metrics_row(11, 0.9)]))
    assert asking.get("/document/study/beta", headers={"if-none-match": tag}).status_code == 304  # too early to ask
    asking.get("/run/study/beta")  # a page that is opened is always new
    assert asking.get("/document/study/beta", headers={"if-none-match": tag}).status_code == 200


def test_pages_of_runs_evaluations_and_comparisons(runs) -> None:
    asking = client(runs)
    page = asking.get("/run/alpha")
    assert page.status_code == 200 and "/events/alpha" in page.text and "<img src=x" not in page.text
    assert asking.get("/run/base").status_code == 200
    both = asking.get("/compare?run=alpha&run=study/beta")
    assert both.status_code == 200 and "alpha" in both.text and "beta" in both.text
    assert asking.get("/compare?run=alpha").status_code == 400
    assert asking.get(f"/compare?{'&'.join(['run=alpha'] * 17)}").status_code == 400
    mixed = asking.get("/compare?run=alpha&run=base")
    assert mixed.status_code == 400 and "side by side" in mixed.text


@pytest.mark.parametrize(
    "path",
    ["/run/none", "/run/%2e%2e", "/run/../outside", "/run/%2e%2e/outside", "/run//etc", "/run/linked", "/events/none",
     "/document/alpha/%2e%2e/%2e%2e/outside", "/compare?run=alpha&run=../outside", "/file/%2e%2e?path=config.json",
     "/file/alpha?path=../../outside/config.json", "/file/alpha?path=/etc/passwd", "/file/alpha?path=link/config.json",
     "/file/alpha?path=passwd", "/file/alpha?path=", "/file/alpha?path=logs", "/file/alpha?path=a%00b"],
)  # fmt: skip
def test_no_way_out_of_the_folder(runs, path: str) -> None:
    made_run(runs.parent, "outside", question="outside-secret")
    (runs / "alpha/link").symlink_to(runs.parent / "outside")
    (runs / "alpha/passwd").symlink_to("/etc/passwd")
    (runs / "linked").symlink_to(runs.parent / "outside")
    answer = client(runs).get(path)
    assert answer.status_code == 404 and "outside-secret" not in answer.text and "root:" not in answer.text
    assert Shelf(runs).folder("..") is None and Shelf(runs).folder("../outside") is None


def test_files_are_shown_in_bounded_parts(runs, monkeypatch) -> None:
    asking = client(runs)
    answer = asking.get("/file/alpha?path=logs/metrics.jsonl&line=3")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert json.loads(answer.text.splitlines()[0])["step"] == 2
    assert asking.get("/file/alpha?path=logs/metrics.jsonl&line=999").status_code == 404
    assert asking.get("/file/alpha?path=logs/metrics.jsonl&line=%C2%B2").status_code == 200  # ², a digit but no number
    monkeypatch.setattr(pages, "LARGEST", 100)
    assert len(asking.get("/file/alpha?path=logs/metrics.jsonl").content) < 200
    (runs / "alpha/weights.bin").write_bytes(b"\0" * 50)
    assert asking.get("/file/alpha?path=weights.bin").status_code == 404


def test_odd_names_and_a_folder_that_is_itself_a_run(runs) -> None:
    made_run(runs, "odd #1 ü?")
    path = quote("odd #1 ü?")
    page = client(runs).get(f"/run/{path}")
    assert page.status_code == 200 and f"/events/{path}" in page.text
    assert client(runs).get(f"/file/{path}?path=config.json").status_code == 200
    alone = client(runs / "alpha")
    assert [run["name"] for run in alone.get("/runs.json").json()] == ["alpha"]
    assert alone.get("/run/alpha").status_code == 200


def test_nothing_is_written(runs) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    asking = client(runs)
    for path in ("/", "/runs.json", "/document/alpha", "/file/alpha?path=config.json"):
        assert asking.get(path).status_code == 200
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


def test_an_empty_folder_and_a_damaged_run(tmp_path) -> None:
    asking = client(tmp_path)
    assert asking.get("/").status_code == 200 and asking.get("/runs.json").json() == []
    (made_run(tmp_path, "torn") / "config.json").write_text("{")
    (listed,) = client(tmp_path).get("/runs.json").json()
    assert listed["status"] == "damaged" and "JSON" in listed["note"]
    assert client(tmp_path).get("/document/torn").status_code == 200


def test_unchanged_runs_are_read_once(runs, monkeypatch) -> None:
    monkeypatch.setattr(shelf_room, "LIST_S", 0.0)
    read = []
    monkeypatch.setattr(
        shelf_room,
        "summarise_run",
        lambda folder, *more, f=shelf_room.summarise_run: read.append(folder.name) or f(folder, *more),
    )
    shelf = Shelf(runs)
    shelf.entries()
    assert sorted(read) == ["alpha", "base", "beta"]
    os.utime(runs / "alpha/run_info.json")
    shelf.entries()
    assert read[3:] == ["alpha"]


def test_costly_documents_are_asked_for_seldom(runs) -> None:
    shelf = Shelf(runs)
    folder = shelf.folder("alpha")
    cheap = shelf.pause_s(folder)
    gathered = shelf.gathered([folder])
    shelf._kept[(folder,)] = shelf_room.Gathered(gathered.fingerprint, {}, "", 0.5, gathered.made)
    assert cheap == shelf_room.SOONEST_S and shelf.pause_s(folder) == 50.0  # half a second each 50 s: 1 %


def test_the_end_of_a_run_is_not_kept_back(runs) -> None:
    """A page may get an older document than there could be, but never one from before the end."""
    shelf = Shelf(runs)
    folder = shelf.folder("alpha")
    info = json.loads((folder / "run_info.json").read_text())
    (folder / "run_info.json").write_text(json.dumps(info | {"status": "running"}))
    before = shelf.gathered([folder])
    with (folder / "logs/metrics.jsonl").open("a") as file:
        file.write("{}\n")
    assert shelf.gathered([folder], patient=True) is before, "a new step can wait"
    (folder / "run_info.json").write_text(json.dumps(info | {"status": "finished"}))
    assert shelf.gathered([folder], patient=True).document["status"] == "finished"


# -- news ------------------------------------------------------------------------------------------------------------


def parsed(text: str) -> list[tuple[str, str, dict]]:
    """(event, id, data) of each message."""
    return [(kind, place, json.loads(data)) for kind, place, data in
            re.findall(r"event: (\w+)\nid: ([\d-]+)\ndata: (.*)\n\n", text)]  # fmt: skip


def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: a browser of other tests may keep this one's event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def collect(news: News, until: str, act=None) -> list[tuple[str, str, dict]]:
    """Messages up to the first of a kind; `act` is called once the stream has begun."""
    found: list[tuple[str, str, dict]] = []
    async with asyncio.timeout(60):
        async for text in stream(news):
            found += parsed(text)
            if act and found:
                act = act()
            if any(kind == until for kind, _, _ in found):
                return found
    raise AssertionError(found)


def test_news_arrive_and_go_on_where_they_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stream_room, "POLL_S", 0.02)
    run = Run.create(tmp_path, "live", {"recipe": {}}, {"status": "running"})
    run.metrics(metrics_row(3))
    shelf = Shelf(tmp_path)
    first = finished(collect(News.since(shelf, run.folder, None), "metrics", lambda: run.metrics(metrics_row(4))))
    seen = first[0][2].pop("time")
    assert first[0][0] == "status" and first[0][2] == {"status": "running", "phase": "grpo", "step": 3}
    assert seen <= utc_now(), "a page tells by it whether a document is older than the news"
    told = [data for kind, _, data in first if kind == "metrics"]
    assert [row["step"] for row in told[0]["rows"]] == [4]
    place = next(place for kind, place, _ in first if kind == "metrics")
    run.metrics(metrics_row(5))  # while the browser was away
    run.event("phase", "a phase ends")
    again = finished(collect(News.since(shelf, run.folder, place), "events"))
    assert [row["step"] for kind, _, data in again if kind == "metrics" for row in data["rows"]] == [5]
    assert [row["kind"] for kind, _, data in again if kind == "events" for row in data["rows"]] == ["phase"]
    run.info(status="finished")
    last = finished(collect(News.since(shelf, run.folder, again[-1][1]), "status"))
    assert last[0][2]["status"] == "finished"
    run.close()


def test_a_rewound_run_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stream_room, "POLL_S", 0.02)
    folder = made_run(tmp_path, "one")
    news = News.since(Shelf(tmp_path), folder, None)

    def rewind() -> None:
        (folder / "new").write_text(lines([metrics_row(1), metrics_row(2)]))
        (folder / "new").rename(folder / "logs/metrics.jsonl")

    found = finished(collect(news, "metrics", rewind))
    (told,) = [data for kind, _, data in found if kind == "metrics"]
    assert told["rewound"] and [row["step"] for row in told["rows"]] == [1, 2]


def test_a_change_is_said_when_the_page_is_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stream_room, "POLL_S", 0.02)
    folder = made_run(tmp_path, "one")
    shelf = Shelf(tmp_path)
    shelf.gathered([folder])
    with (folder / "logs/events.jsonl").open("a") as file:
        file.write(lines([{"kind": "x", "text": "y"}]))
    assert any(kind == "change" for kind, _, _ in finished(collect(News.since(shelf, folder, None), "change")))


@pytest.mark.parametrize("place", ["", "x", "1-2-3", "1-2-3-4-5", "-1-2-3-4", "9" * 30 + "-1-1-1"])
def test_a_strange_last_event_id_begins_at_the_end(tmp_path, place: str) -> None:
    folder = made_run(tmp_path, "one")
    news = News.since(Shelf(tmp_path), folder, place)
    assert news.read() == [] and news.last["step"] == 10


def test_hostile_lines_cannot_break_out_of_a_message(tmp_path) -> None:
    folder = made_run(tmp_path, "one")
    news = News.since(Shelf(tmp_path), folder, None)
    with (folder / "logs/events.jsonl").open("a") as file:
        file.write('{"kind": "x", "text": "a\\n\\nevent: forged\\rdata: {}\\n\\n\\ud800"}\n')
    (message,) = news.read()
    assert message.count("\n\n") == 1 and "\r" not in message and message.encode()
    assert len(parsed(message)) == 1


def test_streams_are_limited(runs, monkeypatch) -> None:
    monkeypatch.setattr(app_room, "MOST_STREAMS", 0)
    assert client(runs).get("/events/alpha").status_code == 503


def test_news_come_over_a_stream_that_ends_with_the_server(runs) -> None:
    async def go() -> tuple[bytes, bytes]:
        server = create_server(runs, TOKEN)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /events/alpha HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        news = await asyncio.wait_for(reader.readuntil(b"event: status"), 60)
        await server.close()
        assert server.connections == 0
        await asyncio.wait_for(reader.read(), 60)  # the end of the connection
        writer.close()
        return head, news

    head, news = finished(go())
    assert b"200 OK" in head and b"text/event-stream" in head and b"Content-Length" not in head
    assert news.startswith(b"retry: ")
