"""GML, read line by line: nodes with an id, perhaps a label and a class, and edges with source and target.

    graph [
      directed 1
      node [ id 0 label "Ada" club "Chess" ]
      edge [ source 0 target 1 weight 4 ]
    ]

The file is read twice, nodes first, so that edges need no room. A node is called by its label where every node has one
and no two the same, else by its id. Anything within a node or edge but single values is passed over, and so is what
other lists hold; weights and directions are not used.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rlvrlab.envs.data_files import lines_of
from rlvrlab.envs.graphs.network import LONGEST_LINE, add_node, quoted_list, refuse_name
from rlvrlab.errors import UserError, quoted, suggestion

DEEPEST = 20
TOKEN = re.compile(
    r'\s*(?:(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"|(?P<comment>#.*)'
    r"|(?:(?P<key>[A-Za-z][A-Za-z0-9_]*)|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]INF))"
    r"(?![^\s\[\]]))"
)
ENTITY = re.compile(r"&(?:#(?P<number>[0-9]{1,7})|#x(?P<hex>[0-9A-Fa-f]{1,6})|[A-Za-z][0-9A-Za-z]{0,31});")
WHOLE = re.compile(r"-?[0-9]{1,18}")
OWN = ("id", "label", "name")
"""What a node has that is never its class, unless it is asked for by name."""


class Nodes(NamedTuple):
    """What the file says of its nodes."""

    names: dict[str, str]
    """By id."""
    classes: dict[str, str]
    """By name, empty where there is none."""
    told: tuple[str, ...]


class Record(NamedTuple):
    """A node or an edge with its single values, each of which may be there several times."""

    kind: str
    number: int
    """The line it begins in."""
    values: dict[str, list[str]]

    def one(self, path: Path, key: str) -> str:
        """The value of a key that must be there once."""
        found = self.values.get(key, [])
        if len(found) != 1:
            times = "no" if not found else f"{len(found)} times"
            raise UserError(
                f"{path}:{self.number}: this {self.kind} has {times} {key!r}, allowed is one; mend the file"
            )
        return found[0]

    def whole(self, path: Path, key: str) -> str:
        """An id: a whole number."""
        said = self.one(path, key)
        if not WHOLE.fullmatch(said):
            raise UserError(
                f"{path}:{self.number}: {key} {quoted(said)} of this {self.kind} is no whole number; mend it"
            )
        return str(int(said))


def nodes_of(path: Path, classes: str) -> Nodes:
    """All nodes, under the names that they have."""
    ids: dict[str, str] = {}
    records = []
    for record in _records(path):
        if record.kind == "node":
            labels = record.values.get("label", [])
            add_node(ids, record.whole(path, "id"), labels[0] if len(labels) == 1 else "", path, record.number)
            records.append(record)
    if not ids:
        raise UserError(f"{path}: no nodes; allowed is graph [ node [ id 0 ] … edge [ source 0 target 1 ] ]")
    named = all(ids.values()) and len(set(ids.values())) == len(ids)
    names = {node: label if named else node for node, label in ids.items()}
    for name, record in zip(names.values(), records, strict=True):
        refuse_name(name, f"{path}:{record.number}")
    keys = list(dict.fromkeys(key for record in records for key in record.values if key not in OWN))
    wanted = _class_key(path, classes, keys, records)
    said = [record.one(path, wanted) if wanted in record.values else "" for record in records]
    told = []
    if unused := [key for key in keys if key != wanted]:
        told.append(f"values of nodes that are not used: {quoted_list(unused)}")
    if any(ids.values()) and not named:
        told.append("nodes go by their ids, for labels are missing or shared")
    return Nodes(names, dict(zip(names.values(), said, strict=True)), tuple(told))


def _class_key(path: Path, classes: str, keys: list[str], records: list[Record]) -> str:
    """The key that holds the class; empty where nodes have nothing that could be one."""
    there = {key for record in records for key in record.values}
    if classes and classes not in there:
        raise UserError(f"{path}: classes = {classes!r}: no node has it{suggestion(classes, sorted(there))}")
    if classes or len(keys) <= 1:
        return classes or "".join(keys)
    raise UserError(f"{path}: which value of a node is its class? Set classes = KEY; there are: {quoted_list(keys)}")


def edges_of(path: Path, names: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """All edges by the names of their nodes; an id that no node has stays as it is."""
    for record in _records(path):
        if record.kind == "edge":
            u, v = record.whole(path, "source"), record.whole(path, "target")
            yield record.number, names.get(u, f"id {u}"), names.get(v, f"id {v}")


def _records(path: Path) -> Iterator[Record]:
    """Every node and edge of the only graph."""
    inside: list[str] = []
    record, key, graphs, number = None, "", 0, 0
    for number, kind, text in _tokens(path):
        where = f"{path}:{number}"
        if kind == "key" and not key:
            key = text
        elif kind == "close" and not key and inside:
            if record is not None and len(inside) == 2:
                yield record
                record = None
            inside.pop()
        elif kind == "open" and key:
            inside.append(key)
            graphs += inside == ["graph"]
            if len(inside) > DEEPEST or graphs > 1:
                what = "a second graph; one is read" if graphs > 1 else f"more than {DEEPEST} lists within each other"
                raise UserError(f"{where}: {what}: cut it out of the file")
            if inside in (["graph", "node"], ["graph", "edge"]):
                record = Record(key, number, {})
            key = ""
        elif kind in ("text", "number") and key:
            if record is not None and len(inside) == 2:
                record.values.setdefault(key, []).append(text)
            key = ""
        else:
            raise UserError(f"{where}: {quoted(text)} where {'a value' if key else 'a key'} belongs; is it GML?")
    if inside or key or not graphs:
        what = f"{inside[-1]!r} is not closed" if inside else "there is no graph [ … ]"
        raise UserError(f"{path}:{max(number, 1)}: {what}; the file is cut off, or no GML")


def _tokens(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each; a text stands on one line."""
    for number, line, _ in lines_of(path, LONGEST_LINE):
        at, end = 0, len(line.rstrip())
        while at < end:
            found = TOKEN.match(line, at)
            if found is None:
                raise UserError(
                    f"{path}:{number}: {quoted(line[at:].strip())} is no GML; a text needs two quotes on a line"
                )
            at, kind = found.end(), str(found.lastgroup)
            if kind != "comment":
                yield number, kind, ENTITY.sub(_character, found[kind]) if kind == "text" else found[kind]


def _character(entity: re.Match[str]) -> str:
    """What a writer of plain ASCII put in place of a character; what stands for none stays."""
    if entity["number"] is None and entity["hex"] is None:
        return html.unescape(entity[0])
    code = int(entity["number"] or "0") if entity["number"] else int(entity["hex"], 16)
    allowed = code <= 0x10FFFF and not 0xD800 <= code < 0xE000
    return chr(code) if allowed else entity[0]
