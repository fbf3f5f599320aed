"""A run whose answers come from a real `rlvr serve model` process: the same recipe, one key apart."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
from tiny_models import tiny

from rlvrlab.engines.hf import served
from rlvrlab.recipe import load_recipe
from rlvrlab.record.run import read_events
from rlvrlab.train import session

pytestmark = [pytest.mark.slow, pytest.mark.long]
RECIPE = """
name = "served"
[engine]
type = "hf"
lora_rank = 4
device = "cpu"
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[reward]
type = "random"
[data]
train_size = 12
dev_size = 4
[rollout]
n = 4
max_tokens = 6
[grpo]
steps = 4
batch_size = 4
learning_rate = 0.02
[checkpoint]
every = 2
"""


def serve(*words: str, port: int = 0) -> tuple[str, subprocess.Popen[str]]:
    program = str(Path(sys.executable).with_name("rlvr"))
    command = [program, "serve", "model", tiny(), "--backend", "embedded", "--adapters", "4", "--json", *words]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    return facts["urls"][0], process


def stop(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> None:
    process.send_signal(how)
    process.wait(120)
    assert process.stdout is not None
    process.stdout.close()


def run(folder: Path, *overrides: str, observe: Any = lambda *_: None) -> tuple[list[dict[str, Any]], list[Any]]:
    folder.mkdir()
    (folder / "r.toml").write_text(RECIPE)
    keys = [f"engine.model={tiny()}", f"output_dir={folder}", "correction.level=token", *overrides]
    return told_by(session.start(load_recipe(folder / "r.toml", keys), observe))


def told_by(ended: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Metrics and answers of a run."""
    assert ended.status == "finished"
    rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    stored = sorted((ended.folder / "rollouts").glob("step_*.jsonl"))
    answers = [
        (r["id"], r["tokens"], r["policy_version"])
        for path in stored
        for r in map(json.loads, path.read_text().splitlines())
    ]
    return rows, answers


def assert_alike(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert {key for key in a.keys() ^ b.keys() if not key.startswith(("sampler/", "time/"))} == set()
        for key in a:
            if isinstance(a[key], float) and not key.startswith("time/"):
                assert b[key] == pytest.approx(a[key], abs=2e-3, rel=2e-3), key


def test_embedded_and_served_give_one_run_also_when_the_server_is_lost_on_the_way(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "WAIT_S", 300.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here, answers = run(tmp_path / "embedded")
    assert len({version for *_, version in answers}) == 4
    url, process = serve()
    held = [process]

    def again() -> None:
        held[0] = serve(port=int(url.rpartition(":")[2]))[1]

    starting = threading.Thread(target=again)

    def observe(phase: Any, state: Any, row: dict[str, Any]) -> None:
        if state.step == 2 and not starting.ident:
            stop(held[0])
            starting.start()

    try:
        there, drawn = run(tmp_path / "served", f"engine.sampler={url}/v1")
        lost, redrawn = run(tmp_path / "lost", f"engine.sampler={url}/v1", observe=observe)
        starting.join()
    finally:
        stop(held[0])
    assert answers == drawn == redrawn
    assert_alike(here, there)
    assert_alike(here, lost)
    assert "waiting up to 300 s" in capfd.readouterr().err
    steps = [row for row in there if "rollout_is/mean" in row]
    assert len(steps) == 4 and all(row["rollout_is/mean"] == pytest.approx(1, abs=1e-4) for row in steps)


def test_one_of_two_servers_is_killed_comes_back_and_a_third_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is drawn twice or lost, the record names who was away when, and a resumed run is the same run."""
    monkeypatch.setattr(served, "WAIT_S", 300.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    steps = "grpo.steps=6"
    here, answers = run(tmp_path / "embedded", steps)
    roster = tmp_path / "servers.txt"
    started = dict(serve("--announce", str(roster)) for _ in range(2))
    killed, other = started
    done: list[int] = []

    def observe(phase: Any, state: Any, row: dict[str, Any]) -> None:
        if state.step in done:
            return
        done.append(state.step)
        if state.step == 1:
            stop(started[killed], signal.SIGKILL)  # its server ends with it, without a word
        elif state.step == 3:
            started.update([serve("--announce", str(roster), port=int(killed.rpartition(":")[2]))])
        elif state.step == 4:
            started.update([serve("--announce", str(roster))])
            raise KeyboardInterrupt

    try:
        folder = tmp_path / "served"
        with pytest.raises(KeyboardInterrupt):
            run(folder, steps, f"engine.sampler={roster}", observe=observe)
        (record,) = (path for path in folder.iterdir() if path.is_dir())
        ended = session.resume(record, observe)
    finally:
        for process in started.values():
            stop(process)
    there, drawn = told_by(ended)
    (third,) = started.keys() - {killed, other}
    assert answers == drawn and len({name for name, *_ in drawn}) == len(drawn)
    assert_alike(here, there)
    assert [row["sampler/servers"] for row in there if "sampler/servers" in row] == [2, 1, 1, 2, 3, 3]
    events = [event["text"] for event in read_events(record) if event["kind"] == "server"]
    assert len(events) == 2 and f"while version 1 was sampled: {killed} is lost since " in events[0]
    assert re.search(rf"while version 3 was sampled: {killed} is back after \d+ s, since \d\d:\d\d:\d\dZ", events[1])
    assert roster.read_text().split() == [killed, other, third]
    for sentence in events:
        assert sentence in (record / "EXPERIMENT.md").read_text()
