"""A published network: its nodes, its links without direction, and the class of each node, checked while it is read.

    nodes a b c    edges a-b, b-a, b-c    ->    links a-b (there both ways, counted once), b-c

What would make a question wrong or lose something is refused with its place: an edge to a node that there is not, from
a node to itself, or a second time. `drop` names those kinds that may be left out; they are counted and told. Everything
here is in the order of the nodes' names, so a file with its lines in another order is the same network.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvrlab.envs.graphs.answers import Unreadable, final_text
from rlvrlab.envs.graphs.tasks.base import Instance
from rlvrlab.envs.graphs.tasks.networks import UNKNOWN, HiddenClass
from rlvrlab.errors import UserError, first_few, quoted

Numbers = NDArray[np.int64]
MOST_NODES, MOST_LINKS, MOST_CLASSES = 1_000_000, 5_000_000, 100
LONGEST_NAME, LONGEST_LINE = 1000, 1 << 20
"""Characters of the name of a node, and bytes of a line in files that are read line by line."""
DROPS = {
    "unknown": "leads to a node that there is not",
    "loops": "leads back to its own node",
    "repeats": "stands there before",
}
"""Kinds of edges that are refused, unless they may be left out."""


class Published(NamedTuple):
    """What the files of a network say, before it is checked."""

    name: str
    classes: Mapping[str, str] | None
    """The class of each node, empty where it has none; None where no file lists the nodes."""
    edges: Iterator[tuple[int, str, str]]
    """Line or row, and the two nodes."""
    edge_file: Path
    node_file: Path | None
    told: tuple[str, ...] = ()
    """What the files have besides, and is not read."""


class Network(NamedTuple):
    """Nodes in the order of their names, and the neighbours of each."""

    name: str
    nodes: tuple[str, ...]
    classes: tuple[str, ...]
    """Their names, in order."""
    class_of: tuple[int, ...]
    """For each node the place of its class, or -1."""
    begins: Numbers
    ends: Numbers
    """The neighbours of node v are ends[begins[v]:begins[v + 1]], ascending."""
    told: tuple[str, ...]
    """What was left out, merged or not read, with its number."""

    def near(self, v: int) -> Numbers:
        """The neighbours of a node, ascending; a hub has many thousands."""
        return self.ends[self.begins[v] : self.begins[v + 1]]

    def linked(self, u: int, v: int) -> bool:
        """Whether two nodes are neighbours."""
        row = self.near(u)
        at = int(np.searchsorted(row, v))
        return at < len(row) and int(row[at]) == v

    @property
    def links(self) -> int:
        """How many there are, each counted once."""
        return len(self.ends) // 2

    def described(self) -> str:
        """One line: what it is, and what was not taken over."""
        sizes = f"{self.name}: {len(self.nodes):,} nodes, {self.links:,} links, {len(self.classes)} classes"
        return "; ".join([sizes, *self.told])


def network_of(published: Published, drop: tuple[str, ...]) -> Network:
    """The network of these files; a UserError names the first line that cannot be part of it."""
    place = {} if published.classes is None else {node: at for at, node in enumerate(published.classes)}
    reading = _Reading(published, drop, place, grows=published.classes is None)
    for number, u, v in published.edges:
        reading.take(number, u, v)
    pairs, told = reading.distinct()
    nodes = sorted(place)
    order = np.empty(len(nodes), np.int64)  # from the order of the files to that of the names
    order[[place[node] for node in nodes]] = np.arange(len(nodes))
    begins, ends = _rows(order[pairs], len(nodes))
    said = [(published.classes or {}).get(node, "") for node in nodes]
    classes = _known_classes(said, published.node_file)
    at = {name: i for i, name in enumerate(classes)}
    if classes and (without := said.count("")):
        told.append(f"{without:,} nodes have no class")
    class_of = tuple([at.get(name, -1) for name in said])
    return Network(published.name, tuple(nodes), classes, class_of, begins, ends, (*published.told, *told))


class _Reading:
    """Edges as they come, in 24 bytes each."""

    def __init__(self, published: Published, drop: tuple[str, ...], place: dict[str, int], grows: bool) -> None:
        self._from, self._drop, self._place, self._grows = published, drop, place, grows
        self._ends, self._numbers = array("q"), array("q")
        self._dropped: Counter[str] = Counter()

    def take(self, number: int, u: str, v: str) -> None:
        """One edge, unless it is of a kind that may be left out."""
        ends = []
        for node in (u, v):
            at = self._place.get(node)
            if at is None and self._grows:
                refuse_name(node, f"{self._from.edge_file}:{number}")
                at = self._place[node] = len(self._place)
                refuse_many(len(self._place), MOST_NODES, "nodes", self._from.edge_file)
            if at is None:
                nodes = self._from.node_file
                return self._refuse(
                    "unknown", number, f"node {quoted(node)} is none of the {len(self._place):,} {nodes} has"
                )
            ends.append(at)
        if ends[0] == ends[1]:
            return self._refuse("loops", number, f"the edge of node {quoted(u)} leads back to it")
        self._ends.extend(ends)
        self._numbers.append(number)
        return refuse_many(len(self._numbers), MOST_LINKS, "edges", self._from.edge_file)

    def distinct(self) -> tuple[Numbers, list[str]]:
        """Each link once, the lower node first, and what was left out or counted once."""
        if not self._numbers:
            dropped = f" ({sum(self._dropped.values()):,} were dropped)" if self._dropped else ""
            raise UserError(f"{self._from.edge_file}: no edges{dropped}; give at least one, in a line of two nodes")
        ends: Numbers = np.array(self._ends, np.int64).reshape(-1, 2)
        size = len(self._place)
        ways, first = np.unique(ends[:, 0] * size + ends[:, 1], return_index=True)
        if len(ways) < len(ends):
            kept = np.zeros(len(ends), bool)
            kept[first] = True
            at = int(np.flatnonzero(~kept)[0])
            earlier = self._numbers[int(np.flatnonzero((ends == ends[at]).all(1))[0])]
            self._refuse("repeats", self._numbers[at], f"the edge of line or row {earlier} stands there again")
            self._dropped["repeats"] = len(ends) - len(ways)
            ends = ends[kept]
        links: Numbers = np.unique(np.sort(ends, axis=1), axis=0)
        told = [f"{count:,} edges dropped, each {DROPS[kind]}" for kind, count in sorted(self._dropped.items())]
        if both := len(ends) - len(links):
            told.append(f"{both:,} edges stand there both ways and count once")
        return links, told

    def _refuse(self, kind: str, number: int, what: str) -> None:
        if kind not in self._drop:
            remedy = f'mend the file, or set drop = ["{kind}"]: such edges are left out and counted'
            raise UserError(f"{self._from.edge_file}:{number}: {what}; {remedy}")
        self._dropped[kind] += 1


def _rows(pairs: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Where the neighbours of each node begin, and all of them in order."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return np.searchsorted(both[:, 0], np.arange(size + 1)), both[:, 1].copy()


def _known_classes(said: list[str], node_file: Path | None) -> tuple[str, ...]:
    """The classes in order; each must be one that can be answered and told from the others."""
    classes = tuple(sorted(set(said) - {""}))
    refuse_many(len(classes), MOST_CLASSES, "classes", node_file)
    if len(classes) == 1:
        raise UserError(f"{node_file}: every node has class {quoted(classes[0])}; two classes or more can be asked for")
    asked = Instance((), choices=classes)
    bad = [name for name in classes if name == UNKNOWN or ";" in name or name != " ".join(name.split())]
    bad += [name for name in classes if name not in bad and not _can_be_answered(asked, name)]
    if bad:
        names = quoted_list(bad)
        allowed = "one line, no ; # or ?, not the same but for case or quotes, and no word that denies"
        raise UserError(f"{node_file}: {names} cannot be given as an answer; allowed is {allowed}; rename the class")
    return classes


def _can_be_answered(asked: Instance, name: str) -> bool:
    task = HiddenClass()
    try:
        return bool(task.read(asked, final_text(task.show(asked, name), "plain"), alone=False) == name)
    except Unreadable:
        return False


def refuse_name(node: str, where: str) -> None:
    """A node needs a name, and not the text of a book."""
    if not node or len(node) > LONGEST_NAME:
        what = f"has {len(node):,} characters, at most {LONGEST_NAME:,} are read" if node else "is empty"
        raise UserError(f"{where}: the name of a node {what}; give every node a short one")


def add_node(found: dict[str, str], node: str, label: str, path: Path, number: int) -> None:
    """One node, named once."""
    refuse_name(node, f"{path}:{number}")
    if node in found:
        raise UserError(f"{path}:{number}: node {quoted(node)} is there a second time; keep one of its lines")
    found[node] = label
    refuse_many(len(found), MOST_NODES, "nodes", path)


def refuse_many(count: int, most: int, what: str, path: Any) -> None:
    """More than are read at once are refused before they fill the memory."""
    if count > most:
        raise UserError(f"{path}: more than {most:,} {what}; at most so many are read: cut out a part of the network")


def quoted_list(names: Sequence[str]) -> str:
    """The first few names of columns or values, each on one line whatever it holds."""
    return first_few([quoted(name, 40) for name in names], 10)
