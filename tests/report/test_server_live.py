"""Real processes: a training, the dashboard beside it, a client that reads the event stream, and a browser."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from live_server import dashboard, training
from run_folders import lines, made_run, metrics_row

pytestmark = pytest.mark.slow


def ask(board: dict[str, Any], path: str, **headers: str) -> Any:
    base = board["url"].partition("/?")[0]
    request = urllib.request.Request(base + path, headers={"authorization": f"Bearer {board['token']}", **headers})
    return urllib.request.urlopen(request, timeout=120)


def read(board: dict[str, Any], path: str) -> str:
    with ask(board, path) as answer:
        return answer.read().decode()


def messages(answer: Any) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) as they come in."""
    fields: dict[str, str] = {}
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"])
            fields = {}


def test_a_training_is_seen_live(tmp_path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    with dashboard(root) as board:
        assert json.loads(read(board, "/runs.json")) == []
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(board, "/", authorization="Bearer wrong")
        refused.value.close()
        assert refused.value.code == 403
        with training(root, "grpo.steps=100") as process:  # longer than a list is kept
            listed: list[dict[str, Any]] = []
            until = time.monotonic() + 120
            while not listed:  # where the dashboard gets little time, the training may be over by then: no failure
                assert process.poll() in (None, 0) and time.monotonic() < until, "it was never listed"
                time.sleep(0.3)
                listed = json.loads(read(board, "/runs.json"))
            name = listed[0]["name"]
            with ask(board, f"/events/{name}", **{"last-event-id": "0-0-0-0"}) as answer:  # from the beginning
                steps, states, place = watched(answer)
        assert process.returncode == 0
        written = [json.loads(line)["step"] for line in (root / name / "logs/metrics.jsonl").read_text().splitlines()]
        assert steps == written  # no line lost or told twice
        assert states[-1] == "finished"
        page = read(board, f"/run/{name}")
        assert f"/events/{name}" in page and "Content-Security-Policy" in page
        with ask(board, f"/events/{name}", **{"last-event-id": place}) as answer:
            assert next(messages(answer))[0] in ("status", "change")  # nothing new: no line again


def watched(answer: Any) -> tuple[list[int], list[str], str]:
    """Steps and states in order, and the last id, until the run is finished."""
    steps: list[int] = []
    states: list[str] = []
    for kind, place, data in messages(answer):
        if kind == "metrics":
            steps += [row["step"] for row in data["rows"]]
        if kind == "status":
            states.append(data["status"])
            if data["status"] == "finished":
                return steps, states, place
    raise AssertionError(states)


def test_runs_are_searched_ticked_and_compared_in_a_browser(tmp_path, browser) -> None:
    root = tmp_path / "runs"
    evil = "</script><img src=x onerror=window.hacked=1>"
    for name, seed in (("alpha", 1), ("beta", 2), ("gamma", 3)):
        made_run(root, name, question=evil, seed=seed, rollout={"n": 4 + seed})
    (root / "beta/tags").write_text("keep\n")
    with dashboard(root) as board:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(board["url"])
        page.wait_for_selector("tr[data-run=alpha]")
        assert "token" not in page.url and page.locator("tbody tr").count() == 3
        page.keyboard.press("/")
        page.keyboard.type("gam")
        assert page.locator("tbody tr").count() == 1
        page.fill("#search", "")
        page.get_by_role("button", name="keep").click()
        assert page.locator("tbody tr").get_attribute("data-run") == "beta"
        page.get_by_role("button", name="keep").click()
        assert page.locator("#compare").is_disabled()
        page.get_by_label("tick alpha").check()
        page.get_by_label("tick gamma").check()
        assert page.locator("#compare").inner_text() == "Compare 2"
        made_run(root, "delta")  # arrives by itself, and the ticks stay
        page.wait_for_selector("tr[data-run=delta]", timeout=60_000)
        assert page.get_by_label("tick alpha").is_checked()
        page.click("#compare")
        page.wait_for_selector("text=Recipe diff")
        assert "run=alpha&run=gamma" in page.url and "rollout.n" in page.content()
        assert page.evaluate("window.hacked") is None
        assert problems == []
        context.close()


def test_a_page_left_open_shows_new_steps(tmp_path, browser) -> None:
    folder = made_run(tmp_path / "runs", "one", status="finished")
    with dashboard(tmp_path / "runs") as board:
        context = browser.new_context()
        page = context.new_page()
        page.goto(board["url"].replace("/?", "/run/one?"))
        page.wait_for_selector("text=step 10 of 10")
        with (folder / "logs/metrics.jsonl").open("a") as file:
            file.write(lines([metrics_row(77, 0.9)]))
        page.wait_for_selector("text=step 77 of 10", timeout=60_000)
        context.close()
