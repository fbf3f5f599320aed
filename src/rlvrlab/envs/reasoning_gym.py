"""Problems of the package reasoning-gym (extra, `pip install reasoning-gym`); its scorers run only inside the jail.

    id         reasoning_gym:leg_counting:17:4
    prompt     Your task is to count how many legs … Put the answer alone inside <answer> </answer>.
    completion <think>…</think><answer>292</answer>
    reference  {"dataset": "leg_counting", "settings": {}, "seed": 17, "index": 4, "answer": "292"}
    meta       {"package": "0.1.25"}

The jailed child makes the same problem again from seed and index, and scores the answer there; only whether the score
reaches each tenth comes back (part `partial`). `correct` needs the full score, because the default scorer pays for any
text that merely contains the answer.

Traps: nine of its scorers evaluate the answer as Python or SymPy code. In the jail that can harm nothing, but such an
answer shares a process with its scorer and could forge the score, so these data sets are refused unless allowed by name
(`allow_executing`), and their verdicts carry the flag `integrity_weak`. A few data sets come without an answer: gold is
None there.
"""

from __future__ import annotations

import atexit
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Literal

from rlvrlab.envs.answer_cheats import denied, unthought
from rlvrlab.envs.answers import KEPT, squeezed
from rlvrlab.envs.base import JudgesTogether
from rlvrlab.envs.code.shared_judge import judged
from rlvrlab.envs.split import role_of
from rlvrlab.errors import UnknownName, UserError
from rlvrlab.judge.extract import tagged
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.randomness import plain_seed
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict, unjudged

PACKAGE = "reasoning_gym"
MISSING = "reasoning-gym is not installed: pip install reasoning-gym"
EXECUTING = {
    "string_insertion", "spiral_matrix", "binary_matrix", "n_queens", "simple_integration", "intermediate_integration",
    "polynomial_multiplication", "puzzle24", "countdown", "codeio", "composite",
}  # fmt: skip
"""Their scorers evaluate the answer (codeio and composite run or may run others that do)."""
LONGEST_ANSWER = 10_000
TENTHS = 10
DRAWS_PER_PROBLEM = 200
LIMITS = Limits(cpu_s=10.0, job_cpu_s=20.0, memory_mb=2048)
SCORER = """
import reasoning_gym

scored = {}

def reaches(dataset, settings, seed, index, answer, tenths):
    if not scored:
        problems = reasoning_gym.create_dataset(dataset, seed=seed, size=index + 1, **settings)
        scored["score"] = float(problems.score_answer(answer, problems[index]))
    return scored["score"] >= tenths / 10
"""
"""Trusted; it is the answer among its arguments that is not."""
ENDING = "\nPut the answer alone inside <answer> </answer>."
THINK = "\nThink first, inside <think> </think>."


@register("env", "reasoning_gym")
@dataclass(frozen=True)
class ReasoningGym(JudgesTogether):
    """One data set of reasoning-gym."""

    dataset: str = "leg_counting"
    """Its name there."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its own options, e.g. {min_animals = 2}."""
    allow_executing: bool = False
    """Also data sets whose scorer evaluates the answer: verdicts may then be forged from inside the jail."""
    style: Literal["plain", "think"] = "plain"
    """think: the reasoning stands in <think> tags, the answer after them."""

    version = "1"

    def __post_init__(self) -> None:
        if self.dataset in EXECUTING and not self.allow_executing:
            raise UserError(
                f"reasoning_gym: the scorer of {self.dataset!r} evaluates the answer, which could forge its own score; "
                "choose another data set, or set allow_executing = true and do not trust its rewards"
            )
        self.refuse_other("style", ("plain", "think"))

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct problems; a shorter list of the same seed is the beginning of a longer one."""
        own_seed = plain_seed(seed, "reasoning_gym", role)
        made = self._made(own_seed, max(1, size) * DRAWS_PER_PROBLEM)
        try:
            package = version("reasoning-gym")
        except PackageNotFoundError:
            package = "unknown"
        problems: dict[str, Problem] = {}
        for index in range(size * DRAWS_PER_PROBLEM):
            if len(problems) == size:
                break
            entry = made[index]
            question = squeezed(entry["question"])
            if question not in problems and role_of("reasoning_gym", self.dataset, question) == role:
                reference = {"dataset": self.dataset, "settings": dict(self.settings), "seed": own_seed, "index": index}
                problems[question] = Problem(
                    id=f"reasoning_gym:{self.dataset}:{own_seed}:{index}",
                    source="reasoning_gym",
                    skill=self.dataset,
                    prompt=entry["question"] + (THINK if self.style == "think" else "") + ENDING,
                    reference={**reference, "answer": entry["answer"]},
                    meta={"package": package},
                    role=role,
                )
        if len(problems) < size:
            raise UserError(f"reasoning_gym: {size} {role} problems asked for, {self.dataset} gave {len(problems)}")
        return list(problems.values())

    def gold(self, problem: Problem) -> str | None:
        """The data set's own answer, where it has one."""
        answer = problem.reference["answer"]
        return None if answer is None else self._complete(answer)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Extract each answer and have all scored in the jail."""
        prepared = [self._prepare(problem, text) for problem, text in items]
        tasks = [(one[0], SCORER) for one in prepared if not isinstance(one, Verdict)]
        scored = iter(judged(tasks, _judge) if find_spec(PACKAGE) else [unjudged(MISSING) for _ in tasks])
        return [one if isinstance(one, Verdict) else self._scored(next(scored), one[1]) for one in prepared]

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Answers that must not get the full score."""
        right = problem.reference["answer"] or "1"
        tagged = f"<answer>{right}</answer>"
        thought = "<think>.</think>" if self.style == "think" else ""
        answers = {"nothing": "", "hedge": f"{right} or not", "sentence": f"It is {right}, I think", "none": "None"}
        answers |= {"code": "__import__('os')._exit(0)", "forged": "().__class__", "endless": "9" * 20_000}
        return {name: self._complete(answer) for name, answer in answers.items()} | {
            "no tags": f"{thought}{right}",
            "twice": f"{thought}{tagged}{tagged}",
            "open": f"{thought}<answer>{right}",
            **unthought(tagged, problem.prompt),
            **{name: f"{thought}{text}" for name, text in denied(tagged).items()},
        }

    def _prepare(self, problem: Problem, text: str) -> tuple[CallsTask, str] | Verdict:
        tail = after_thinking(text, must_think=self.style == "think")
        answer = None if tail is None else tagged(tail)
        if not answer or len(answer) > LONGEST_ANSWER:
            parts = {"format": 0.0, "partial": 0.0, "correct": 0.0}
            return Verdict(False, 0.0, ErrorKind.FORMAT, parts, detail="no single answer where it belongs")
        try:
            keys = ("dataset", "settings", "seed", "index")
            made = tuple(json.loads(json.dumps(problem.reference[key])) for key in keys)
            calls = tuple(Call((*made, answer, tenths), True) for tenths in range(1, TENTHS + 1))
            return CallsTask("reaches", calls, limits=LIMITS), answer
        except Exception as error:  # the problem is to blame, not the answer
            return unjudged(f"reasoning_gym: {problem.id}: {type(error).__name__}: {error}")

    def _scored(self, verdict: Verdict, answer: str) -> Verdict:
        flags = (*verdict.flags, *(["integrity_weak"] if self.dataset in EXECUTING else []))
        if verdict.correct is None:
            return replace(verdict, answer=answer[:KEPT], flags=flags)
        # A scorer that raises on an answer has not accepted it.
        error = ErrorKind.WRONG if verdict.error is ErrorKind.RUNTIME else verdict.error
        right = float(verdict.correct)
        parts = {"format": 1.0, "partial": verdict.score, "correct": right}
        return replace(verdict, score=right, error=error, parts=parts, answer=answer[:KEPT], flags=flags)

    def _complete(self, answer: str) -> str:
        return f"{'<think>.</think>' if self.style == 'think' else ''}<answer>{answer}</answer>"

    def _made(self, seed: int, size: int) -> Any:
        if find_spec(PACKAGE) is None:
            raise UserError(MISSING)
        package: Any = importlib.import_module(PACKAGE)
        known: dict[str, Any] = importlib.import_module(f"{PACKAGE}.factory").DATASETS
        if self.dataset not in known:
            raise UnknownName("reasoning_gym dataset", self.dataset, known)
        try:
            return package.create_dataset(self.dataset, seed=seed, size=size, **self.settings)
        except (TypeError, ValueError, AssertionError) as error:
            raise UserError(f"reasoning_gym: settings of {self.dataset}: {error}") from None


@cache
def _judge() -> Judge:
    judge = Judge(packages=(PACKAGE,))
    atexit.register(judge.close)
    return judge
