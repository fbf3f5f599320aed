"""Making problems: draw until the role fits and the shape is new, then prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random
from string import ascii_uppercase as LETTERS
from typing import NamedTuple

from rlvrlab.envs.answers import Draws
from rlvrlab.envs.graphs.answers import Style
from rlvrlab.envs.graphs.rows import NODES, in_steps, rows_question
from rlvrlab.envs.graphs.tasks.base import Instance, Solution, Task
from rlvrlab.envs.graphs.tasks.catalogue import TASKS
from rlvrlab.envs.split import role_of_key
from rlvrlab.randomness import key_bits, problem_name
from rlvrlab.types import Problem, Role

FRUITLESS_DRAWS = 30_000
STYLES = {
    "plain": "{}",
    "chat": "Solve the problem step by step and present your answer as asked for, once, at the end.\n\n{}",
    "think": "{}\nThink first, inside <think> </think>. Then give the answer alone, inside <answer> </answer>.",
    "bare": "{}",
    "rows": "{}",
}


class Batch(NamedTuple):
    """Problems of one task and size: the unit of work, and what its randomness depends on."""

    task: str
    level: int
    band: tuple[int, int]
    role: Role
    seed: int
    style: Style
    wanted: int
    copies: int


def produce(batch: Batch) -> list[Problem]:
    """The batch, or as much of it as a long search finds."""
    task, problems = TASKS[batch.task], []
    for instance, shape, solution in islice(_solved(task, batch), batch.wanted):
        if batch.style == "bare" and instance.names:  # A, B, …, Z, A1, …; numbers stay numbers
            names = [LETTERS[i % 26] + str(i // 26 or "") for i in range(instance.graphs[0].n)]
            instance = replace(instance, names=tuple(names))
        if batch.style == "rows":
            letters = tuple(NODES[: instance.graphs[0].n]) if instance.names else ()
            instance = replace(instance, names=letters)
        question = _question(task, instance, batch.style)
        prompt = STYLES[batch.style].format(question)
        name = problem_name(f"{task.name}:{batch.level}", prompt)
        meta = {"level": batch.level, "size": instance.graphs[0].n, **solution.facts(), "seed": batch.seed}
        meta["shape"] = f"{shape:032x}"
        reference = task.reference(instance, solution)
        problems.append(Problem(name, "graph", task.name, prompt, reference, meta, batch.role))
    return problems


def _solved(task: Task, batch: Batch) -> Iterator[tuple[Instance, int, Solution]]:
    random = Random(key_bits("graph", batch.seed, batch.task, batch.level, batch.band, batch.role))
    draws, met = Draws(FRUITLESS_DRAWS), Counter[int]()
    wanted = random.random() < 0.5
    for _ in draws:
        instance = task.draw(random, random.randint(*batch.band))
        if instance is not None and batch.style == "rows":
            instance = in_steps(instance)
        if instance is None or (batch.style == "rows" and instance.graphs[-1].n > batch.band[1]):
            continue  # a second molecule may be larger than asked for
        shape = instance.shape
        if met[shape] == batch.copies or role_of_key(shape) != batch.role:
            continue
        solution = task.solve(instance)
        if solution is None or not task.worth_asking(instance, solution):
            continue
        if (not task.balanced or solution.optimum == wanted) and draws.is_new(_content(instance, shape, batch.copies)):
            met[shape] += 1
            wanted = random.random() < 0.5
            yield instance, shape, solution


def _content(instance: Instance, shape: int, copies: int) -> object:
    """What two problems of a list never share: the shape, or with several copies of it the graph as it is named."""
    if copies == 1:
        return shape
    return tuple((graph.labels, graph.weights, frozenset(graph.edges)) for graph in instance.graphs)


def _question(task: Task, instance: Instance, style: Style) -> str:
    if style == "rows":
        return rows_question(task.name, instance)
    return bare_question(task.name, instance) if style == "bare" else task.ask(instance)


def bare_question(task: str, instance: Instance) -> str:
    """One line with the task, its nodes and its edges: `MIS A B C D: AB, BC, CD`, `TSP A B C: AB 4250, AC 9133, …`.

    As few characters as the six NP-hard tasks need, for policies of a few hundred thousand parameters. Nodes of one
    graph are letters, atoms of two molecules numbers: `GED 0C 1C 2O: 01, 12 | 0C 1O 2C: 01, 02`.
    """
    graphs = []
    for graph in instance.graphs:
        called = instance.names or tuple(map(str, range(graph.n)))
        joint = "" if max(map(len, called)) == 1 else "-"  # 112 could be 1 and 12, or 11 and 2
        nodes = " ".join(f"{name}{label}" for name, label in zip(called, graph.labels or [""] * graph.n, strict=True))
        weights = [f" {weight}" for weight in graph.weights] or [""] * len(graph.edges)
        edges = [f"{called[u]}{joint}{called[v]}{weight}" for (u, v), weight in zip(graph.edges, weights, strict=True)]
        graphs.append(f"{nodes}: {', '.join(edges)}")
    return f"{task} {' | '.join(graphs)}\n"
