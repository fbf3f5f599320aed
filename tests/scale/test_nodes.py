"""Two Ray nodes on one machine, one of them killed: an evaluation goes on, training from its last checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import verl_runs
from command_line import RLVR, rlvr
from faulty_server import FaultyServer
from judge_servers import wait_until
from ray_nodes import RayNodes
from test_fan_out import WORDS, lines, results, solver

from rlvrlab.record.run import read_events, read_info, read_metrics
from rlvrlab.train.checkpoint import defect

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.long
def test_an_evaluation_survives_the_death_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'rlvrlab[ray]'")
    with RayNodes(cpus=1) as nodes, FaultyServer(solver(0.05)) as model:
        for name, text in nodes.secret.items():
            monkeypatch.setenv(name, text)
        words = (*WORDS, "--server", model.url, "--concurrency", "2")
        assert rlvr(*words, "-o", "one", folder=tmp_path).returncode == 0
        over_ray = [*RLVR, *words, "-o", "many", "--ray", nodes.address, "--ray-workers", "2"]
        with model.held(after=20):
            driver = subprocess.Popen(over_ray, cwd=tmp_path, stdout=-3, stderr=-1, text=True)
            wait_until(lambda: lines(tmp_path / "many") >= 5 or driver.poll() is not None, 240)
            nodes.tell("kill")
            nodes.tell("add")  # the worker that takes the dead one's place needs a processor
        _, said = driver.communicate(timeout=240)
        assert driver.returncode == 0, said
    assert results(tmp_path / "one") == results(tmp_path / "many")


@pytest.mark.oracle
def test_verl_goes_on_from_its_last_checkpoint_after_the_death_of_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("verl", "ray", "transfer_queue"):
        pytest.importorskip(name, reason="needs verl's environment: make verl-test")
    (tmp_path / "recipe.toml").write_text(
        verl_runs.RECIPE.replace("steps = 2", "steps = 4").replace("every = 1", "every = 2")
    )
    with RayNodes(cpus=16, gpus=1) as nodes:
        for name, text in nodes.secret.items():
            monkeypatch.setenv(name, text)
        command = [sys.executable, "-c", "from rlvrlab.cli import main; main()", "train"]
        words = ["recipe.toml", "engine.nodes=2", "--address", nodes.address]
        started = subprocess.Popen([*command, *words], cwd=tmp_path, stdout=-3, stderr=-1, text=True)
        until = time.monotonic() + 900
        while not list(tmp_path.glob("experiments/*/artifacts/verl/checkpoints/latest_checkpointed_iteration.txt")):
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        nodes.tell("kill")
        _, said = started.communicate(timeout=600)
        (run,) = (tmp_path / "experiments").iterdir()
        assert started.returncode == 1 and f"rlvr train --resume {run.relative_to(tmp_path)}" in said, said
        assert read_info(run)["status"] == "failed"
        assert not any(str(run) in line and "main_ppo" in line for line in verl_runs.commands())
        nodes.tell("add")
        done = verl_runs.rlvr(tmp_path, "train", "--resume", str(run), "--json")
        assert done.returncode == 0, done.stderr[-2000:]
    resumed = next(event for event in read_events(run) if event["kind"] == "resume")
    assert resumed["step"] == 2 and read_info(run)["status"] == "finished"
    lost = [event["step"] for event in read_events(run) if event["kind"] == "lost"]
    assert [row["step"] for row in read_metrics(run)] == [step for step in range(5) if step not in lost]
    assert len((run / "rollouts" / "step_4.jsonl").read_text().splitlines()) == 32, "no half of a batch"
    assert defect(run / "checkpoints" / "global_step_4") is None
    world = json.loads((run / "artifacts/verl/checkpoints/global_step_4/actor/fsdp_config.json").read_text())
    assert world["world_size"] == 2
