"""A published graph question without its graph: the words say the same."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.graphs.published import PublishedGraphs
from rlvrlab.envs.graphs.published_rows import understood
from rlvrlab.envs.graphs.published_texts import Unclear, graph_in

ROWS = Path(__file__).parent / "published_rows.jsonl"
QUESTIONS = {
    "Diameter": """Your task is to find the diameter.
**Example 1**
- Entities in this knowledge graph: Here, There
- The relationships between these entities are as follows:
 - Here is connected to There via the relationship country.
**Problem to Solve**
- Entities in this knowledge graph: Oslo, Norway, Salt and Pepper
- The relationships between these entities are as follows:
 - Oslo is connected to Norway via the relationship country.
 - Norway is connected to Salt and Pepper via the relationship sells.
Please determine the diameter of this network and output the path in the following format: [Entity1, ..., EntityN].""",
    "Connected": """Identify all connected components of the social network.
**Problem to Solve**
- Names in the network: Ada Abbott, Ben to Brandt, Cleo Costa
- Fiendship connections: Ada Abbott to Ben to Brandt.
Identify all connected components in this network. Present your answer as: [UserA, UserB, UserC, UserD, ...]""",
    "MCS": """You are required to solve the Maximum Common Subgraph problem.
**Problem to Solve**
Molecule A consists of 3 atoms with the following 2 bonds:
0-1, 1-2.
Molecule B consists of 4 atoms with the following 1 bonds:
0-3.
Provide the indices of the atoms in the common subgraph, e.g. [1, 2, 3], [2, 3, 4].""",
    "GED": """You are required to solve the Graph Edit Distance problem between two molecules.
**Problem to Solve**
Molecule A:
- Atoms: N (atom 0), C (atom 1).
- Bonds: 0-1.
Molecule B:
- Atoms: O (atom 0), Cl (atom 1).
- Bonds: 0-1.
Represent the node mapping as a list of integers.""",
}
GRAPHS = {
    "Diameter": ([(0, 1), (1, 2)],), "Connected": ([(0, 1)],), "MCS": ([(0, 1), (1, 2)], [(0, 3)]),
    "GED": ([(0, 1)], [(0, 1)]),
}  # fmt: skip


def with_words() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each committed row whose question lists its graph, and the same row without the graph."""
    found = []
    for _, row in read_rows(ROWS):
        facts = row if "problem_text" in row else row.get("extra_info", {})
        if "problem_text" in facts and "Molecule A: 0-1" not in facts["problem_text"]:  # which has no atoms
            bare = {key: value for key, value in facts.items() if key != "graph"}
            found.append((row, bare if facts is row else {**row, "extra_info": bare}))
    return found


def test_committed_rows_are_the_same_without_their_graph() -> None:
    pairs = with_words()
    assert len(pairs) == 4
    for row, bare in pairs:
        assert understood(bare).instance == understood(row).instance


@pytest.mark.parametrize("task", QUESTIONS)
def test_every_form_of_a_question_is_read(task: str) -> None:
    row = {"problem_text": QUESTIONS[task], "task": task}
    graphs = understood(row).instance.graphs
    assert [list(graph.edges) for graph in graphs] == list(GRAPHS[task])
    env = PublishedGraphs()
    read = env.read_row(row)
    assert read is not None
    [problem] = read.problems("test")
    gold = env.gold(problem)
    assert gold is not None and env.verify(problem, gold).correct is True


@pytest.mark.parametrize(
    "text",
    [
        "Find a clique.",
        "- Users in the network: Ada, Ben.\n- Connections: Ada and Cleo.",
        "Molecule A: 0-1, 1-2.\nMolecule B: 0-1.",
    ],
)
def test_a_question_without_a_graph_says_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"(the|its) question"):
        graph_in(text)


USERS = "- Users in the network: Ada, Ben, Cleo, Dan.\n"
TWO = """Molecule A:
- Atoms: N (atom 0), C (atom 1).
- Bonds: 0-1.
Molecule B:
- Atoms: O (atom 0), Cl (atom 1).
- Bonds: 0-1.
"""
SIZES = """Molecule A consists of 3 atoms with the following 2 bonds:
0-1, 1-2.
Molecule B consists of 2 atoms with the following 1 bonds:
0-1.
"""
VIA = " via the relationship knows."
HALF_READ = {
    "no second list": (USERS, "lists nodes and no edges"),
    "an empty second list": (f"{USERS}- Fiendship connections: ", "lists nodes and no edges"),
    "a heading alone": (f"{USERS}- The relationships are as follows:\n", "lists nodes and no edges"),
    "relations of another form": (
        f"{USERS}- The relationships are as follows:\n - Ada is connected to Ben{VIA}\n - Ben knows Cleo.\n",
        "'- Ben knows Cleo.', which does not name two",
    ),
    "a relation without a mark": (
        f"{USERS}- The relationships are:\n - Ada is connected to Ben{VIA}\nBen is linked to Cleo{VIA}\n",
        "'Ben is linked to Cleo via",
    ),
    "a third list": (f"{USERS}- Connections: Ada and Ben.\n- More connections: Ben and Cleo.\n", "which does not name"),
    "bonds after a stop": (TWO.replace("0-1.", "0-1. 1-2.", 1), "bonds of molecule A as '0-1. 1-2'"),
    "bonds of another form": (TWO.replace("0-1.", "0-1; 1-2.", 1), "bonds of molecule A"),
    "no bonds": (TWO.replace("- Bonds: 0-1.\n", "", 1), "0 lines '- Bonds:' of molecule A"),
    "bonds twice": (f"{TWO}- Bonds: 0-1.\n", "2 lines '- Bonds:' of molecule B"),
    "three molecules": (TWO + TWO[TWO.index("Molecule B") :].replace("B:", "C:"), "molecules 'A, B, C'"),
    "one molecule": (TWO[: TWO.index("Molecule B")], "molecules 'A'"),
    "atoms with gaps": (TWO.replace("atom 1", "atom 7", 1), "atoms of molecule A from 0 to 1"),
    "one atom twice": (TWO.replace("atom 1", "atom 0", 1), "atoms of molecule A from 0 to 1"),
    "an atom of another form": (TWO.replace("C (atom 1)", "C (1)", 1), "an atom 'C (1)'"),
    "other numbers of bonds": (SIZES.replace("2 bonds", "3 bonds"), "'3' bonds and lists 2"),
    "edges in another line": (f"{USERS}- Connections: Ada and Ben\n, Ben and Cleo.\n", "another line, ', Ben"),
    "edges without a comma": (f"{USERS}- Connections: Ada and Ben\nBen and Cleo, Ada and Dan.\n", "goes on in another"),
    "names without a comma": ("- Users: Ada, Ben\nBen, Cleo.\n- Connections: Ada and Ben.", "goes on in another line"),
    "bonds in another line": (TWO.replace("0-1.", "0-1\n0-1.", 1), "molecule A goes on in another line, '0-1.'"),
    "atoms in another line": (TWO.replace("atom 1).", "atom 1)\nC (atom 2).", 1), "molecule A goes on in another"),
    "very many atoms": (SIZES.replace("of 3", "of 1000000000000"), "at most 2,000 is read"),
    "atoms of 400 digits": (SIZES.replace("of 3", f"of 1{'0' * 400}"), "at most 2,000 is read"),
    "five million atoms": (SIZES.replace("of 3", "of 5000000"), "at most 2,000 is read"),
    "too many names": (f"- Users: {', '.join(map(str, range(2_001)))}.", "2,001 nodes"),
    "a text without end": (USERS + "x" * 100_000, "characters; at most 100,000"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), HALF_READ.values(), ids=HALF_READ)
def test_what_can_be_read_by_half_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        graph_in(text, "MIS")
    assert words in str(refused.value) and len(str(refused.value)) < 400


def test_two_nodes_of_one_name_decide_nothing() -> None:
    with pytest.raises(Unclear):
        graph_in("- Users: Ada, Ben, Ada.\n- Connections: Ada and Ben.")


LONG = {
    "names and edges": f"- Users: {', '.join(f'user{i}' for i in range(2_000))}.\n"
    f"- Connections: {', '.join(f'user{i} and user{i + 1}' for i in range(1_999))}.",
    "a word again and again": f"- Users: Ada, Ben.\n- Connections: {' and ' * 19_000}.",
    "blanks in a list": f"- Users: Ada{' ' * 60_000}x\n",
    "a colon again and again": "- Users" + ": " * 45_000,
    "relations": f"- Users: Ada, Ben.\n- So:\n - {' is connected to ' * 2_000}{VIA * 2_000}",
    "atoms": f"Molecule A {'consists of 3 atoms ' * 4_000}\nMolecule B",
}  # fmt: skip


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_text_is_read_or_refused_at_once(text: str) -> None:
    begun = time.process_time()
    try:
        graph_in(text)
    except ValueError as error:
        assert len(str(error)) < 400
    assert time.process_time() - begun < 2
