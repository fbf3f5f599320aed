"""Runs with learnt limits whose answers are judged by workers: a kill in between changes nothing, nor what is learnt.

How long an answer takes is measured, and no two measurements agree. So the verdicts here are the judge's, but their
costs are made up: by the answer alone, times the pace of the machine.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import faults
import pytest
import runs
from slow_cases import some_slow

from rlvrlab.judge.isolation import probe
from rlvrlab.record.files import read_lines
from rlvrlab.train import session

pytestmark = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate code")

ELSEWHERE = """
import json, os, zlib
from dataclasses import dataclass, replace
from rlvrlab.envs.code.shared_judge import shared_judge
from rlvrlab.envs.countdown import Countdown
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.registry import register
from rlvrlab.types import LIMIT, ONLY_OUTCOME

@register("env", "elsewhere")
@dataclass(frozen=True)
class Elsewhere(Countdown):
    '''Countdown; what was answered is also printed by a program of its own, in a worker of the judge.'''

    judged_elsewhere = True

    def verify_many(self, items):
        rows = [{"role": p.role, "limit": p.meta.get(LIMIT), "outcome": p.meta.get(ONLY_OUTCOME)} for p, _ in items]
        os.write(int(os.environ["ASKED"]), "".join(json.dumps(row) + "\\n" for row in rows).encode())
        tasks = [StdioTask((("", text),), limits=Limits(cpu_s=p.meta.get(LIMIT, 9.0))) for p, text in items]
        programs = [f"print({text!r})  # {p.id}" for p, text in items]
        ran = shared_judge().verify_many(list(zip(tasks, programs)))
        assert all(one.correct for one in ran), ran
        return [replace(one, cost=cost(*item)) for one, item in zip(super().verify_many(items), items)]

def cost(problem, text):
    slower = 0.3 if LIMIT in problem.meta else 0.06  # than the reference, which is run to find a limit
    seconds = float(os.environ["PACE"]) * (slower + 0.01 * (zlib.crc32(text.encode()) % 20))
    return {"cpu_s": seconds, "wall_s": seconds}
"""
TEXT = runs.ONLINE.replace('"countdown"', '"elsewhere.py:Elsewhere"') + '[pipeline]\nlimits = "learnt"\n'


def train(folder: Path, lag: int, fault: Callable[[], None] = lambda: None, pace: float = 1.0) -> int:
    """Start, or resume what is there, in a child; its exit code. What is asked of the judge stands in folder/asked."""
    found = runs.only_run(folder)
    folder.mkdir(exist_ok=True)
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    resolved = runs.recipe(folder, f"pipeline.lag={lag}", text=TEXT)

    def work() -> session.Ended:
        asked = os.open(folder / "asked", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.environ |= {"ASKED": str(asked), "PACE": str(pace)}
        fault()
        return session.resume(found, runs.quiet) if found else session.start(resolved, runs.quiet)

    return runs.in_child(work, folder / "stderr")


SHARES = (0.5, 0.6, 0.7, 0.8)


class Whole(NamedTuple):
    """A run nobody disturbed."""

    lag: int
    home: Path
    folder: Path
    changes: int
    left: dict[float, Path]
    """What kill −9 would have left after these shares of its changes of files."""


@pytest.fixture(scope="module", params=[pytest.param(0, marks=pytest.mark.slow), 1], ids=["lag 0", "lag 1"])
def whole(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Whole:
    home = tmp_path_factory.mktemp("whole")
    code = train(home, request.param, lambda: faults.count_changes(home / "changes"))
    assert code == 0, (home / "stderr").read_text()
    folder = runs.only_run(home)
    assert folder is not None
    changes, watched = (home / "changes").stat().st_size, home / "watched"
    left = {share: home / str(share) for share in SHARES}
    copied = {int(share * changes): target / "out" for share, target in left.items()}
    assert train(watched, request.param, lambda: faults.copy_at_changes(copied, watched / "out")) == 0
    return Whole(request.param, home, folder, changes, left)


def limits(folder: Path) -> Path:
    return folder / "artifacts" / "limits.jsonl"


def killed(whole: Whole, folder: Path, share: float) -> bytes:
    """Kill a run after this share of its changes of files; what it had learnt by then."""
    assert train(folder, whole.lag, lambda: faults.kill_at_change(int(share * whole.changes))) == -signal.SIGKILL
    left = runs.only_run(folder)
    return limits(left).read_bytes() if left and limits(left).exists() else b""


def test_answers_teach_limits_step_by_step(whole: Whole) -> None:
    rows = [row for row in read_lines(limits(whole.folder)) if "limit_s" in row]
    assert len({row["limit_s"] for row in rows}) > 2 and min(row["limit_s"] for row in rows) > 0.5
    assert len({row["step"] for row in rows if "answer" in row}) > 1, "answers raise what references have set"


def test_evaluations_keep_the_limit_of_the_environment_and_run_every_test(whole: Whole) -> None:
    asked: list[dict[str, Any]] = list(read_lines(whole.home / "asked"))
    trained, examined = ([row for row in asked if (row["role"] == "train") is one] for one in (True, False))
    assert any(row["limit"] for row in trained) and examined
    assert {row["limit"] for row in examined} == {None} and {row["outcome"] for row in examined} == {None}


@pytest.mark.parametrize("share", some_slow(SHARES, {0.8}))
def test_killed_anywhere_it_ends_with_the_same_run_and_the_same_limits(whole: Whole, share: float) -> None:
    home = whole.left[share]
    folder = runs.only_run(home)
    assert folder is not None and runs.read_info(folder)["status"] == "running"
    before = limits(folder).read_bytes() if limits(folder).exists() else b""
    assert train(home, whole.lag) == 0, (home / "stderr").read_text()
    runs.assert_same(folder, whole.folder)
    assert limits(folder).read_bytes() == limits(whole.folder).read_bytes()
    assert limits(folder).read_bytes().startswith(before[: before.rfind(b"\n") + 1])


def test_what_was_measured_before_a_kill_is_read_again_on_a_slower_machine(whole: Whole, tmp_path: Path) -> None:
    before = killed(whole, tmp_path, 0.85)
    assert before, "it had learnt something"
    assert train(tmp_path, whole.lag, pace=3.0) == 0, (tmp_path / "stderr").read_text()
    folder = runs.only_run(tmp_path)
    assert folder is not None
    rows = list(read_lines(limits(folder)))
    assert limits(folder).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert len({json.dumps(row, sort_keys=True) for row in rows}) == len(rows), "no step is learnt from twice"
    references = [row["problem"] for row in rows if "limit_s" in row and "answer" not in row]
    assert len(set(references)) == len(references), "no reference is measured twice"
    runs.assert_same(folder, whole.folder)
