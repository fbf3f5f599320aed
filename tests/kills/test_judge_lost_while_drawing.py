"""A judge server is killed while answers are being drawn and verdicts are out: the run stops, and loses nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import runs
from judge_servers import JudgeProcess, isolated
from test_learnt_limits import ELSEWHERE

from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.record.files import read_lines
from rlvrlab.train import session
from rlvrlab.types import Completion, Request

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not isolated(), reason="this machine cannot isolate code")]

TEXT = runs.ONLINE.replace('"countdown"', '"elsewhere.py:Elsewhere"').replace("every = 2", "every = 1")
LOST = 3
"""The step of GRPO that is judged when the server is killed; they count from 0."""
Told = Callable[[Sequence[tuple[int, int, Completion]]], None]
plain_sample = ToyEngine.sample


def train(folder: Path, url: str, lag: int, doom: Callable[[], Any] = lambda: None) -> int:
    """Start, or resume what is there, in a child, judged by a server; its exit code."""
    found = runs.only_run(folder)
    folder.mkdir(exist_ok=True)
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    resolved = runs.recipe(folder, f"pipeline.lag={lag}", "eval.every=0", text=TEXT)

    def work() -> session.Ended:
        asked = os.open(os.devnull, os.O_WRONLY)
        os.environ |= {"ASKED": str(asked), "PACE": "1", "RLVR_JUDGE": url, "RLVR_JUDGE_WAIT_S": "1"}
        observe = doom() or runs.quiet
        return session.resume(found, observe) if found else session.start(resolved, observe)

    return runs.in_child(work, folder / "stderr")


def step_of(requests: Sequence[Request]) -> int | None:
    """Of GRPO; none for an evaluation."""
    return requests[0].key[2] if requests[0].key[1] == "grpo" else None


def killed_while_the_same_step_is_drawn(server: JudgeProcess, told_file: Path) -> Callable[[], None]:
    """For a child without lag: a sampler that streams; its first answer is judged, its last one comes too late."""

    def sample_streaming(engine: ToyEngine, requests: Sequence[Request], told: Told) -> list[list[Completion]]:
        drawn = plain_sample(engine, requests)
        answers = [(i, sample, one) for i, group in enumerate(drawn) for sample, one in enumerate(group)]
        before = server.facts()["answered"] if step_of(requests) == LOST else 0
        for number, answer in enumerate(answers):
            if step_of(requests) == LOST and number == 1:
                while server.facts()["answered"] == before:
                    time.sleep(0.01)
                os.kill(server.process.pid, signal.SIGSTOP)  # what it is asked from here on stays out
            if step_of(requests) == LOST and number == len(answers) - 1:
                os.kill(server.process.pid, signal.SIGKILL)
                told_file.write_text(f"{number} of {len(answers)}")
            told([answer])
        return drawn

    return lambda: setattr(ToyEngine, "sample_streaming", sample_streaming)


def killed_while_the_next_step_is_drawn(server: JudgeProcess, told_file: Path) -> Callable[[], Any]:
    """For a child with lag: it stops answering before a step is handed in, and is killed as the next is drawn."""

    def sample(engine: ToyEngine, requests: Sequence[Request]) -> list[list[Completion]]:
        if step_of(requests) == LOST + 1:
            os.kill(server.process.pid, signal.SIGKILL)
            told_file.write_text("before the next step was drawn")
        return plain_sample(engine, requests)

    def observe(phase: Any, state: Any, row: dict[str, Any]) -> None:
        if row["phase"] == "grpo" and row["phase_step"] == LOST:
            os.kill(server.process.pid, signal.SIGSTOP)

    def doom() -> Any:
        ToyEngine.sample = sample  # type: ignore[method-assign]
        return observe

    return doom


DOOMS = {0: killed_while_the_same_step_is_drawn, 1: killed_while_the_next_step_is_drawn}


@pytest.mark.parametrize("lag", [0, 1])
def test_a_judge_killed_while_answers_are_drawn_stops_the_run_which_goes_on_as_if_it_had_not(
    tmp_path: Path, lag: int
) -> None:
    with JudgeProcess() as server:
        assert train(tmp_path / "whole", server.url, lag) == 0, (tmp_path / "whole" / "stderr").read_text()
    folder, lost = tmp_path / "lost", JudgeProcess(port=server.port)
    try:
        assert train(folder, lost.url, lag, DOOMS[lag](lost, tmp_path / "told")) == 1
    finally:
        lost.kill()
    assert "no judge server has answered for 1 s" in (folder / "stderr").read_text()
    assert (tmp_path / "told").exists(), "it was killed where it was meant to be"
    whole, run = runs.only_run(tmp_path / "whole"), runs.only_run(folder)
    assert whole is not None and run is not None and runs.read_info(run)["status"] == "failed"
    rows = [row for path in (run / "rollouts").iterdir() for row in read_lines(path)]
    assert rows and all(row["correct"] is not None for row in rows), "nothing is scored without a verdict"
    assert len(runs.rollouts(run)) < len(runs.rollouts(whole))
    with JudgeProcess(port=server.port) as back:
        assert train(folder, back.url, lag) == 0, (folder / "stderr").read_text()
    runs.assert_same(run, whole)
