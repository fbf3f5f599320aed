"""Graph tasks: six NP-hard ones (GraphArena's), its four others, GraphWiz's nine, node and link prediction, NLGraph.

All but NLGraph are made here with proved answers; the same seed gives the same problems everywhere.
"""

from __future__ import annotations

from rlvrlab.evals.suites.base import Member, Suite

LONG = 8192
NP_TASKS = ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")

GRAPHS = Suite(
    "graphs",
    "graph tasks",
    (
        *(
            Member(f"np_{task.lower()}", "graph", 100, 10, {"tasks": [task]}, max_tokens=LONG, group="NP, in task")
            for task in NP_TASKS
        ),
        Member("grapharena_p", "graph_p", 400, 40, max_tokens=LONG, group="P, cross task"),
        Member("graphwiz", "graphwiz", 900, 45, max_tokens=LONG, group="cross task"),
        Member(
            "node_classification", "graph_learning", 200, 20, {"tasks": ["node_classification"]}, max_tokens=LONG,
            group="cross task",
        ),
        Member(
            "link_prediction", "graph_learning", 200, 20, {"tasks": ["link_prediction"]}, max_tokens=LONG,
            group="cross task",
        ),
        Member(
            "nlgraph", "nlgraph", 1000, 40, files=("nlgraph",), folder_key="folder", max_tokens=LONG,
            group="cross task", source="github.com/Arthur-Heng/NLGraph (folder NLGraph, one sub-folder per task)",
        ),
    ),
)  # fmt: skip
