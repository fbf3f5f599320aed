"""Published rows of GraphArena, NPG-Muse and GraphWiz, apart from the instances that are made here.

    id         grapharena:MIS:5a0e1f33c9d2b7aa
    skill      grapharena_MIS, npg_muse_MIS, graphwiz_cycle
    prompt     the publisher's question; where it does not say how to answer (GraphWiz), that is added
    reference  {"task": "MIS", "graphs": […], "names": […], "optimum": 3, "answer": "[Ada, Ben, Cleo]"}
    meta       {"level": 1, "published": "3", "label_proved": true, "solver": …, "proof": …}

Every answer is proved again. Where the published one is wrong (GraphWiz's generator of Hamiltonian labels gives up at
the first dead end) the proved one judges, and `label_proved` is false; where nothing can be proved the row is left out.
GraphArena publishes pickles, which run code when they are read: docs/graphs.md shows how to make lines of JSON of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rlvrlab.envs.base import Read
from rlvrlab.envs.data_files import Row
from rlvrlab.envs.data_set import DataSetEnvironment
from rlvrlab.envs.graphs.environment import GraphQuestions
from rlvrlab.envs.graphs.published_rows import PublishedRow, understood
from rlvrlab.envs.graphs.published_texts import Unclear
from rlvrlab.envs.graphs.solvers.effort import GivenUp, at_most
from rlvrlab.envs.graphs.tasks.amounts import FORM as NUMBER_FORM
from rlvrlab.envs.graphs.tasks.amounts import Amount
from rlvrlab.envs.graphs.tasks.base import Instance, NumberedList, Solution, Task
from rlvrlab.envs.graphs.tasks.catalogue import NP, TASKS
from rlvrlab.envs.graphs.tasks.decisions import FORM as YES_FORM
from rlvrlab.envs.graphs.tasks.decisions import Decision
from rlvrlab.envs.graphs.verdicts import judge
from rlvrlab.errors import UserError
from rlvrlab.notes import LEFT_OUT, PROGRESS, note
from rlvrlab.randomness import problem_name
from rlvrlab.registry import register
from rlvrlab.types import Problem, Role

ORDER_FORM = " Finish with ### followed by the order of all nodes as a list in square brackets."
SEARCHED = (*NP, "hamilton")
"""Tasks whose proof may take longer than anybody waits."""
MOST_SEARCHED, MOST_STEPS = 300, 20_000_000
"""Nodes, and steps of the solvers (about ten seconds), after which a row of them is left out as not proved."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WORD = re.compile(r"[a-z]+")
INNERMOST_LIST = re.compile(r"\[[^\[\]]*\]")


@register("env", "graph_rows")
@dataclass(frozen=True)
class PublishedGraphs(GraphQuestions, DataSetEnvironment):
    """Published rows of GraphArena, NPG-Muse and GraphWiz, judged against proved answers."""

    path: str = ""
    """A file of rows, or a folder with a train and a test file. A file whose name ends in test is test only."""
    mode: Literal["strict", "grapharena", "npgmuse", "graphwiz"] = "strict"
    """Whose verdicts: strict, or those of another scorer with all its mistakes, for comparison only."""

    version = "3"

    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Nothing is made here."""
        remedy = 'set env.path to a file of rows (docs/graphs.md), or env.type = "graph" for instances made here'
        raise UserError(f"{self.name}: reads published rows and makes none; {remedy}")

    def read_row(self, row: Row) -> Read | None:
        """The row's question with a proved answer; None where nothing can be proved or strictly judged."""
        try:
            known = understood(row)
        except Unclear:
            note(LEFT_OUT, "two nodes share a name, or an edge stands there twice or leads back to its node")
            return None
        task = TASKS[known.task]
        solution = proved(task, known.instance)
        if solution is None:
            return None
        sample = self._problem(known, task, solution, "test")
        if judge(task, known.instance, solution.optimum, sample.reference["answer"], "plain").correct is not True:
            note(LEFT_OUT, "two nodes share a name, or the right answer is an empty list")
            return None
        return Read.by_text(known.question, lambda role: [self._problem(known, task, solution, role)])

    def _problem(self, known: PublishedRow, task: Task, solution: Solution, role: Role) -> Problem:
        nodes = known.instance.graphs[0].n
        level = next((i for i, (_, most) in enumerate(task.bands, 1) if nodes <= most), len(task.bands))
        facts = {"published": known.answer, "label_proved": agrees(known.answer, task, known.instance, solution)}
        # How an answer is to be written, which GraphWiz does not say.
        form = YES_FORM if isinstance(task, Decision) else NUMBER_FORM if isinstance(task, Amount) else ORDER_FORM
        return Problem(
            id=problem_name(f"{known.publisher}:{known.task}", known.question),
            source=self.name,
            skill=f"{known.publisher}_{known.task}",
            prompt=known.question + (form if known.publisher == "graphwiz" else ""),
            reference=task.reference(known.instance, solution),
            meta={"level": level, "size": nodes, **facts, **solution.facts()},
            role=role,
        )


def proved(task: Task, instance: Instance) -> Solution | None:
    """The task's own solution, within the effort that a row of somebody else's is worth."""
    nodes = sum(graph.n for graph in instance.graphs)
    if task.name in SEARCHED and nodes > MOST_SEARCHED:
        note(LEFT_OUT, f"{task.name} of {nodes:,} nodes: a proof is tried up to {MOST_SEARCHED}")
        return None
    if task.name in SEARCHED and nodes > len(instance.graphs) * task.bands[-1][1]:
        note(PROGRESS, f"proving {task.name} of {nodes} nodes, up to {MOST_STEPS:,} steps")
    try:
        with at_most(MOST_STEPS):
            solution = task.solve(instance)
    except (GivenUp, RecursionError):
        note(LEFT_OUT, f"{task.name} of {nodes} nodes: no proof within {MOST_STEPS:,} steps")
        return None
    if solution is None:
        note(LEFT_OUT, f"{task.name} of {nodes} nodes: no answer can be proved or written down")
    return solution


def agrees(published: str, task: Task, instance: Instance, solution: Solution) -> bool | None:
    """Whether the published answer is the proved one; None where none was published."""
    if not published:
        return None
    answer = published.rpartition("###")[2].strip().removesuffix(".")
    if isinstance(task, Decision):
        words = {"yes", "no"} & set(WORD.findall(answer.lower()))
        return words == {"yes" if solution.optimum else "no"}
    if isinstance(task, NumberedList):
        orders = INNERMOST_LIST.findall(published)  # one order, or a list of several that are right
        found = [judge(task, instance, solution.optimum, f"### {order}", "plain").correct for order in orders]
        return bool(found) and all(found)
    return bool(NUMBER.fullmatch(answer)) and float(answer) == solution.optimum
