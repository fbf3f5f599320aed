"""Countdown: combine the given numbers with + - * / so that the result is the target.

    id         countdown:3:2,5,9=43
    prompt     Write an arithmetic expression that equals 43 from the numbers 2, 9, 5. …   (style "think")
               "2 9 5 = 43\\n"                                                              (style "bare")
    completion <think>9*5 is 45, minus 2</think><answer>9*5-2</answer>   or, bare,   9*5-2
    reference  {"numbers": [2, 9, 5], "target": 43}
    meta       {"level": 3, "solution": "9*5-2"}

The numbers are listed in an order that a hash of the content decides (`order`): where they ascend, signs fixed by place
solve a quarter of the problems, and a policy finds them instead of calculating. The id has them sorted: the content.

Traps, all of them found in graders in wide use: `eval` of the answer runs its code; a regular expression that looks
for the numbers accepts 1.5*4 for 1 5 4, 2**5-4 and 7//2+5; 99**99**99 hangs the worker; any text between the tags
earns the format reward. Here the answer is read by a grammar that knows nothing but numbers, four operators and
parentheses, and computed exactly; see arithmetic.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Le

from rlvrlab.envs.answers import KEPT, Draws, in_turn
from rlvrlab.envs.arithmetic import BadExpression, Expression, Term, combine, evaluate, number, parse
from rlvrlab.envs.arithmetic_solver import MAX_NUMBERS, reachable, solve
from rlvrlab.envs.base import BaseEnvironment, Read
from rlvrlab.envs.split import role_of
from rlvrlab.errors import UserError, cut
from rlvrlab.randomness import generator, shuffled
from rlvrlab.registry import register
from rlvrlab.types import CountOrZero, ErrorKind, Problem, Role, Verdict

if TYPE_CHECKING:
    from rlvrlab.envs.data_files import Row

Operand = Annotated[int, Ge(1), Le(10**6)]
DRAWS_PER_BLOCK = 256
FRUITLESS_DRAWS = 50_000
NOTHING = Term((0, 0))
"""Stands for a division by zero; no instance, since its denominator is not 1."""


class Instance(NamedTuple):
    """What is asked; numbers are sorted, so equal content is equal, in whatever order it is listed."""

    numbers: tuple[int, ...]
    target: int

    @property
    def role(self) -> Role:
        """Whatever the settings of the environment, since it is decided by the content alone."""
        return role_of("countdown", self.numbers, self.target)

    @property
    def shuffled(self) -> list[int]:
        """The numbers in an order that depends on nothing but the content, and says nothing about their size."""
        return shuffled(self.numbers, "countdown order", self.numbers, self.target)


@register("env", "countdown")
@dataclass(frozen=True)
class Countdown(BaseEnvironment):
    """The Countdown game with 2 to 6 numbers."""

    numbers: tuple[int, ...] = (3, 4)
    """Levels: how many numbers an instance has; several levels alternate evenly."""
    low: Operand = 1
    """Smallest number."""
    high: Operand = 99
    """Largest number."""
    target_low: CountOrZero = 1
    """Smallest target."""
    target_high: CountOrZero = 999
    """Largest target."""
    operators: str = "+-*/"
    """The operators allowed."""
    use_all: bool = True
    """Every number exactly once; False means at most once."""
    style: Literal["think", "bare"] = "think"
    """think: reasoning, then <answer> tags. bare: nothing but the expression, for tiny policies."""
    order: Literal["shuffled", "ascending"] = "shuffled"
    """How the numbers are listed. Where they ascend, a - b + c by place is often right, whatever the numbers are."""

    version = "2"

    def __post_init__(self) -> None:
        self.refuse_other("numbers", range(2, MAX_NUMBERS + 1), f"give distinct levels from 2 to {MAX_NUMBERS}")
        if not 1 <= self.low <= self.high <= 10**6:
            raise UserError(f"countdown: low = {self.low}, high = {self.high}: need 1 <= low <= high <= 1000000")
        if not 0 <= self.target_low <= self.target_high:
            raise UserError(
                f"countdown: target_low = {self.target_low}, target_high = {self.target_high}: "
                "need 0 <= target_low <= target_high"
            )
        signs = set(self.operators)
        if not signs or not signs <= set("+-*/") or len(signs) < len(self.operators):
            raise UserError(f'countdown: operators = {self.operators!r}: give some of "+-*/", each once')
        self.refuse_other("style", ("think", "bare"))
        self.refuse_other("order", ("shuffled", "ascending"))

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct solvable problems; a shorter list of the same seed is the beginning of a longer one."""
        streams = [self._instances(level, role, seed) for level in self.numbers]
        chosen = in_turn(streams, size)
        if len(chosen) < size:
            level, made = self.numbers[len(chosen) % len(streams)], len(chosen) // len(streams)
            how = "there are only" if self._is_small(level) else "a long search found only"
            raise UserError(
                f"countdown: {size} {role} problems asked for, but {how} {made} different ones with {level} numbers; "
                "ask for fewer, or widen low, high, target_low, target_high, operators or numbers"
            )
        return [self._problem(instance, term.text, role) for instance, term in chosen]

    def read_row(self, row: Row) -> Read | None:
        """A row of Countdown-Tasks: `nums` and `target`; None when it has no solution under the settings."""
        instance = Instance(tuple(sorted(int(value) for value in row["nums"])), int(row["target"]))
        solution = self._solution(*instance) if len(instance.numbers) > 1 else None
        if solution is None:
            return None
        return Read(str(instance), lambda role: [self._problem(instance, solution, role)], instance.role)

    def gold(self, problem: Problem) -> str | None:
        """The solution the problem came with, or else the solver's."""
        solution = problem.meta.get("solution") or self._solution(*_ask(problem))
        return None if solution is None else self._complete(solution)

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Extract, parse, check the numbers, compute exactly; never raises on any text."""
        answer = _thought_and_tagged(text) if self.style == "think" else text.removesuffix("\n").strip(" ")
        if not answer:
            return _refused(ErrorKind.FORMAT, "no single non-empty answer where it belongs", None)
        try:
            expression = parse(answer)
        except BadExpression as error:
            return _refused(ErrorKind.SYNTAX, str(error), answer)
        numbers, target = _ask(problem)
        broken = self._broken_rule(expression, numbers)
        if broken:
            return _refused(ErrorKind.RULE, broken, answer, format=1.0)
        value = evaluate(expression.postfix)
        if value != (target, 1):
            shown = "divides by zero" if value is None else f"is {value[0]}" + (f"/{value[1]}" if value[1] > 1 else "")
            return _refused(ErrorKind.WRONG, f"{shown}, target {target}", answer, format=1.0, numbers=1.0)
        return Verdict(True, 1.0, parts={"format": 1.0, "numbers": 1.0, "correct": 1.0}, answer=answer)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Every known way to ask for the reward without a right answer."""
        numbers, target = _ask(problem)
        solution = problem.meta["solution"]
        from rlvrlab.envs.arithmetic_cheats import expression_cheats, tag_cheats

        cheats = {name: self._complete(text) for name, text in expression_cheats(numbers, target, solution).items()}
        return cheats | tag_cheats(self.style, problem.prompt, solution)

    def _solution(self, numbers: Sequence[int], target: int) -> str | None:
        if len(numbers) > MAX_NUMBERS or min(numbers) <= 0:
            return None
        return solve(numbers, target, self.operators, self.use_all)

    def _complete(self, expression: str) -> str:
        if self.style == "bare":
            return expression
        return f"<think>I try combinations of the numbers.</think>\n<answer>{expression}</answer>"

    def _broken_rule(self, expression: Expression, numbers: list[int]) -> str:
        if len(self.operators) < 4 and not expression.operators <= set(self.operators):
            return f"uses an operator other than {' '.join(self.operators)}"
        if sorted(expression.numbers) == sorted(numbers):
            return ""
        spare = list(numbers)
        for used in expression.numbers:
            if used not in spare:
                return f"{cut(str(used), 20)} is not given, or used more often than given"
            spare.remove(used)
        return f"does not use {', '.join(map(str, spare))}" if self.use_all else ""

    def _problem(self, instance: Instance, solution: str, role: Role) -> Problem:
        level, target = len(instance.numbers), instance.target
        numbers = instance.shuffled if self.order == "shuffled" else list(instance.numbers)
        listed = ", ".join(map(str, numbers))
        prompt = (
            f"Write an arithmetic expression that equals {target} from the numbers {listed}. "
            f"Use {'every number exactly' if self.use_all else 'each number at most'} once; "
            f"allowed are {' '.join(self.operators)} and parentheses. "
            "Think first, inside <think> </think>. "
            "Then give the expression alone, without an equals sign, inside <answer> </answer>."
        )
        return Problem(
            id=f"countdown:{level}:{','.join(map(str, instance.numbers))}={target}",
            source="countdown",
            skill="countdown",
            prompt=f"{' '.join(map(str, numbers))} = {target}\n" if self.style == "bare" else prompt,
            reference={"numbers": numbers, "target": target},
            meta={"level": level, "solution": solution},
            role=role,
        )

    def _instances(self, level: int, role: Role, seed: int) -> Iterator[tuple[Instance, Term]]:
        """All instances of a small space in keyed order, or keyed draws from a large one; ends when it runs dry."""
        if self._is_small(level):
            yield from shuffled(_listed(self, level).get(role, []), seed, "countdown", level, role)
            return
        draws = Draws(FRUITLESS_DRAWS)
        for _, (drawn, term) in zip(draws, self._draws(level, generator(seed, "countdown", level, role)), strict=False):
            instance = self._instance(drawn, term)
            if instance and instance.role == role and draws.is_new(instance):
                yield instance, term

    def _is_small(self, level: int) -> bool:
        """Whether listing everything costs under a second: each further number costs about ten times more."""
        return comb(self.high - self.low + level, level) <= 10 ** (6 - level)

    def _draws(self, level: int, random: np.random.Generator) -> Iterator[tuple[list[int], Term]]:
        """Endless random expressions over random numbers."""
        ways = [ways for left in range(level, 1, -1) for ways in (left, left - 1, len(self.operators))]
        while True:
            numbers_BN = random.integers(self.low, self.high + 1, (DRAWS_PER_BLOCK, level)).tolist()
            choices_BC = random.integers(0, ways, (DRAWS_PER_BLOCK, len(ways))).tolist()
            for numbers, choices in zip(numbers_BN, choices_BC, strict=True):
                yield numbers, _random_term(numbers, self.operators, choices)

    def _instance(self, numbers: Sequence[int], term: Term) -> Instance | None:
        target, denominator = term.value
        if denominator != 1 or not self.target_low <= target <= self.target_high:
            return None
        # With use_all off, a target among the numbers would be answered by that number alone.
        return None if target in numbers and not self.use_all else Instance(tuple(sorted(numbers)), target)


@lru_cache(maxsize=4)
def _listed(env: Countdown, level: int) -> Mapping[Role, list[tuple[Instance, Term]]]:
    """Every instance of a small space, by role; kept, since a run asks for several roles one after the other."""
    by_role: dict[Role, list[tuple[Instance, Term]]] = {}
    for numbers in combinations_with_replacement(range(env.low, env.high + 1), level):
        for term in reachable(numbers, env.operators).values():
            if instance := env._instance(numbers, term):
                by_role.setdefault(instance.role, []).append((instance, term))
    return by_role


def _thought_and_tagged(text: str) -> str | None:
    """What stands in the one pair of answer tags behind the thinking; bare answers need none of this."""
    from rlvrlab.judge.extract import tagged
    from rlvrlab.judge.thinking import after_thinking

    tail = after_thinking(text, must_think=True)
    return None if tail is None else tagged(tail)


def _ask(problem: Problem) -> tuple[list[int], int]:
    return [int(value) for value in problem.reference["numbers"]], int(problem.reference["target"])


def _random_term(numbers: Sequence[int], operators: str, choices: Sequence[int]) -> Term:
    """Join two terms by an operator, as chosen, until one is left."""
    terms = [number(value) for value in numbers]
    choice = iter(choices)
    for pick in choice:
        left, right = terms.pop(pick), terms.pop(next(choice))
        operator = operators[next(choice)]
        # 64-(3-8) is 64+8-3: negative values on the way add no target where + is allowed, and read badly.
        if operator == "-" and left.value[0] * right.value[1] < right.value[0] * left.value[1]:
            left, right = right, left
        joined = combine(operator, left, right)
        if joined is None:
            return NOTHING
        terms.append(joined)
    return terms[0]


def _refused(error: ErrorKind, detail: str, answer: str | None, format: float = 0.0, numbers: float = 0.0) -> Verdict:
    parts = {"format": format, "numbers": numbers, "correct": 0.0}
    return Verdict(False, 0.0, error, parts, answer=answer and answer[:KEPT], detail=detail)
