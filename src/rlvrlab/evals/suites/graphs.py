"""Graph tasks: instances made here, and the published ones of GraphArena, GraphWiz and NLGraph under their names.

What is made here has proved answers, and the same seed gives the same problems everywhere: six NP-hard tasks, four
others of GraphArena's kind (`p_tasks`), nine of GraphWiz's kind (`wiz_tasks`), node and link prediction. Published rows
are read from your copy; numbers on one kind are no numbers on the other.
"""

from __future__ import annotations

from rlvrlab.evals.suites.base import Member, Suite, published

LONG = 8192
ROWS = "{}, as lines of JSON (docs/graphs.md)"
NP_TASKS = ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")

GRAPHS = Suite(
    "graphs",
    "graph tasks",
    (
        *(
            Member(f"np_{task.lower()}", "graph", 100, 10, {"tasks": [task]}, max_tokens=LONG, group="NP, in task")
            for task in NP_TASKS
        ),
        Member("p_tasks", "graph_p", 400, 40, max_tokens=LONG, group="P, cross task"),
        Member("wiz_tasks", "graphwiz", 900, 45, max_tokens=LONG, group="cross task"),
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
        published("grapharena", 10_000, 60, ROWS.format("github.com/squareRoot3/GraphArena"), max_tokens=LONG,
                  group="published"),
        published("graphinstruct", 3600, 45, ROWS.format("huggingface.co/datasets/GraphWiz/GraphInstruct-Test"),
                  max_tokens=LONG, group="published"),
    ),
)  # fmt: skip
