"""An evaluation over Ray: the same folder as without, whatever dies in between."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import RLVR, errors, inside, rlvr
from faulty_server import FaultyServer, chat, http, question
from judge_servers import wait_until

from rlvrlab.envs.countdown import Countdown

WORDS = ("eval", "countdown", "numbers=[2]", "high=30", "style=bare", "--size", "40", "--json")
ENV = Countdown(numbers=(2,), high=30, style="bare")
TIMES = {"judge_s", "at_s", "server", "attempts"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A cluster of its own, with two processors."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'rlvrlab[ray]'")
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    os.environ.update(secret)
    program = (
        "import ray, sys\n"
        "facts = ray.init(address='local', num_cpus=2, include_dashboard=False, object_store_memory=100_000_000,\n"
        "                 log_to_driver=False, logging_level='ERROR')\n"
        "print(ray.get_runtime_context().gcs_address, flush=True)\n"
        "sys.stdin.read()\n"
    )
    for _ in range(3):  # on a busy machine a start runs out of Ray's own time
        process = subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, stderr=-3, text=True)
        assert process.stdin is not None and process.stdout is not None
        if address := process.stdout.readline().strip():
            break
        process.wait()
    assert address, "no Ray cluster could be started"
    yield address
    process.stdin.close()
    process.wait(60)
    process.stdout.close()
    for name in secret:
        del os.environ[name]


def solver(delay_s: float) -> Any:
    """Right for every problem whose target is even; slow enough to be interrupted."""
    known = {p.prompt: ENV.gold(p) for p in ENV.problems("test", 40, 0) if p.reference["target"] % 2 == 0}

    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        time.sleep(delay_s)
        return http(200, chat(known.get(question(body)) or "1+1", server.models[0]))

    return act


def results(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    metrics = json.loads((folder / "metrics.json").read_text())["countdown"]
    return (
        {f"{row['problem']}/{row['sample']}": {k: v for k, v in row.items() if k not in TIMES} for row in rows},
        {k: v for k, v in metrics.items() if "time" not in k and k not in ("throughput", "wall_s")},
    )


def lines(folder: Path) -> int:
    path = folder / "samples.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def workers(folder: Path) -> list[int]:
    """The Ray workers that examine for a driver in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"ray::Examiner" in (entry / "cmdline").read_bytes():
                found += [int(entry.name)] if (entry / "cwd").resolve() == folder.resolve() else []
        except OSError:
            continue
    return found


@pytest.mark.long
@pytest.mark.slow
def test_the_folder_is_the_same_and_may_change_hands(cluster: str, tmp_path: Path) -> None:
    words = (*WORDS, "--engine", "toy", "--max-tokens", "8", "--protocol", "@k", "--n", "3")
    assert rlvr(*words, "-o", "one", folder=tmp_path).returncode == 0
    done = rlvr(*words, "-o", "many", "--ray", cluster, "--ray-workers", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "one") == results(tmp_path / "many")
    kept = (tmp_path / "one" / "samples.jsonl").read_bytes().splitlines(keepends=True)[:50]
    (tmp_path / "many" / "samples.jsonl").write_bytes(b"".join(kept))
    again = rlvr("eval", "--resume", "many", "--json", folder=tmp_path)  # goes on as it was begun, over Ray
    assert again.returncode == 0, again.stderr
    assert results(tmp_path / "one") == results(tmp_path / "many")
    too_many = rlvr(*words, "-o", "x", "--ray", cluster, "--ray-workers", "3", folder=tmp_path)
    assert "--ray-workers 3: the cluster has 2 CPUs" in errors(too_many)[0]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker", "driver"])
def test_what_dies_costs_nothing_that_was_finished(cluster: str, tmp_path: Path, victim: str) -> None:
    with FaultyServer(solver(0.05)) as model:
        words = (*WORDS, "--server", model.url, "--concurrency", "2")
        assert rlvr(*words, "-o", "one", folder=tmp_path).returncode == 0
        asked = model.requests
        over_ray = [*RLVR, *words, "-o", "many", "--ray", cluster, "--ray-workers", "2"]
        with model.held(after=20):  # or all might be done before anyone is killed
            driver = subprocess.Popen(over_ray, cwd=tmp_path, stdout=-3, stderr=-1, text=True)
            try:
                wait_until(lambda: lines(tmp_path / "many") >= 5 or driver.poll() is not None, 240)
                if victim == "worker":
                    os.kill(workers(tmp_path)[0], signal.SIGKILL)
                else:
                    driver.kill()
            except BaseException:
                driver.kill()  # what is left running fails another test, later
                driver.communicate()
                raise
        _, said = driver.communicate(timeout=240)
        if victim == "worker":
            assert driver.returncode == 0, said
        else:
            before = lines(tmp_path / "many")
            assert 5 <= before < 40
            again = rlvr("eval", "--resume", "many", "--json", folder=tmp_path)
            assert again.returncode == 0, again.stderr
            assert lines(tmp_path / "many") == 40, "what was finished is not asked again"
        assert model.requests - asked <= asked + 30  # greetings of each worker, and what was under way
    assert results(tmp_path / "one") == results(tmp_path / "many")


def test_without_ray_one_line_says_so(monkeypatch, capsys, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        return errors(inside(monkeypatch, capsys, *WORDS, "--engine", "toy", *words, folder=tmp_path))[0]

    monkeypatch.setitem(sys.modules, "ray", None)
    assert run("--ray", "local") == "error: --ray needs Ray: pip install 'rlvrlab[ray]'"
    assert "belongs to --ray" in run("--ray-workers", "2")
