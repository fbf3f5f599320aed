"""graph_learning: node classification and link prediction, on planted groups or on a published network of yours.

    [env]                         id         cora:node_classification:5a0e1f33c9d2b7aa
    type = "graph_learning"       skill      published_node_classification
    path = "cora"                 prompt     This is a part of a larger network; … What is the class of node 7? …
                                  completion … ### Theory
    meta  {"network": "cora", "nodes": ["1061127"], "rules": {"neighbours_majority": true}, "size": 31, …}

Planted groups are asked only where the graph decides (tasks/learning.py). In a published network nothing proves the
answer: what was published is right, and `rules` says whether a rule that looks at neighbours alone would have been.
Files and layouts: network_files.py; roles, and what is shown: network_questions.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from rlvrlab.envs.data_files import LocatedPath
from rlvrlab.envs.files_read import kept_with_files
from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.network import DROPS, network_of
from rlvrlab.envs.graphs.network_files import layout_of
from rlvrlab.envs.graphs.network_questions import Held, Question, Reach, class_questions, held_out, link_questions
from rlvrlab.envs.graphs.production import STYLES
from rlvrlab.envs.graphs.tasks.base import Solution
from rlvrlab.envs.graphs.tasks.catalogue import LEARNING, TASKS
from rlvrlab.envs.graphs.tasks.networks import HiddenClass, HiddenLink
from rlvrlab.envs.split import ROLES
from rlvrlab.errors import UserError
from rlvrlab.judge.keys import state_of
from rlvrlab.notes import FOUND, made, note
from rlvrlab.randomness import problem_name, shuffled
from rlvrlab.registry import register
from rlvrlab.types import RULES, Count, Problem, Role

PUBLISHED = {"node_classification": HiddenClass(), "link_prediction": HiddenLink()}
ASKED: dict[str, Callable[[Held, Role, Reach, Counter[str]], Iterator[Question]]] = {
    "node_classification": class_questions,
    "link_prediction": link_questions,
}
MOST_HOPS = 4


@register("env", "graph_learning")
@dataclass(frozen=True)
class GraphLearning(GraphEnvironment, LocatedPath):
    """Node classification and link prediction on planted groups, or on a published network."""

    tasks: tuple[str, ...] = LEARNING
    path: str = ""
    """A published network, its file or folder (docs/graphs.md has the layouts); empty: planted groups are made."""
    classes: str = ""
    """With path: the column, or value of a node in GML, that is its class; empty: the only one there is."""
    hops: Count = 2
    """With path: how many steps around the nodes asked about a question shows, up to its size by level."""
    drop: tuple[str, ...] = ()
    """With path: edges that are left out and counted where they would be refused: unknown, loops, repeats."""

    known_tasks = TASKS | {task.name: task for task in PUBLISHED.values()}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drop:
            self.refuse_other("drop", DROPS)
        if not self.path:
            if given := [key for key in ("classes", "drop") if getattr(self, key)]:
                raise UserError(f"{self.name}: {given[0]} is for a published network; set path, or leave it out")
            return
        for name in self.tasks:
            if name not in PUBLISHED:
                raise UserError(f"{self.name}: no task {name!r} with path; allowed: {', '.join(PUBLISHED)}")
        if self.hops > MOST_HOPS:
            raise UserError(
                f"{self.name}: hops = {self.hops}: at most {MOST_HOPS}; further away nothing is about a node"
            )
        if self.copies > 1:
            raise UserError(
                f"{self.name}: copies = {self.copies} with path: every node is asked about once; leave it out"
            )
        if len(self.sizes) > 2:
            raise UserError(f"{self.name}: sizes = {list(self.sizes)} with path: give one pair, fewest and most nodes")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Made ones, or the published network's in keyed order, tasks alternating while they last."""
        if not self.path:
            return super().problems(role, size, seed)
        streams = [shuffled(self._published(task, role), seed, self.name, task, role) for task in self.tasks]
        problems = [problem for turn in zip_longest(*streams) for problem in turn if problem is not None]
        if len(problems) < size:
            raise UserError(f"{self.name}: {size} {role} problems asked for, {self.path} has {len(problems)}")
        return problems[:size]

    def problems_in_folder(self) -> dict[Role, list[Problem]]:
        """Every question of the network, by role."""
        if not self.path:
            raise UserError(f"{self.name}: no path; name a published network, its file or folder")
        found = {role: [one for task in self.tasks for one in self._published(task, role)] for role in ROLES}
        return {role: problems for role, problems in found.items() if problems}

    @property
    def reach(self) -> Reach:
        """How much a question shows: as much as the levels, or the sizes in their place, allow."""
        if self.sizes:
            return Reach(self.hops, *self.sizes)
        bands = [PUBLISHED[self.tasks[0]].bands[level - 1] for level in self.levels]
        fewest = 0 if 1 in self.levels else min(low for low, _ in bands)
        return Reach(self.hops, fewest, max(high for _, high in bands))

    def _published(self, task: str, role: Role) -> tuple[Problem, ...]:
        layout = layout_of(Path(self.path))
        stamp = tuple([(str(file), state_of(file)) for file in (layout.edges, layout.nodes) if file])
        return _problems(self, task, role, stamp)


@kept_with_files(2)
def _held(path: str, classes: str, drop: tuple[str, ...], _: tuple[object, ...]) -> Held:
    """The network; read again only when a file has changed."""
    layout = layout_of(Path(path))
    network = network_of(layout.read(layout, classes), drop)
    held, nodes = held_out(network), len(network.nodes)
    part = f"; {len(held.asked):,} of its nodes are asked about" if len(held.asked) < nodes else ""
    note(FOUND, network.described() + part)
    return held


@kept_with_files(16)
def _problems(env: GraphLearning, task: str, role: Role, stamp: tuple[object, ...]) -> tuple[Problem, ...]:
    """All questions of a task and role; what a role before it asks is not asked again."""
    held = _held(env.path, env.classes, env.drop, stamp)
    if task == "node_classification" and not held.network.classes:
        remedy = 'give the classes of its nodes, or set tasks = ["link_prediction"]'
        raise UserError(f"{env.path}: no node has a class, so none can be asked for; {remedy}")
    earlier = ROLES[: ROLES.index(role)]
    seen = {one.meta["shape"] for before in earlier for one in _problems(env, task, before, stamp)}
    problems: list[Problem] = []
    left_out: Counter[str] = Counter()
    for question in ASKED[task](held, role, env.reach, left_out):
        problem = _problem(env, task, role, held.network.name, question)
        if problem.meta["level"] not in env.levels and not env.sizes:
            left_out["are of a size that no level has"] += 1
        elif problem.meta["shape"] in seen:
            left_out["look like another but for the numbering"] += 1
        else:
            seen.add(problem.meta["shape"])
            problems.append(problem)
            made()
    note(FOUND, _told(held.network.name, task, role, problems, left_out))
    return tuple(problems)


def _told(network: str, task: str, role: Role, problems: list[Problem], left_out: Counter[str]) -> str:
    """How many there are, what the blind rule makes of them, and what is not asked."""
    text = f"{network}: {len(problems):,} {role} problems of {task}"
    rules = [(rule, right) for problem in problems for rule, right in problem.meta[RULES].items()]
    if rules:
        text += f", of which the rule '{rules[0][0]}' alone gets {sum(right for _, right in rules):,} right"
    return "; ".join([text, *(f"{count:,} {why} and are not asked" for why, count in sorted(left_out.items()))])


def _problem(env: GraphLearning, task: str, role: Role, network: str, question: Question) -> Problem:
    kind, graph = PUBLISHED[task], question.instance.graphs[0]
    prompt = STYLES[env.style].format(kind.ask(question.instance))
    level = next((i for i, (_, most) in enumerate(kind.bands, 1) if graph.n <= most), len(kind.bands))
    solution = Solution(question.answer, question.answer, "published", "as the files say")
    return Problem(
        id=problem_name(f"{network}:{task}", prompt),
        source=env.name,
        skill=f"published_{task}",
        prompt=prompt,
        reference=kind.reference(question.instance, solution),
        meta={
            "level": level,
            "size": graph.n,
            "links": len(graph.edges),
            "network": network,
            "nodes": list(question.nodes),
            RULES: {question.rule: question.right},
            "shape": f"{question.shape:032x}",
            **solution.facts(),
        },
        role=role,
    )
