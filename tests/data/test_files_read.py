"""A manifest names every file that its problems were read from, wherever the reader found it."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rlvrlab.cli import main
from rlvrlab.envs.files_read import files_read, kept_with_files, was_read

EDGES = [(u, v) for u in range(30) for v in (u + 1, u + 2, u + 7) if v < 30]
SUM = [{"question": f"What is {i} and {i + 1}?", "answer": f"#### {2 * i + 1}"} for i in range(40)]
opened: set[Path] = set()


def _hear(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and isinstance(args[0], str):
        opened.add(Path(args[0]))


sys.addaudithook(_hear)  # it cannot be taken off again, so it only fills a set


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def rows(path: Path, some: Sequence[Mapping[str, object]]) -> None:
    put(path, "".join(json.dumps(row) + "\n" for row in some))


def cora(home: Path) -> None:
    put(home / "cora.content", "".join(f"{v}\t0\t1\tclass{v % 3}\n" for v in range(30)))
    put(home / "cora.cites", "".join(f"{u}\t{v}\n" for u, v in EDGES))


def ogb(home: Path) -> None:
    put(home / "raw" / "edge.csv.gz", "".join(f"{u},{v}\n" for u, v in EDGES))
    put(home / "raw" / "node-label.csv.gz", "".join(f"{v % 3}\n" for v in range(30)))
    put(home / "raw" / "num-node-list.csv.gz", "30\n")
    put(home / "raw" / "num-edge-list.csv.gz", f"{len(EDGES)}\n")
    put(home / "raw" / "node-feat.csv.gz", "0.1\n")


def tables(home: Path) -> None:
    put(home / "club_edges.csv", "source,target\n" + "".join(f"{u},{v}\n" for u, v in EDGES))
    put(home / "club_nodes.csv", "id,class\n" + "".join(f"{v},c{v % 3}\n" for v in range(30)))


def nlgraph(home: Path) -> None:
    text = "In an undirected graph, (i,j) means that node i and node j are connected with an undirected edge.\n"
    text += "The nodes are numbered from 0 to {}, and the edges are: (0,1) (1,2) (2,0)\n"
    text += "Q: Is there a cycle in this graph?\nA:"
    answer = {"answer": "Yes, there is a cycle in this graph.", "difficulty": "easy"}
    for last, role in ((3, "train"), (5, "test")):
        some = {str(i): {"question": text.format(last + i), **answer} for i in range(2)}
        put(home / "cycle" / f"{role}.json", json.dumps(some))


def spider(home: Path) -> None:
    put(home / "dev.json", json.dumps([{"db_id": "pets", "question": "How many?", "query": "SELECT n FROM pet"}]))
    for name in ("pets", "unasked"):
        (home / "database" / name).mkdir(parents=True)
        with closing(sqlite3.connect(home / "database" / name / f"{name}.sqlite")) as base:
            base.executescript("CREATE TABLE pet (n INTEGER); INSERT INTO pet VALUES (3);")


def quixbugs(home: Path) -> None:
    put(home / "python_programs" / "gcd.py", 'def gcd(a, b):\n    return a\n\n"""\nGreatest divisor\n"""\n')
    put(home / "correct_python_programs" / "gcd.py", "def gcd(a, b):\n    return a if not b else gcd(b, a % b)\n")
    put(home / "json_testcases" / "gcd.json", "[[17, 0], 17]\n[[4, 6], 2]\n")


def two_splits(home: Path) -> None:
    rows(home / "train.jsonl", SUM[:30])
    rows(home / "test.jsonl.gz", SUM[30:])


CORA = {"cora.content", "cora.cites"}
OGB = {"edge.csv.gz", "node-label.csv.gz", "num-node-list.csv.gz", "num-edge-list.csv.gz"}
CLUB = {"club_edges.csv", "club_nodes.csv"}
CASES = {
    "cora by one file": (cora, "network --from {0}/cora.content", CORA),
    "cora by the other": (cora, "network --from {0}/cora.cites", CORA),
    "cora by its folder": (cora, "network --from {0}", CORA),
    "a network as an environment": (cora, "graph_learning path={0}/cora.cites --size 10", CORA),
    "ogb by its folder": (ogb, "network --from {0}", OGB),
    "ogb by one file": (ogb, "network --from {0}/raw/edge.csv.gz", OGB),
    "tables": (tables, "network --from {0}/club_edges.csv", CLUB),
    "nlgraph": (nlgraph, "nlgraph --from {0}", {"train.json", "test.json"}),
    "spider": (spider, "spider --from {0}", {"dev.json", "database/pets/pets.sqlite"}),
    "quixbugs": (
        quixbugs,
        "quixbugs --from {0}",
        {"python_programs/gcd.py", "correct_python_programs/gcd.py", "json_testcases/gcd.json"},
    ),
    "a set in two files": (two_splits, "gsm8k --from {0}", {"train.jsonl", "test.jsonl.gz"}),
    "a set as an environment": (two_splits, "gsm8k path={0} --size 10 --from {0}", {"train.jsonl", "test.jsonl.gz"}),
    "rows of one's own": (two_splits, "{0}/train.jsonl --env gsm8k --role split", {"train.jsonl"}),
}


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["rlvr", "data", "prepare", *words])
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code

    return run


def raw_in(folder: Path) -> dict[str, str]:
    """Of every manifest, which agree: file -> hash."""
    heads = [json.loads(path.read_text().splitlines()[0]) for path in sorted(folder.rglob("manifests/*.jsonl"))]
    assert heads and all(head["raw"] == heads[0]["raw"] for head in heads)
    return {row["file"]: row["sha256"] for row in heads[0]["raw"]}


@pytest.mark.parametrize(("lay", "words", "wanted"), CASES.values(), ids=CASES)
def test_every_file_that_was_read_is_named_with_its_hash(
    lay: Callable[[Path], None], words: str, wanted: set[str], prepare: Callable[..., None], tmp_path: Path
) -> None:
    home = tmp_path / "theirs"
    lay(home)
    opened.clear()
    prepare(*words.format("theirs").split())
    found = raw_in(tmp_path / "data")
    assert set(found) == wanted
    base = next(folder for folder in (home, home / "raw", home / "cycle") if all((folder / f).is_file() for f in found))
    assert found == {name: hashlib.sha256((base / name).read_bytes()).hexdigest() for name in found}
    read = {path.absolute() for path in tuple(opened) if path.absolute().is_relative_to(home) and path.is_file()}
    assert read == {base / name for name in found}, "what was opened below the folder is what the manifest names"


def test_what_is_kept_in_memory_is_named_again(prepare: Callable[..., None], tmp_path: Path) -> None:
    cora(tmp_path / "theirs")
    prepare("network", "--from", "theirs/cora.content", "-o", "first")
    prepare("network", "--from", "theirs/cora.content", "-o", "second")
    assert raw_in(tmp_path / "first") == raw_in(tmp_path / "second") and set(raw_in(tmp_path / "second")) == CORA


def test_made_problems_come_from_no_file(prepare: Callable[..., None], tmp_path: Path) -> None:
    prepare("countdown", "--size", "10")
    [head] = [json.loads(p.read_text().splitlines()[0]) for p in (tmp_path / "data" / "manifests").glob("*train*")]
    assert "raw" not in head


def test_listeners_hear_of_kept_results_and_of_inner_ones(tmp_path: Path) -> None:
    made = []

    @kept_with_files(4)
    def number(name: str) -> int:
        made.append(name)
        was_read(tmp_path / name)
        return len(name)

    with files_read() as outer:
        with files_read() as inner:
            assert number("one") == 3
        assert number("one") == 3
    with files_read() as again:
        assert number("one") == 3
    assert list(outer) == list(inner) == list(again) == [tmp_path / "one"] and made == ["one"]
