"""The graph of a GraphArena question, read from its words, for rows that are published without their graph.

    - Users in the network: Ada Abbott, Ben Brandt.          names, between commas
    - Fiendship connections: Ada Abbott and Ben Brandt.      pairs of them; a name may itself hold `and`
    - Atoms: N (atom 0), C (atom 1).                         of each molecule, then
    - Bonds: 0-1, 1-2.

What comes before "**Problem to Solve**" is an example with another graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

BEGIN = "**Problem to Solve**"
NAMES = re.compile(r"^- [^:\n]*: (.+?)\.?[ \t]*$", re.MULTILINE)
"""The first such line lists the nodes, the second the edges, where these do not have a line each."""
RELATED = re.compile(r"^ ?- (.+) is connected to (.+) via the relationship .+$", re.MULTILINE)
ATOM = re.compile(r"(\w+) \(atom (\d+)\)")
SIZE = re.compile(r"consists of (\d+) atoms")
BOND = re.compile(r"\b(\d+)-(\d+)\b")
MOLECULE = re.compile(r"^Molecule [AB]\b", re.MULTILINE)
BETWEEN = (" and ", " to ")

NodeLink = dict[str, list[dict[str, Any]]]


def graph_in(question: str) -> NodeLink | list[NodeLink]:
    """Node-link data as GraphArena has them; two molecules are two graphs. A ValueError says what is not there."""
    asked = question.rpartition(BEGIN)[2]
    _, *molecules = MOLECULE.split(asked)
    if molecules:
        return [_molecule(text) for text in molecules[:2]]
    lines = NAMES.findall(asked)
    if not lines:
        raise ValueError("the row has no graph, and its question does not list one")
    names = lines[0].split(", ")
    related = RELATED.findall(asked) or [_pair(text, names) for text in _listed(lines)]
    nodes = [{"id": name, "name": name} for name in names]
    return {"nodes": nodes, "links": [{"source": u, "target": v} for u, v in related]}


def _listed(lines: list[str]) -> Iterator[str]:
    """The edges of the second list; a tour has a distance for every pair instead."""
    if len(lines) > 1:
        yield from lines[1].split(", ")


def _pair(text: str, names: list[str]) -> tuple[str, str]:
    known = set(names)
    ends = [(text[: at.start()], text[at.end() :]) for word in BETWEEN for at in re.finditer(word, text)]
    pairs = [(u, v) for u, v in ends if u in known and v in known]
    if len(pairs) != 1:
        raise ValueError(f"the question says {text!r}, which does not name two of its nodes")
    return pairs[0]


def _molecule(text: str) -> NodeLink:
    atoms = [(int(place), label) for label, place in ATOM.findall(text)]
    if size := SIZE.search(text):
        atoms = [(place, "") for place in range(int(size[1]))]
    if not atoms:
        raise ValueError("the row has no graph, and its question does not list the atoms of both molecules")
    nodes = [{"id": place, "label": label} for place, label in sorted(atoms)]
    bonds = text.partition("bonds:" if size else "Bonds:")[2].partition(".")[0]
    return {"nodes": nodes, "links": [{"source": int(u), "target": int(v)} for u, v in BOND.findall(bonds)]}
