"""What the environments over code data sets share: rows and roles, the task of a row, prompts and the second turn."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from rlvrlab.envs.base import Read
from rlvrlab.envs.code.judged import Jobs, JudgedEnvironment, refused
from rlvrlab.envs.code.rows import CodeRow, Columns, Shape, fitting, read_shaped, shaped
from rlvrlab.envs.code.shared_judge import settled
from rlvrlab.envs.data_files import LocatedPath, Row
from rlvrlab.errors import UserError, suggestion
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.extract import program_in, python_block
from rlvrlab.judge.jail.evaluating import may_evaluate
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.purity import is_pure
from rlvrlab.judge.packages import check_known
from rlvrlab.judge.tasks import StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.randomness import shuffled
from rlvrlab.types import TESTS_LEFT_OUT, Check, Count, ErrorKind, Positive, Problem, Role, Verdict

CHECK_TIMEOUT_S = 0.5
CHECK_MEMORY_MB = 256
ANSWER_FUNCTION = "Answer with the whole function in one ```python block."
ANSWER_PROGRAM = (
    "Read standard input and print to standard output. Answer with the whole program in one ```python block."
)
NOT_RUN = {
    ErrorKind.FORMAT: "There was no program in it.",
    ErrorKind.RULE: "It does not keep to what was asked.",
}
"""What is told of an answer that was refused for its text."""
BESIDE = "tests that must run beside the answer, or would run what it returns (inprocess = true)"
MOST_NAMED = 40
PRINTED = Comparison("float", 1e-6, 1e-6)
"""How contests compare: word by word, whatever the blanks between them, and decimals within a tolerance."""
MANY_INPUTS = 6
"""How many times `timeout_s` a test has that is hundreds of inputs in one: EvalPlus gives them 60 s together, and
some of its references take half of that."""


@dataclass(frozen=True)
class FileEnvironment(JudgedEnvironment, LocatedPath):
    """Problems from a file in one of some shapes; without a file, a few of our own."""

    path: str = ""
    """A .jsonl, .json (also .gz) or .parquet file; empty: a few problems of our own, to try things."""
    shape: str = "auto"
    """How its rows look; auto goes by the columns."""
    role_of: Literal["", "train", "dev", "test"] = ""
    """What the file may be used for, where its rows have no `split` of their own."""
    style: Literal["chat", "bare"] = "chat"
    """chat: words for a language model. bare: the beginning of a program, for a base model to go on."""
    every_test: bool = True
    """Go on after a test that ended the program. False saves time, and the share of tests passed is a lower bound."""
    inprocess: bool = False
    """Also give out rows whose tests run beside the answer, or run what it returns: flagged `integrity: weak`."""
    most_tests: Count | None = None
    """Tests judged per problem, the first ones; none: all. A limit also limits what `accepted` means."""
    timeout_s: Positive = 10.0
    """CPU seconds per test."""
    memory_mb: Count = 1024
    """Writable memory."""
    packages: tuple[str, ...] = ()
    """What answers may import beside the standard library: numpy, pandas, scipy, sympy. Imports of tests are seen."""

    shapes: ClassVar[Mapping[str, Shape]]
    samples: ClassVar[Sequence[Mapping[str, Any]]]

    def __post_init__(self) -> None:
        if self.shape != "auto" and self.shape not in self.shapes:
            known = suggestion(self.shape, ["auto", *self.shapes])
            raise UserError(f"{self.name}: shape = {self.shape!r}: unknown{known}")
        if self.role_of not in ("", "train", "dev", "test"):
            raise UserError(f'{self.name}: role_of = {self.role_of!r}: allowed: "train", "dev", "test"')
        self.refuse_other("style", ("chat", "bare"))
        if not (self.timeout_s > 0 and (self.most_tests is None or self.most_tests >= 1) and self.memory_mb >= 1):
            raise UserError(f"{self.name}: timeout_s, most_tests and memory_mb must be above 0")
        check_known(self.packages, f"{self.name}: packages = {list(self.packages)}")

    @abstractmethod
    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """The problems made from a row; none when the row cannot serve."""

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Rows of that role in an order given by the seed."""
        mine = [problem for row in self.rows() if row.role == role for problem in self.problems_of(row, role)]
        if len(mine) < size:
            where = self.path or "the built-in sample"
            own = "" if self.path else f"name your rows by data.{role}_file (`rlvr data prepare` makes them), or "
            told = f"{size} {role} problems asked for, {where} has {len(mine)}"
            raise UserError(f"{self.name}: {told}; {own}ask for fewer")
        return shuffled(mine, seed, self.name, role)[:size]

    def rows(self) -> list[CodeRow]:
        """Everything in the file that can be judged as the settings say."""
        role_of = self.role_of or None
        if self.path:
            rows = read_shaped(Path(self.path), self.shapes, self.shape, role_of)
        else:
            rows = [row for one in self.samples for row in shaped([one], self.shapes, "auto", role_of, "sample")]
        given_out = [row for row in rows if self.gives_out(row)]
        if self.path and (words := loaded(rows, given_out)):
            say_once(f"{self.path}: {words}")
        return given_out

    def read_row(self, row: Row) -> Read | None:
        """A row as it is; None when the settings leave it out."""
        read = self.shaped_row(row)
        if read is None:
            return None
        return Read.by_text(read.text + (read.buggy or ""), lambda role: self.problems_of(read, role))

    def shaped_row(self, row: Row) -> CodeRow | None:
        """A row in the wanted shape, or in the first that fits; None when the settings leave it out."""
        columns = Columns(row)
        read = fitting(columns, self.shapes)[1] if self.shape == "auto" else self.shapes[self.shape](columns)
        return read if self.gives_out(read) else None

    def gives_out(self, row: CodeRow) -> bool:
        """Can the row be judged as the settings say?"""
        return not row.left_out and (self.inprocess or not (row.inprocess or forgeable(row)))

    def gold(self, problem: Problem) -> str | None:
        """The reference answer of the row."""
        solution = problem.meta.get("solution")
        return None if solution is None else str(solution)

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Find the program and hand it to the judge."""
        reference = problem.reference
        found = program_in(text, reference["entry_point"], reference["begun"])
        if found.code is None:
            return refused(ErrorKind.FORMAT, found.reason)
        return ((self.task(reference, reference["tests"], self.seconds(problem, self.timeout_s)), found.code),)

    def seconds(self, problem: Problem, usual: float) -> float:
        """As everywhere; more where a test is a whole list of inputs, which is told by their counts."""
        return super().seconds(problem, usual * MANY_INPUTS if problem.meta.get("tests") else usual)

    def bad_tasks(self, problems: Sequence[Problem]) -> dict[str, str]:
        """Problems whose own code (preamble, setup, tests) fails; tried with the gold answer, or one that is none."""
        coded = [problem for problem in problems if problem.reference.get("entry_point")]
        answers = [self.gold(one) or python_block("pass\n") for one in coded]
        verdicts = self.verify_many(list(zip(coded, answers, strict=True)))
        tried = zip(coded, verdicts, strict=True)
        return {
            one.id: verdict.detail for one, verdict in tried if settled(verdict, one.id).error is ErrorKind.BAD_TASK
        }

    def reference(self, row: CodeRow) -> dict[str, Any]:
        """What the verifier needs, in plain data."""
        tests = [list(test) if isinstance(test, tuple) else test for test in row.tests[: self.most_tests]]
        return {
            "entry_point": row.entry_point,
            "tests": tests,
            "setup": row.setup,
            "begun": row.begun,
            "inprocess": row.inprocess,
        }

    def problem_of(self, row: CodeRow, role: Role, prompt: str, **more: Any) -> Problem:
        """The problem of a row whose hidden tests decide; `more` is added to what the verifier sees."""
        solution = None if row.solution is None else python_block(row.solution)
        examples = [list(one) if isinstance(one, tuple) else one for one in row.examples]
        meta: dict[str, Any]
        reference, meta = {**self.reference(row), **more}, {"solution": solution, "examples": examples}
        meta |= {"tests": dict(row.counted)} if row.counted else {}
        left_out = len(row.tests[self.most_tests :]) if self.most_tests else 0
        meta |= {TESTS_LEFT_OUT: left_out} if left_out else {}
        return Problem(row.id, self.name, self.name, prompt, reference, meta, role)

    def task(self, reference: Mapping[str, Any], tests: Sequence[Any], seconds: float | None = None) -> Task:
        """The judge's task for a program or a function."""
        seconds = seconds or self.timeout_s
        limits = Limits(cpu_s=seconds, job_cpu_s=2 * seconds, memory_mb=self.memory_mb)
        if not reference["entry_point"]:
            pairs = tuple((given, expected) for given, expected in tests)
            return StdioTask(pairs, PRINTED, limits=limits, packages=self.packages)
        name, begun = reference["entry_point"], reference["begun"]
        return TestsTask(
            name,
            tuple(tests),
            setup=reference["setup"],
            preamble=begun[: max(0, begun.find(f"def {name}"))],
            inprocess=reference["inprocess"],
            limits=limits,
            packages=self.packages,
        )

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The prompt of another try after a failed one."""
        found = program_in(text, problem.reference["entry_point"], problem.reference["begun"])
        own = f"\n\nYour last answer:\n```python\n{found.code.strip()}\n```" if found.code else ""
        told = NOT_RUN.get(verdict.error) or self._told(problem, found.code or "", verdict)
        # Said again at the end: told about their program, chat models explain it and write none.
        form = ANSWER_FUNCTION if problem.reference["entry_point"] else ANSWER_PROGRAM
        return f"{problem.prompt.rstrip()}{own}\n\n{told} Try again.{f' {form}' if self.style == 'chat' else ''}\n"

    def _told(self, problem: Problem, program: str, verdict: Verdict) -> str:
        """What a program that was run is told: how it does on public examples, in a run of their own.

        Not how it failed on hidden tests, not even in kind: it could choose between an error and a loop by what it
        read there, and so carry hidden inputs into the next prompt. A program that may have kept something from an
        earlier run is told no kind at all.
        """
        if verdict.error is ErrorKind.SYNTAX:  # compiled once more: a program that ran could have forged the message
            [compiled] = self.judge([(SyntaxTask(), program)], [problem.id])
            if compiled.correct is False:
                return f"It does not compile: {compiled.detail}."
        examples = problem.meta.get("examples") or []
        task = self.task(problem.reference, examples)
        public = next(iter(self.judge([(task, program)] if examples else [], [problem.id])), None)
        if public is None or public.correct is None:
            return "It is not right on all tests."
        if public.correct:
            return "It is right on the examples, but not on all other tests."
        above = task.preamble if isinstance(task, TestsTask) else ""
        return f"On the examples: {public.detail if is_pure(above + program) else 'it is wrong'}."

    def self_check(self) -> list[Check]:
        """The usual check; our own problems run quickly, so a short time limit ends endless loops soon."""
        quick = self if self.path else replace(self, timeout_s=CHECK_TIMEOUT_S, memory_mb=CHECK_MEMORY_MB)
        return super(FileEnvironment, quick).self_check()


_may_evaluate = lru_cache(maxsize=4096)(may_evaluate)


def forgeable(row: CodeRow) -> bool:
    """Might the tests of a function run what an answer returns? Then the answer can say that they passed."""
    return bool(row.entry_point) and _may_evaluate((row.setup, *row.tests))


def loaded(rows: Sequence[CodeRow], given_out: Sequence[CodeRow]) -> str:
    """Which tests were loaded and which rows are not given out, where a data set leaves a doubt about either."""
    counts: Counter[str] = Counter()
    for row in given_out:
        counts.update(row.counted)
    parts = [f"{len(given_out)} problems"]
    if counts:
        parts.append("tests: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()))
    kept = {row.id for row in given_out}
    for reason in dict.fromkeys(row.left_out or BESIDE for row in rows if row.id not in kept):
        names = [row.id for row in rows if row.id not in kept and (row.left_out or BESIDE) == reason]
        shown = f"{', '.join(names[:MOST_NAMED])}{', …' if len(names) > MOST_NAMED else ''}"
        parts.append(f"left out, {reason}: {len(names)} ({shown})")
    return "; ".join(parts) if len(parts) > 1 else ""


@cache
def say_once(words: str) -> None:
    """A line for whoever reads the log, once per process."""
    print(words, file=sys.stderr, flush=True)
