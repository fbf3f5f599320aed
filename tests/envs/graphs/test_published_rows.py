"""Published rows of GraphArena, NPG-Muse and GraphWiz: read, proved again, and named apart from what is made here."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import pytest

from rlvrlab.data.prepare import from_preset, from_rows
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.sources import file_rows
from rlvrlab.envs.data_files import read_row, read_rows
from rlvrlab.envs.graphs import published
from rlvrlab.envs.graphs.published import PublishedGraphs
from rlvrlab.envs.graphs.published_rows import understood
from rlvrlab.envs.graphs.solvers.effort import GivenUp, at_most, spend
from rlvrlab.errors import UserError
from rlvrlab.notes import noting
from rlvrlab.types import Problem

ROWS = Path(__file__).parent / "published_rows.jsonl"
ENV = PublishedGraphs()
EXPECTED = {
    # skill: the proved optimum, whether the published answer is that one
    "grapharena_MIS": (2, True), "grapharena_TSP": (80, True), "grapharena_Neighbor": (1, True),
    "npg_muse_GED": (1, True), "npg_muse_MCS": (2, None), "graphwiz_hamilton": (True, False),
    "graphwiz_shortest": (4, True), "graphwiz_triplet": (17, True), "graphwiz_substructure": (True, True),
    "graphwiz_topology": (1, True), "graphwiz_flow": (0, True),
}  # fmt: skip


def problems() -> list[Problem]:
    reads = [ENV.read_row(row) for _, row in read_rows(ROWS)]
    return [problem for read in reads if read for problem in read.problems("test")]


def test_every_shape_is_read_and_proved_again() -> None:
    found = {one.skill: (one.reference["optimum"], one.meta["label_proved"]) for one in problems()}
    assert found == EXPECTED


def test_gold_is_right_and_cheats_are_not() -> None:
    checks = ENV.checked(problems())
    wrong = [(check.name, check.text) for check in checks if (check.verdict.correct is True) != check.expected]
    assert not wrong and sum(check.expected for check in checks) == len(EXPECTED)


def test_questions_are_the_publishers_own_and_say_how_to_answer() -> None:
    for (_, row), problem in zip(read_rows(ROWS), problems(), strict=True):
        question = row.get("input_prompt") or row.get("problem_text") or row["extra_info"]["problem_text"]
        assert problem.prompt.startswith(question)
        assert "###" in problem.prompt or "input_prompt" not in row
        assert problem.source == "graph_rows" and problem.id.split(":")[0] in ("grapharena", "npg_muse", "graphwiz")


def test_they_are_prepared_like_any_published_data(tmp_path: Path) -> None:
    every = from_rows("mine", file_rows(ROWS), ENV, "test")
    assert len(every.problems["test"]) == len(EXPECTED) and not every.left_out
    wiz = tmp_path / "test.jsonl"
    wiz.write_text("".join(line for line in ROWS.read_text().splitlines(True) if "input_prompt" in line))
    prepared = from_preset("graphinstruct", PRESETS["graphinstruct"], ENV, wiz)
    assert {one.skill.partition("_")[0] for one in prepared.problems["test"]} == {"graphwiz"}


@pytest.mark.parametrize(
    ("published", "right"),
    [("### [[0, 1, 2], [0, 2, 1]]", True), ("### [[0, 1, 2]]", True), ("### [0, 2, 1]", True),
     ("### [[0, 1, 2], [1, 0, 2]]", False), ("### [[0, 1], [0, 2]]", False), ("### []", False), ("### none", False)],
)  # fmt: skip
def test_several_published_orders_must_all_be_right(published: str, right: bool) -> None:
    """GraphWiz publishes a list of orders for every graph, also where there is one alone."""
    asked = "Q: The nodes are numbered from 0 to 2, and the edges are: (0->1) (0->2). Give one topology sorting path."
    read = ENV.read_row({"input_prompt": asked, "answer": published})
    assert read is not None and read.problems("test")[0].meta["label_proved"] is right


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input_prompt": "How are you?"}, "no task is known"),
        ({"input_prompt": "Q: and the edges are: (0,1). Is there a cycle in it?"}, "how many nodes"),
        (
            {"input_prompt": "Q: The nodes are numbered from 0 to 1, and the edges are: (0,9). Is there a cycle?"},
            "(0,9)",
        ),
    ],
)
def test_a_bad_row_says_what_is_wrong(change: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        ENV.read_row({"input_prompt": "", "answer": "### No", **change})


def molecule(atoms: int, *bonds: tuple[int, int]) -> dict[str, object]:
    nodes = [{"id": atom, "name": f"C{atom}", "label": "C"} for atom in range(atoms)]
    return {"nodes": nodes, "links": [{"source": a, "target": b} for a, b in bonds]}


def wiz(last: int, edges: str, asked: str) -> dict[str, object]:
    numbered = f"Q: The nodes are numbered from 0 to {last}, and the edges are: {edges}."
    return {"input_prompt": f"{numbered} {asked}", "answer": "### Yes"}


FLOW, CYCLE = "What is the maximum flow from node 0 to node 1?", "Is there a cycle in this graph?"
GED = {"task": "GED", "problem_text": "How far apart are they?", "exact_answer": 3}
MIS = {"task": "MIS", "problem_text": "Which atoms have no bond?", "exact_answer": 1}
NOT_EXPRESSED = {
    "more atoms in the second molecule": {**GED, "graph": [molecule(3, (0, 1)), molecule(5, (0, 1), (1, 2))]},
    "more atoms in the first molecule": {**GED, "graph": [molecule(5, (0, 1), (1, 2)), molecule(3, (0, 1))]},
    "two capacities": wiz(1, "(0->1,5) (0->1,7)", FLOW),
    "one capacity twice": wiz(1, "(0->1,5) (0->1,5)", FLOW),
    "an edge to itself": wiz(2, "(0,0) (0,1)", CYCLE),
    "an edge both ways": wiz(2, "(0,1) (1,0)", CYCLE),
    "a bond to itself": {**MIS, "graph": molecule(2, (0, 0))},
}


@pytest.mark.parametrize("row", NOT_EXPRESSED.values(), ids=NOT_EXPRESSED)
def test_a_graph_that_no_task_here_has_a_notion_of_is_left_out(row: dict[str, object]) -> None:
    assert ENV.read_row(row) is None


def test_graphs_beside_them_are_read() -> None:
    simple = (
        {**GED, "graph": [molecule(3, (0, 1)), molecule(3, (0, 1), (1, 2))]},
        wiz(1, "(0->1,5) (1->0,7)", FLOW),
        wiz(2, "(0,1) (1,2) (0,2)", CYCLE),
        {**MIS, "graph": molecule(2, (0, 1))},
        {"task": "Connected", "problem_text": "Which parts?", "graph": molecule(3, (0, 0), (0, 1))},
    )
    assert all(ENV.read_row(row) for row in simple)


def test_a_column_that_is_nested_too_deeply_is_the_rows_mistake(tmp_path: Path) -> None:
    deep = tmp_path / "deep.jsonl"
    deep.write_text(json.dumps({**MIS, "graph": "[" * 100_000}) + "\n")
    with pytest.raises(UserError, match=r"deep\.jsonl:1: a column is nested too deeply"):
        from_rows("mine", file_rows(deep), ENV, "test")


def test_missing_distances_are_said() -> None:
    row = json.loads(ROWS.read_text().splitlines()[1])
    row["problem_text"] = row["problem_text"].replace("ABC to ZZT: 25\n", "")
    with pytest.raises(ValueError, match="no distance for ABC to ZZT"):
        ENV.read_row(row)


TSP = json.loads(ROWS.read_text().splitlines()[1])
TWO_ATOMS = {"nodes": [{"id": 0, "label": "C"}, {"id": 1, "label": "C"}], "links": [{"source": 0, "target": 1}]}
NUMBERED, SHORTEST = (
    "Q: The nodes are numbered from 0 to 1",
    "Give the weight of the shortest path from node 0 to node 1.",
)
TRIPLET = "weights are: [0, 2], and the edges are: (0,1). What of three interconnected nodes?"
NEIGHBOR = {"task": "Neighbor", "problem_text": "?", "graph": molecule(2, (0, 1))}
SUBSTRUCTURE = "Is subgraph G' present? Q: The nodes are numbered from 0 to 1, and the edges are: (0->1)."
MISREAD: dict[str, tuple[dict[str, object], str]] = {
    "two nodes of one id": ({**MIS, "graph": {"nodes": [{"id": 1}, {"id": 1}], "links": []}}, "have one id"),
    "an edge to nowhere": ({**MIS, "graph": molecule(2, (0, 9))}, "leads to '9', a node that there is not"),
    "no list of edges": ({**MIS, "graph": {"nodes": [{"id": 1}]}}, "no list 'links' or 'edges'"),
    "an edge without an end": ({**MIS, "graph": {"nodes": [{"id": 1}], "links": [{"source": 1}]}}, "has no 'source'"),
    "a node without an id": ({**MIS, "graph": {"nodes": ["Ada"], "links": []}}, "'Ada' of 'nodes' has no 'id'"),
    "an id that is an object": ({**MIS, "graph": {"nodes": [{"id": {}}], "links": []}}, "is no id of a node"),
    "no graph": ({**MIS, "graph": 7}, "no list 'nodes'"),
    "no JSON": ({**MIS, "graph": "{"}, "column 'graph': not JSON"),
    "more nodes than are read": ({**MIS, "graph": molecule(2_001)}, "2,001 nodes"),
    "three molecules": ({**GED, "graph": [TWO_ATOMS] * 3}, "asks about two graphs"),
    "one molecule": ({**GED, "graph": TWO_ATOMS}, "asks about two graphs"),
    "two networks": ({**MIS, "graph": [TWO_ATOMS] * 2}, "asks about one graph"),
    "atoms with gaps": (
        {**GED, "graph": [TWO_ATOMS, {"nodes": [{"id": 3, "label": "C"}, {"id": 9, "label": "C"}], "links": []}]},
        "number its atoms from 0 to 1",
    ),
    "an atom without a label": ({**GED, "graph": [{"nodes": [{"id": 0}], "links": []}] * 2}, "has no label"),
    "no question": ({**MIS, "problem_text": None}, "'problem_text': a question was expected"),
    "facts that are text": ({"data_source": "MIS_easy", "extra_info": "none"}, "'extra_info': an object"),
    "an unknown neighbour": ({**NEIGHBOR, "node1": 0, "node2": 5}, "column 'node2' leads to '5'"),
    "a distance of 400 digits": (
        {**TSP, "problem_text": TSP["problem_text"].replace(": 25", f": {'9' * 400}")}, "at most 999,999",
    ),
    "two distances": ({**TSP, "problem_text": f"{TSP['problem_text']}\nZZT to LKJ: 31"}, "two distances of"),
    "a distance to elsewhere": ({**TSP, "problem_text": f"{TSP['problem_text']}\nZZT to XXX: 31"}, "'ZZT to XXX'"),
    "a billion nodes": (wiz(1_000_000_000, "(0,1)", CYCLE), "at most 1,999"),
    "nodes of 400 digits": (wiz(10**400, "(0,1)", CYCLE), "at most 1,999"),
    "a weight of 400 digits": (wiz(1, f"(0->1,{10**400})", FLOW), "the weight of an edge"),
    "an edge of another form": (wiz(2, "(0,1) (1;2)", CYCLE), "2 edges, of which 1 can be read"),
    "no edges": ({"input_prompt": f"{NUMBERED}. {CYCLE}", "answer": "### No"}, "does not list its edges"),
    "no weights": (wiz(1, "(0,1)", SHORTEST), "no weights of its edges"),
    "weights of some edges": (wiz(2, "(0,1,3) (1,2)", SHORTEST), "some edges a weight"),
    "nobody asked about": (wiz(1, "(0,1,3)", "Give the weight of the shortest path."), "does not name two"),
    "a node that is not there": (wiz(1, "(0,1,3)", SHORTEST.replace("node 1", "node 9")), "at most 1 is read"),
    "a node without a weight": ({"input_prompt": f"{NUMBERED}, {TRIPLET}", "answer": "0"}, "its 2 nodes one weight"),
    "no small graph": ({"input_prompt": SUBSTRUCTURE, "answer": "### No"}, "which nodes subgraph G' has"),
    "a long pattern": ({"input_prompt": f"Q: {CYCLE}" + " " * 200_000, "answer": "### No"}, "200,0"),
}  # fmt: skip


@pytest.mark.parametrize(("row", "words"), MISREAD.values(), ids=MISREAD)
def test_what_is_not_understood_is_said_in_words(row: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as refused:
        read_row(row, "rows.jsonl:1", ENV.read_row)
    assert words in str(refused.value) and "is missing" not in str(refused.value) and len(str(refused.value)) < 600


@pytest.mark.parametrize("error", [OverflowError("huge"), MemoryError()])
def test_what_cannot_be_held_is_the_rows_mistake(error: Exception) -> None:
    def read(row: object) -> None:
        raise error

    with pytest.raises(UserError, match="rows:1: a column asks for more"):
        read_row({}, "rows:1", read)


def test_atoms_are_placed_by_their_number() -> None:
    atoms = [{"id": 2, "label": "O"}, {"id": 0, "label": "C"}, {"id": 1, "label": "N"}]
    chain = {"links": [{"source": 2, "target": 0}], "nodes": atoms}
    first = understood({**GED, "graph": [chain, chain]}).instance.graphs[0]
    assert first.labels == ("C", "N", "O") and first.edges == ((0, 2),)


def test_examples_of_a_tour_say_nothing_of_its_distances() -> None:
    example = "- Airports: ABC, LKJ\nABC to LKJ: 7\nABC to FRA: 8\n"
    assert understood({**TSP, "problem_text": example + TSP["problem_text"]}).instance == understood(TSP).instance


@pytest.mark.parametrize("line", ["x to " * 19_000 + ": 5", " " * 60_000 + "x", "a to b: 1" + " " * 60_000 + "x"])
def test_long_lines_of_a_tour_are_read_at_once(line: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError):
        ENV.read_row({**TSP, "problem_text": f"{TSP['problem_text'].replace('ABC to ZZT: 25', '')}\n{line}"})
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("published", "agreed"),
    [("1", True), ("1.0", True), (" 1 ", True), ("2, not 3 no 1", False), ("1 or 2", False), ("", None)],
)
def test_one_number_alone_is_a_published_answer(published: str, agreed: bool | None) -> None:
    read = ENV.read_row({**MIS, "graph": molecule(2, (0, 1)), "exact_answer": published})
    assert read is not None and read.problems("test")[0].meta["label_proved"] is agreed


@pytest.mark.parametrize(
    ("published", "agreed"),
    [("### No", True), ("### No.", True), ("### Yes", False), ("### No, yes", False), ("unknown", False)],
)
def test_one_word_alone_is_a_published_answer(published: str, agreed: bool) -> None:
    read = ENV.read_row({**wiz(2, "(0,1) (1,2)", CYCLE), "answer": published})
    assert read is not None and read.problems("test")[0].meta["label_proved"] is agreed


def network(nodes: int, edges: int) -> dict[str, object]:
    """A random network of users, whose largest independent set takes long to prove."""
    drawn = Random(0)
    return molecule(nodes, *sorted({(a, b) for a, b in (sorted(drawn.sample(range(nodes), 2)) for _ in range(edges))}))


def full_tour(cities: int) -> str:
    drawn = Random(0)
    roads = [f"C{a} to C{b}: {drawn.randint(1, 9)}" for b in range(cities) for a in range(b)]
    return "\n".join([f"- Airports to visit: {', '.join(f'C{city}' for city in range(cities))}", *roads])


TWO_SIDES = " ".join(f"({a},{b})" for a in range(30) for b in range(30, 70))
HARD = {
    "a network that is too large": ({**MIS, "graph": network(400, 3_200)}, "MIS of 400 nodes: a proof is"),
    "a network": ({**MIS, "graph": network(130, 600)}, "MIS of 130 nodes: no proof within 200,000 steps"),
    "its cover": ({**MIS, "task": "MVC", "graph": network(130, 600)}, "MVC of 130 nodes: no proof"),
    "a tour": ({"task": "TSP", "problem_text": full_tour(40)}, "TSP of 40 nodes: no proof"),
    "two molecules": ({**GED, "task": "MCS", "graph": [network(30, 40), network(31, 45)]}, "MCS of 61 nodes: no proof"),
    "a distance of molecules": ({**GED, "graph": [network(30, 40), network(30, 45)]}, "GED of 60 nodes: no proof"),
    "a path": (wiz(69, TWO_SIDES, "Is there a Hamiltonian path?"), "hamilton of 70 nodes: no proof"),
}  # fmt: skip


@pytest.mark.parametrize(("row", "why"), HARD.values(), ids=HARD)
def test_what_takes_too_long_to_prove_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, row: dict[str, object], why: str
) -> None:
    monkeypatch.setattr(published, "MOST_STEPS", 200_000)
    prepared = from_rows("mine", [("rows:1", row), ("rows:2", {**MIS, "graph": molecule(2)})], ENV, "test")
    assert len(prepared.problems["test"]) == prepared.left_out == 1
    assert prepared.left_out_rows[0].startswith(f"rows:1: {why}") and why in prepared.summary()


def test_a_long_proof_is_said_before_it_begins() -> None:
    told: list[tuple[str, str]] = []
    with noting(lambda kind, words: told.append((kind, words))):
        assert ENV.read_row({**MIS, "graph": network(40, 100)})
    assert told == [("progress", "proving MIS of 40 nodes, up to 20,000,000 steps")]


def test_the_steps_of_a_proof_are_counted_only_where_they_are_bounded() -> None:
    spend(10**9)
    with at_most(3):
        spend(3)
        with pytest.raises(GivenUp):
            spend(1)
    spend(10**9)


def test_nothing_is_made_here() -> None:
    with pytest.raises(UserError, match=r"set env.path .* or env.type = \"graph\""):
        ENV.problems("train", 1, 0)
