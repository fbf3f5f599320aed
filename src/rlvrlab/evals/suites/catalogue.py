"""The suites by name, and the members of one or several of them.

rlvr suite graphs --tier fast --models experiments/

graphs   What is made here has proved answers, and the same seed gives the same problems everywhere: six NP-hard tasks,
         four others of GraphArena's kind (`p_tasks`), nine of GraphWiz's kind (`wiz_tasks`), node and link prediction.
         The published ones of GraphArena, GraphWiz and NLGraph, and Cora, are read from your copy; numbers on one kind
         are no numbers on the other.
math     Small hard sets by pass@k, large ones by pass@1. All read the publisher's files; none is shipped.
logic    Logic grids and textbook algorithms: made here, and the published ones.
coding   Countdown, GSM8K and programs. MBPP_reg are MBPP's prompt and validation rows, for regression: dev, never test.
"""

from __future__ import annotations

from rlvrlab.envs.data_files import ENDINGS
from rlvrlab.errors import UnknownName
from rlvrlab.evals.suites.base import Member, Suite, published, test_file

LONG = 8192
ROWS = "{}, as lines of JSON (docs/graphs.md)"
QWEN = "github.com/QwenLM/Qwen2.5-Math, evaluation/data/{}"
LINQS = "linqs-data.soe.ucsc.edu/public/lbc/cora.tgz, unpacked (cora/cora.content and cora.cites)"
LIVE = "huggingface.co/datasets/opencompass/LiveMathBench"
AT_K = {
    # name: (problems, k); both tiers draw k answers, the fast one to fewer problems
    "aime24": (30, 64), "aime25": (30, 64), "math500": (500, 8), "lmb": (238, 8), "minerva_math": (272, 8),
    "gaokao2023en": (385, 8), "gaokao2024_mix": (91, 8),
}  # fmt: skip
AT_1 = {
    "college_math": 2818, "cmath": 600, "gsm8k": 1319, "svamp": 1000, "asdiv": 2215, "mawps": 2065, "sat_math": 32,
    "aqua": 254, "tabmwp": 1000, "amc23": 40, "mmlu_stem": 3018,
}  # fmt: skip
SVAMP = ("svamp/SVAMP.json", "svamp/SVAMP.json.gz")
FAST_AT_K, FAST_AT_1 = 30, 60


def _named(*stems: str) -> tuple[str, ...]:
    return tuple(f"{stem}{ending}" for stem in stems for ending in ENDINGS)


GRAPHS = Suite(
    "graphs",
    "graph tasks",
    (
        *(
            Member(f"np_{task.lower()}", "graph", 100, 10, {"tasks": [task]}, max_tokens=LONG, group="NP, in task")
            for task in ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")
        ),
        Member("p_tasks", "graph_p", 400, 40, max_tokens=LONG, group="P, cross task"),
        Member("wiz_tasks", "graphwiz", 900, 45, max_tokens=LONG, group="cross task"),
        *(
            Member(task, "graph_learning", 200, 20, {"tasks": [task]}, max_tokens=LONG, group="cross task")
            for task in ("node_classification", "link_prediction")
        ),
        Member(
            "nlgraph", "nlgraph", 1000, 40, files=("nlgraph",), folder_key="folder", max_tokens=LONG,
            group="cross task", source="github.com/Arthur-Heng/NLGraph (folder NLGraph, one sub-folder per task)",
        ),
        *(
            Member(
                f"cora_{name}", "graph_learning", 1000, 20, {"tasks": [task]}, files=("cora",), folder_key="path",
                max_tokens=LONG, group="published", source=LINQS,
            )
            for name, task in (("nodes", "node_classification"), ("links", "link_prediction"))
        ),
        published("grapharena", 10_000, 60, ROWS.format("github.com/squareRoot3/GraphArena"), max_tokens=LONG,
                  group="published"),
        published("graphinstruct", 3600, 45, ROWS.format("huggingface.co/datasets/GraphWiz/GraphInstruct-Test"),
                  max_tokens=LONG, group="published"),
    ),
)  # fmt: skip

MATHEMATICS = Suite(
    "math",
    "mathematics",
    (
        *(
            published(
                name, size, min(size, FAST_AT_K), LIVE if name == "lmb" else QWEN.format(name), n=k, max_tokens=LONG,
                group="pass@k",
            )
            for name, (size, k) in AT_K.items()
        ),
        *(
            published(
                name, size, min(size, FAST_AT_1), QWEN.format(name), max_tokens=LONG, group="pass@1",
                files=test_file(name, *(SVAMP if name == "svamp" else ())),
            )
            for name, size in AT_1.items()
        ),
    ),
)  # fmt: skip

LOGIC = Suite(
    "logic",
    "zebra puzzles and CLRS algorithms",
    (
        Member("zebra", "zebra", 200, 20, {"style": "plain", "levels": [1, 2, 3, 4]}, max_tokens=LONG, group="made"),
        published("zebralogic", 1000, 40, keys={"style": "plain"}, max_tokens=LONG, group="published"),
        Member("clrs", "clrs", 260, 52, group="made"),
        published(
            "clrs_text", 1000, 60, preset="clrs_test", group="published",
            files=(*test_file("clrs_test"), *test_file("clrs_text"), "clrs_text_sample.jsonl"),
        ),
    ),
)  # fmt: skip

CODING = Suite(
    "coding",
    "arithmetic and programs",
    (
        Member("countdown", "countdown", 1000, 100, group="arithmetic"),
        published("gsm8k", 1319, 100, group="arithmetic"),
        published(
            "humaneval", 164, 40, group="programs", files=(*_named("humaneval/HumanEval"), *test_file("humaneval")),
        ),
        published("mbpp_reg", 100, 50, role="dev", group="programs", files=_named("mbpp_reg_dev", "mbpp/mbpp")),
        published(
            "codecontests_valid", 117, 30, preset="codecontests", role="dev", group="programs",
            files=_named("codecontests/valid", "codecontests_dev"),
        ),
        published(
            "codecontests_test", 165, 30, preset="codecontests", group="programs", files=test_file("codecontests"),
        ),
    ),
)  # fmt: skip

SUITES: dict[str, Suite] = {suite.name: suite for suite in (GRAPHS, MATHEMATICS, LOGIC, CODING)}


def members_of(names: str) -> list[Member]:
    """The members of one suite, of several (`graphs,math`) or of `all`; what is in two of them comes once."""
    chosen = list(SUITES) if names == "all" else [name.strip() for name in names.split(",")]
    members: dict[str, Member] = {}
    for name in chosen:
        if name not in SUITES:
            raise UnknownName("suite", name, [*SUITES, "all"])
        for member in SUITES[name].members:
            members.setdefault(member.name, member)
    return list(members.values())
