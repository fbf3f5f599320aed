"""Examinations whose verifier hangs: said, given up in time, and SIGTERM is heeded."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.cli import eval as eval_verb  # noqa: F401  imported before the fork
from rlvrlab.cli import main, probe  # noqa: F401
from rlvrlab.envs.countdown import Countdown
from rlvrlab.train import stopping

EVAL = ["eval", "countdown", "--engine", "toy", "--size", "2", "-o", "kept"]
PROBE = ["probe", "countdown", "--engine", "toy", "--size", "2", "--n", "2"]


def hang(*_: Any) -> None:
    while True:
        time.sleep(60)


def hang_and_be_asked_to_stop(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    hang()


def attempt(folder: Path, words: list[str], verify: Any = hang) -> tuple[int, list[str]]:
    """The verb in a fork whose verifier hangs: its exit code and what it said."""
    child = os.fork()
    if child == 0:
        code: object = 70
        try:
            os.chdir(folder)
            errors = os.open("stderr", os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            stopping.GRACE_S, stopping.LAST_S, stopping.LOOK_S = 0.2, 0.5, 0.05
            Countdown.verify_many = verify  # type: ignore[method-assign]
            sys.argv = ["rlvr", *words]
            main()
        except SystemExit as left:
            code = left.code
        finally:
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 71)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), (folder / "stderr").read_text().splitlines()


@pytest.mark.parametrize(("words", "name"), [(EVAL, "evaluation"), (PROBE, "probe")])
def test_a_hanging_verifier_is_told_and_ended(tmp_path: Path, words: list[str], name: str) -> None:
    code, said = attempt(tmp_path, [*words, "--deadline", "1"])
    assert code == 1 and said[0].startswith(f"waiting: the {name} has waited since 20")
    assert said[-1].startswith(f"error: the {name} has waited since") and "--deadline" in said[-1]
    assert not any("Traceback" in line for line in said)


def test_sigterm_is_heeded_and_says_how_to_go_on(tmp_path: Path) -> None:
    code, said = attempt(tmp_path, EVAL, hang_and_be_asked_to_stop)
    assert code == 143 and said[-1] == "error: the evaluation was asked to stop"
    assert said[-2] == "what is judged is kept; go on with: rlvr eval --resume kept"
    assert stopping.GRACE_S + stopping.LAST_S < 10, "what the product waits, not what this test does"
