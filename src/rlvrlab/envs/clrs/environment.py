"""CLRS-Text: run a textbook algorithm by hand, on sorting, searching, text, geometry and graphs.

    id         clrs:insertion_sort:4:07c1d2e9a4f5
    prompt     "insertion_sort:\\nkey: [0.55 0.708 0.29 0.51]\\npred:\\n"
    completion [0.29 0.51 0.55 0.708]
    with trace "insertion_sort:\\nkey: […], initial_trace: […]\\ntrace | pred:\\n" -> "[0.55 0.708 0.29 0.51], … | […]"
    reference  "[0.29 0.51 0.55 0.708]"
    meta       {"algorithm": "insertion_sort", "length": 4, "trace": False}

26 of CLRS's 30 algorithms are made here and agree with every published sample tried; rows of that shape are read with
`path`. The answer is the whole text after the thinking and must be equal but for spaces.

Traps: sums of decimals round differently in other orders, so weights are whole thousandths inside; equal keys would
make the answer ambiguous, so they differ; 0.550 for 0.55 is another text and not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rlvrlab.envs.answer_cheats import unthought
from rlvrlab.envs.answers import KEPT, Draws, in_turn, squeezed
from rlvrlab.envs.base import Read
from rlvrlab.envs.clrs.tasks import TASKS, TRACED
from rlvrlab.envs.data_files import Row
from rlvrlab.envs.data_set import DataSetEnvironment
from rlvrlab.envs.split import role_of
from rlvrlab.errors import UnknownName, UserError
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.randomness import generator, problem_name
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

SHORTEST, LONGEST = 4, 64
LONGEST_ANSWER = 100_000
FRUITLESS = 3000
THINK = "Run the algorithm. Think first, inside <think> </think>, then give what follows, in the same notation.\n\n"


class Run(NamedTuple):
    """One run of an algorithm: what is asked and what follows."""

    algorithm: str
    length: int
    question: str
    answer: str


@register("env", "clrs")
@dataclass(frozen=True)
class Clrs(DataSetEnvironment):
    """Textbook algorithms run by hand."""

    path: str = ""
    """A file of CLRS-Text rows (question, answer, algo_name, length); empty: runs are made here."""
    algorithms: tuple[str, ...] = ()
    """Which ones, in turn; empty: all (with trace: all that have one)."""
    lengths: tuple[int, ...] = (4, 8)
    """Sizes of the input, in turn."""
    trace: bool = False
    """Ask for every state on the way, too."""
    style: Literal["bare", "think"] = "bare"
    """bare: the original prompt, completed by the answer. think: reasoning in <think> tags before it."""

    version = "2"

    def __post_init__(self) -> None:
        for name in self.algorithms:
            if name not in self._known:
                raise UnknownName("clrs algorithm", name, self._known)
        if not self.lengths or not all(SHORTEST <= length <= LONGEST for length in self.lengths):
            raise UserError(f"clrs: lengths = {list(self.lengths)}: give sizes from {SHORTEST} to {LONGEST}")
        self.refuse_other("style", ("bare", "think"))

    @property
    def _known(self) -> tuple[str, ...]:
        return TRACED if self.trace else tuple(TASKS)

    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Runs of every algorithm and length in turn."""
        kinds = [(name, length) for length in self.lengths for name in self.algorithms or self._known]
        runs = in_turn([self._runs(name, length, role, seed) for name, length in kinds], size)
        return [self._problem(run, role) for run in runs]

    def read_row(self, row: Row) -> Read:
        """A row of CLRS-Text: `question`, `answer`, `algo_name` and `length`."""
        answer = row["answer"].strip()
        if not answer:
            raise ValueError("column 'answer' is empty; fill it in or leave out the row")
        run = Run(row["algo_name"], int(row["length"]), row["question"], answer)
        # Sorting and shortest paths are asked under several names: the role belongs to the inputs.
        role = role_of(squeezed(run.question.split("\n")[1]))
        return Read(squeezed(run.question), lambda role: [self._problem(run, role)], role)

    def gold(self, problem: Problem) -> str | None:
        """What follows the prompt: the states, where they are asked for, and the result."""
        return self._complete(problem.reference)

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Equal to what follows, but for spaces; never raises on any text."""
        tail = after_thinking(text, must_think=self.style == "think")
        answer = None if tail is None or len(tail) > LONGEST_ANSWER else " ".join(tail.split())
        if not answer:
            return _verdict(ErrorKind.FORMAT, "no answer after the thinking", answer, formed=False)
        right = " ".join(problem.reference.split())
        if answer == right:
            return _verdict(ErrorKind.NONE, "", answer, formed=True, final=1.0)
        final = "|" in right and answer.rpartition("| ")[2] == right.rpartition("| ")[2]
        detail = "another trace" if final else "another result"
        return _verdict(ErrorKind.WRONG, detail, answer, _kinds(answer) == _kinds(right), float(final))

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without running anything."""
        right = problem.reference
        answers = {
            "nothing": "", "question echoed": problem.prompt, "inputs echoed": problem.prompt.split("\n")[1],
            "brackets": "[]", "right and more": f"{right} {right}", "zero more": right + "0", "cut": right[:-2],
            "all choices": "0 1 2 3 4 5 6 7", "in words": f"The answer is {right}", "boxed": f"\\boxed{{{right}}}",
            "tagged": f"<answer>{right}</answer>", "commented": f"{right} # sure", "field repeated": f"pred: {right}",
            "full-width": right.translate({code: code + 0xFEE0 for code in range(ord("0"), ord("9") + 1)}),
            "NUL": f"{right}\0", "endless": right * 50_000,
        }  # fmt: skip
        cheats = {name: self._complete(answer) for name, answer in answers.items()}
        return cheats | unthought(right, problem.prompt)

    def _complete(self, answer: str) -> str:
        return f"<think>Step by step.</think>\n{answer}" if self.style == "think" else answer

    def _runs(self, name: str, length: int, role: Role, seed: int) -> Iterator[Run]:
        random = generator(seed, "clrs", name, length, self.trace, role)
        draws = Draws(FRUITLESS)
        for _ in draws:
            inputs, field, answer, states, initial = TASKS[name](random, length)
            # As for given rows, the role belongs to the inputs.
            if role_of("clrs", inputs) != role or not draws.is_new(inputs):
                continue
            if self.trace:
                inputs, field = f"{inputs}, initial_trace: {initial}", f"trace | {field}"
                answer = f"{', '.join(states)} | {answer}"
            yield Run(name, length, f"{name}:\n{inputs}\n{field}:\n", answer)

    def _problem(self, run: Run, role: Role) -> Problem:
        return Problem(
            id=problem_name(f"clrs:{run.algorithm}:{run.length}", run.question, digits=12),
            source="clrs",
            skill="clrs",
            prompt=(THINK if self.style == "think" else "") + run.question,
            reference=run.answer,
            meta={"algorithm": run.algorithm, "length": run.length, "trace": "trace |" in run.question},
            role=role,
        )


def _kinds(answer: str) -> set[str]:
    """The signs of an answer, all digits being one: words, or a number where a list is asked for, have not its form."""
    return {"0" if sign.isdigit() and sign.isascii() else sign for sign in answer} - {" ", ".", "-"}


def _verdict(error: ErrorKind, detail: str, answer: str | None, formed: bool, final: float = 0.0) -> Verdict:
    right = error is ErrorKind.NONE
    parts = {"format": float(formed), "final": final, "correct": float(right)}
    return Verdict(right, float(right), error, parts, answer=answer and answer[:KEPT], detail=detail)
