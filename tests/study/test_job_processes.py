"""Queues of commands in the studies: in order, bounded in time, begun once more where they fail, never run twice."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from living import left_of

sys.path.insert(0, str(Path(__file__).parents[2] / "studies"))
from job_processes import Job, Queue


def makes(folder: Path, name: str, script: str = "", needs: str = "", limit_s: float = 20.0) -> Job:
    """Writes a file of its name, or does what the script says."""
    made = folder / name
    words = ["bash", "-c", script or f"echo x >> {made}"]
    return Job(name, "file", words, lambda: not needs or (folder / needs).exists(), made.exists, limit_s)


def queue(folder: Path, seconds: float = 20.0, processes: int = 2) -> Queue:
    return Queue(folder / "logs", processes, time.monotonic() + seconds)


def test_a_job_waits_for_what_it_needs_and_is_not_run_twice(tmp_path: Path) -> None:
    jobs = [makes(tmp_path, "second", needs="first"), makes(tmp_path, "first")]
    assert queue(tmp_path).run(jobs) == [] and queue(tmp_path).run(jobs) == []
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["x\n", "x\n"]
    begun = [line.split()[-1] for line in (tmp_path / "logs" / "queue.log").read_text().splitlines() if "begun" in line]
    assert begun == ["first", "second"]


def test_a_failure_is_tried_once_more_and_the_others_go_on(tmp_path: Path) -> None:
    bad = makes(tmp_path, "bad", f"echo tried >> {tmp_path}/tries; exit 3")
    left = queue(tmp_path, processes=1).run([bad, makes(tmp_path, "after_it", needs="bad"), makes(tmp_path, "good")])
    assert left == ["bad", "after_it"] and (tmp_path / "tries").read_text() == "tried\n" * 2
    assert (tmp_path / "logs" / "queue.log").read_text().count("FAILED") == 2


def test_what_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    hangs = makes(tmp_path, "hangs", f"sleep 60 & echo $! >> {tmp_path}/children; sleep 60", limit_s=0.5)
    assert queue(tmp_path).run([hangs]) == ["hangs"] and time.monotonic() - began < 15
    children = [int(word) for word in (tmp_path / "children").read_text().split()]
    assert children and not left_of(children, 10)


def test_what_runs_when_the_time_is_over_is_cut_and_nothing_is_begun_after_it(tmp_path: Path) -> None:
    began = time.monotonic()
    endless = [makes(tmp_path, f"job{i}", "sleep 600", limit_s=600.0) for i in range(3)]
    assert queue(tmp_path, seconds=1.0, processes=1).run(endless) == ["job0", "job1", "job2"]
    log = (tmp_path / "logs" / "queue.log").read_text()
    assert time.monotonic() - began < 60 and log.count("begun") <= 1 and log.count("cut") == log.count("begun")


def test_nothing_is_begun_that_would_outlive_the_deadline_as_far_as_its_kind_tells(tmp_path: Path) -> None:
    jobs = [makes(tmp_path, "one"), makes(tmp_path, "two")]
    short, enough = queue(tmp_path, seconds=600.0), queue(tmp_path, seconds=600.0)
    short.longest["file"], enough.longest["file"] = 601.0, 60.0
    assert short.run(jobs) == ["one", "two"] and not (tmp_path / "logs" / "queue.log").exists()
    assert enough.run(jobs) == []


def test_a_queue_that_breaks_off_leaves_nothing_running(tmp_path: Path) -> None:
    def asked() -> bool:
        if (tmp_path / "begun").exists():
            raise SystemExit("asked to end")
        return False

    slow = makes(tmp_path, "slow", f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/begun; sleep 60")
    with pytest.raises(SystemExit, match="asked"):
        queue(tmp_path).run([slow, Job("other", "other", ["true"], asked, lambda: False, 9.0)])
    assert not left_of([int((tmp_path / "begun").read_text())], 10)
