"""The graph of a GraphArena question, read from its words, for rows that are published without their graph.

    - Users in the network: Ada Abbott, Ben Brandt.          names, between commas
    - Fiendship connections: Ada Abbott and Ben Brandt.      pairs of them; a name may itself hold `and`
    - Atoms: N (atom 0), C (atom 1).                         of each molecule, then
    - Bonds: 0-1, 1-2.

What comes before "**Problem to Solve**" is an example with another graph. All that stands in a list must be understood:
a graph without one of its edges has another answer, which would be proved as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlvrlab.envs.graphs.answers import MAX_TOKEN

BEGIN = "**Problem to Solve**"
MOST_TEXT = 100_000
"""Characters of a question; the longest published ones have a tenth."""
MOST_NODES = 2_000
MOST_DIGITS, MOST_AMOUNT = 6, 999_999
"""Of a count, a weight or a distance."""
MOST_QUOTED = 200
VIA, CONNECTED = " via the relationship ", " is connected to "
ATOM = re.compile(r"(\S+) \(atom (\d{1,6})\)")
SIZE = re.compile(r"consists of (\d+) atoms\b(?:[^\n]{0,40}? (\d+) |[^\n]{0,80})bonds:[ \t]{0,9}\n?([^\n]*)")
BONDS = re.compile(r"\d{1,6}-\d{1,6}(?:, \d{1,6}-\d{1,6})*")
MOLECULE = re.compile(r"^Molecule ([A-Z])\b", re.MULTILINE)
CONTINUED = re.compile(r"^[ \t]{0,9}(?:- {0,9})?,[^\n]*", re.MULTILINE)
BETWEEN = (" and ", " to ")

NodeLink = dict[str, list[dict[str, Any]]]


class Unclear(Exception):
    """The row's graph decides no answer here: an edge twice, an edge from a node to itself, two nodes of one name."""


def graph_in(question: str, task: str = "") -> NodeLink | list[NodeLink]:
    """Node-link data as GraphArena has them; two molecules are two graphs. A ValueError says what is not there."""
    asked = asked_in(question)
    if broken := CONTINUED.search(asked):
        raise ValueError(f"a list of the question goes on in another line, {quoted(broken[0])}")
    _, *molecules = MOLECULE.split(asked)
    if not molecules:
        return _network(asked, task)
    if molecules[::2] != ["A", "B"]:
        raise ValueError(f"the question has the molecules {quoted(', '.join(molecules[::2]))}, not A and B")
    return [_molecule(name, text) for name, text in zip(molecules[::2], molecules[1::2], strict=True)]


def asked_in(question: str) -> str:
    """The problem itself, after the examples, where it is not too long to be one."""
    if len(question) > MOST_TEXT:
        raise ValueError(f"the question has {len(question):,} characters; at most {MOST_TEXT:,} are read")
    return question.rpartition(BEGIN)[2]


def amount(digits: str, what: str, most: int = MOST_AMOUNT) -> int:
    """A whole number that is small enough to be meant."""
    if len(digits) > MOST_DIGITS or int(digits) > most:
        raise ValueError(f"{what} is {quoted(digits)}; at most {most:,} is read")
    return int(digits)


def quoted(text: object) -> str:
    """Somebody else's words in a message, in quotes and not too many."""
    words = str(text)
    return repr(words) if len(words) <= MOST_QUOTED else f"{words[:MOST_QUOTED]!r} …"


def few_nodes(count: int) -> None:
    """Refuse a graph that is too large to be proved anything about, before it is made."""
    if count > MOST_NODES:
        raise ValueError(f"the graph has {count:,} nodes; at most {MOST_NODES:,} are read")


def pairs_in(text: str, places: Mapping[str, int], words: Sequence[str]) -> list[tuple[str, str]]:
    """Every way to read a text as one name, a word and another name."""
    longest = max(map(len, places), default=0)
    found = []
    for word in words:
        at = text.find(word, max(0, len(text) - len(word) - longest))
        while 0 <= at <= longest:
            u, v = text[:at], text[at + len(word) :]
            if u in places and v in places:
                found.append((u, v))
            at = text.find(word, at + 1)
    return found


def _network(asked: str, task: str) -> NodeLink:
    lines = [line.strip() for line in asked.split("\n")]
    first, *others = [line for line in lines if line.startswith("- ") or VIA in line] or [""]
    names = _listed(first)
    if not names:
        raise ValueError("the row has no graph, and its question does not list one")
    few_nodes(len(names))
    if strange := [name for name in names if not 0 < len(name) <= MAX_TOKEN]:
        raise ValueError(f"the question lists a node by the name {quoted(strange[0])}")
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise Unclear
    if broken := [line for line in lines if (head := _head(line)) in places or pairs_in(head, places, BETWEEN)]:
        raise ValueError(f"a list of the question goes on in another line, {quoted(broken[0])}")
    # A tour has a distance for every pair instead, which are read elsewhere.
    related = [] if task == "TSP" else _related(others, places)
    nodes = [{"id": name, "name": name} for name in names]
    return {"nodes": nodes, "links": [{"source": u, "target": v} for u, v in related]}


def _head(line: str) -> str:
    """What stands before the first comma, or is the whole line."""
    return line.partition(", ")[0].removesuffix(".")


def _listed(line: str) -> list[str]:
    """What stands between commas after the colon of `- Users in the network: Ada, Ben.`"""
    listed = line.removeprefix("- ").partition(": ")[2].removesuffix(".")
    return listed.split(", ") if listed else []


def _related(lines: list[str], places: Mapping[str, int]) -> list[tuple[str, str]]:
    """The edges of the one line that lists them, or of the lines that have one each after a heading."""
    if lines and lines[0].endswith(":"):
        lines = lines[1:]
    elif len(lines) == 1 and VIA not in lines[0]:
        return [_pair(text, text, places, BETWEEN) for text in _listed(lines[0])] or _no_edges()
    return [
        _pair(line, line.removeprefix("- ").rpartition(VIA)[0], places, (CONNECTED,)) for line in lines
    ] or _no_edges()


def _no_edges() -> list[tuple[str, str]]:
    raise ValueError("the question lists nodes and no edges")


def _pair(said: str, text: str, places: Mapping[str, int], words: Sequence[str]) -> tuple[str, str]:
    pairs = pairs_in(text, places, words)
    if len(pairs) != 1:
        raise ValueError(f"the question says {quoted(said)}, which does not name two of its nodes")
    return pairs[0]


def _molecule(name: str, text: str) -> NodeLink:
    """Atoms by number, and their bonds; all or nothing."""
    if size := SIZE.search(text):
        atoms = dict.fromkeys(range(amount(size[1], f"the number of atoms of molecule {name}", MOST_NODES)), "")
        bonds = _bonds(name, size[3])
        if size[2] and len(bonds) != int(size[2][:MOST_DIGITS]):
            raise ValueError(f"the question gives molecule {name} {quoted(size[2])} bonds and lists {len(bonds)}")
    else:
        atoms = _atoms(name, _line(name, text, "- Atoms: "))
        bonds = _bonds(name, _line(name, text, "- Bonds: "))
    bare = [line for line in text.split("\n") if BONDS.fullmatch(_head(line.strip())) or ATOM.fullmatch(_head(line))]
    if len(bare) > bool(size):
        raise ValueError(f"a list of molecule {name} goes on in another line, {quoted(bare[-1])}")
    nodes = [{"id": place, "label": label} for place, label in sorted(atoms.items())]
    return {"nodes": nodes, "links": [{"source": u, "target": v} for u, v in bonds]}


def _line(name: str, text: str, title: str) -> str:
    """What the one line of a molecule with this title says."""
    lines = [line.removeprefix(title) for line in text.split("\n") if line.startswith(title)]
    if len(lines) != 1:
        raise ValueError(f"the question has {len(lines)} lines {title.strip()!r} of molecule {name}, not one")
    return lines[0].rstrip().removesuffix(".")


def _atoms(name: str, listed: str) -> dict[int, str]:
    """Labels by number: 0, 1, 2 and so on, as answers name the atoms by them."""
    few_nodes(listed.count(", ") + 1)
    found = [(ATOM.fullmatch(item), item) for item in listed.split(", ")]
    if strange := [item for atom, item in found if atom is None]:
        raise ValueError(f"molecule {name} of the question has an atom {quoted(strange[0])}")
    atoms = {int(atom[2]): atom[1] for atom, _ in found if atom}
    if sorted(atoms) != list(range(len(found))):
        raise ValueError(f"the question does not number the atoms of molecule {name} from 0 to {len(found) - 1}")
    return atoms


def _bonds(name: str, listed: str) -> list[tuple[int, int]]:
    """Pairs of atoms; nothing else may stand beside them."""
    listed = listed.rstrip().removesuffix(".")
    if not BONDS.fullmatch(listed):
        raise ValueError(f"the question lists the bonds of molecule {name} as {quoted(listed)}")
    return [(int(u), int(v)) for u, _, v in (bond.partition("-") for bond in listed.split(", "))]
