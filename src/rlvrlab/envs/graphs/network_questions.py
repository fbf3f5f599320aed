"""Questions from a published network: whose answers are held out, what is shown, and what blind rules make of it.

The role of a question is that of its first node, which its name alone decides. Nothing that a dev or test question asks
stands in any other prompt: classes of dev and test nodes are never shown, and links that dev and test questions ask
for are in no prompt at all. Two questions that look the same but for the numbering are one, with the answer and the
role of the first: test before dev before train.

Every node is asked about at most once for each task. It gets one pair: a link of its own, or an absent one to a node
two steps away or to an end of a random link, so that nodes with many links are met as often in either. After the pair
is taken out both nodes have a link left, or a node without any would be a yes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np

from rlvrlab.envs.graphs.graph import Edge, Graph, shape
from rlvrlab.envs.graphs.network import Network, Numbers
from rlvrlab.envs.graphs.tasks.base import Instance
from rlvrlab.envs.graphs.tasks.networks import UNKNOWN
from rlvrlab.envs.split import ROLES, role_of
from rlvrlab.randomness import key_bits
from rlvrlab.types import Role

MOST_ASKED = 20_000
"""Nodes of a network that are asked about, for each task; of a larger one those that their names choose."""
TRIES = 20
"""For an absent pair of a node; one whose surroundings are all linked has none."""
MAJORITY, COMMON = "neighbours_majority", "common_neighbours"


class Pair(NamedTuple):
    """Two nodes that are asked about."""

    first: int
    second: int
    linked: bool


class Held(NamedTuple):
    """A network with the roles of its nodes, its pairs, and the links that no prompt shows."""

    network: Network
    roles: tuple[Role, ...]
    asked: tuple[int, ...]
    """The nodes that are asked about."""
    pairs: tuple[Pair, ...]
    hidden: dict[int, frozenset[int]]

    def seen(self, v: int) -> Numbers:
        """The neighbours of a node as prompts show them."""
        near, hidden = self.network.near(v), self.hidden.get(v)
        return near[~np.isin(near, list(hidden))] if hidden else near


class Question(NamedTuple):
    """What is asked, the published answer, and what is known of the question."""

    instance: Instance
    answer: str | bool
    nodes: tuple[str, ...]
    """The names of the nodes that are asked about."""
    rule: str
    """The blind rule it is held against, and whether that is right."""
    right: bool
    shape: int


class Reach(NamedTuple):
    """How much of the network a question shows."""

    hops: int
    fewest: int
    most: int


def held_out(network: Network) -> Held:
    """Who is asked what in which role."""
    roles = tuple([role_of("network", node) for node in network.nodes])
    left = np.diff(network.begins).tolist()
    keys = [(key_bits("network asked", node), v) for v, node in enumerate(network.nodes)]
    asked = tuple(sorted([v for _, v in heapq.nsmallest(MOST_ASKED, keys)]))
    hidden: dict[int, set[int]] = {}
    pairs: dict[Edge, Pair] = {}
    for role in ROLES:
        for v in [v for v in asked if roles[v] == role]:
            random = Random(key_bits("network pair", network.nodes[v]))
            kinds = [_link_of, _absent_pair] if random.random() < 0.5 else [_absent_pair, _link_of]
            pair = next((pair for kind in kinds if (pair := kind(random, network, v, left, pairs))), None)
            if pair is None:
                continue
            pairs[min(pair[:2]), max(pair[:2])] = pair
            if pair.linked and role != "train":
                for u, w in ((pair.first, pair.second), (pair.second, pair.first)):
                    hidden.setdefault(u, set()).add(w)
                    left[u] -= 1
    return Held(network, roles, asked, tuple(pairs.values()), {v: frozenset(some) for v, some in hidden.items()})


def _link_of(random: Random, network: Network, v: int, left: list[int], taken: dict[Edge, Pair]) -> Pair | None:
    """A link of the node that nobody else asks for; both nodes keep another one."""
    if left[v] < 2:
        return None
    free = [u for u in network.near(v).tolist() if left[u] > 1 and (min(u, v), max(u, v)) not in taken]
    return Pair(v, random.choice(free), True) if free else None


def _absent_pair(random: Random, network: Network, v: int, left: list[int], taken: dict[Edge, Pair]) -> Pair | None:
    """A node that it is not linked with: two steps away, or an end of any link."""
    if not left[v]:
        return None
    close = random.random() < 0.5
    for _ in range(TRIES):
        u = _any(random, network.near(_any(random, network.near(v))) if close else network.ends)
        if u != v and not network.linked(u, v) and (min(u, v), max(u, v)) not in taken:
            return Pair(v, u, False)
    return None


def _any(random: Random, nodes: Numbers) -> int:
    return int(nodes[random.randrange(len(nodes))])


def class_questions(held: Held, role: Role, reach: Reach, left_out: Counter[str]) -> Iterator[Question]:
    """What class has each node of this role?"""
    network = held.network
    for v in [v for v in held.asked if held.roles[v] == role]:
        if network.class_of[v] < 0:
            left_out["have no class"] += 1
            continue
        random = Random(key_bits("network node", network.nodes[v], reach))
        shown = _around(held, (v,), reach, random)
        if shown is None:
            left_out["have too few nodes around them"] += 1
            continue
        labels = tuple([_shown_class(held, u, v) for u in shown.names])
        graph = shown.graph._replace(labels=labels)
        if set(labels) == {UNKNOWN}:
            left_out["have no class shown around them"] += 1
            continue
        answer = network.classes[network.class_of[v]]
        (asked,) = shown.query
        instance = Instance((graph,), query=shown.query, choices=network.classes)
        right = majority(graph, asked) == answer
        yield Question(instance, answer, (network.nodes[v],), MAJORITY, right, instance.shape)


def _shown_class(held: Held, u: int, asked: int) -> str:
    known = u != asked and held.roles[u] == "train" and held.network.class_of[u] >= 0
    return held.network.classes[held.network.class_of[u]] if known else UNKNOWN


def link_questions(held: Held, role: Role, reach: Reach, left_out: Counter[str]) -> Iterator[Question]:
    """Are the two nodes of each pair of this role linked?"""
    network = held.network
    of_role = [pair for pair in held.pairs if held.roles[pair.first] == role]
    if without := sum(held.roles[v] == role for v in held.asked) - len(of_role):
        left_out["have no pair of their own"] += without
    for pair in of_role:
        names = (network.nodes[pair.first], network.nodes[pair.second])
        random = Random(key_bits("network link", *names, reach))
        shown = _around(held, (pair.first, pair.second), reach, random)
        if shown is None:
            left_out["have too few nodes around them"] += 1
            continue
        a, b = shown.query
        instance = Instance((shown.graph,), query=shown.query)
        right = bool(common_neighbours(shown.graph, a, b)) == pair.linked
        either_way = min(shape(shown.graph, (a, b)), shape(shown.graph, (b, a)))
        yield Question(instance, pair.linked, names, COMMON, right, either_way)


class _Shown(NamedTuple):
    """A part of the network in numbering of its own."""

    graph: Graph
    names: tuple[int, ...]
    """Which node of the network each number is."""
    query: tuple[int, ...]


def _around(held: Held, asked: tuple[int, ...], reach: Reach, random: Random) -> _Shown | None:
    """At most so many nodes within the hops, the nearest first; None where they are too few.

    Of a layer that is too large a random part is taken. A pair that is asked about is never shown as linked.
    """
    chosen, layer = dict.fromkeys(asked), list(asked)
    for _ in range(reach.hops):
        room = reach.most - len(chosen)
        if not room or not layer:
            break
        fresh = np.setdiff1d(np.concatenate([held.seen(v) for v in layer]), list(chosen)).tolist()
        layer = random.sample(fresh, room) if len(fresh) > room else fresh
        chosen |= dict.fromkeys(layer)
    if len(chosen) < max(reach.fewest, len(asked) + 1):
        return None
    order = list(chosen)
    random.shuffle(order)
    place = {v: i for i, v in enumerate(order)}
    met = [(place[v], place[u]) for v in order for u in np.intersect1d(held.seen(v), order, True).tolist()]
    pair = tuple(sorted([place[v] for v in asked]))
    links = tuple(sorted([link for link in met if link[0] < link[1] and link != pair]))
    return _Shown(Graph(len(order), links), tuple(order), tuple([place[v] for v in asked]))


def majority(graph: Graph, asked: int) -> str | None:
    """The blind rule for classes: the one most neighbours have that show theirs, else most of all that are shown."""
    ends = [u if v == asked else v for u, v in graph.edges if asked in (u, v)]
    near = Counter(graph.labels[u] for u in ends if graph.labels[u] != UNKNOWN)
    everywhere = Counter(label for label in graph.labels if label != UNKNOWN)
    return max(everywhere, key=lambda label: (near[label], everywhere[label], label), default=None)


def common_neighbours(graph: Graph, a: int, b: int) -> int:
    """The blind rule for links: yes where there is one."""
    adjacency = graph.adjacency()
    return (adjacency[a] & adjacency[b]).bit_count()
