"""Where graphs come from: walks through made-up networks, molecules, airports, random graphs, planted groups.

Real networks are clustered and have hubs, so subgraphs are cut out of a grown network (Holme and Kim 2002) by a random
walk with restarts, as GraphArena cuts them out of DBLP or a social network. Everything is drawn from the `Random` that
is handed in: it is many times faster than NumPy's generator at one number at a time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from random import Random

from rlvrlab.envs.graphs.graph import Edge, Graph, induced, permuted
from rlvrlab.envs.graphs.solvers.paths import distances
from rlvrlab.randomness import key_bits

NETWORK_NODES = 4000
NETWORKS = {"academic": (5, 0.85), "social": (3, 0.6), "knowledge": (2, 0.2)}
"""Links of each newcomer, and the chance that a link closes a triangle."""
Near = tuple[list[int], ...]
"""The neighbours of each node."""
RESTART = 0.2
VALENCE = {"C": 4, "N": 3, "O": 2, "S": 2, "F": 1, "Cl": 1}
ATOMS = ("C",) * 30 + ("N",) * 5 + ("O",) * 6 + ("S", "F", "Cl")
EARTH_RADIUS_KM = 6371


@lru_cache
def network(kind: str) -> Near:
    """A grown network of one of the kinds in NETWORKS."""
    links, triangles = NETWORKS[kind]
    random = Random(key_bits("network", kind, links, triangles))
    near: list[set[int]] = [set() for _ in range(NETWORK_NODES)]
    ends = list(range(links))
    for v in range(links, NETWORK_NODES):
        last = -1
        while len(near[v]) < links:
            around = sorted(near[last] - near[v] - {v}) if last >= 0 and random.random() < triangles else []
            last = random.choice(around) if around else random.choice(ends)
            near[v].add(last)
            near[last].add(v)
        ends += [*near[v], *[v] * links]
    return tuple([sorted(row) for row in near])


def walked(random: Random, near: Near, size: int) -> list[int]:
    """The first `size` different nodes of a random walk with restarts: always connected."""
    start = here = random.randrange(len(near))
    seen = {start: None}
    while len(seen) < size:
        if random.random() < RESTART:
            here = start
        here = near[here][int(random.random() * len(near[here]))]
        seen[here] = None
    return list(seen)


def cut_out(random: Random, near: Near, nodes: list[int]) -> Graph:
    """The induced subgraph in random numbering."""
    place = {v: i for i, v in enumerate(nodes)}
    adjacency = [sum(1 << place[u] for u in near[v] if u in place) for v in nodes]
    return shuffled_nodes(random, induced(adjacency, range(len(nodes))))


def excerpt(random: Random, kind: str, size: int) -> Graph:
    """A connected part of a network."""
    near = network(kind)
    return cut_out(random, near, walked(random, near, size))


def shuffled_nodes(random: Random, graph: Graph) -> Graph:
    """The same graph, renumbered."""
    order = list(range(graph.n))
    random.shuffle(order)
    return permuted(graph, order)


def molecule(random: Random, size: int) -> Graph:
    """A connected graph of heavy atoms that respects valences: chains, branches and rings."""
    while True:
        atoms = [random.choice(ATOMS) for _ in range(size)]
        atoms.sort(key=lambda atom: VALENCE[atom] == 1)
        free = [VALENCE[atom] for atom in atoms]
        edges: list[Edge] = []
        for v in range(1, size):
            open_ends = [u for u in range(v) if free[u]]
            if not open_ends:
                break
            u = open_ends[-1] if random.random() < 0.55 else random.choice(open_ends)
            edges.append((u, v))
            free[u] -= 1
            free[v] -= 1
        else:
            edges += _rings(random, size, edges, free)
            return shuffled_nodes(random, Graph(size, tuple(edges), labels=tuple(atoms)))


def _rings(random: Random, size: int, edges: list[Edge], free: list[int]) -> list[Edge]:
    """Up to three bonds that close a ring of five or six atoms, now and then one of three or four."""
    wanted = random.choices((0, 1, 2, 3), (2, 5, 3, 1) if size >= 8 else (3, 4, 2, 1))[0]
    rings: list[Edge] = []
    for _ in range(wanted):
        adjacency = Graph(size, tuple(edges + rings)).adjacency()
        hops = [distances(adjacency, v) for v in range(size)]
        spans = (4, 5) if random.random() < 0.6 else (2, 3)
        choices = [(u, v) for v in range(size) if free[v] for u in range(v) if free[u] and hops[u][v] in spans]
        if choices:
            u, v = random.choice(choices)
            rings.append((u, v))
            free[u] -= 1
            free[v] -= 1
    return rings


def edited(random: Random, graph: Graph, edits: int) -> tuple[Graph, list[int]]:
    """A renumbered copy with some atoms relabelled and bonds added or removed, and where each node went."""
    labels, edges = list(graph.labels), set(graph.edges)
    for _ in range(edits):
        kind = random.random()
        if kind < 0.4:
            v = random.randrange(graph.n)
            labels[v] = random.choice([atom for atom in VALENCE if atom != labels[v]])
        elif kind < 0.7 and len(edges) > 1:
            edges.discard(random.choice(sorted(edges)))
        else:
            u, v = sorted(random.sample(range(graph.n), 2))
            edges.add((u, v))
    order = list(range(graph.n))
    random.shuffle(order)
    return permuted(Graph(graph.n, tuple(sorted(edges)), labels=tuple(labels)), order), order


def flights(random: Random, size: int) -> Graph:
    """The complete graph of great-circle distances between random points, in whole kilometres."""
    points = [(math.asin(random.uniform(-0.85, 0.93)), math.radians(random.uniform(-180, 180))) for _ in range(size)]
    edges = list(combinations(range(size), 2))
    kilometres = []
    for (a, x), (b, y) in combinations(points, 2):
        cosine = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(x - y)
        kilometres.append(max(1, int(EARTH_RADIUS_KM * math.acos(max(-1.0, min(1.0, cosine))))))
    return Graph(size, tuple(edges), weights=tuple(kilometres))


def scattered(random: Random, size: int, degree: float, directed: bool = False) -> Graph:
    """Every edge with the same chance, so that a node has `degree` of them on average."""
    chance = min(1.0, degree / max(1, size - 1) / (2 if directed else 1))
    pairs = [(u, v) for u in range(size) for v in range(size) if u < v or (directed and u != v)]
    edges = [pair for pair in pairs if random.random() < chance]
    return Graph(size, tuple(edges), directed)


def planted(random: Random, sizes: list[int], inside: float, across: float) -> tuple[Graph, list[int]]:
    """Groups with many edges inside and few across, and the group of each node."""
    group = [g for g, size in enumerate(sizes) for _ in range(size)]
    random.shuffle(group)
    edges = [
        (u, v)
        for v in range(len(group))
        for u in range(v)
        if random.random() < (inside if group[u] == group[v] else across)
    ]
    return Graph(len(group), tuple(sorted(edges))), group
