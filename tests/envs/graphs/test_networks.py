"""Published networks: every layout gives the same nodes, links and classes, or one line that says what is wrong."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.data_files import lines_of, read_rows
from rlvrlab.envs.graphs import network
from rlvrlab.envs.graphs.network import Network, network_of
from rlvrlab.envs.graphs.network_files import layout_of
from rlvrlab.errors import UserError

KARATE, NOVEL = nx.karate_club_graph(), nx.les_miserables_graph()
CLUBS = {str(v): club for v, club in KARATE.nodes(data="club")}


def read(path: Path, classes: str = "", drop: tuple[str, ...] = ()) -> Network:
    layout = layout_of(path)
    return network_of(layout.read(layout, classes), drop)


def content(network: Network) -> tuple[set[str], set[frozenset[str]], dict[str, str]]:
    """Nodes, links and classes by name."""
    nodes = network.nodes
    links = {frozenset((nodes[v], nodes[u])) for v in range(len(nodes)) for u in network.near(v)}
    assert len(links) == network.links
    named = {node: network.classes[at] for node, at in zip(nodes, network.class_of, strict=True) if at >= 0}
    return set(nodes), links, named


def expected(graph: nx.Graph, classes: Mapping[str, str]) -> tuple[set[str], set[frozenset[str]], dict[str, str]]:
    return {str(v) for v in graph}, {frozenset((str(u), str(v))) for u, v in graph.edges}, dict(classes)


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def as_planetoid(folder: Path, end: str = "\n") -> Path:
    rows = [f"{v}\t0\t1\t0\t{club}" for v, club in CLUBS.items()]
    written(folder / "karate.content", end.join(rows) + end)
    written(folder / "karate.cites", end.join(f"{u}\t{v}" for u, v in KARATE.edges) + end)
    return folder


def as_ogb(folder: Path) -> Path:
    raw = folder / "raw"
    written(raw / "edge.csv.gz", "".join(f"{u},{v}\n" for u, v in KARATE.edges))
    written(raw / "node-label.csv.gz", "".join(f"{sorted(set(CLUBS.values())).index(c)}\n" for c in CLUBS.values()))
    written(raw / "num-node-list.csv.gz", "34\n")
    written(raw / "num-edge-list.csv.gz", "78\n")
    written(raw / "node-feat.csv.gz", "0.1,0.2\n")
    return folder


def as_tables(folder: Path, packed: str = "") -> Path:
    written(folder / f"club_edges.csv{packed}", "id_1,id_2\n" + "".join(f"{u},{v}\n" for u, v in KARATE.edges))
    written(folder / f"club_target.csv{packed}", "id,page\n" + "".join(f"{v},{club}\n" for v, club in CLUBS.items()))
    return folder


def as_gml(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    nx.write_gml(KARATE, folder / "karate.gml")
    return folder


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "planetoid": as_planetoid,
    "line ends of Windows": lambda folder: as_planetoid(folder, "\r\n"),
    "tables": as_tables,
    "packed tables": lambda folder: as_tables(folder, ".gz"),
    "gml": as_gml,
}


@pytest.mark.parametrize("lay", LAYOUTS.values(), ids=LAYOUTS)
def test_the_karate_club_is_read_whole_from_every_layout(lay: Callable[[Path], Path], tmp_path: Path) -> None:
    found = read(lay(tmp_path / "club"))
    assert content(found) == expected(KARATE, CLUBS)
    assert len(found.nodes) == 34 and found.links == 78 and found.classes == ("Mr. Hi", "Officer")


def test_ogbs_raw_folder_has_classes_by_number(tmp_path: Path) -> None:
    found = read(as_ogb(tmp_path / "ogbn_karate"))
    numbers = {node: str(sorted(set(CLUBS.values())).index(club)) for node, club in CLUBS.items()}
    assert found.name == "ogbn_karate" and content(found) == expected(KARATE, numbers)


def test_a_file_names_its_network_as_well_as_the_folder_does(tmp_path: Path) -> None:
    folder = as_planetoid(tmp_path)
    same = [read(path) for path in (folder, folder / "karate.content", folder / "karate.cites")]
    assert len({(one.name, one.nodes, one.ends.tobytes()) for one in same}) == 1


def test_a_network_without_classes_is_read_by_the_names_of_its_nodes(tmp_path: Path) -> None:
    nx.write_gml(NOVEL, tmp_path / "novel.gml")
    written(tmp_path / "tables" / "novel_edges.csv", "source;target\n" + "".join(f"{u};{v}\n" for u, v in NOVEL.edges))
    for path in (tmp_path / "novel.gml", tmp_path / "tables"):
        found = read(path)
        assert content(found) == expected(NOVEL, {}) and not found.classes and found.name == "novel"


def test_gml_as_others_write_it(tmp_path: Path) -> None:
    text = (
        'Creator "somebody"\n# a remark\ngraph\n[\n  directed 1\n  node\n  [\n    id 7\n    label "A &#38; B"\n'
        '    value "n"\n    graphics [ x 1.5e3 fill "#FF0000" ]\n  ]\n  node [ id 9 label "C" value "l" ]\n'
        '  node [id 11 label "&auml;&#xE9;&#60;" value "n"]\n'
        "  edge\n  [\n    source 9\n    target 7\n    weight -2.0E-3\n  ]\n  edge [ source 7 target 9 ]\n]\n"
    )
    written(tmp_path / "books.gml", text)
    found = read(tmp_path)
    assert content(found) == ({"A & B", "C", "äé<"}, {frozenset(("A & B", "C"))},
                              {"A & B": "n", "C": "l", "äé<": "n"})  # fmt: skip
    assert found.told == ("1 edges stand there both ways and count once",)


def test_nothing_is_lost_without_being_told(tmp_path: Path) -> None:
    written(tmp_path / "x_nodes.csv", "id,age,label\na,1,P\nb,2,Q\nc,3,\nd,4,P\n")
    written(tmp_path / "x_edges.csv", "u,v\na,b\nb,a\nb,c\nb,c\nb,c\nd,d\nd,zz\nyy,zz\n")
    found = read(tmp_path, drop=("unknown", "loops", "repeats"))
    assert content(found) == ({"a", "b", "c", "d"}, {frozenset("ab"), frozenset("bc")}, {"a": "P", "b": "Q", "d": "P"})
    assert found.told == (
        "columns of x_nodes.csv that are not used: 'age'",
        "1 edges dropped, each leads back to its own node",
        "2 edges dropped, each stands there before",
        "2 edges dropped, each leads to a node that there is not",
        "1 edges stand there both ways and count once",
        "1 nodes have no class",
    )
    assert found.described().startswith("x: 4 nodes, 2 links, 2 classes; columns of")


PLAIN = {"g.content": "a 0 P\nb 0 Q\nc 1 P\n", "g.cites": "a b\nb c\n"}
TABLE = {"g_nodes.csv": "id,label\na,P\nb,Q\nc,P\n", "g_edges.csv": "u,v\na,b\nb,c\n"}
OGB = {"edge.csv": "0,1\n1,2\n", "node-label.csv": "0\n1\n0\n", "num-node-list.csv": "3\n", "num-edge-list.csv": "2\n"}
GML = {
    "g.gml": 'graph [\nnode [\nid 0 c "P" ]\nnode [\nid 1 c "Q" ]\nnode [\nid 2 c "P" ]\n'
    "edge [ source 0 target 1 ]\nedge [ source 1 target 2 ]\n]\n"
}
FAULTS: dict[str, tuple[dict[str, str], str, str]] = {
    # what is wrong: the files, where, and what is said
    "an id that is nowhere": ({**PLAIN, "g.cites": "a b\nb zz\n"}, "g.cites:2", 'node \'zz\' .* drop = ["unknown"]'),
    "an edge to itself": ({**PLAIN, "g.cites": "a b\nb b\n"}, "g.cites:2", 'leads back .* drop = ["loops"]'),
    "an edge twice": ({**PLAIN, "g.cites": "a b\nb c\na b\n"}, "g.cites:3", 'line or row 1 .* drop = ["repeats"]'),
    "a node twice": ({**PLAIN, "g.content": "a 0 P\nb 0 Q\na 0 P\n"}, "g.content:3", "'a' is there a second time"),
    "a feature less": ({**PLAIN, "g.content": "a 0 P\nb Q\n"}, "g.content:2", "2 fields, the first line has 3"),
    "an id alone": ({**PLAIN, "g.content": "a\nb\n"}, "g.content:1", "at least an id and a class"),
    "an empty class": ({**PLAIN, "g.content": "a\t0\tP\nb\t0\t\n"}, "g.content:2", "the class is empty"),
    "three ids": ({**PLAIN, "g.cites": "a b c\n"}, "g.cites:1", "3 fields, two ids belong there"),
    "no edges": ({**PLAIN, "g.cites": "\n"}, "g.cites", "no edges; give at least one"),
    "no cites": ({"g.content": PLAIN["g.content"]}, "g.cites", "no such file"),
    "no nodes of it": ({"g.cites": "a b\n"}, "g.content", "no such file"),
    "one class": ({**PLAIN, "g.content": "a P\nb P\nc P\n"}, "g.content", "every node has class 'P'"),
    "no layout": ({"notes.txt": "a b\n"}, "", "no network that can be read; allowed: NAME.content"),
    "pickles": ({"ind.cora.x": "", "ind.cora.y": ""}, "", "ind.cora.x is a pickle"),
    "two networks": ({**PLAIN, **TABLE}, "", "holds 2 networks (g.cites, g_edges.csv)"),
    "two tables of nodes": ({**TABLE, "g_target.csv": "id,label\na,P\n"}, "g_edges.csv", "csv and g_target.csv"),
    "a table without a header": ({**TABLE, "g_edges.csv": "1,2\n2,3\n"}, "g_edges.csv", "write e.g. source,target"),
    "one column": ({**TABLE, "g_edges.csv": "u\na\n"}, "g_edges.csv", "names no two columns"),
    "two columns of one name": ({**TABLE, "g_edges.csv": "id,id\na,b\n"}, "g_edges.csv", "two columns are named 'id'"),
    "a short row": ({**TABLE, "g_edges.csv": "u,v\na,b\nb\n"}, "g_edges.csv:2", "too few fields"),
    "a row too long": ({**TABLE, "g_edges.csv": "u,v\na,b,c\n"}, "g_edges.csv:1", "more fields than"),
    "an empty end": ({"g_edges.csv": "u,v\na,\n"}, "g_edges.csv:1", "the name of a node is empty"),
    "no column of classes": ({**TABLE, "g_nodes.csv": "id\na\nb\nc\n"}, "g_nodes.csv", "which column is the class"),
    "which class": ({**TABLE, "g_nodes.csv": "id,x,y\na,1,2\n"}, "g_nodes.csv", "COLUMN; there are: 'x', 'y'"),
    "an unreadable class": ({**TABLE, "g_nodes.csv": "id,c\na,A;B\nb,Q\nc,Q\n"}, "g_nodes.csv", "'A;B' cannot be"),
    "classes alike": ({**TABLE, "g_nodes.csv": "id,c\na,p\nb,P\nc,Q\n"}, "g_nodes.csv", "'P', 'p' cannot be given"),
    "an answer that denies": ({**TABLE, "g_nodes.csv": "id,c\na,### x\nb,P\nc,Q\n"}, "g_nodes.csv", "cannot be given"),
    "words for numbers": ({**OGB, "edge.csv": "src,dst\n0,1\n"}, "edge.csv:1", "2 whole numbers between commas"),
    "a label of two": ({**OGB, "node-label.csv": "0,1\n1,0\n"}, "node-label.csv:1", "one whole number, or nan"),
    "a node beyond the labels": ({**OGB, "edge.csv": "0,1\n1,3\n"}, "edge.csv:2", "'3' is none of the 3"),
    "fewer nodes than told": ({**OGB, "num-node-list.csv": "4\n"}, "node-label.csv", "has 3 nodes, .* says 4"),
    "fewer edges than told": ({**OGB, "num-edge-list.csv": "5\n"}, "edge.csv", "has 2 edges, .* says 5"),
    "GML cut off": ({"g.gml": GML["g.gml"][:-2]}, "g.gml:9", "'graph' is not closed"),
    "GML without a graph": ({"g.gml": "\n"}, "g.gml:1", "there is no graph"),
    "GML without nodes": ({"g.gml": "graph [ ]\n"}, "g.gml", "no nodes"),
    "an id in words": ({"g.gml": GML["g.gml"].replace("id 2", 'id "x"')}, "g.gml:6", "id 'x' of this node is no whole"),
    "a source missing": ({"g.gml": GML["g.gml"].replace("source 1 ", "")}, "g.gml:9", "this edge has no 'source'"),
    "a source twice": ({"g.gml": GML["g.gml"].replace("source 1", "source 1 source 0")}, "g.gml:9", "2 times 'source'"),
    "an id twice": ({"g.gml": GML["g.gml"].replace("id 2", "id 1")}, "g.gml:6", "'1' is there a second time"),
    "an edge to no id": ({"g.gml": GML["g.gml"].replace("target 2", "target 5")}, "g.gml:9", "'id 5' is none of the 3"),
    "two graphs": ({"g.gml": GML["g.gml"] * 2}, "g.gml:11", "a second graph"),
    "a text over lines": ({"g.gml": GML["g.gml"].replace('"Q"', '"Q\n"')}, "g.gml:5", "a text needs two quotes"),
    "a value without a key": ({"g.gml": "graph [ 7 ]\n"}, "g.gml:1", "'7' where a key belongs"),
    "a key without a value": ({"g.gml": "graph [ node ]\n"}, "g.gml:1", "']' where a value belongs"),
    "nested": ({"g.gml": "graph [ " + "a [ " * 30}, "g.gml:1", "more than 20 lists"),
    "which value": ({"g.gml": GML["g.gml"].replace('c "P"', 'c "P" d 1')}, "g.gml", "classes = KEY; .* 'c', 'd'"),
    "not text": ({**PLAIN, "g.cites": "a \udcff\n"}, "g.cites:1", "is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "where", "words"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_is_one_line_with_its_place(
    files: dict[str, str], where: str, words: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError) as told:
        read(tmp_path)
    said = str(told.value)
    assert said.startswith(f"{tmp_path / where}:") and "\n" not in said
    assert re.search(".*".join(map(re.escape, words.split(" .* "))), said, re.IGNORECASE), said


@pytest.mark.parametrize("files", [PLAIN, TABLE, OGB, GML], ids=["plain", "table", "ogb", "gml"])
def test_beside_the_faults_all_is_well(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = read(tmp_path)
    assert (len(found.nodes), found.links, len(found.classes)) == (3, 2, 2)


def test_a_missing_or_unknown_column_is_said(tmp_path: Path) -> None:
    for name, text in TABLE.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="classes = 'labl': no such column; did you mean 'label'"):
        read(tmp_path, classes="labl")
    with pytest.raises(UserError, match="has no columns with names; leave the key out"):
        read(as_planetoid(tmp_path / "p"), classes="x")
    (tmp_path / "g.gml").write_text(GML["g.gml"])
    with pytest.raises(UserError, match="classes = 'd': no node has it"):
        read(tmp_path / "g.gml", classes="d")
    assert read(tmp_path / "g.gml", classes="c").classes == ("P", "Q")


def test_large_files_are_refused_before_they_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = as_planetoid(tmp_path)
    for bound, most, words in (("MOST_NODES", 33, "more than 33 nodes"), ("MOST_LINKS", 77, "more than 77 edges"),
                               ("MOST_CLASSES", 1, "more than 1 classes")):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(network, bound, most)
            with pytest.raises(UserError, match=f"{words}; at most so many are read"):
                read(folder)
    with monkeypatch.context() as patch, pytest.raises(UserError, match="more than 3 nodes"):
        patch.setattr(network, "MOST_NODES", 3)
        written(tmp_path / "t" / "a_edges.csv", "u,v\na,b\nc,d\n")
        read(tmp_path / "t")
    (tmp_path / "karate.cites").write_bytes(b"1" * (3 << 20))
    with pytest.raises(UserError, match=r"karate.cites:1: a line of more than 1,048,576 bytes"):
        read(folder)


def test_a_line_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"abcd\nabc\n")
    assert [text for _, text, _ in lines_of(path, 5)] == [text for _, text, _ in lines_of(path)] == ["abcd\n", "abc\n"]
    with pytest.raises(UserError, match="lines:1: a line of more than 4 bytes"):
        list(lines_of(path, 4))


def test_columns_without_a_name_may_be_several(tmp_path: Path) -> None:
    """As spreadsheets leave them at the end; two of one name would lose the values of the first."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b,,\n1,2,,\n")
    assert [row["a"] for _, row in read_rows(path)] == ["1"]
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(UserError, match="two columns are named 'a'"):
        list(read_rows(path))


LINES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.text("ab \t,01\"[]#&;", max_size=12).map(str.encode),
        st.sampled_from([b"a b", b"a\tb\tP", b"u,v", b"0,1", b"graph [", b"node [id 0]", b"edge [ source 0 target 1 ]",
                         b"node [ id 1 label \"x\" ]", b"]", b"id 3", b"label \"&#99999999;\""]),
    ),
    max_size=8,
).map(b"\n".join)  # fmt: skip
NAMES = [["g.content", "g.cites"], ["g_edges.csv", "g_nodes.csv"], ["edge.csv", "node-label.csv"], ["g.gml"]]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sampled_from(NAMES), first=LINES, second=LINES, drop=st.booleans())
def test_hostile_lines_are_a_network_or_one_line_that_names_the_file(
    tmp_path: Path, names: list[str], first: bytes, second: bytes, drop: bool
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    for name, text in zip(names, (first, second), strict=False):
        (tmp_path / name).write_bytes(text)
    try:
        found = read(tmp_path, drop=tuple(network.DROPS) if drop else ())
    except UserError as error:
        assert "\n" not in str(error) and str(tmp_path) in str(error)
    else:
        nodes, links, classes = content(found)
        assert links and classes.keys() <= nodes and all(len(link) == 2 and link <= nodes for link in links)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_text(min_size=1, max_size=8), min_size=2, max_size=6, unique=True))
def test_names_come_back_as_networkx_wrote_them(tmp_path: Path, names: list[str]) -> None:
    graph = nx.path_graph(names)
    nx.write_gml(graph, tmp_path / "x.gml")
    assert content(read(tmp_path)) == expected(graph, {})
