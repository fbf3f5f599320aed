"""Signals in a script: what is under way ends in good order, then the script ends, too."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from largest import RECIPE, ROWS, larger, stops_once

import rlvrlab
from rlvrlab.train.session import Ended


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_ends_the_loop_over_seeds_and_says_how_to_go_on(
    number: signal.Signals, raised: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    flag, begun = Path("flag").resolve(), []
    flag.touch()
    with pytest.raises(raised) as caught:
        for seed in (0, 1):
            begun.append(seed)
            rlvrlab.train(
                RECIPE, env=larger(), reward=stops_once(flag, number), overrides={"seed": seed}, progress=False
            )
    assert begun == [0] and getattr(caught.value, "code", 143) == 143
    run = rlvrlab.Run("latest")
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and f"{run.folder}: {run.status}; go on with: " in told
    assert f"rlvrlab.Run('{run.folder}').resume(reward=…, env=…)" in told
    assert run.status == ("interrupted" if number == signal.SIGINT else "preempted")
    assert run.resume(progress=False).status == "finished"


def test_a_signal_in_the_last_step_ends_the_loop_although_the_run_is_finished(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flag = Path("flag").resolve()
    flag.touch()
    last = RECIPE["sft"]["steps"] + RECIPE["grpo"]["steps"] - 1
    with pytest.raises(KeyboardInterrupt):
        rlvrlab.train(RECIPE, env=larger(), reward=stops_once(flag, version=last), progress=False)
    assert rlvrlab.Run("latest").status == "finished" and "was finished when SIGINT came" in capsys.readouterr().err


def test_a_resumed_run_passes_signals_on_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlvrlab.train(RECIPE, env=larger(), progress=False, overrides="grpo.steps=1")
    ended = Ended(run.folder, "preempted", 143, {}, signal.SIGTERM)
    monkeypatch.setattr("rlvrlab.api.run.resume", lambda folder, observe: ended)
    with pytest.raises(SystemExit) as caught:
        run.resume(progress=False)
    assert caught.value.code == 143


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_an_interrupted_evaluation_keeps_what_is_judged_and_goes_on(
    number: signal.Signals, raised: type[BaseException], capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("rlvrlab.api.evaluation.AT_ONCE", 4)
    flag, asked = Path("flag").resolve(), []
    flag.touch()

    def verify(problem: Any, text: str) -> bool:
        asked.append(problem.id)
        if len(asked) == 6 and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), number)
        return text.strip() == problem.reference

    env = rlvrlab.environment(ROWS, verify=verify, name="largest")
    with pytest.raises(raised) as caught:
        rlvrlab.evaluate(RECIPE, env=env, role="train", size=12, output="here", progress=False)
    assert getattr(caught.value, "code", 143) == 143 and len(set(asked)) < 12
    told = capsys.readouterr().err
    assert (
        told.count("\n") == 1 and "here: interrupted, what is judged is kept; the same call with output='here'" in told
    )
    with pytest.raises(rlvrlab.LabError, match="not finished; go on with the same call and output= this folder"):
        rlvrlab.Evaluation("here")
    before = len(asked)
    again = rlvrlab.evaluate(RECIPE, env=env, role="train", size=12, output="here", progress=False)
    assert again.problems == 12 and len(asked) - before < 12
