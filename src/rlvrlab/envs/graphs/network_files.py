"""The files of a published network, in the layouts in which they are published.

    cora.content + cora.cites                       id, features, class and two ids a line, between tabs or blanks
    edge.csv.gz + node-label.csv.gz                 OGB's raw folder: numbers without a header, labels in order of nodes
    NAME_edges.csv (+ NAME_nodes.csv, …_target)     tables with a header; of edges source and target, or the first two
    NAME.gml                                        as networkx and others write it (network_gml.py)

A path names a file or the folder it is in. Pickles (Planetoid's `ind.cora.x`) are not read: reading one runs the code
in it. The features of `.content` are counted, for a line with fewer is torn, and not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rlvrlab.envs.data_files import lines_of, near_files, read_rows
from rlvrlab.envs.graphs import network_gml
from rlvrlab.envs.graphs.network import LONGEST_LINE, Published, add_node, quoted_list
from rlvrlab.errors import UserError, cut, quoted, suggestion

CSV = (".csv", ".csv.gz")
GML = (".gml", ".gml.gz")
EDGE_WORDS = ("edges", "edge", "links")
NODE_WORDS = ("nodes", "node", "labels", "label", "target", "classes")
CLASS_WORDS = ("label", "class", "target", "category", "page_type", "club")
"""Columns that hold the class where none is named and there are several."""
OGB_LABELS = "node-label"
LAYOUTS = "NAME.content with NAME.cites, OGB's edge.csv.gz with node-label.csv.gz, NAME_edges.csv, or NAME.gml"
WHOLE = re.compile(r"[0-9]{1,18}")
PICKLES = (".pkl", ".pickle", ".pt", ".npz")


class Layout(NamedTuple):
    """Which files there are, before any is opened."""

    name: str
    read: Callable[[Layout, str], Published]
    edges: Path
    nodes: Path | None


def layout_of(path: Path) -> Layout:
    """The layout of a file, or of the only network in a folder."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder{near_files(path)}; allowed: {LAYOUTS}")
    found = [_of_file(file) for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    layouts = list(dict.fromkeys(layout for layout in found if layout is not None))
    if len(layouts) > 1:
        names = ", ".join(one.edges.name for one in layouts[:5])
        raise UserError(f"{path}: holds {len(layouts)} networks ({names}); name the file of one")
    if layouts:
        return layouts[0]
    if (path / "raw").is_dir():  # OGB unpacks to NAME/raw and NAME/split
        return layout_of(path / "raw")
    there = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    pickled = [file.name for file in there if file.name.startswith("ind.") or file.name.endswith(PICKLES)]
    reason = f"{sorted(pickled)[0]} is a pickle or an archive, which is not read; " if pickled else ""
    raise UserError(f"{path}: no network that can be read; {reason}allowed: {LAYOUTS}")


def _of_file(file: Path) -> Layout | None:
    """What a file is the edges of, or a part of; None where its name says nothing."""
    if file.suffix in (".content", ".cites"):
        return Layout(file.stem, _planetoid, file.with_suffix(".cites"), file.with_suffix(".content"))
    if file.name.endswith(GML):
        return Layout(_stem(file), _gml, file, file)
    if not file.name.endswith(CSV):
        return None
    stem = _stem(file)
    if stem in ("edge", OGB_LABELS) and (labels := _beside(file, OGB_LABELS)):
        home = file.absolute().parent
        name = home.parent.name if home.name == "raw" else home.name
        return Layout(name, _ogb, _beside(file, "edge") or file.with_name("edge.csv.gz"), labels)
    begin = next(
        (stem.removesuffix(word) for word in EDGE_WORDS if stem == word or stem.endswith((f"_{word}", f"-{word}"))),
        "\n",
    )
    if begin == "\n":
        return None
    tables = [table for word in NODE_WORDS if (table := _beside(file, begin + word))]
    if len(tables) > 1:
        names = " and ".join(table.name for table in tables)
        raise UserError(f"{file}: which file lists its nodes, {names}? Leave one there")
    return Layout(begin.strip("_-") or file.absolute().parent.name, _tables, file, tables[0] if tables else None)


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").rpartition(".")[0]


def _beside(file: Path, stem: str) -> Path | None:
    """The table of this name in the same folder, packed or not."""
    return next((there for ending in CSV if (there := file.with_name(stem + ending)).is_file()), None)


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Fields between tabs, else between blanks; empty lines are passed over."""
    if not path.is_file():
        raise UserError(f"{path}: no such file{near_files(path)}; the network needs it beside the other one")
    for number, line, _ in lines_of(path, LONGEST_LINE):
        text = line.rstrip("\r\n")
        if text.strip():
            yield number, [field.strip() for field in text.split("\t")] if "\t" in text else text.split()


def _planetoid(layout: Layout, classes: str) -> Published:
    """Cora's raw text."""
    assert layout.nodes is not None
    _refuse_column(layout, classes, "has no columns with names")
    path, width = layout.nodes, 0
    found: dict[str, str] = {}
    for number, fields in _fields(path):
        width = width or len(fields)
        if len(fields) != width or width < 2:
            wanted = f"the first line has {width}" if width > 1 else "at least an id and a class belong there"
            raise UserError(f"{path}:{number}: {len(fields)} fields, {wanted}; mend or remove the line")
        if not fields[-1]:
            raise UserError(f"{path}:{number}: the class is empty; write one, or remove the line and its edges")
        add_node(found, fields[0], fields[-1], path, number)
    told = (f"{width - 2:,} features of each node are not used",) if width > 2 else ()
    return Published(layout.name, found, _cited(layout.edges), layout.edges, path, told)


def _cited(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, fields in _fields(path):
        if len(fields) != 2:
            raise UserError(f"{path}:{number}: {len(fields)} fields, two ids belong there; mend or remove the line")
        yield number, fields[0], fields[1]


def _ogb(layout: Layout, classes: str) -> Published:
    """OGB's raw folder; the counts beside, where there are any, must be those of the files."""
    assert layout.nodes is not None
    _refuse_column(layout, classes, "has no columns with names")
    found: dict[str, str] = {}
    for number, (label,) in _numbers(layout.nodes, 1):
        add_node(found, str(len(found)), "" if label == "nan" else label, layout.nodes, number)
    _refuse_other_count(layout.nodes, "num-node-list", len(found), "nodes")
    return Published(layout.name, found, _ogb_edges(layout.edges), layout.edges, layout.nodes)


def _ogb_edges(path: Path) -> Iterator[tuple[int, str, str]]:
    number = 0
    for number, (u, v) in _numbers(path, 2):
        yield number, u, v
    _refuse_other_count(path, "num-edge-list", number, "edges")


def _numbers(path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Whole numbers between commas, as many in every line; none is passed over, for lines are counted."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; OGB's layout has it beside {OGB_LABELS}.csv.gz")
    for number, line, _ in lines_of(path, LONGEST_LINE):
        fields = [field.strip().removesuffix(".0") for field in line.split(",")]
        odd = [field for field in fields if not WHOLE.fullmatch(field) and (width > 1 or field != "nan")]
        if len(fields) != width or odd:
            wanted = "one whole number, or nan" if width == 1 else f"{width} whole numbers between commas"
            text = f"{quoted(line.strip())}: {wanted} belong in a line; a header belongs in NAME_edges.csv"
            raise UserError(f"{path}:{number}: {text}")
        yield number, [str(int(field)) if field != "nan" else field for field in fields]


def _refuse_other_count(path: Path, stem: str, count: int, what: str) -> None:
    told = _beside(path, stem)
    said = [fields[0] for _, fields in _numbers(told, 1)] if told else [str(count)]
    if said != [str(count)]:
        raise UserError(f"{path}: has {count:,} {what}, {told} says {cut(', '.join(said), 60)}; fetch the file again")


def _tables(layout: Layout, classes: str) -> Published:
    """A table of edges, and perhaps one of nodes."""
    told: list[str] = []
    found = None if layout.nodes is None else _listed(layout.nodes, classes, told)
    if layout.nodes is None:
        _refuse_column(layout, classes, "has no table of its nodes beside it")
    return Published(layout.name, found, _table_edges(layout.edges), layout.edges, layout.nodes, tuple(told))


def _listed(path: Path, classes: str, told: list[str]) -> dict[str, str]:
    """The nodes in the first column, and their classes."""
    found: dict[str, str] = {}
    column = ""
    for number, row in read_rows(path):
        first, *others = row
        if not column:
            column = _class_column(path, others, classes)
            if unread := [name for name in others if name != column]:
                told.append(f"columns of {path.name} that are not used: {quoted_list(unread)}")
        add_node(found, row[first].strip(), row[column].strip(), path, number)
    return found


def _class_column(path: Path, others: list[str], classes: str) -> str:
    if classes:
        if classes not in others:
            raise UserError(f"{path}: classes = {classes!r}: no such column{suggestion(classes, others)}")
        return classes
    known = [name for name in others if name.lower() in CLASS_WORDS]
    if len(others) == 1 or len(known) == 1:
        return (known or others)[0]
    there = quoted_list(others) or "none but the node's own"
    raise UserError(f"{path}: which column is the class? Set classes = COLUMN; there are: {there}")


def _table_edges(path: Path) -> Iterator[tuple[int, str, str]]:
    ends: list[str] = []
    for number, row in read_rows(path):
        if not ends:
            columns = list(row)
            ends = ["source", "target"] if {"source", "target"} <= set(columns) else columns[:2]
            if len(ends) < 2 or any(name.strip().isdecimal() for name in ends):
                there = quoted_list(columns)
                raise UserError(
                    f"{path}: the first line ({there}) names no two columns; write e.g. source,target above it"
                )
        yield number, row[ends[0]].strip(), row[ends[1]].strip()


def _gml(layout: Layout, classes: str) -> Published:
    nodes = network_gml.nodes_of(layout.edges, classes)
    edges = network_gml.edges_of(layout.edges, nodes.names)
    return Published(layout.name, nodes.classes, edges, layout.edges, layout.edges, nodes.told)


def _refuse_column(layout: Layout, classes: str, why: str) -> None:
    if classes:
        raise UserError(f"{layout.nodes or layout.edges}: classes = {classes!r}: {why}; leave the key out")
