"""A published graph question without its graph: the words say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.graphs.published import PublishedGraphs
from rlvrlab.envs.graphs.published_rows import understood
from rlvrlab.envs.graphs.published_texts import graph_in

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
