"""A real OpenAI-compatible server: `rlvr serve model` starts `transformers serve` on a tiny model made on the spot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import RLVR, inside

from rlvrlab.record.files import read_lines

MISSING = [name for name in ("fastapi", "uvicorn", "transformers", "torch") if find_spec(name) is None]
"""Asked without importing them: every worker collects this file, and few run it."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from tiny_models import write_model

    folder = tmp_path_factory.mktemp("served")
    model = write_model(folder / "tiny")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    words = ["serve", "model", str(model), "--backend", "transformers", "--json"]
    process = subprocess.Popen([*RLVR, *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline()
        yield json.loads(first)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stdout.close()


def test_it_is_evaluated_and_known_by_its_answers(served, monkeypatch, capsys, tmp_path: Path) -> None:
    servers = [word for url in served["urls"] for word in ("--server", url)]
    words = ("eval", "countdown", "numbers=[2]", "high=30", "style=bare", "--size", "12", "--max-tokens", "8")
    results = []
    for name in ("a", "b"):
        done = inside(
            monkeypatch, capsys, *words, *servers, "--model", served["model"], "-o", name, "--json", folder=tmp_path
        )
        assert done.returncode == 0, done.stderr
        results.append({row["problem"]: row["completion"] for row in read_lines(tmp_path / name / "samples.jsonl")})
        told = json.loads(done.stdout)["total"]
        assert told["unjudged"] == 0 and told["samples"] == 12 and 0 < told["avg_gen_tokens"] <= 8
    assert results[0] == results[1]  # greedy
    info = json.loads((tmp_path / "a" / "run_info.json").read_text())["answered_by"]
    assert info["model"] == served["model"] and len(info["servers"]) == 1
    assert all(server["served"] == f"{served['model']}@main" for server in info["servers"])


def test_the_wrong_model_is_refused(served, monkeypatch, capsys, tmp_path: Path) -> None:
    words = ("eval", "countdown", "--server", served["urls"][0], "--model", "someone/else")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert done.returncode == 2 and "'someone/else'" in done.stderr
