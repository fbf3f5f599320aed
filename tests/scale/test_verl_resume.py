"""kill −9 in the middle of a run of the real verl trainer, and the resume. `make verl-test`; takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from verl_runs import RECIPE, commands, evaluated, merged, needs_verl, rlvr

from rlvrlab.record.run import read_events, read_info, read_metrics

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
GUARDED = """
[protocol]
type = "sequential"
order = ["small", "large"]
shares = [5, 1]
carry_optimizer = true
[guard]
type = "l2"
protected = ["large"]
"""
"""The anchor of step 0 is needed after a resume in the middle of the first stage; so are the pass rates so far."""


@needs_verl
def test_a_run_killed_half_way_takes_verl_along_is_resumed_and_evaluated(tmp_path: Path) -> None:
    text = RECIPE.replace("steps = 2", "steps = 6").replace("every = 1", "every = 3")
    (tmp_path / "recipe.toml").write_text(text.replace('group_strategy = "task_type"\nnoise_every = 2\n', "") + GUARDED)
    run = killed_in_step(tmp_path, 5)
    drawn = {step: answers(run, step) for step in (4, 5)}
    done = rlvr(tmp_path, "train", "--resume", str(run), "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    resumed = next(event for event in read_events(run) if event["kind"] == "resume")
    assert resumed["step"] == 3 and read_info(run)["status"] == "finished"
    rows = read_metrics(run)
    lost = [event["step"] for event in read_events(run) if event["kind"] == "lost"]  # verl reports after it has saved
    assert [row["step"] for row in rows] == [step for step in range(7) if step not in lost]
    assert "val-core/mixture/acc" in rows[0]
    assert all(row["actor/grad_norm"] > 0 for row in rows[1:]), "the gradients must not vanish"
    assert any("surgery/weight/difficulty0" in row for row in rows)
    assert len((run / "rollouts" / "step_6.jsonl").read_text().splitlines()) == 32
    # Made again after the resume: the same answers, in the fifth step by weights that an update had moved meanwhile.
    assert {step: answers(run, step) for step in drawn} == drawn
    first, again = (numbers(run, session, 4) for session in (0, 1))
    for name in ("actor/entropy", "actor/grad_norm", "actor/lr", "critic/rewards/mean"):
        assert again[name] == pytest.approx(first[name], rel=1e-3), name
    home = run / "artifacts" / "verl"
    assert [path.name for path in (home / "anchors").iterdir()] == ["step_0_rank_0.safetensors"]
    assert {path.name for path in (home / "difficulty").iterdir()} == {"step_3.json", "step_6.json"}
    before, after = merged(run, 3), merged(run, 6)
    moved = max(float((after[name] - value).abs().max()) for name, value in before.items())
    assert 0 < moved < 1 and all(bool(value.isfinite().all()) for value in after.values())
    evaluated(tmp_path, run)


def answers(run: Path, step: int) -> list[tuple[str, list[int]]]:
    """Problems and tokens of a step: in the record, or where verl's trainer wrote them down for it."""
    places = (run / "rollouts", run / "artifacts" / "verl" / "rollouts")
    (path, *_) = (folder / f"step_{step}.jsonl" for folder in places if (folder / f"step_{step}.jsonl").exists())
    return sorted((row["problem"], row["tokens"]) for row in map(json.loads, path.read_text().splitlines()))


def numbers(run: Path, session: int, step: int) -> dict[str, float]:
    """What verl itself reported of a step, the first time it was started or the second."""
    lines = (run / "artifacts" / "verl" / f"metrics_{session}.jsonl").read_text().splitlines()
    return next(row["data"] for row in map(json.loads, lines) if row["step"] == step and "actor/lr" in row["data"])


def killed_in_step(folder: Path, step: int) -> Path:
    """Its run folder, killed when the answers of this step are known; verl is gone too."""
    command = [sys.executable, "-c", "from rlvrlab.cli import main; main()", "train", "recipe.toml"]
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 900
    try:
        while not list(folder.glob(f"experiments/**/rollouts/step_{step}.jsonl")):
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.1)
    finally:  # also where it took too long: verl and Ray must not go on behind the tests that follow
        started.kill()
        started.wait()
    (run,) = (folder / "experiments").iterdir()
    while any(str(run) in line and "main_ppo" in line for line in commands()):
        assert time.monotonic() < until, "verl outlived the process that launched it"
        time.sleep(0.3)
    return run
