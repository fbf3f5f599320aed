"""Time limits that fit the problem (`pipeline.limits = "learnt"`), so that endless programs are stopped soon.

A problem's limit is ten times the slowest answer known to be right: its reference, run once when the problem is first
drawn, and then every accepted answer. It is at least half a second and at most the environment's own `timeout_s`.
An answer that sleeps needs hardly any CPU time, so the wall limit that follows is at least twice what it took.
Where the reward asks only whether an answer is right, the first test that a program does not survive is also its last:
the others could not change the reward. Evaluations keep the fixed limit and run every test.

An answer that taught a limit and is refused when it is given again was right by chance. Then nobody knows how long
right answers take, and its problem is judged by the fixed limit from the next step on.

artifacts/limits.jsonl holds every limit with the step it was learnt in; a step uses what was learnt before it. Times
are measured, so they differ from one measurement to the next: a step that is made again after a kill reads what was
written the first time, and goes on exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from rlvrlab.judge.jail.limits import WALL_SPARE_S
from rlvrlab.notes import timed
from rlvrlab.record.files import append_rows, mend_tail, read_lines
from rlvrlab.types import LIMIT, ONLY_OUTCOME, Environment, Problem, Rollout, Verdict

FILE = "limits.jsonl"
FACTOR, WALL_FACTOR = 10.0, 2.0
SHORTEST_S = 0.5


class Limits:
    """What is known so far about the problems of one run."""

    def __init__(self, env: Environment, artifacts: Path, *, only_outcome: bool = False) -> None:
        """`only_outcome`: nothing but whether an answer is right will be asked of its verdict."""
        self.env, self._path, self._only_outcome = env, artifacts / FILE, only_outcome
        self._learnt: dict[str, list[tuple[int, float]]] = {}
        """By problem: (first step it holds for, seconds); 0 seconds where the reference told nothing."""
        self._teachers: set[tuple[str, str]] = set()
        """Problems, and hashes of the answers (of programs, as they were read) that have raised their limits."""
        self._flaky: dict[str, int] = {}
        """By problem: the step from which it has the fixed limit, because one of these answers was refused later."""
        self._closed: set[int] = set()
        """Steps whose accepted answers have been looked at."""
        mend_tail(self._path)
        for row in read_lines(self._path, {"step": int}):
            self._remember(row)

    def fitted(self, problems: Sequence[Problem], step: int) -> list[Problem]:
        """The problems with the limits that this step judges them by; references seen for the first time are run."""
        with timed("limits"):
            fresh = {p.id: p for p in problems if not any(s <= step for s, _ in self._learnt.get(p.id, ()))}
            gold = {name: text for name, p in fresh.items() if (text := self.env.gold(p)) is not None}
            verdicts = self.env.verify_many([(fresh[name], text) for name, text in gold.items()]) if gold else []
        judged = zip(gold, verdicts, strict=True)
        self._write([{"step": step, "problem": name, "limit_s": limit_after(verdict)} for name, verdict in judged])
        return [self._with_limit(problem, step) for problem in problems]

    def learn(self, rollouts: Sequence[Rollout], step: int) -> None:
        """Raise the limits of problems that were solved more slowly than before; give up what chance has taught."""
        if step in self._closed:
            return
        raised: dict[str, dict[str, Any]] = {}
        refused: set[tuple[str, str]] = set()
        for rollout in rollouts:
            name, answer = rollout.problem.id, _hash(rollout.verdict.answer or rollout.completion.text)
            if name in self._flaky:
                continue
            limit, known = limit_after(rollout.verdict), self._learnt.get(name, ())
            if rollout.verdict.correct is False:
                refused.add((name, answer))
            elif limit > max((raised[name]["limit_s"] if name in raised else 0.0, *(s for _, s in known))):
                raised[name] = {"step": step + 1, "problem": name, "limit_s": limit, "answer": answer}
        teachers = self._teachers | {(name, row["answer"]) for name, row in raised.items()}
        chance = sorted({name for name, _ in teachers & refused})
        flaky = [{"step": step + 1, "problem": name, "flaky": True} for name in chance]
        self._write([*raised.values(), *flaky, {"step": step, "closed": True}])

    def _with_limit(self, problem: Problem, step: int) -> Problem:
        known = max((limit for learnt, limit in self._learnt.get(problem.id, ()) if learnt <= step), default=0.0)
        known = known if step < self._flaky.get(problem.id, step + 1) else 0.0
        meta = {
            **problem.meta,
            **({LIMIT: known} if known else {}),
            **({ONLY_OUTCOME: True} if self._only_outcome else {}),
        }
        return replace(problem, meta=meta) if meta != problem.meta else problem

    def _write(self, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            append_rows(self._path, rows)
        for row in rows:
            self._remember(row)

    def _remember(self, row: dict[str, Any]) -> None:
        """A row of the file; those of a reference, and of older versions, name no answer."""
        step, name = row["step"], row.get("problem")
        if name is None:
            self._closed.add(step)
        elif row.get("flaky"):
            self._flaky.setdefault(name, step)
        else:
            self._learnt.setdefault(name, []).append((step, row["limit_s"]))
            if "answer" in row:
                self._teachers.add((name, row["answer"]))


def limit_after(verdict: Verdict) -> float:
    """Seconds to allow after an answer like this, in tenths; 0 where it says nothing."""
    seconds = verdict.cost.get("cpu_s")
    if verdict.correct is not True or seconds is None:
        return 0.0
    asleep = WALL_FACTOR * verdict.cost.get("wall_s", 0.0) - WALL_SPARE_S
    return max(SHORTEST_S, ceil(10 * max(FACTOR * seconds, asleep)) / 10)


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
