"""SIGTERM, SIGHUP and one SIGINT end in order; two SIGINT end at once; all of them can be resumed exactly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs

from rlvrlab.train import checkpoint, session
from rlvrlab.train.stopping import Interrupts


def at_row(number: int, *signals: int) -> Callable[..., None]:
    """An observer that sends this process signals at its n-th call."""
    left = [number]

    def observe(*_: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            for one in signals:
                os.kill(os.getpid(), one)

    return observe


def start(folder: Path, observe: Callable[..., None]) -> int:
    resolved = runs.recipe(folder, text=runs.ONLINE)
    return runs.in_child(lambda: session.start(resolved, observe), folder / "stderr")


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (signal.SIGTERM, "preempted", 143),
        pytest.param(signal.SIGHUP, "preempted", 129, marks=pytest.mark.slow),
        (signal.SIGINT, "interrupted", 130),
    ],
)
def test_one_signal_ends_in_order(whole: Path, tmp_path: Path, number: int, status: str, code: int) -> None:
    assert start(tmp_path, at_row(4, number)) == code
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == status
    # Row 4 is step 3, when no checkpoint is due: it is there because of the signal.
    assert runs.last_checkpoint(folder).name == "global_step_3"
    assert runs.read_metrics(folder)[-1]["step"] == 3
    assert any("--resume" in text for text in runs.events(folder, "end"))
    assert runs.in_child(lambda: session.resume(folder, runs.quiet)) == 0
    runs.assert_same(folder, whole)
    assert not (folder / "logs" / "superseded.jsonl").exists(), "an orderly end leaves nothing to do again"
    resumed = [event["text"] for event in runs.read_events(folder) if event["kind"] == "resume"]
    assert all(text.removeprefix("resumes after step ").isdigit() for text in resumed), "no lines, no word of lines"


@pytest.mark.slow
@pytest.mark.parametrize("row", [1, 2, 4, 7, 8])
def test_a_signal_at_any_row_can_be_resumed(whole: Path, tmp_path: Path, row: int) -> None:
    """Row 1 and 7 are measurements before a phase's first step."""
    assert start(tmp_path, at_row(row, signal.SIGTERM)) == 143
    folder = runs.only_run(tmp_path)
    assert runs.in_child(lambda: session.resume(folder, runs.quiet)) == 0
    runs.assert_same(folder, whole)


def test_a_second_ctrl_c_ends_at_once(whole: Path, tmp_path: Path) -> None:
    assert start(tmp_path, at_row(3, signal.SIGINT, signal.SIGINT)) == 130
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == "killed"
    assert len(runs.read_metrics(folder)) == 3
    assert runs.in_child(lambda: session.resume(folder, runs.quiet)) == 0
    runs.assert_same(folder, whole)


def test_a_signal_while_a_checkpoint_is_written_waits(whole: Path, tmp_path: Path) -> None:
    resolved = runs.recipe(tmp_path, text=runs.ONLINE)
    save = checkpoint.save

    def work() -> session.Ended:
        def slow(*args: Any) -> Path:
            os.kill(os.getpid(), signal.SIGTERM)
            return save(*args)

        checkpoint.save = slow
        return session.start(resolved, runs.quiet)

    assert runs.in_child(work) == 143
    folder = runs.only_run(tmp_path)
    assert checkpoint.defect(runs.last_checkpoint(folder)) is None
    assert runs.in_child(lambda: session.resume(folder, runs.quiet)) == 0
    runs.assert_same(folder, whole)


def test_a_signal_at_the_very_end_does_not_unfinish_a_run(whole: Path, tmp_path: Path) -> None:
    rows = len(runs.read_metrics(whole))
    assert start(tmp_path, at_row(rows, signal.SIGTERM)) == 0
    assert runs.read_info(runs.only_run(tmp_path))["status"] == "finished"


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.received is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
