"""Blame by execution: where a failed program parts from a right one, found in the jail and put on the right tokens."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.batch import batch_of
from rlvrlab.credit.trace import Trace, parting
from rlvrlab.envs.minicode.environment import Minicode
from rlvrlab.errors import UserError
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.record.run import read_metrics
from rlvrlab.train import session
from rlvrlab.train.checks import ready_lab
from rlvrlab.train.credit.trace import trace_credits
from rlvrlab.types import Completion, Problem, Reward, Rollout

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import runs

RIGHT = " x=x[:3]\n return max(x+[0])\n"
FAILED = {
    " x=x[1:]\n return max(x+[0])\n": 0,
    " x=x[:3]\n return min(x+[0])\n": 1,
    " y=len(x)\n x=x[:3]\n return min(x+[0])\n": 2,
    " x=x[:3]\n x=sorted(x)\n return x[0]\n": 1,
    " return 1/0\n": 0,
    " x=x[:3]\n for v in x:\n  x=[]\n return max(x+[0])\n": 2,
    " x=x[:3]  #\u2028#\n return min(x+[0])\n": 1,
}


def states(*rows: tuple[int, dict[str, int]]) -> list[tuple[int, dict[str, int]]]:
    return list(rows)


def test_idle_statements_and_new_names_do_not_part_two_programs() -> None:
    right = states((0, {"x": 1}), (2, {"x": 2}), (3, {"x": 2, "return": 9}))
    idle = states((0, {"x": 1}), (2, {"x": 1, "y": 5}), (3, {"x": 2, "y": 5}), (4, {"x": 2, "y": 5, "return": 8}))
    assert parting([idle], [right]) == (3, 4)
    assert parting([right], [right]) is None
    assert parting([idle], [right[:-1]]) is None, "a right program that was not followed to its end says nothing"
    early = states((0, {"x": 1}), (2, {"x": 7}), (3, {"x": 7, "return": 9}))
    assert parting([idle, early], [right, right]) == (1, 2), "the call on which they part first"
    assert parting([states((0, {"x": 1}), (2, {"x": 1, "raise": 3}))], [right]) == (1, 2)


def judged(problem: Problem, env: Minicode, texts: list[str]) -> list[Rollout]:
    verdicts = env.verify_many([(problem, text) for text in texts])
    return [
        Rollout(f"g/{at}", "g", problem, (1,), Completion(text, tuple(map(ord, text)), ()), verdict,
                Reward(float(bool(verdict.correct))))
        for at, (text, verdict) in enumerate(zip(texts, verdicts, strict=True))
    ]  # fmt: skip


def spell(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


@pytest.fixture(scope="module")
def problem() -> Problem:
    cases = [[[[3, 1, 4, 1]], 4], [[[9, 2]], 9], [[[1, 2, 3, 8]], 3], [[[5, 5, 6]], 6]]
    return Problem("p", "minicode", "gen", "", {"skill": "gen", "header": "def f(x):\n", "hidden": cases})


def test_failed_programs_are_blamed_where_they_part_from_a_right_one(problem: Problem) -> None:
    env = Minicode()
    rollouts = judged(problem, env, [RIGHT, *FAILED])
    assert [r.verdict.correct for r in rollouts] == [True] + [False] * len(FAILED)
    credits = trace_credits(Trace(), rollouts, env, spell)
    blamed = {r.completion.text: int(np.flatnonzero(credits.answers[r.id].raw_S < 0)[0]) for r in rollouts[1:]}
    assert blamed == FAILED
    assert credits.metrics["credit/located"] == 1 and credits.metrics["credit/traced"] == 1 + len(FAILED)
    assert not trace_credits(Trace(), rollouts[1:], env, spell).answers, "nobody to compare with"


@pytest.mark.parametrize(("before", "first"), [("group", -1.0), ("zero", 0.0)])
def test_the_advantage_is_put_on_the_blamed_statement_and_nothing_follows(
    problem: Problem, before: str, first: float
) -> None:
    env, text = Minicode(), " x=x[:3]\n x=sorted(x)\n return x[0]\n"
    rollouts = judged(problem, env, [RIGHT, text])
    plugin = Trace(before=before, weight=2.0)
    credits = trace_credits(plugin, rollouts, env, spell)
    batch = batch_of([(1,)], [(*map(ord, text), 0)], advantage_BT=np.full((1, len(text) + 1), -1.0))
    failed = replace(rollouts[1], completion=Completion(text, (*map(ord, text), 0), ()))
    again = trace_credits(plugin, [rollouts[0], failed], env, lambda tokens: spell([t for t in tokens if t]))
    advantage_T = again.on(batch, [failed]).advantage_BT[0]
    ends = [text.index("\n") + 1, text.index(" return"), len(text) + 1]
    assert set(advantage_T[: ends[0]]) == {first} and set(advantage_T[ends[0] : ends[1]]) == {-2.0}
    assert not advantage_T[ends[1] :].any(), "neither the last statement nor the end token"
    assert not credits.speaking(rollouts) and not again.plugin.needs_replays


def test_of_several_right_answers_the_one_counts_that_goes_along_for_longest(problem: Problem) -> None:
    env, failed = Minicode(), " x=x[:3]\n return min(x+[0])\n"
    other = " x=sorted(x[:3])\n return x[-1]\n"
    credits = trace_credits(Trace(), judged(problem, env, [other, RIGHT, failed]), env, spell)
    assert np.flatnonzero(credits.answers["g/2"].raw_S < 0).tolist() == [1]
    alone = trace_credits(Trace(siblings=1), judged(problem, env, [other, RIGHT, failed]), env, spell)
    assert np.flatnonzero(alone.answers["g/2"].raw_S < 0).tolist() == [0]


def test_only_check_sums_leave_the_jail_and_only_tasks_of_calls_can_be_followed() -> None:
    code = "import math\ndef f(x):\n secret=x\n return x\n"
    tests = TestsTask("f", ("assert f([41, 42]) == 1",), preamble="import math")
    with Judge(workers=1) as judge:
        calls, asserts, stdio = judge.trace_many(
            [(CallsTask("f", (Call(([41, 42],), 1),)), code), (tests, code), (StdioTask((("1", "1"),)), code)]
        )
    assert [[seen.line for seen in call] for call in calls] == [[0, 3, 4]] == [[s.line for s in c] for c in asserts]
    assert stdio == () and calls[0][2].values.keys() == {"x", "secret", "return"}
    assert all(type(value) is int and value > 1000 for seen in calls[0] for value in seen.values.values())


@pytest.mark.parametrize("blanks", ["", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_step_is_found_in_prose_and_fences_too(problem: Problem, blanks: str, end: str) -> None:
    env = Minicode(style="chat")
    bodies = (RIGHT, " x=x[:3]\n return min(x+[0])\n")
    lines = [["So:", *("```python\ndef f(x):\n" + body + "```").split("\n")] for body in bodies]
    rollouts = judged(problem, env, ["".join(f"{blanks}{line}{end}" for line in some) for some in lines])
    assert rollouts[0].verdict.correct
    [one] = trace_credits(Trace(), rollouts, env, spell).answers.values()
    [step] = [step for step, credit in zip(one.trajectory.segments.steps, one.raw_S, strict=True) if credit < 0]
    assert step.text == f"{blanks} return min(x+[0]){end}"


def test_a_program_that_cannot_be_followed_is_left_to_its_group(problem: Problem) -> None:
    env = Minicode()
    hostile = " import sys\n sys.settrace(None)\n return 0\n"
    endless = " while 1:\n  x=x+[1]\n"
    rollouts = judged(problem, env, [RIGHT, hostile, endless, "((", ""])
    credits = trace_credits(Trace(), rollouts, env, spell)
    assert credits.answers.keys() <= {"g/2"}


def test_environments_without_programs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="runs none"):
        ready_lab(runs.recipe(tmp_path, "credit.type=trace", text=runs.ONLINE))


@pytest.mark.slow
def test_a_run_with_traces_resumes_exactly(tmp_path: Path) -> None:
    from test_credit_training import PROGRAMS

    text = PROGRAMS.partition("[credit]")[0].replace("steps = 2", "steps = 4") + '[credit]\ntype = "trace"\n'
    whole = runs.run(tmp_path / "a", "checkpoint.every=2", text=text).folder
    assert sum(row.get("credit/traced", 0) for row in read_metrics(whole)) > 0
    broken = runs.run(tmp_path / "b", "checkpoint.every=2", text=text).folder
    (runs.last_checkpoint(broken) / "manifest.json").unlink()
    session.resume(broken, runs.quiet)
    runs.assert_same(whole, broken)
