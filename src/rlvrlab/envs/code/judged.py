"""What all environments share whose answers are run: prepare, judge in one batch, read the verdicts.

A subclass says in `prepare` what is to be run for an answer, or gives the verdict when nothing needs running. Parts of
a verdict: `format` (there is a program and it compiles), `tests` (share of tests passed), `correct`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from rlvrlab.envs.base import CHECKED_PROBLEMS, Followed, JudgesTogether
from rlvrlab.envs.code.shared_judge import refuse_elsewhere, shared_judge
from rlvrlab.envs.split import ROLES
from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.judge.tasks import CallsTask, TestsTask
from rlvrlab.types import LIMIT, ONLY_OUTCOME, Check, ErrorKind, Problem, Verdict, unjudged

if TYPE_CHECKING:
    from rlvrlab.judge.judge import Item

KEPT_ANSWER = 4000
ANY_PROGRAM = "```python\npass\n```"
"""An answer with a program in it, whatever is asked."""

Jobs: TypeAlias = "tuple[Item, ...]"
"""Programs to judge for one answer; all of them must be accepted for the answer to be accepted."""


class JudgedEnvironment(JudgesTogether):
    """An environment behind the shared judge."""

    runs_answers = True
    judged_elsewhere = True  # the judge's workers run the answers
    every_test: bool = True
    """Go on after a test that ended the program, so that the score is the true share of tests passed."""

    def seconds(self, problem: Problem, usual: float) -> float:
        """CPU seconds per test for answers to a problem, where a limit of its own was learnt in training."""
        return min(usual, float(problem.meta.get(LIMIT, usual)))

    @abstractmethod
    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """The programs to judge for this answer, or its verdict when nothing needs to run."""

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many, in order, in one call of the judge."""
        prepared: list[Jobs | Verdict] = []
        for problem, text in items:
            try:
                prepared.append(self.prepare(problem, text))
            except Exception as error:
                prepared.append(unjudged(f"{type(self).__name__}.prepare raised {type(error).__name__}: {error}"))
        jobs = [job for one in prepared if not isinstance(one, Verdict) for job in one]
        asked = [p for (p, _), one in zip(items, prepared, strict=True) if not isinstance(one, Verdict) for _ in one]
        judged = iter(self.judge_for(asked, jobs))
        return [
            one if isinstance(one, Verdict) else self.conclude([next(judged) for _ in one], one[0][1])
            for one in prepared
        ]

    def refuse_judge(self, problems: Sequence[Problem]) -> None:
        """By the tasks of right answers, or of any program where none is known."""
        tasks = []
        for problem in problems:
            with suppress(Exception):  # what cannot be prepared is left unjudged later, whoever judges
                prepared = self.prepare(problem, self.gold(problem) or ANY_PROGRAM)
                tasks += [] if isinstance(prepared, Verdict) else [task for task, _ in prepared]
        if tasks:
            refuse_elsewhere(tasks, self.every_test)

    def follow(self, items: Sequence[tuple[Problem, str]]) -> list[Followed | None]:
        """What the programs of these answers do on their tests; one job in the jail for each, and no verdict."""
        calls: dict[int, tuple[CallsTask | TestsTask, str]] = {}
        for at, (problem, text) in enumerate(items):
            with suppress(Exception):  # an answer that cannot be prepared was not judged either
                match self.prepare(problem, text):
                    case ((CallsTask() | TestsTask() as task, program),):
                        calls[at] = task, program
        traces = shared_judge(self.every_test).trace_many(list(calls.values())) if calls else []
        followed = dict(zip(calls, traces, strict=True))
        return [Followed(calls[at][1], followed[at]) if followed.get(at) else None for at in range(len(items))]

    def conclude(self, verdicts: Sequence[Verdict], program: str) -> Verdict:
        """One verdict of an answer's jobs: the first that is not right, or the last, with the slowest's CPU time."""
        worst = next((verdict for verdict in verdicts if not verdict.correct), verdicts[-1])
        compiled = worst.error not in (ErrorKind.FORMAT, ErrorKind.SYNTAX, ErrorKind.INFRA, ErrorKind.BAD_TASK)
        parts = {"format": float(compiled), "tests": worst.score, "correct": float(worst.correct is True)}
        slowest = max((verdict.cost["cpu_s"] for verdict in verdicts if "cpu_s" in verdict.cost), default=None)
        cost = worst.cost if slowest is None else {**worst.cost, "cpu_s": slowest}
        return replace(worst, parts=parts, cost=cost, answer=program[:KEPT_ANSWER])

    def self_check(self) -> list[Check]:
        """Gold must be correct and every cheat must not, all judged at once."""
        tries = self._tries(self.sample(CHECKED_PROBLEMS))
        verdicts = self.verify_many([(problem, text) for _, _, problem, text in tries])
        both = zip(tries, verdicts, strict=True)
        return [Check(name, text, right, verdict) for (name, right, _, text), verdict in both]

    def sample(self, size: int) -> list[Problem]:
        """A few problems of whatever role there is: a test file has nothing else."""
        problems: list[Problem] = []
        for role in reversed(ROLES):
            for wanted in range(size - len(problems), 0, -1):
                try:
                    problems += self.problems(role, wanted, seed=0)
                    break
                except UserError as error:
                    reason = error
        if problems:
            return problems
        raise reason

    def judge_for(self, problems: Sequence[Problem], jobs: Sequence[Item]) -> list[Verdict]:
        """Verdicts on one job for each of these problems; of some of them only whether it is right is asked."""
        found: list[Verdict | None] = [None] * len(jobs)
        for only_outcome in (False, True):
            at = [i for i, problem in enumerate(problems) if bool(problem.meta.get(ONLY_OUTCOME)) is only_outcome]
            every_test = self.every_test and not only_outcome
            told = self.judge([jobs[i] for i in at], [problems[i].id for i in at], every_test=every_test)
            for i, verdict in zip(at, told, strict=True):
                found[i] = verdict
        return [verdict for verdict in found if verdict is not None]

    def judge(self, jobs: Sequence[Item], labels: Sequence[str], *, every_test: bool | None = None) -> list[Verdict]:
        """Verdicts of the shared judge; unjudged when it breaks, for that says nothing about the answers."""
        if not jobs:
            return []
        judge = shared_judge(self.every_test if every_test is None else every_test)
        try:
            return judge.verify_many(jobs, labels)
        except JudgeLost:  # every further answer would share that fate: stop, and go on when a judge is back
            raise
        except Exception as error:
            return [unjudged(f"the judge raised {type(error).__name__}: {error}")] * len(jobs)


def refused(error: ErrorKind, detail: str, answer: str | None = None, compiled: bool = False) -> Verdict:
    """The verdict on an answer that was not run."""
    parts = {"format": float(compiled), "tests": 0.0, "correct": 0.0}
    return Verdict(False, 0.0, error, parts, answer=answer and answer[:KEPT_ANSWER], detail=detail)


def accepted(answer: str) -> Verdict:
    """The verdict on an answer that is right without having been run."""
    return Verdict(True, 1.0, parts={"format": 1.0, "tests": 1.0, "correct": 1.0}, answer=answer[:KEPT_ANSWER])
