"""A run whose servers cannot see the trainer's folder: adapters come through their doors, answers are the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
from test_hf_served_run import assert_alike, run, stop
from tiny_models import tiny

from rlvrlab.engines.hf import served
from rlvrlab.errors import UserError
from rlvrlab.record.run import read_events

pytestmark = [pytest.mark.slow, pytest.mark.long]
HIDE = ["unshare", "--mount", "--map-root-user", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']
"""An empty folder in place of the one named behind it, for what is started in this way alone."""


def hiding(folder: Path) -> list[str]:
    """Words before a command that may not see a folder; none where this machine cannot hide one."""
    if shutil.which("unshare") and not subprocess.run([*HIDE, str(folder), "true"], capture_output=True).returncode:
        return [*HIDE, str(folder)]
    return []


def serve(before: list[str], temporary: Path, roster: Path, *words: str) -> tuple[str, subprocess.Popen[str]]:
    program = str(Path(sys.executable).with_name("rlvr"))
    command = [program, "serve", "model", tiny(), "--backend", "embedded", "--adapters", "4", "--json"]
    temporary.mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(temporary)}
    words = ("--announce", str(roster), *words)
    process = subprocess.Popen([*before, *command, *words], stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    return json.loads(process.stdout.readline())["urls"][0], process


def adapters_of(url: str) -> list[str]:
    """Where a server has loaded its adapters from."""
    with urllib.request.urlopen(f"{url}/v1/models", timeout=60) as answer:
        return [entry["root"] for entry in json.load(answer)["data"] if "parent" in entry]


def test_servers_without_the_folder_draw_the_same_answers_also_when_one_is_killed_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two with doors, one of them killed and started again with another door, and a third that sees the folder."""
    cache, roster, steps = tmp_path / "cache", tmp_path / "servers.txt", "grpo.steps=5"
    cache.mkdir()
    monkeypatch.setattr(served, "WAIT_S", 300.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    here, answers = run(tmp_path / "embedded", steps)
    before = hiding(cache)
    homes = {name: tmp_path / name for name in ("first", "second", "third")}
    started = dict(serve(before, homes[name], roster, "--receive", "0") for name in ("first", "second"))
    killed = next(iter(started))
    loaded: dict[int, list[list[str]]] = {}

    def observe(phase: Any, state: Any, row: dict[str, Any]) -> None:
        if state.step in loaded:
            return
        loaded[state.step] = [adapters_of(url) for url in started]
        if state.step == 1:
            stop(started.pop(killed), signal.SIGKILL)  # server and door end with it
        elif state.step == 2:
            port = killed.rpartition(":")[2]
            started.update([serve(before, homes["first"], roster, "--receive", "0", "--port", port)])
        elif state.step == 3:
            started.update([serve([], homes["third"], roster)])

    try:
        there, drawn = run(tmp_path / "served", steps, f"engine.sampler={roster}", observe=observe)
    finally:
        for process in started.values():
            stop(process)
    assert answers == drawn and len({version for *_, version in drawn}) == 5
    assert_alike(here, there)
    assert [row["sampler/servers"] for row in there if "sampler/servers" in row] == [2, 1, 2, 3, 3]
    roots = [roots for lists in loaded.values() for roots in lists]
    assert all(len(one) == 1 for one in roots), "each holds the current adapter alone"
    by_door = [root for one in roots for root in one if not root.startswith(str(cache))]
    assert {Path(root).parents[1].name for root in by_door} == {"first", "second"}
    assert len(roots) - len(by_door) == 2, "the third has loaded by the trainer's path"
    assert [line.count("adapters=") for line in roster.read_text().splitlines()] == [1, 1, 1, 0]
    (record,) = (path for path in (tmp_path / "served").iterdir() if path.is_dir())
    events = [event["text"] for event in read_events(record) if event["kind"] == "server"]
    assert any(f"{killed} is lost since" in one for one in events)
    assert any(f"{killed} is back after" in one for one in events)
    ends = time.monotonic() + 30
    while any(list(home.iterdir()) for home in homes.values()) and time.monotonic() < ends:
        time.sleep(0.1)
    assert [list(home.iterdir()) for home in homes.values()] == [[], [], []], "a door leaves nothing, however it ends"


def test_without_a_door_such_a_server_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    before = hiding(cache)
    if not before:
        pytest.skip("needs unshare --mount, to hide a folder from a process")
    url, process = serve(before, tmp_path / "its", tmp_path / "servers.txt")
    try:
        with pytest.raises(UserError, match=r"must see that folder under the same path .*--receive PORT"):
            run(tmp_path / "run", f"engine.sampler={url}")
    finally:
        stop(process)
