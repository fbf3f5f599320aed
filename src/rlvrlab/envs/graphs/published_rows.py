"""What the rows of GraphArena, NPG-Muse and GraphWiz say: which task, which graph, which answer was published.

    GraphArena   {"task": "MIS", "problem_text": "Your task is …", "graph": {"nodes": […], "links": […]},
                  "exact_answer": 3}                      its pickles as lines of JSON, see docs/graphs.md
    NPG-Muse     {"data_source": "MIS_easy_binary", "prompt": [{"role": "user", "content": …}],
                  "extra_info": {"graph": "{\\"nodes\\": […]}", "problem_text": …, "exact_answer": "3"}}
    GraphWiz     {"input_prompt": "Determine whether … Q: The nodes are numbered from 0 to 4, and the edges are: …",
                  "answer": "### No"}

A graph is networkx's node-link data; two molecules are a list of two. Distances of TSP stand in the text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlvrlab.envs.data_files import Row
from rlvrlab.envs.graphs.graph import Graph
from rlvrlab.envs.graphs.published_texts import graph_in
from rlvrlab.envs.graphs.tasks.base import Instance
from rlvrlab.envs.graphs.tasks.catalogue import GRAPHWIZ, NP, POLYNOMIAL

ARENA_WORDS = {
    "TSP": "Travelling Salesman", "GED": "Graph Edit Distance", "MCP": "Maximum Clique",
    "MIS": "Maximum Independent Set", "MVC": "Minimum Vertex Cover", "MCS": "Maximum Common Subgraph",
    "Neighbor": "common neighbors", "Distance": "shortest path between two", "Connected": "connected components",
    "Diameter": "the diameter of",
}  # fmt: skip
"""What only the question of this task says."""
WIZ_WORDS = {
    "hamilton": "Hamiltonian path", "cycle": "Is there a cycle", "bipartite": "bipartite",
    "topology": "topology sorting", "shortest": "weight of the shortest path", "triplet": "three interconnected",
    "flow": "maximum flow", "substructure": "subgraph G'", "connectivity": "Is there a path between",
}  # fmt: skip
DIRECTED = ("bipartite", "topology", "flow", "substructure")
LOOPS_COUNT = ("GED", "MCS", "MIS", "MVC")
"""Of GraphArena's tasks, those whose answer an edge from a node to itself would change."""
ENDS = {"Neighbor": ("node1", "node2"), "Distance": ("source", "target")}
ASKED = re.compile(r"(?:common neighbors of|shortest path between) (.+) in this network")
ROAD = re.compile(r"^(.+?) to (.+?): (\d+)\s*$", re.MULTILINE)
EDGE = re.compile(r"\(\s*(\d+)\s*(?:,|->)\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
LETTER_EDGE = re.compile(r"\(\s*([a-z])\s*->\s*([a-z])\s*\)")
NODE_WEIGHT = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*\]")
PAIR = re.compile(r"node (\d+) (?:and|to) node (\d+)")
COUNT = re.compile(r"numbered from 0 to (\d+)")
LETTERS = re.compile(r"numbered from a to ([a-z])")


class Unclear(Exception):
    """The row's graph is not simple where that decides the answer: an edge twice, or from a node to itself."""


class PublishedRow(NamedTuple):
    """One row, understood."""

    publisher: str
    """grapharena, npg_muse or graphwiz."""
    task: str
    question: str
    instance: Instance
    answer: str
    """As published; empty where the publisher has none."""


def understood(row: Row) -> PublishedRow:
    """A row in one of the three shapes; a KeyError, ValueError or TypeError says what is wrong with it.

    Unclear where the row is well formed and asks about a graph that the tasks here have no notion of.
    """
    if "input_prompt" in row:
        question = row["input_prompt"]
        task = _task(row.get("task"), question, WIZ_WORDS, GRAPHWIZ)
        return PublishedRow("graphwiz", task, question, _numbered(task, question), str(row["answer"]))
    if "problem_text" in row:
        publisher, said, facts = "grapharena", row.get("task"), row
    else:
        publisher, said, facts = "npg_muse", str(row["data_source"]).partition("_")[0], row["extra_info"]
    question = facts["problem_text"]
    task = _task(said, question, ARENA_WORDS, (*NP, *POLYNOMIAL))
    answer = facts.get("exact_answer")
    return PublishedRow(publisher, task, question, _named(task, facts, question), "" if answer is None else str(answer))


def _task(said: object, question: str, words: Mapping[str, str], known: Sequence[str]) -> str:
    if said in known:
        return str(said)
    found = [name for name, phrase in words.items() if phrase in question]
    if not found:
        raise ValueError(f"no task is known by its words; give a column 'task' with one of {', '.join(known)}")
    return found[0]


def _named(task: str, facts: Mapping[str, Any], question: str) -> Instance:
    """An instance of GraphArena's tasks from its node-link data, or from its words where it comes without them."""
    plain = facts["graph"] if "graph" in facts else graph_in(question)
    plain = json.loads(plain) if isinstance(plain, str) else plain
    if isinstance(plain, list):
        return Instance(tuple([_graph(one, task)[0] for one in plain]))
    graph, places, names = _graph(plain, task)
    if task == "TSP":
        return _roads(names, question)
    query = tuple([places[_hashable(facts[end])] for end in ENDS[task]]) if ENDS.get(task, ("?",))[0] in facts else ()
    return Instance((graph,), names, query or _asked_about(task, question, names))


def _graph(plain: Mapping[str, Any], task: str) -> tuple[Graph, dict[Any, int], tuple[str, ...]]:
    """The graph, the place of each node id, and the names."""
    nodes = plain["nodes"]
    places = {_hashable(node["id"]): place for place, node in enumerate(nodes)}
    ends = plain["links"] if "links" in plain else plain["edges"]
    pairs = {tuple(sorted((places[_hashable(e["source"])], places[_hashable(e["target"])]))) for e in ends}
    if task in LOOPS_COUNT and any(u == v for u, v in pairs):
        raise Unclear
    labels = tuple([str(node["label"]) for node in nodes]) if task == "GED" else ()
    names = tuple([str(node.get("name", node["id"])) for node in nodes])
    return Graph(len(nodes), tuple(sorted((u, v) for u, v in pairs if u != v)), labels=labels), places, names


def _hashable(node: Any) -> Any:
    return tuple(node) if isinstance(node, list) else node


def _roads(names: tuple[str, ...], question: str) -> Instance:
    """Distances between all airports as the question lists them."""
    place = {name: i for i, name in enumerate(names)}
    length = {
        (min(place[a], place[b]), max(place[a], place[b])): int(km)
        for a, b, km in ROAD.findall(question)
        if a in place and b in place
    }
    pairs = [(u, v) for u in range(len(names)) for v in range(u + 1, len(names))]
    missing = [f"{names[u]} to {names[v]}" for u, v in pairs if (u, v) not in length]
    if missing:
        raise ValueError(f"the question has no distance for {missing[0]}")
    return Instance((Graph(len(names), tuple(pairs), weights=tuple([length[pair] for pair in pairs])),), names)


def _asked_about(task: str, question: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """The two nodes that the question names, where it names any; a name may itself hold `and`."""
    if task not in ENDS:
        return ()
    match = ASKED.search(question)
    pairs = [(i, j) for i, a in enumerate(names) for j, b in enumerate(names) if match and match[1] == f"{a} and {b}"]
    if len(pairs) != 1:
        raise ValueError("the question does not name two of its nodes")
    return pairs[0]


def _numbered(task: str, question: str) -> Instance:
    """An instance of GraphWiz from its question."""
    asked = question.rpartition("Q:")[2]
    whole, _, part = asked.partition("The nodes of subgraph")
    size = COUNT.search(whole)
    if size is None:
        raise ValueError("the question does not say how many nodes there are")
    directed = task in DIRECTED
    graph = _edges(int(size[1]) + 1, EDGE.findall(whole.partition("edges are:")[2]), directed)
    if task == "triplet":
        weight = dict(NODE_WEIGHT.findall(whole))
        graph = graph._replace(labels=tuple([weight[str(node)] for node in range(graph.n)]))
    if task == "substructure":
        last = LETTERS.search(part)
        if last is None:
            raise ValueError("the question does not say which nodes subgraph G' has")
        pairs = [(str(ord(a) - 97), str(ord(b) - 97), "") for a, b in LETTER_EDGE.findall(part)]
        return Instance((graph, _edges(ord(last[1]) - 96, pairs, directed=True)))
    pair = PAIR.search(whole.partition("edges are:")[2])
    query = (int(pair[1]), int(pair[2])) if pair and task in ("connectivity", "shortest", "flow") else ()
    return Instance((graph,), query=query)


def _edges(size: int, found: Sequence[tuple[str, str, str]], directed: bool) -> Graph:
    weights: dict[tuple[int, int], int] = {}
    for a, b, weight in found:
        u, v = (int(a), int(b)) if directed else sorted((int(a), int(b)))
        if max(u, v) >= size:
            raise ValueError(f"edge ({a},{b}) leads to a node that there is not")
        if u == v or (u, v) in weights:
            raise Unclear
        weights[u, v] = int(weight or 0)
    given = tuple(weights.values()) if any(weight for *_, weight in found) else ()
    return Graph(size, tuple(weights), directed, given)
