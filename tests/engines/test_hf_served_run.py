"""A run whose answers come from a real `rlvr serve model` process: the same recipe, one key apart."""

from __future__ import annotations

import json
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
from rlvrlab.train import session

pytestmark = pytest.mark.slow
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


def serve(port: int = 0) -> tuple[subprocess.Popen[str], str]:
    program = str(Path(sys.executable).with_name("rlvr"))
    words = [program, "serve", "model", tiny(), "--backend", "embedded", "--adapters", "4", "--json"]
    process = subprocess.Popen([*words, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    return process, facts["urls"][0]


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(120)
    assert process.stdout is not None
    process.stdout.close()


def run(folder: Path, *overrides: str, observe: Any = lambda *_: None) -> tuple[list[dict[str, Any]], list[Any]]:
    folder.mkdir()
    (folder / "r.toml").write_text(RECIPE)
    keys = [f"engine.model={tiny()}", f"output_dir={folder}", "correction.level=token", *overrides]
    ended = session.start(load_recipe(folder / "r.toml", keys), observe)
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
        assert a.keys() == b.keys()
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
    process, url = serve()
    held = [process]

    def again() -> None:
        held[0] = serve(int(url.rpartition(":")[2]))[0]

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
