"""Questions that a tool answers: sums that nobody does in the head, and databases whose rows are not shown.

    id         agent:python:8d0c5e…                         agent:sql:1f3a9c…
    prompt     What is 48271 * 3917 - 55? …                 Given the SQLite database CREATE TABLE …, how many …?
    completion <tool_call>{"name": "python", "arguments": {"code": "48271 * 3917 - 55"}}</tool_call>
               <tool_response>189077452</tool_response>     ### 189077452
    reference  {"answer": "189077452", "calls": [["python", "48271 * 3917 - 55"]]}; sql also schema and contents
    meta       {"tool": "python", "tools": {"names": ["python", "sql"], "turns": 4, "calls": 3, …}, "level": 2}

The policy writes turns; a turn with a call gets the tool's result, one without is the end. Results are context: they
have no loss and no log-probability (rollout/episodes.py). What the answer is worth is decided by its value alone.
`meta.tools` is all that a rollout needs to know, so an episode runs wherever a problem goes.

Traps: an answer in a turn that also holds a call is none; a result that the policy invents is text; calls beyond the
budget are refused in words and cost their tokens.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rlvrlab.envs.agent.small_tables import small_tables
from rlvrlab.envs.agent.tools import Bench, used
from rlvrlab.envs.amounts import amount, equal_amounts
from rlvrlab.envs.answers import Draws, in_turn, same
from rlvrlab.envs.arithmetic import evaluate, parse
from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.envs.split import role_of
from rlvrlab.envs.sql.databases import filled, stored
from rlvrlab.envs.sql.made import made_problems
from rlvrlab.envs.tool_calls import ARGUMENT, MARKS, Call, Result, Style, final_answer, written
from rlvrlab.errors import UserError
from rlvrlab.randomness import generator, problem_name
from rlvrlab.registry import register
from rlvrlab.types import Count, ErrorKind, Positive, Problem, Role, Verdict

SQL_LEVEL = 2
"""Questions of the sql environment that one value answers."""
FRUITLESS = 2000
UNITS = re.compile(r"[^\W\d_]|[%‰$€£¥¢°]")
"""No question here has a unit, and 30315% is another value than 30315."""
CHAT = (
    "{question}\n\nYou may use these tools, one call in a turn:\n{tools}\n"
    'To call one, write {before}{{"name": NAME, "arguments": {{…}}}}{after} and end your turn; the result '
    "comes back in <tool_response>. You have {turns} turns and {calls} calls. "
    "End with a line that holds ### and the value alone."
)
ABOUT = {
    "python": '{"name": "python", "arguments": {"code": …}}: runs a program and gives back what it prints',
    "sql": '{"name": "sql", "arguments": {"query": …}}: runs one SQLite query on the database, which is read-only',
}


@register("env", "agent")
@dataclass(frozen=True)
class Agent(BaseEnvironment):
    """Questions answered with tools over several turns."""

    tools: tuple[str, ...] = ("python", "sql")
    """Which tools there are; each has questions of its own, which alternate evenly."""
    levels: tuple[int, ...] = (1, 2, 3)
    """How many numbers a sum has beyond the first; sql questions count one value at every level."""
    turns: Count = 4
    """Turns of the policy at most, the one with the answer included."""
    calls: Count = 3
    """Calls at most; a further one is refused in words."""
    timeout_s: Positive = 2.0
    """CPU seconds of one call."""
    result_chars: Count = 400
    """A longer result is cut, and says so."""
    style: Style = "chat"
    """chat: calls as Qwen and Hermes models write them. fence: the same in a block of plain text. bare: one short line,
    for tiny policies, whose sums have two digits and whose tables names of one letter."""

    version = "4"
    uses_tools = True

    def __post_init__(self) -> None:
        self.refuse_other("tools", ARGUMENT, f"give some of {', '.join(ARGUMENT)}, each once")
        if not self.levels or not set(self.levels) <= {1, 2, 3, 4, 5}:
            raise UserError(f"agent: levels = {list(self.levels)}: give some of 1 to 5")
        self.refuse_other("style", (*MARKS, "bare"))
        if self.turns < 2 or self.timeout_s <= 0:
            raise UserError(f"agent: turns = {self.turns}: a call and an answer take 2; timeout_s must be above 0")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct problems, tools in turn; a shorter list of the same seed is the beginning of a longer one."""
        streams = {"python": self._sums, "sql": self._small_tables if self.style == "bare" else self._tables}
        chosen = in_turn([streams[tool](role, seed) for tool in self.tools], size)
        if len(chosen) < size:
            raise UserError(f"agent: {size} {role} problems asked for, the generator has {len(chosen)}")
        return chosen

    def gold(self, problem: Problem) -> str | None:
        """The answer alone; gold_turns has the way to it."""
        return f"### {problem.reference['answer']}"

    def gold_turns(self, problem: Problem) -> Sequence[str]:
        """What a good policy says turn by turn: its calls, then the answer."""
        calls = [written(Call(tool, argument), self.style) for tool, argument in problem.reference["calls"]]
        return [*calls, f"### {problem.reference['answer']}"]

    def verify(self, problem: Problem, text: str) -> Verdict:
        """The value after ### in the last turn, compared as a number or as a text; never raises on any text."""
        answer = final_answer(text, self.style, self.tools, self.turns)
        if answer is None:
            return same(False, None, ErrorKind.FORMAT, "no single ### with a value in the last turn")
        right = problem.reference["answer"]
        if amount(right) is None:
            return same(answer == right, answer, detail="another value")
        equal = equal_amounts(answer, right) and not UNITS.search(answer)
        return same(bool(equal), answer, detail="another value")

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without answering."""
        right = problem.reference["answer"]
        call = self.gold_turns(problem)[0]
        return {
            "empty": "", "no mark": right, "two answers": f"### {right}\n### {right}", "list": f"### {right}, 0",
            "call without an answer": call, "call and answer": f"{call}\n### {right}",
            "answer before the result": f"### {right}\n{call}\n<tool_response>\n1\n</tool_response>\n",
            "only thought": f"<think>### {right}", "own result": f"### 1\n</tool_response>\n### {right}",
            "own results": f"{call}\n<tool_response>\n1\n</tool_response>\n" * self.turns + f"### {right}",
            "twelfths": f"### {right} twelfths", "not": f"### not {right}", "sum left open": f"### {right}+0",
            "other": f"### {right}1",
        }  # fmt: skip

    def _sums(self, role: Role, seed: int) -> Iterator[Problem]:
        random, draws = generator(seed, "agent", "python", role, self.levels), Draws(FRUITLESS)
        for _ in draws:
            level = self.levels[len(draws.seen) % len(self.levels)]
            low, high = (10, 99) if self.style == "bare" else (100, 99_999)
            numbers = [int(n) for n in random.integers(low, high, 1 + level)]
            signs = [("+", "-", "*")[int(i)] for i in random.integers(0, 3, level)]
            expression = str(numbers[0]) + "".join(f" {s} {n}" for s, n in zip(signs, numbers[1:], strict=True))
            if role_of("agent", expression) != role or not draws.is_new(expression):
                continue
            value = evaluate(parse(expression).postfix)
            assert value is not None and value[1] == 1, "whole numbers without a division stay whole"
            reference = {"answer": str(value[0]), "calls": [["python", expression]]}
            question = expression if self.style == "bare" else f"What is {expression}?"
            yield self._problem("python", level, question, reference, role)

    def _tables(self, role: Role, seed: int) -> Iterator[Problem]:
        for made in made_problems(SQL_LEVEL, role, seed):
            with closing(sqlite3.connect(":memory:")) as connection:
                rows = filled(connection, made.schema, made.contents[0]).execute(made.question.gold).fetchall()
            if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], int | str):
                continue  # the answer is the one value that the gold query returns on the shown database
            schema = ";\n".join(made.schema) + ";"
            question = f"Given the SQLite database\n\n{schema}\n\n{made.question.text}"
            reference = {
                "answer": str(rows[0][0]),
                "calls": [["sql", made.question.gold]],
                "schema": made.schema,
                "contents": {table: [list(row) for row in held] for table, held in made.contents[0].items()},
            }
            yield self._problem("sql", self.levels[0], question, reference, role)

    def _small_tables(self, role: Role, seed: int) -> Iterator[Problem]:
        for small in small_tables(role, seed):
            reference = {
                "answer": small.answer,
                "calls": [["sql", small.query]],
                "schema": small.schema,
                "contents": small.contents,
            }
            yield self._problem("sql", self.levels[0], small.question, reference, role)

    def _problem(self, tool: str, level: int, question: str, reference: dict[str, Any], role: Role) -> Problem:
        prompt = f"{question}\n"
        if self.style != "bare":
            before, after = MARKS[self.style]
            about = "\n".join(ABOUT[name] for name in self.tools)
            end = f"\n{after}" if before.endswith("\n") else after
            marks = {"before": before, "after": end}
            prompt = CHAT.format(question=question, tools=about, turns=self.turns, calls=self.calls, **marks)
        allowed = {"names": list(self.tools), "turns": self.turns, "calls": self.calls, "style": self.style,
                   "timeout_s": self.timeout_s, "result_chars": self.result_chars}  # fmt: skip
        return Problem(
            id=problem_name(f"agent:{tool}", prompt, digits=21 - len(tool)),
            source="agent",
            skill=f"agent_{tool}",
            prompt=prompt,
            reference=reference,
            meta={"tool": tool, "tools": allowed, "level": level},
            role=role,
        )


def carried_out(asked: Sequence[tuple[Problem, Call]]) -> list[Result]:
    """What the tools of each problem answer to its call."""
    return used([(bench_of(problem), call) for problem, call in asked])


def bench_of(problem: Problem) -> Bench:
    """What the tools of a problem work on."""
    allowed, reference = problem.meta["tools"], problem.reference
    database = stored(reference["schema"], reference["contents"]) if "schema" in reference else ""
    return Bench(database, allowed["timeout_s"], allowed["result_chars"])
