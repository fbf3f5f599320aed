"""Kill −9 anywhere, resume, and the finished run is the uninterrupted one to the byte."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import faults
import pytest
import runs
from slow_cases import some_slow

from rlvrlab.train import checkpoint, session

POINTS = 12
RLVR = [str(Path(sys.executable).with_name("rlvr"))]


class Whole:
    """A run nobody disturbed, and how many changes of files it took."""

    def __init__(self, folder: Path) -> None:
        resolved = runs.recipe(folder)

        def work() -> session.Ended:
            faults.count_changes(folder / "changes")
            return session.start(resolved, runs.quiet)

        assert runs.in_child(work) == 0
        self.folder = runs.only_run(folder)
        self.changes = (folder / "changes").stat().st_size


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("whole"))


def attempt(folder: Path, fault: object = None) -> int:
    """Start, or resume what is there; returns the exit code."""
    found = runs.only_run(folder)
    resolved = runs.recipe(folder)

    def work() -> session.Ended:
        if callable(fault):
            fault()
        return session.resume(found, runs.quiet) if found else session.start(resolved, runs.quiet)

    return runs.in_child(work, folder / "stderr")


def finish(folder: Path, whole: Whole) -> None:
    assert attempt(folder) == 0, (folder / "stderr").read_text()
    assert runs.read_info(runs.only_run(folder))["status"] == "finished"
    runs.assert_same(runs.only_run(folder), whole.folder)


def test_the_uninterrupted_run_covers_every_phase(whole: Whole) -> None:
    rows = runs.read_metrics(whole.folder)
    assert list(dict.fromkeys(row["phase"] for row in rows)) == ["sft", "dpo", "grpo", "ppo"]
    assert any("dpo/pairs" in row for row in rows)
    assert any(row.get("actor/grad_norm") for row in rows if row["phase"] == "grpo")
    assert any("critic/vf_loss" in row for row in rows)
    assert whole.changes > 5 * POINTS


@pytest.mark.parametrize("nth", some_slow(range(POINTS), {7}))
def test_killed_at_a_change_of_files(whole: Whole, tmp_path: Path, nth: int) -> None:
    """Points spread evenly from the first change of a file to the last."""
    point = 1 + (whole.changes - 1) * nth // (POINTS - 1)
    assert attempt(tmp_path, lambda: faults.kill_at_change(point)) == -signal.SIGKILL
    finish(tmp_path, whole)


@pytest.mark.parametrize("line", some_slow([1, 3, 12, 20], {12}))
def test_killed_in_the_middle_of_a_line(whole: Whole, tmp_path: Path, line: int) -> None:
    assert attempt(tmp_path, lambda: faults.tear_line_at(line)) == -signal.SIGKILL
    finish(tmp_path, whole)
    assert runs.events(runs.only_run(tmp_path), "torn_line")


@pytest.mark.parametrize("nth", some_slow(range(POINTS), {3}))
def test_the_power_fails_and_only_what_was_synced_is_left(whole: Whole, tmp_path: Path, nth: int) -> None:
    point, image = 1 + (whole.changes - 1) * nth // (POINTS - 1), tmp_path / "image"
    cut = lambda: faults.cut_power_at(point, tmp_path / "out", image)  # noqa: E731
    assert attempt(tmp_path, cut) == -signal.SIGKILL
    killed = runs.only_run(tmp_path)
    if killed is not None:
        (tmp_path / "out").rename(tmp_path / "killed")
        image.rename(tmp_path / "out")
        killed, left = tmp_path / "killed" / killed.name, runs.only_run(tmp_path)
        assert left is not None, "a run that was there is there"
        assert {path.name for path in checkpoint.complete(killed / "checkpoints")} <= {
            path.name for path in checkpoint.complete(left / "checkpoints")
        }, "a checkpoint that was there is there, and complete"
        assert len(runs.read_metrics(left)) >= len(runs.read_metrics(killed)) - 1, "at most the current step is lost"
    finish(tmp_path, whole)


@pytest.mark.slow
def test_killed_again_and_again(whole: Whole, tmp_path: Path) -> None:
    """Also while rewinding and recovering; each process gets a little further than the one before."""
    pace = random.Random(5)
    kills = 0
    for limit in range(14, 400, 14):
        point = pace.randint(limit // 2, limit)
        if attempt(tmp_path, lambda point=point: faults.kill_at_change(point)) == 0:
            break
        kills += 1
    assert kills >= 5
    finish(tmp_path, whole)


def test_resuming_a_finished_run_changes_nothing(whole: Whole, tmp_path: Path) -> None:
    assert attempt(tmp_path) == 0
    finish(tmp_path, whole)


def by_clock(folder: Path, delay_s: float) -> None:
    """A whole interpreter, killed after a while, then resumed by the command."""
    runs.recipe(folder)
    words = [*RLVR, "train", str(folder / "tiny.toml"), f"output_dir={folder / 'out'}"]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay_s)
    child.kill()
    child.wait()
    found = runs.only_run(folder)
    last = [*RLVR, "train", "--resume", str(found)] if found else words
    done = subprocess.run(last, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_killed_by_the_clock(whole: Whole, tmp_path: Path) -> None:
    by_clock(tmp_path, 1.2)
    runs.assert_same(runs.only_run(tmp_path), whole.folder)


@pytest.mark.soak
@pytest.mark.parametrize("nth", range(50))
def test_soak_killed_by_the_clock(whole: Whole, tmp_path: Path, nth: int) -> None:
    by_clock(tmp_path, random.Random(nth).uniform(0, 2.5))
    runs.assert_same(runs.only_run(tmp_path), whole.folder)


@pytest.mark.soak
def test_soak_killed_at_sixty_changes_of_files(whole: Whole, tmp_path: Path) -> None:
    for point in sorted(random.Random(60).sample(range(1, whole.changes + 1), 60)):
        folder = tmp_path / str(point)
        assert attempt(folder, lambda point=point: faults.kill_at_change(point)) == -signal.SIGKILL
        finish(folder, whole)
