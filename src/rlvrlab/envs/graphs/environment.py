"""The graph environments: six NP-hard tasks, GraphArena's four others, GraphWiz's nine; learning.py has two more.

    id         MIS:2:5a0e1f33c9d2b7aa
    prompt     Your task is the Maximum Independent Set problem in a social network, … [UserA, UserB, …].
    completion <think>…</think> [Ada Abbott, Rosa Costa]
    reference  {"task": "MIS", "graphs": [{"n": 3, "edges": [[0, 1], [1, 2]]}], "names": […], "optimum": 2,
                "answer": "[Ada Abbott, Rosa Costa]"}
    meta       {"level": 2, "solver": "clique branch and bound", "proof": "exhausted search", "bound": 2, "seed": 0, …}

Every optimum is proved; an instance whose search was given up is never handed out. Which role an instance belongs to
is decided by its shape, the same for isomorphic graphs, so no renaming or renumbering crosses a split. Traps are
listed with each task; docs/graphs.md has the table of verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import ClassVar, Literal

from rlvrlab.envs.base import CHECKED_PROBLEMS, BaseEnvironment
from rlvrlab.envs.graphs.answers import Style
from rlvrlab.envs.graphs.cheats import cheats
from rlvrlab.envs.graphs.peers import SUITE, peer_verdict
from rlvrlab.envs.graphs.production import STYLES, Batch, produce
from rlvrlab.envs.graphs.rows import MOST_NODES, numbered
from rlvrlab.envs.graphs.short_traces import short_traced
from rlvrlab.envs.graphs.tasks.base import Instance, Task
from rlvrlab.envs.graphs.tasks.catalogue import GRAPHWIZ, NP, POLYNOMIAL, TASKS
from rlvrlab.envs.graphs.traces import traced
from rlvrlab.envs.graphs.verdicts import judge
from rlvrlab.errors import UserError, suggestion
from rlvrlab.notes import made as count_made
from rlvrlab.registry import register
from rlvrlab.types import Check, Count, Problem, Role, Verdict

MODES = ("strict", *SUITE)
PEER_TASKS = {*NP, *POLYNOMIAL, *GRAPHWIZ}


class GraphQuestions(BaseEnvironment):
    """What environments share whose questions come with a proved answer."""

    mode: Literal["strict", "grapharena", "npgmuse", "graphwiz"] = "strict"
    style: Style | Literal[""] = ""
    known_tasks: ClassVar[Mapping[str, Task]] = TASKS

    def gold(self, problem: Problem) -> str | None:
        """The proved answer the problem came with, in the form the style asks for."""
        thoughts, answer = self.thoughts_and_answer(problem)
        if self.style == "bare":
            return answer
        return f"<think>\n{thoughts}\n</think>\n{f'<answer>{answer}</answer>' if self.style == 'think' else answer}"

    def thoughts_and_answer(self, problem: Problem) -> tuple[str, str]:
        """What a reference thinks, and the answer it comes to."""
        return "I compare.", problem.reference["answer"]

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Judge one completion's text."""
        reference = problem.reference
        task, instance = self.known_tasks[reference["task"]], Instance.from_plain(reference)
        if self.style == "rows":
            text = numbered(task.name, text)
        if self.mode == "strict":
            return judge(task, instance, reference["optimum"], text, self.style or "plain")
        return peer_verdict(self.mode, task, instance, reference["optimum"], reference.get("answer", ""), text)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Every known way to ask for the reward without a right answer; the other modes accept most of them."""
        if self.mode != "strict":
            return {}
        reference = problem.reference
        task, instance = self.known_tasks[reference["task"]], Instance.from_plain(reference)
        return cheats(task, instance, reference["optimum"], reference["answer"], problem.prompt, self.style or "plain")


@register("env", "graph")
@dataclass(frozen=True)
class GraphEnvironment(GraphQuestions):
    """TSP, GED, MCP, MIS, MVC, MCS with proved optima, and any other graph task by name."""

    tasks: tuple[str, ...] = NP
    """Which tasks; they alternate evenly."""
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    """Which of the five sizes; they alternate evenly."""
    sizes: tuple[int, ...] = ()
    """Fewest and most nodes, in place of the levels' own: one pair for all levels, or one after the other for each."""
    mode: Literal["strict", "grapharena", "npgmuse", "graphwiz"] = "strict"
    """Whose verdicts: strict, or those of another scorer with all its mistakes, for comparison only."""
    style: Style = "plain"
    """plain: the question. chat: with a system line before it. think: <think>, then <answer> tags. bare: one short line
    with nodes called A, B, C, for tiny policies (the six NP-hard tasks only). rows: a line for each node with its
    neighbours, for the same ones, up to 7 nodes; distances of TSP in nine steps."""
    copies: Count = 1
    """How many problems of a list may be one graph, differently numbered; there are few different small ones."""
    workers: Count = 1
    """Processes that make instances; the result does not depend on it."""
    traces: bool = False
    """References show how the answer is found, step by step, instead of the answer alone (the six NP-hard tasks)."""

    version = "2"

    def __post_init__(self) -> None:
        for name in self.tasks:
            if name not in TASKS:
                raise UserError(f"{self.name}: unknown task {name!r}{suggestion(name, TASKS)}")
            if self.mode in SUITE and (TASKS[name].suite != SUITE[self.mode] or name not in PEER_TASKS):
                raise UserError(f"{self.name}: mode {self.mode!r} has no task {name!r}; leave it out or take strict")
        if not self.tasks or len(set(self.tasks)) < len(self.tasks):
            raise UserError(f"{self.name}: tasks = {list(self.tasks)}: give some, each once")
        self.refuse_other("levels", range(1, 6), "give some of 1 to 5, each once")
        bands = list(zip(self.sizes[::2], self.sizes[1::2], strict=False))
        paired = len(self.sizes) % 2 == 0 and len(bands) in (0, 1, len(self.levels))
        if not paired or any(not 4 <= fewest <= most <= 100 for fewest, most in bands):
            raise UserError(
                f"{self.name}: sizes = {list(self.sizes)}: fewest and most nodes, from 4 to 100, once or for each level"
            )
        long = [name for name in self.tasks if name not in NP]
        if self.style in ("bare", "rows") and long:
            raise UserError(f"{self.name}: style {self.style!r} has no task {long[0]!r}; allowed: {', '.join(NP)}")
        if self.style == "rows" and max(self.sizes, default=MOST_NODES + 1) > MOST_NODES:
            raise UserError(f"{self.name}: style 'rows' has names for {MOST_NODES} nodes; give sizes up to that")
        if self.style == "rows" and self.mode != "strict":
            raise UserError(f"{self.name}: style 'rows' is read by mode 'strict' alone, not by {self.mode!r}")
        if self.traces and long:
            raise UserError(f"{self.name}: there are no traces of task {long[0]!r}; allowed: {', '.join(NP)}")
        if self.traces and self.style == "bare":
            raise UserError(f"{self.name}: style 'bare' shows no traces; take another style or traces = false")
        if self.mode not in MODES or self.style not in STYLES:
            raise UserError(f"{self.name}: mode = {self.mode!r}, style = {self.style!r}: allowed: {MODES}; {STYLES}")

    def gold(self, problem: Problem) -> str | None:
        """A proved answer in the form the style asks for, after its trace where traces are asked for."""
        if self.style != "rows":
            return super().gold(problem)
        reference = problem.reference
        task, instance = TASKS[reference["task"]], Instance.from_plain(reference)
        lines, answer = short_traced(task, instance, reference["answer"], reference["optimum"])
        return "\n".join([*lines, answer] if self.traces else [answer])

    def thoughts_and_answer(self, problem: Problem) -> tuple[str, str]:
        """The solver's trace and the answer it ends in, where traces are asked for."""
        if not self.traces:
            return super().thoughts_and_answer(problem)
        reference = problem.reference
        return traced(TASKS[reference["task"]], Instance.from_plain(reference), reference["answer"])

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct proved problems, tasks alternating, then levels; a shorter list begins a longer one."""
        units = [(name, level) for level in self.levels for name in self.tasks]
        batches = [
            Batch(
                name, level, self._band(name, level), role, seed, self.style, -(-(size - i) // len(units)), self.copies
            )
            for i, (name, level) in enumerate(units)
        ]
        if self.workers == 1:
            made = [produce(batch) for batch in batches]
        else:
            with ProcessPoolExecutor(self.workers, get_context("spawn")) as pool:
                # The largest instances take longest: they go first.
                order = sorted(range(len(batches)), key=lambda i: -batches[i].band[1])
                started = {i: pool.submit(produce, batches[i]) for i in order}
                for done in as_completed(started.values()):
                    count_made(len(done.result()))  # a worker's own count is heard by nobody here
                made = [started[i].result() for i in range(len(batches))]
        for batch, problems in zip(batches, made, strict=True):
            if len(problems) < batch.wanted:
                raise UserError(
                    f"{self.name}: {batch.wanted} {role} problems of {batch.task} at level {batch.level} asked for, "
                    f"a long search found only {len(problems)} different ones; ask for fewer or for higher levels"
                )
        return [made[i % len(units)][i // len(units)] for i in range(size)]

    def self_check(self) -> list[Check]:
        """Gold must be correct and every cheat must not, for every task."""
        several = [self.tasks[i : i + CHECKED_PROBLEMS] for i in range(0, len(self.tasks), CHECKED_PROBLEMS)]
        return [check for tasks in several for check in BaseEnvironment.self_check(replace(self, tasks=tasks))]

    def _band(self, name: str, level: int) -> tuple[int, int]:
        if not self.sizes:
            return TASKS[name].bands[level - 1]
        place = 2 * self.levels.index(level) if len(self.sizes) > 2 else 0
        return self.sizes[place], self.sizes[place + 1]


@register("env", "graph_p")
@dataclass(frozen=True)
class PolynomialGraphs(GraphEnvironment):
    """GraphArena's four tasks that are not NP-hard: Neighbor, Distance, Connected, Diameter."""

    tasks: tuple[str, ...] = POLYNOMIAL


@register("env", "graphwiz")
@dataclass(frozen=True)
class GraphWiz(GraphEnvironment):
    """GraphWiz's nine tasks, with labels that are proved."""

    tasks: tuple[str, ...] = GRAPHWIZ
