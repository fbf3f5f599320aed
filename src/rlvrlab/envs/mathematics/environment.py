"""Mathematics with a known final answer in a box, from any of the usual data sets or made here.

    id         math:9f86d081884c7d65
    prompt     Compute $\\\\frac{3}{4} + \\\\frac{1}{6}$ in lowest terms. … put the final answer in \\\\boxed{}.
    completion 9/12 + 2/12 = 11/12, so \\\\boxed{\\\\frac{11}{12}}
    reference  {"answer": "\\\\frac{11}{12}", "choices": 0}      choices > 0: the answer is one or more letters
    meta       {"suite": "math500_test"}

The answer is the last closed box after the last </think>. Numbers and letters are compared here, exactly; anything else
by math-verify in a jailed worker (extra `math`; without it such an answer stays unjudged, never wrong).

Traps: symbolic comparers execute or hang on hostile text (`9^{9^{9^9}}`), so they run where they can be killed; several
accept a hundredth or a hundredfold of the answer; `6=5` and `5 \\\\approx 5.1` pass as 5, and letters match by accident
of the first capital in a sentence. A box that was only thought, never closes or hedges is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from rlvrlab.envs.amounts import asked_for
from rlvrlab.envs.answer_cheats import denied, unthought
from rlvrlab.envs.answers import KEPT, same, squeezed
from rlvrlab.envs.base import JudgesTogether, Read
from rlvrlab.envs.code.shared_judge import judged
from rlvrlab.envs.data_files import Row
from rlvrlab.envs.data_set import DataSetEnvironment
from rlvrlab.envs.mathematics.equality import exact, is_hedged, letters, no_number
from rlvrlab.envs.mathematics.imaginary import is_imaginary
from rlvrlab.envs.mathematics.shapes import LETTERS, Item, item_of
from rlvrlab.envs.mathematics.synthetic import items
from rlvrlab.judge.extract import boxed
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.randomness import problem_name
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict, unjudged

PROMPTS = {
    "plain": "{question}\nReason step by step, and put the final answer{letter} in \\boxed{{}}.",
    "think": "{question}\nThink first, inside <think> </think>. Then put the final answer{letter} in \\boxed{{}}.",
}
FULL_WIDTH = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@register("env", "math")
@dataclass(frozen=True)
class Mathematics(JudgesTogether, DataSetEnvironment):
    """Problems whose final answer is a number, an expression or a choice."""

    path: str = ""
    """A file of any known shape, or a folder with train and test files; empty: exercises are made here."""
    style: Literal["plain", "think"] = "plain"
    """think: the reasoning stands in <think> tags, the answer after them."""

    version = "6"

    def __post_init__(self) -> None:
        self.refuse_other("style", PROMPTS)

    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Exercises of synthetic.py."""
        return [self._problem(item, role) for item in islice(items(role, seed), size)]

    def read_row(self, row: Row) -> Read | None:
        """A row of any known shape (shapes.py); None when it has no answer."""
        item = item_of(row)
        return item and Read.by_text(item.question, lambda role: [self._problem(item, role)])

    def gold(self, problem: Problem) -> str | None:
        """The reference in a box."""
        return self._complete(problem.reference["answer"])

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """What is plain is settled here; the rest goes to the jailed worker in one batch."""
        settled: list[Verdict | tuple[MathTask, str]] = []
        for problem, text in items:
            try:
                settled.append(self._settle(problem, text))
            except Exception as error:  # the problem is to blame, not the answer
                settled.append(unjudged(f"math: {problem.id}: {type(error).__name__}: {error}"))
        symbolic = iter(judged([one for one in settled if not isinstance(one, Verdict)]))
        return [one if isinstance(one, Verdict) else _scored(next(symbolic), one[1]) for one in settled]

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without answering."""
        right, choices = problem.reference["answer"], problem.reference["choices"]
        value = exact(right)
        wrong = LETTERS[(LETTERS.index(right[0]) + 1) % choices] if choices else f"{(value or 0) + 1}"
        answers = {
            "wrong": wrong, "empty": "", "both": f"{wrong}, {right}", "hedge": f"{right} \\text{{ or }} {wrong}",
            "every letter": LETTERS, "not": f"not {right}", "equation": f"{wrong}={right}",
            "roughly": f"{right} \\approx {wrong}", "full-width": right.translate(FULL_WIDTH), "endless": "9" * 10_000,
            "nothing there": "\\text{}", "infinite": "1e400", "no number": "0/0",
        }  # fmt: skip
        cheats = {name: self._complete(answer) for name, answer in answers.items()}
        thought = "" if self.style == "plain" else "<think>.</think>"
        return cheats | {
            "right, then wrong": f"{thought}\\boxed{{{right}}} no, \\boxed{{{wrong}}}",
            "no box": f"{thought}The answer is {right}",
            "open box": f"{thought}\\boxed{{{right}",
            "right box, then an open one": f"{thought}\\boxed{{{right}}} \\boxed{{",
            "framed": f"{thought}\\fbox{{{right}}}",
            **unthought(f"\\boxed{{{right}}}", problem.prompt),
            **{name: f"{thought}{text}" for name, text in denied(f"\\boxed{{{right}}}").items()},
        }

    def _settle(self, problem: Problem, text: str) -> Verdict | tuple[MathTask, str]:
        """A verdict, or a task when it takes mathematics to judge the answer."""
        tail = after_thinking(text, must_think=self.style == "think")
        answer = None if tail is None else boxed(tail)
        if not answer:
            return same(False, None, ErrorKind.FORMAT, "no closed box with an answer after the thinking")
        gold = problem.reference["answer"]
        if not problem.reference["choices"]:
            copied = "".join(answer.split()) in "".join(problem.prompt.split())  # the question is not its answer
            imaginary = not copied and is_imaginary(problem.prompt, gold)
            return compared(answer, gold, asked_for(problem.prompt), imaginary)
        chosen = letters(answer)
        if chosen is None:
            return same(False, answer, ErrorKind.SYNTAX, "a letter was expected")
        return same(chosen == letters(gold), answer)

    def _complete(self, answer: str) -> str:
        return f"{'<think>.</think>' if self.style == 'think' else 'So'} \\boxed{{{answer}}}"

    def _problem(self, item: Item, role: Role) -> Problem:
        letter = " (the letter of the right choice)" if item.choices else ""
        return Problem(
            id=problem_name("math", squeezed(item.question)),
            source="math",
            skill="math",
            prompt=PROMPTS[self.style].format(question=item.question, letter=letter),
            reference={"answer": item.gold, "choices": item.choices},
            meta={"suite": Path(self.path).name.partition(".")[0] if self.path else "synthetic"},
            role=role,
        )


def compared(
    answer: str, gold: str, asked: Collection[str] = (), imaginary: bool = False
) -> Verdict | tuple[MathTask, str]:
    """A verdict on an answer that is not a choice, or a task when it takes mathematics to judge it.

    Where a percentage is asked for, `10%` is right for gold `10`, and `10 cents` where coins are; where `i` is the
    imaginary unit, `i^2` is -1.
    """
    if answer == gold.strip():
        return same(True, answer)
    if UNPRINTABLE.search(answer) or is_hedged(answer, gold):
        return same(False, answer, ErrorKind.SYNTAX, "not one answer")
    value, expected = exact(answer), exact(gold)
    if value is None and expected is not None and no_number(answer):
        return same(False, answer, ErrorKind.SYNTAX, "not one number")
    if value is None or expected is None:
        return MathTask(gold, percent="percent" in asked, cents="cent" in asked, imaginary=imaginary), answer
    return same(value == expected, answer)


def _scored(verdict: Verdict, answer: str) -> Verdict:
    """With score, parts and the answer; one that could not be judged has no score."""
    if verdict.correct is None:
        return replace(verdict, answer=answer[:KEPT])
    parts = {"format": float(verdict.error in (ErrorKind.NONE, ErrorKind.WRONG)), "correct": float(verdict.correct)}
    return replace(verdict, score=float(verdict.correct), parts=parts, answer=answer[:KEPT])
