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

from rlvrlab.envs.data_files import Row, json_fault
from rlvrlab.envs.graphs.graph import Edge, Graph
from rlvrlab.envs.graphs.published_texts import (
    MOST_NODES,
    Unclear,
    amount,
    asked_in,
    few_nodes,
    graph_in,
    pairs_in,
    quoted,
)
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
MOLECULES, WEIGHTED = ("GED", "MCS"), ("shortest", "flow")
ENDS = {"Neighbor": ("node1", "node2"), "Distance": ("source", "target")}
ASKED, IN_NETWORK = ("common neighbors of ", "shortest path between "), " in this network"
QUERIED = ("connectivity", "shortest", "flow")
EDGE = re.compile(r"\(\s{0,9}(\d+)\s{0,9}(?:,|->)\s{0,9}(\d+)\s{0,9}(?:,\s{0,9}(\d+)\s{0,9})?\)")
LETTER_EDGE = re.compile(r"\(\s{0,9}([a-z])\s{0,9}->\s{0,9}([a-z])\s{0,9}\)")
NODE_WEIGHT = re.compile(r"\[\s{0,9}(\d+)\s{0,9},\s{0,9}(\d+)\s{0,9}\]")
PAIR = re.compile(r"node (\d+) (?:and|to) node (\d+)")
COUNT = re.compile(r"numbered from 0 to (\d+)")
LETTERS = re.compile(r"numbered from a to ([a-z])\b")
MOST_GRAPH = 4_000_000
"""Characters of a column that holds a graph as JSON."""


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
        question = _text(row, "input_prompt")
        task = _task(row.get("task"), question, WIZ_WORDS, GRAPHWIZ)
        return PublishedRow("graphwiz", task, question, _numbered(task, question), str(row["answer"]))
    if "problem_text" in row:
        publisher, said, facts = "grapharena", row.get("task"), row
    else:
        publisher, said, facts = "npg_muse", str(row["data_source"]).partition("_")[0], row["extra_info"]
    if not isinstance(facts, Mapping):
        raise ValueError(f"column 'extra_info': an object was expected, not {type(facts).__name__}")
    question = _text(facts, "problem_text")
    task = _task(said, question, ARENA_WORDS, (*NP, *POLYNOMIAL))
    answer = facts.get("exact_answer")
    return PublishedRow(publisher, task, question, _named(task, facts, question), "" if answer is None else str(answer))


def _text(facts: Mapping[str, Any], column: str) -> str:
    """A question, of a length that can be one."""
    if not isinstance(facts[column], str):
        raise ValueError(f"column {column!r}: a question was expected, not {type(facts[column]).__name__}")
    asked_in(facts[column])
    return str(facts[column])


def _task(said: object, question: str, words: Mapping[str, str], known: Sequence[str]) -> str:
    if said in known:
        return str(said)
    found = [name for name, phrase in words.items() if phrase in question]
    if not found:
        raise ValueError(f"no task is known by its words; give a column 'task' with one of {', '.join(known)}")
    return found[0]


def _named(task: str, facts: Mapping[str, Any], question: str) -> Instance:
    """An instance of GraphArena's tasks from its node-link data, or from its words where it comes without them."""
    plain = _plain(facts["graph"]) if "graph" in facts else graph_in(question, task)
    if task in MOLECULES:
        if not isinstance(plain, list) or len(plain) != 2:
            raise ValueError(f"task {task} asks about two graphs, which are not there")
        return Instance(tuple([_graph(one, task)[0] for one in plain]))
    if isinstance(plain, list):
        raise ValueError(f"task {task} asks about one graph, and there are {len(plain)}")
    graph, places, names = _graph(plain, task)
    if task == "TSP":
        return _roads(names, question)
    ends = ENDS.get(task, ())
    if not ends or ends[0] not in facts:
        return Instance((graph,), names, _asked_about(task, question, names))
    return Instance((graph,), names, tuple([_place(facts[end], places, f"column {end!r}") for end in ends]))


def _plain(said: Any) -> Any:
    """Node-link data of a column that holds them, or JSON of them."""
    if not isinstance(said, str):
        return said
    if len(said) > MOST_GRAPH:
        raise ValueError(f"column 'graph' has {len(said):,} characters; at most {MOST_GRAPH:,} are read")
    try:
        return json.loads(said)
    except ValueError as error:
        raise ValueError(f"column 'graph': not JSON ({json_fault(error)})") from None


def _graph(plain: Any, task: str) -> tuple[Graph, dict[Any, int], tuple[str, ...]]:
    """The graph, the place of each node id, and the names."""
    nodes = _objects(plain, ("nodes",), "id")
    few_nodes(len(nodes))
    if task in MOLECULES:
        if any(type(node["id"]) is not int for node in nodes):
            raise ValueError("an atom of column 'graph' has an id that is no whole number")
        nodes = sorted(nodes, key=lambda node: node["id"])
        if [node["id"] for node in nodes] != list(range(len(nodes))):
            raise ValueError(f"column 'graph' does not number its atoms from 0 to {len(nodes) - 1}, as answers do")
    places = {_hashable(node["id"]): place for place, node in enumerate(nodes)}
    if len(places) < len(nodes):
        raise ValueError("two nodes of column 'graph' have one id")
    ends = _objects(plain, ("links", "edges"), "source", "target")
    pairs = {_sorted(*[_place(edge[end], places, "an edge") for end in ("source", "target")]) for edge in ends}
    if task in LOOPS_COUNT and any(u == v for u, v in pairs):
        raise Unclear
    if task == "GED" and any("label" not in node for node in nodes):
        raise ValueError("an atom of column 'graph' has no label")
    labels = tuple([str(node["label"]) for node in nodes]) if task == "GED" else ()
    names = tuple([str(node.get("name", node["id"])) for node in nodes])
    return Graph(len(nodes), tuple(sorted((u, v) for u, v in pairs if u != v)), labels=labels), places, names


def _objects(plain: Any, keys: Sequence[str], *columns: str) -> Sequence[Mapping[str, Any]]:
    """The list under the first of these keys that is there; each of its objects has these columns."""
    key = next((key for key in keys if isinstance(plain, Mapping) and key in plain), "")
    found = plain[key] if key else None
    if not isinstance(found, list):
        raise ValueError(f"column 'graph' has no list {' or '.join(map(repr, keys))}")
    for one in found:
        if not isinstance(one, Mapping) or any(column not in one for column in columns):
            raise ValueError(f"column 'graph': {quoted(one)} of {key!r} has no {' and '.join(map(repr, columns))}")
    return found


def _hashable(node: Any) -> Any:
    node = tuple(node) if isinstance(node, list) else node
    try:
        hash(node)
    except TypeError:
        raise ValueError(f"column 'graph': {quoted(node)} is no id of a node") from None
    return node


def _place(node: Any, places: Mapping[Any, int], whose: str) -> int:
    """Where a node stands that something leads to."""
    known = _hashable(node)
    if known not in places:
        raise ValueError(f"{whose} leads to {quoted(node)}, a node that there is not")
    return places[known]


def _sorted(u: int, v: int) -> Edge:
    return min(u, v), max(u, v)


def _roads(names: tuple[str, ...], question: str) -> Instance:
    """Distances between all airports as the question lists them."""
    place = {name: i for i, name in enumerate(names)}
    length: dict[Edge, int] = {}
    for line in asked_in(question).split("\n"):
        road, _, km = line.rpartition(": ")
        a, _, b = road.partition(" to ")
        if not (b and km.strip().isdecimal()):
            continue
        if a not in place or b not in place:
            raise ValueError(f"the question has a distance of {quoted(road)}, which are not two of its airports")
        pair = _sorted(place[a], place[b])
        if length.setdefault(pair, found := amount(km.strip(), f"the distance {quoted(road)}")) != found:
            raise ValueError(f"the question has two distances of {quoted(road)}")
    pairs = [(u, v) for u in range(len(names)) for v in range(u + 1, len(names))]
    missing = next(((u, v) for u, v in pairs if (u, v) not in length), None)
    if missing:
        raise ValueError(f"the question has no distance for {names[missing[0]]} to {names[missing[1]]}")
    return Instance((Graph(len(names), tuple(pairs), weights=tuple([length[pair] for pair in pairs])),), names)


def _asked_about(task: str, question: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """The two nodes that the question names, where it names any; a name may itself hold `and`."""
    if task not in ENDS:
        return ()
    places = {name: place for place, name in enumerate(names)}
    found = set()
    for line in asked_in(question).split("\n"):
        for words in ASKED:
            named = line.partition(words)[2].rpartition(IN_NETWORK)[0]
            found |= {(places[u], places[v]) for u, v in pairs_in(named, places, (" and ",))}
    if len(found) != 1:
        raise ValueError("the question does not name two of its nodes")
    return found.pop()


def _numbered(task: str, question: str) -> Instance:
    """An instance of GraphWiz from its question."""
    asked = question.rpartition("Q:")[2]
    whole, _, part = asked.partition("The nodes of subgraph")
    size = COUNT.search(whole)
    if size is None:
        raise ValueError("the question does not say how many nodes there are")
    nodes = amount(size[1], "the number of the last node", MOST_NODES - 1) + 1
    graph = _edges(nodes, _listed_edges(whole, EDGE), task in DIRECTED)
    if task in WEIGHTED and graph.edges and not graph.weights:
        raise ValueError("the question has no weights of its edges")
    if task == "triplet":
        graph = graph._replace(labels=_node_weights(whole, nodes))
    if task == "substructure":
        last = LETTERS.search(part)
        if last is None:
            raise ValueError("the question does not say which nodes subgraph G' has")
        pairs = [(str(ord(a) - 97), str(ord(b) - 97), "") for a, b in _listed_edges(part, LETTER_EDGE)]
        return Instance((graph, _edges(ord(last[1]) - 96, pairs, directed=True)))
    return Instance((graph,), query=_queried(task, whole, nodes) if task in QUERIED else ())


def _listed_edges(text: str, form: re.Pattern[str]) -> list[Any]:
    """All that stands in parentheses after `edges are:`; each must be an edge."""
    _, there, listed = text.partition("edges are:")
    if not there:
        raise ValueError("the question does not list its edges")
    found = form.findall(listed)
    if len(found) != listed.count("("):
        raise ValueError(f"the question lists {listed.count('(')} edges, of which {len(found)} can be read")
    return found


def _node_weights(text: str, nodes: int) -> tuple[str, ...]:
    """The weight of each node, exactly one."""
    listed = NODE_WEIGHT.findall(text.partition("edges are:")[0])
    weight = {amount(node, "the number of a node"): str(amount(said, "the weight of a node")) for node, said in listed}
    if len(listed) != nodes or sorted(weight) != list(range(nodes)):
        raise ValueError(f"the question does not give each of its {nodes} nodes one weight")
    return tuple([weight[node] for node in range(nodes)])


def _queried(task: str, text: str, nodes: int) -> tuple[int, ...]:
    """The two nodes that the question asks about."""
    pair = PAIR.search(text.partition("edges are:")[2])
    if pair is None:
        raise ValueError("the question does not name two of its nodes")
    u, v = [amount(node, "a node that is asked about", nodes - 1) for node in pair.groups()]
    if task == "flow" and u == v:
        raise Unclear
    return u, v


def _edges(size: int, found: Sequence[tuple[str, str, str]], directed: bool) -> Graph:
    weights: dict[tuple[int, int], int] = {}
    for a, b, weight in found:
        u, v = amount(a, "the number of a node"), amount(b, "the number of a node")
        u, v = (u, v) if directed else _sorted(u, v)
        if max(u, v) >= size:
            raise ValueError(f"edge ({a},{b}) leads to a node that there is not")
        if u == v or (u, v) in weights:
            raise Unclear
        weights[u, v] = amount(weight or "0", "the weight of an edge")
    weighted = {bool(weight) for *_, weight in found}
    if len(weighted) > 1:
        raise ValueError("the question gives some edges a weight and others none")
    return Graph(size, tuple(weights), directed, tuple(weights.values()) if True in weighted else ())
