"""minicode: write, repair, shorten and predict tiny Python functions; small enough for a policy of a million weights.

    id         minicode:gen:2:5f0c81d2a4be
    prompt     "#gen take 3;biggest\\n#[9,7,5,5,2]>9\\ndef f(x):\\n"
    completion " x=x[:3]\\n return max(x+[0])\\n"
    reference  {"skill": "gen", "header": "def f(x):\\n", "hidden": [[[[3,1,4]], 4], …]}
    meta       {"level": 2, "spec": "take 3;biggest", "solution": …, "public": […], "behaviour": "9c0f…"}

gen and fix are accepted when equal on the hidden tests; min also needs fewer characters than given; out is a literal
and runs nothing. Any Python is allowed: the grammar of the references is not the grammar of answers.

Traps. A split by text leaks: `x[::-1][::-1]` and `x` are one behaviour, so roles are split by results on fixed inputs.
A constant function passes weak tests: near-constant behaviours and the identity are not asked. Joining lines by `;` is
no simplification: layout does not count as characters. The unchanged program passes most tests of a small mistake:
it is refused before it runs. An answer may not see what it is tested on: the failing example in a prompt or a second
turn is an input of its own, and what the program did on hidden ones is never told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from rlvrlab.envs.answers import Draws, in_turn
from rlvrlab.envs.code.judged import Jobs, JudgedEnvironment, accepted, refused
from rlvrlab.envs.code.rewriting import same_program
from rlvrlab.envs.minicode import feedback
from rlvrlab.envs.minicode.cheats import program_cheats, value_cheats
from rlvrlab.envs.minicode.grammar import show
from rlvrlab.envs.minicode.levels import LEVELS
from rlvrlab.envs.minicode.skills import MAKERS, PUBLIC_CASES, draw_problem
from rlvrlab.envs.python_trees import parses, size
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import LONGEST, program_in, value_in
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.tasks import Call, CallsTask
from rlvrlab.plain_files import distinct_keys
from rlvrlab.randomness import key_bits
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

LIMITS = Limits(cpu_s=0.3, job_cpu_s=0.3, wall_s=2.0, memory_mb=128, output_mb=1)
LONGEST_VALUE = 1000
NOT_RUN = (ErrorKind.FORMAT, ErrorKind.SYNTAX, ErrorKind.RULE)
FRUITLESS_DRAWS = 5_000
Skill = Literal["gen", "fix", "min", "out"]


@register("env", "minicode")
@dataclass(frozen=True)
class Minicode(JudgedEnvironment):
    """Tiny programs: four skills, nine levels."""

    skills: tuple[Skill, ...] = ("gen", "fix", "min", "out")
    """What is asked: write (gen), repair (fix), shorten (min), predict (out); several alternate evenly."""
    levels: tuple[int, ...] = (1, 2, 3)
    """1 to 9; several alternate evenly within each skill."""
    examples: int = 1
    """Examples shown in gen, 0 to 6."""
    tests: int = 8
    """Hidden tests, 4 to 64."""
    style: Literal["bare", "chat"] = "bare"
    """bare: the completion continues the prompt. chat: words for a language model, the answer in a fenced block."""

    version = "3"
    every_test = True

    def __post_init__(self) -> None:
        self.refuse_other("skills", MAKERS, f"give some of {', '.join(MAKERS)}, each once")
        self.refuse_other("levels", LEVELS, f"give distinct levels from 1 to {max(LEVELS)}")
        if not 0 <= self.examples <= PUBLIC_CASES:
            raise UserError(f"minicode: examples = {self.examples}: 0 to {PUBLIC_CASES}")
        if not 4 <= self.tests <= 64:
            raise UserError(f"minicode: tests = {self.tests}: 4 to 64")
        self.refuse_other("style", ("bare", "chat"))

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct problems, skill by skill and level by level; a shorter list is the beginning of a longer one."""
        kinds = [(skill, level) for level in self.levels for skill in self.skills]
        streams = [self._stream(skill, level, role, seed) for skill, level in kinds]
        problems = in_turn(streams, size)
        if len(problems) < size:
            each, (skill, level) = len(problems) // len(kinds), kinds[len(problems) % len(kinds)]
            raise UserError(
                f"minicode: {size} {role} problems asked for, but a long search found only {each} "
                f"different ones of {skill} at level {level}; ask for fewer, or add levels or skills"
            )
        return problems

    def gold(self, problem: Problem) -> str | None:
        """The solution the problem came with."""
        solution = problem.meta.get("solution")
        return None if solution is None else self._complete(problem, str(solution))

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Every known way to ask for the reward without a right answer."""
        make = value_cheats if problem.skill == "out" else program_cheats
        return {name: self._complete(problem, text) for name, text in make(problem).items()}

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Read a predicted value; hand a program to the judge when its form allows."""
        if problem.reference["skill"] == "out":
            return self._predicted(problem, text)
        program = self.program(problem, text)
        if program is None:
            return refused(ErrorKind.FORMAT, "no program where it belongs")
        reference = problem.reference
        whole = reference["header"] + reference.get("given", "")
        # A simplification may consist in leaving out what does nothing, so there only the same words are no change.
        if "given" in reference and (
            program.split() == whole.split() or ("below" not in reference and same_program(program, whole))
        ):
            return refused(ErrorKind.RULE, "the program is unchanged", program, compiled=True)
        if "below" in reference and size(program) - size(reference["header"]) >= reference["below"]:
            if not parses(program):
                return refused(ErrorKind.SYNTAX, "not Python, and not shorter than the program given", program)
            return refused(ErrorKind.RULE, "not shorter than the program given", program, compiled=True)
        return ((self._task(reference["hidden"]), program),)

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The prompt of another try after a failed one; tells nothing about the hidden tests."""
        return self.second_turns([(problem, text, verdict)])[0]

    def second_turns(self, tries: Sequence[tuple[Problem, str, Verdict]]) -> list[str]:
        """The same for many, running the programs on public inputs in one call of the judge."""
        jobs, own = {}, []
        for index, (problem, text, verdict) in enumerate(tries):
            program = None if problem.skill == "out" else self.program(problem, text)
            own.append(text if problem.skill == "out" else program or str(problem.reference["header"]))
            if program is not None and verdict.error not in NOT_RUN:
                jobs[index] = self._task(problem.meta["public"]), program
        seen = dict(zip(jobs, self.judge(list(jobs.values()), ["second turn"] * len(jobs)), strict=True))
        return [
            feedback.second_prompt(problem, own[index], verdict, seen.get(index), self.style)
            for index, (problem, _, verdict) in enumerate(tries)
        ]

    def program(self, problem: Problem, text: str) -> str | None:
        """The whole function an answer stands for."""
        header = str(problem.reference["header"])
        if self.style == "bare":
            return header + text if text.strip() and len(text) <= LONGEST else None
        return program_in(text, "f", header).code

    def _predicted(self, problem: Problem, text: str) -> Verdict:
        answer = text if self.style == "bare" else value_in(text).code
        if answer is None or not answer.strip():
            return refused(ErrorKind.FORMAT, "no value where it belongs")
        try:  # JSON with Python's quotes: nothing runs
            long = len(answer) > LONGEST_VALUE
            value = None if long else show(json.loads(answer.replace("'", '"'), object_pairs_hook=distinct_keys))
        except (ValueError, RecursionError):
            value = None
        if value is None:
            return refused(ErrorKind.SYNTAX, "not one value of numbers, strings, lists or dictionaries", answer)
        if value != problem.reference["result"]:
            return refused(ErrorKind.WRONG, "not what the program returns", answer, compiled=True)
        return accepted(answer)

    def _task(self, cases: Sequence[Any]) -> CallsTask:
        return CallsTask("f", tuple(Call(tuple(arguments), want) for arguments, want in cases), limits=LIMITS)

    def _complete(self, problem: Problem, text: str) -> str:
        if self.style == "bare":
            return text
        if problem.skill == "out":
            return f"```\n{text}\n```"
        return f"```python\n{problem.reference['header']}{text}```\n" if text.strip() else text

    def _stream(self, skill: str, level: int, role: Role, seed: int) -> Iterator[Problem]:
        random = Random(key_bits(seed, "minicode", skill, level, role))
        draws = Draws(FRUITLESS_DRAWS)
        for _ in draws:
            problem = draw_problem(skill, level, role, random, self.tests, self.examples, self.style)
            if problem is not None and draws.is_new(problem.prompt):
                yield problem
