"""NLGraph (Wang et al. 2023): eight tasks asked in plain language, read from the user's own copy of its JSON files.

    file       <folder>/shortest_path/test.json: {"0": {"question": "In an undirected graph, the nodes are numbered …
               Q: Give the shortest path from node 4 to node 2.\\nA:", "answer": "The shortest path … is 4,12,10,2 with
               a total weight of 12", "difficulty": "hard"}, …}
    prompt     the question, and the form of the answer
    completion … ### [4, 12, 10, 2]
    reference  {"task": "nlgraph shortest_path", "graphs": […], "query": [4, 2], "optimum": 12, "answer": "### [4, …]"}

The graph is read from the question and solved again: a row whose label disagrees with the proof is an error that names
it. Any path, order or assignment of the same value counts as right, where the original compares with the one stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab import plain_files
from rlvrlab.envs.files_read import kept_with_files, was_read
from rlvrlab.envs.graphs.answers import Style
from rlvrlab.envs.graphs.environment import GraphQuestions
from rlvrlab.envs.graphs.graph import Graph
from rlvrlab.envs.graphs.production import STYLES
from rlvrlab.envs.graphs.tasks.base import Infeasible, Instance
from rlvrlab.envs.graphs.tasks.nlgraph import NLGRAPH_TASKS
from rlvrlab.errors import UserError, suggestion
from rlvrlab.judge.keys import state_of
from rlvrlab.randomness import problem_name, shuffled
from rlvrlab.registry import register
from rlvrlab.types import Check, Problem, Role

Rows = Mapping[str, Mapping[str, str]]
PAIRS = r"\((\d+),(\d+)\)"


class Reading(NamedTuple):
    """How a question of one kind is written."""

    edges: str
    """Two or three numbers: ends and weight."""
    query: str = ""
    """The nodes asked about."""
    directed: bool = False
    label: Callable[[str], Any] = lambda answer: "yes" in answer.lower()
    """The stored answer in the form the task measures."""


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


READINGS = {
    "connectivity": Reading(PAIRS, r"between node (\d+) and node (\d+)\?"),
    "cycle": Reading(PAIRS),
    "hamilton": Reading(PAIRS, label=_numbers),
    "topology": Reading(r"node (\d+) should be visited before node (\d+)", directed=True, label=_numbers),
    "flow": Reading(
        r"from node (\d+) to node (\d+) with capacity (\d+)",
        r"maximum flow from node (\d+) to node (\d+)",
        directed=True,
        label=lambda answer: _numbers(answer)[-1],
    ),
    "shortest_path": Reading(
        r"between node (\d+) and node (\d+) with weight (\d+)",
        r"shortest path from node (\d+) to node (\d+)",
        label=lambda answer: _numbers(answer)[2:-1],
    ),
    "matching": Reading(
        r"Applicant (\d+) is interested in job (\d+)",
        r"There are (\d+) job applicants",
        directed=True,
        label=lambda answer: _numbers(answer)[-1],
    ),
    "GNN": Reading(PAIRS, label=lambda answer: [n for pair in re.findall(r"\[.*?\]", answer) for n in _numbers(pair)]),
}
FILES: dict[Role, str] = {"train": "train.json", "dev": "main.json", "test": "test.json"}


@register("env", "nlgraph")
@dataclass(frozen=True)
class NLGraph(GraphQuestions):
    """NLGraph's tasks from a folder."""

    folder: str = "nlgraph"
    """Where connectivity/test.json and the others lie."""
    tasks: tuple[str, ...] = tuple(READINGS)
    """Which tasks; they alternate while they last."""
    style: Style = "plain"
    """plain or chat: an answer after ###. think: <think>, then <answer> tags."""

    version = "2"
    known_tasks = NLGRAPH_TASKS

    def __post_init__(self) -> None:
        for name in self.tasks:
            if name not in READINGS:
                raise UserError(f"nlgraph: unknown task {name!r}{suggestion(name, READINGS)}")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """The rows of the role's files in keyed order, tasks alternating."""
        rows = {name: shuffled(_load(self.folder, name, role), seed, "nlgraph", name, role) for name in self.tasks}
        problems = [problem for turn in zip_longest(*rows.values()) for problem in turn if problem is not None]
        if len(problems) < size:
            raise UserError(
                f"nlgraph: {size} {role} problems asked for, {self.folder} has {len(problems)}; ask for fewer"
            )
        return [replace(problem, prompt=STYLES[self.style].format(problem.prompt)) for problem in problems[:size]]

    def problems_in_folder(self) -> dict[Role, list[Problem]]:
        """Every row of every task whose file is there."""
        problems: dict[Role, list[Problem]] = {}
        for role, file in FILES.items():
            tasks = tuple(task for task in self.tasks if (Path(self.folder) / task / file).is_file())
            if tasks:
                size = sum(len(_load(self.folder, task, role)) for task in tasks)
                problems[role] = replace(self, tasks=tasks).problems(role, size, seed=0)
        if not problems:
            raise UserError(f"{self.folder}: no task's {', '.join(FILES.values())} in it, e.g. cycle/test.json")
        return problems

    def self_check(self) -> list[Check]:
        """Gold must be correct and the cheats must not, on whichever files there are."""
        there: list[Role] = [role for role in FILES if (Path(self.folder) / self.tasks[0] / FILES[role]).is_file()]
        return self.checked(self.problems(there[0] if there else "test", len(self.tasks), seed=0))

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """A few; the tasks' own cheats are checked with the environments that make their instances."""
        answer = problem.reference["answer"]
        return {"nothing": "", "mark alone": "###", "unclosed": f"<think>{answer}", "both": "### Yes ### No ### []"}


def instance_of(name: str, question: str) -> Instance:
    """The graph and the query a question describes."""
    reading = READINGS[name]
    stated, _, asked = question.partition("Q:")
    edges = [tuple(map(int, match)) for match in re.findall(reading.edges, stated)]
    match = re.search(reading.query, question) if reading.query else None
    if reading.query and not match:
        raise ValueError("no query found")
    query = tuple(map(int, match.groups())) if match else ()
    labels: tuple[str, ...] = ()
    if name == "matching":
        edges = [(applicant, job + query[0]) for applicant, job in edges]
    if name == "GNN":
        labels = tuple(re.findall(r"node \d+: \[(\d+,\d+)\]", stated))
    last = re.search(r"numbered from 0 to (\d+)", stated) if name not in ("matching", "connectivity") else None
    n = 1 + max([v for edge in edges for v in edge[:2]] + list(query) + ([int(last[1])] if last else []), default=-1)
    unique = {edge[:2] if reading.directed else tuple(sorted(edge[:2])): edge[2:] for edge in edges}
    weights = tuple([weight for rest in unique.values() for weight in rest])
    if n < 1 or not asked or (labels and len(labels) != n):
        raise ValueError("no graph found")
    return Instance((Graph(n, tuple((u, v) for u, v in unique), reading.directed, weights, labels),), query=query)


def _load(folder: str, name: str, role: Role) -> list[Problem]:
    path = Path(folder) / name / FILES[role]
    return _read(path, name, role, state_of(path))


@kept_with_files(32)
def _read(path: Path, name: str, role: Role, _: tuple[int, ...]) -> list[Problem]:
    """The problems of a file; read again only when it has changed."""
    if not path.is_file():
        raise UserError(f"nlgraph: no file {path}; point folder at a copy of NLGraph's data")
    was_read(path)
    try:
        rows: Rows = plain_files.strict(plain_files.read_text(path))
        return [_problem(path, name, key, row, role) for key, row in rows.items()]
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"nlgraph: {path} is not a JSON object of rows: {error}") from None


def _problem(path: Path, name: str, key: str, row: Mapping[str, str], role: Role) -> Problem:
    where = f"nlgraph: {path}, row {key!r}"
    for column in ("question", "answer"):
        if not isinstance(row, Mapping) or not isinstance(row.get(column), str):
            raise UserError(f"{where}: column {column!r} is missing or not text")
    task = NLGRAPH_TASKS[f"nlgraph {name}"]
    try:
        instance = instance_of(name, row["question"])
    except ValueError as error:
        raise UserError(f"{where}: column 'question': {error}") from None
    solution = task.solve(instance)
    try:
        stored = READINGS[name].label(row["answer"])
        value = task.measure(instance, tuple(stored) if isinstance(stored, list) else stored)
    except (Infeasible, IndexError) as error:
        raise UserError(f"{where}: column 'answer': {error}") from None
    if solution is None or value != solution.optimum:
        proved = solution.optimum if solution else "nothing"
        raise UserError(f"{where}: column 'answer' says {value}, proved is {proved}")
    question = row["question"].removesuffix("A:").rstrip()
    return Problem(
        id=problem_name(f"nlgraph:{name}", row["question"]),
        source="nlgraph",
        skill=f"nlgraph_{name}",
        prompt=f"{question}\n{task.ask(instance)}",
        reference=task.reference(instance, solution),
        meta={"row": key, "difficulty": row.get("difficulty", ""), **solution.facts()},
        role=role,
    )
