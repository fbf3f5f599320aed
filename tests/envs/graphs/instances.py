"""Small instances with known optima, by hand, for the table of verdicts."""

from __future__ import annotations

from typing import Any

from rlvrlab.types import Problem

USERS = ["Ada Abbott", "Ann Lee", "Ann Leeson", "José Ruiz", "Di O'Hara"]
PATH = [[0, 1], [1, 2], [2, 3], [3, 4]]


def _square(*corners: str) -> dict[str, Any]:
    """Four airports on a square: sides 1, diagonals 2; the best tour is 4, the only other length 6."""
    pairs = {(0, 1): 1, (0, 2): 2, (0, 3): 1, (1, 2): 1, (1, 3): 2, (2, 3): 1}
    graph = {"n": 4, "edges": [list(pair) for pair in pairs], "weights": list(pairs.values())}
    return {"graphs": [graph], "names": list(corners)}


REFERENCES: dict[str, dict[str, Any]] = {
    "MIS": {"graphs": [{"n": 5, "edges": PATH}], "names": USERS, "optimum": 3},
    "MVC": {"graphs": [{"n": 5, "edges": PATH}], "names": USERS, "optimum": 2},
    "MCP": {"graphs": [{"n": 5, "edges": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]]}], "names": USERS, "optimum": 3},
    "TSP": {**_square("AAA", "BBB", "CCC", "DDD"), "optimum": 4},
    "GED": {
        "graphs": [
            {"n": 4, "edges": [[0, 1], [1, 2], [2, 3]], "labels": ["C", "C", "N", "O"]},
            {"n": 4, "edges": [[0, 1], [0, 2], [2, 3]], "labels": ["C", "C", "N", "F"]},
        ],
        "optimum": 1,
    },
    "MCS": {
        "graphs": [{"n": 4, "edges": [[0, 1], [1, 2], [2, 3]]}, {"n": 5, "edges": [[0, 1], [0, 2], [0, 3], [3, 4]]}],
        "optimum": 4,
    },
    "Neighbor": {
        "graphs": [{"n": 5, "edges": [[0, 2], [0, 3], [1, 2], [1, 3], [3, 4]]}],
        "names": USERS,
        "query": [0, 1],
        "optimum": 2,
    },
    "Distance": {
        "graphs": [{"n": 5, "edges": [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]]}],
        "names": USERS,
        "query": [0, 2],
        "optimum": 2,
    },
    "Connected": {"graphs": [{"n": 5, "edges": [[0, 1], [2, 3]]}], "names": USERS, "optimum": 3},
    "Diameter": {"graphs": [{"n": 5, "edges": PATH}], "names": USERS, "optimum": 4},
    "cycle": {"graphs": [{"n": 3, "edges": [[0, 1], [1, 2]]}], "optimum": False, "answer": "### No"},
    "connectivity": {
        "graphs": [{"n": 3, "edges": [[0, 1], [1, 2]]}],
        "query": [0, 2],
        "optimum": True,
        "answer": "### Yes",
    },
    "flow": {
        "graphs": [{"n": 3, "edges": [[0, 1], [1, 2]], "directed": True, "weights": [1500, 1234]}],
        "query": [0, 2],
        "optimum": 1234,
        "answer": "### 1234",
    },
    "topology": {
        "graphs": [{"n": 4, "edges": [[0, 1], [0, 2], [1, 3], [2, 3]], "directed": True}],
        "optimum": 1,
        "answer": "### [0, 1, 2, 3]",
    },
    "node_classification": {
        "graphs": [{"n": 3, "edges": [[0, 1], [1, 2]], "labels": ["Biology", "?", "Chemistry"]}],
        "query": [1],
        "optimum": "Biology",
    },
    "comma": {
        "task": "MIS",
        "graphs": [{"n": 3, "edges": [[0, 1]]}],
        "names": ["Paris, Texas", "Paris", "Texas"],
        "optimum": 2,
    },
    "twins": {"task": "MIS", "graphs": [{"n": 3, "edges": [[0, 1]]}], "names": ["Ada", "Ada", "Bo"], "optimum": 2},
    "sharp": {"task": "MIS", "graphs": [{"n": 2, "edges": []}], "names": ["Schauss", "Schauß"], "optimum": 2},
    "alarm": {"task": "MIS", "graphs": [{"n": 5, "edges": PATH}], "names": USERS, "optimum": 2},
}


def problem(key: str) -> Problem:
    """The instance of a key as a problem; the prompt is not needed to judge."""
    reference = {"task": key, **REFERENCES[key]}
    return Problem(key, "graph", reference["task"], "?", reference)
