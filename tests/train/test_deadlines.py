"""A verifier that hangs, swallows exceptions or leaves the program: said, ended in time, and never exit code 0."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
from slow_cases import some_slow

from rlvrlab.envs.countdown import Countdown
from rlvrlab.train import session, stopping


def hang() -> None:
    while True:
        time.sleep(60)


def hang_for_good() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def spoil(act: Callable[[], None], calls: int, asked_after_s: float) -> None:
    """From the n-th call of the verifier on, `act` happens in it, and somebody asks to stop so many seconds later."""
    real, left = Countdown.verify_many, [calls]

    def verify_many(self: Any, items: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            signal.setitimer(signal.ITIMER_REAL, asked_after_s)
            act()
        return real(self, items)

    Countdown.verify_many = verify_many


def attempt(folder: Path, act: Callable[[], None], *overrides: str, asked_after_s: float = 0.0, calls: int = 6) -> int:
    resolved = runs.recipe(folder, *overrides, text=runs.ONLINE)

    def work() -> session.Ended:
        stopping.GRACE_S, stopping.LAST_S = 0.3, 0.5
        spoil(act, calls, asked_after_s)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        return session.start(resolved, runs.quiet)

    return runs.in_child(work, folder / "stderr")


def resumed(folder: Path) -> None:
    assert runs.in_child(lambda: session.resume(runs.only_run(folder), runs.quiet), folder / "stderr") == 0


@pytest.mark.parametrize("act", some_slow([hang, hang_for_good], {hang}))
def test_a_hanging_verifier_is_told_and_ended_by_the_deadline(tmp_path: Path, act: Callable[[], None]) -> None:
    assert attempt(tmp_path, act, "stop.deadline_s=2") == 1
    folder = runs.only_run(tmp_path)
    told = runs.events(folder, "waiting")
    assert told and "has waited since" in told[0] and ("for judge" in told[-1] or "for evaluate" in told[-1])
    assert runs.read_info(folder)["status"] == "failed"
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    resumed(tmp_path)


@pytest.mark.parametrize("act", some_slow([hang, hang_for_good], {hang_for_good}))
def test_sigterm_is_heeded_though_a_verifier_hangs(tmp_path: Path, act: Callable[[], None]) -> None:
    assert stopping.GRACE_S + stopping.LAST_S < 10
    assert attempt(tmp_path, act, asked_after_s=0.5) == 143
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == "preempted"
    assert runs.events(folder, "waiting")
    resumed(tmp_path)


@pytest.mark.parametrize("code", [0, None, 3])
def test_a_plugin_that_leaves_the_program_has_failed(tmp_path: Path, code: int | None) -> None:
    def leave() -> None:
        raise SystemExit(code)

    assert attempt(tmp_path, leave) == 1
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == "failed"
    assert any("sys.exit" in text for text in runs.events(folder, "end"))
    assert "Traceback" not in (tmp_path / "stderr").read_text()
