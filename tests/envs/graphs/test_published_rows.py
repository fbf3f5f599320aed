"""Published rows of GraphArena, NPG-Muse and GraphWiz: read, proved again, and named apart from what is made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.data.prepare import from_preset, from_rows
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.sources import file_rows
from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.graphs.published import PublishedGraphs
from rlvrlab.errors import UserError
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


def test_nothing_is_made_here() -> None:
    with pytest.raises(UserError, match=r"set env.path .* or env.type = \"graph\""):
        ENV.problems("train", 1, 0)
