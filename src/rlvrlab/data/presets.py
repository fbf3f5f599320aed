"""The data sets in wide use: where they are published, who judges them, and what each split may be used for.

`rlvr data prepare gsm8k` fetches one from the Hugging Face hub, `--from PATH` takes your own copy. A test set stays
one: no option turns its rows into training data. Where `hub` is empty the set is not there in a readable form.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from rlvrlab.registry import names
from rlvrlab.types import Role


@dataclass(frozen=True)
class Preset:
    """One published data set: where it is, who judges it and what its splits may be used for."""

    env: str
    """The environment that reads its rows and judges answers."""
    splits: Mapping[str, Role]
    """The publisher's splits and their role."""
    hub: str = ""
    """Name on the hub."""
    subset: str = ""
    """Which of its configurations."""
    hub_split: str = ""
    """What the hub calls the only split, where it has another name there."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """The environment's settings it needs."""
    by_content: bool = False
    """Split the rows of its one split by content, as the environment would; otherwise roles are the publisher's."""
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Split -> first and last task_id, where the publisher's file holds all splits in one."""
    made: bool = False
    """Without a copy of your own the environment makes the problems; nothing is fetched."""
    made_size: int = 2000
    """How many training problems are made unless somebody says otherwise; a tenth of it dev and test."""
    folder_key: str = ""
    """The data set is a folder which the environment reads itself, named by this key."""
    file: str = ""
    """Name of the file that holds all splits, where it is not the preset's."""
    note: str = ""


TEST: Mapping[str, Role] = {"test": "test"}
MBPP_RANGES = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}
MATH_SUITES = {
    "aime24": "HuggingFaceH4/aime_2024", "aime25": "math-ai/aime25", "amc23": "math-ai/amc23",
    "minerva_math": "math-ai/minervamath", "olympiadbench": "", "college_math": "", "gaokao2023en": "",
    "gaokao2024_I": "", "gaokao2024_II": "", "gaokao2024_mix": "", "gaokao_math_cloze": "", "gaokao_math_qa": "",
    "cmath": "", "cn_middle_school": "", "carp_en": "", "asdiv": "", "mawps": "", "aqua": "deepmind/aqua_rat",
    "sat_math": "", "mmlu_stem": "", "lmb": "", "tabmwp": "",
}  # fmt: skip
"""Evaluation suites in mathematics; those without a hub name come as NAME_test.jsonl with the usual evaluation kits."""
PRESETS: dict[str, Preset] = {
    "countdown": Preset(
        "countdown", {"train": "train"}, by_content=True, made=True,
        note="--from a copy of Jiayi-Pan/Countdown-Tasks-3to4 reads those instances",
    ),
    "countdown_3to4": Preset(
        "countdown", {"train": "train"}, by_content=True, made=True, made_size=20_000,
        keys={"numbers": [3, 4], "target_low": 10, "target_high": 100},
        note="made in the ranges of Countdown-Tasks-3to4; --from a copy of it reads those instances",
    ),
    "gsm8k": Preset("gsm8k", {"train": "train", "test": "test"}, "openai/gsm8k", "main"),
    "humaneval": Preset("code", TEST, "openai/openai_humaneval", keys={"shape": "humaneval"}),
    "humanevalfix": Preset("code_repair", TEST, "bigcode/humanevalpack", "python", keys={"shape": "humanevalfix"}),
    **{
        name: Preset("code", TEST, f"evalplus/{name}", keys={"shape": "evalplus"}, note=f"--from also takes {file}")
        for name, file in (("humanevalplus", "HumanEvalPlus.jsonl"), ("mbppplus", "MbppPlus.jsonl"))
    },
    "quixbugs": Preset(
        "code_repair", TEST, keys={"shape": "quixbugs"},
        note="--from a file, or the folder of github.com/jkoppel/QuixBugs"
    ),
    "mbpp": Preset(
        "code", {"train": "train", "validation": "dev", "test": "test"}, "google-research-datasets/mbpp", "full",
        keys={"shape": "mbpp"}, ranges=MBPP_RANGES,
    ),
    "mbpp_reg": Preset(
        "code", {"prompt": "dev", "validation": "dev"}, "google-research-datasets/mbpp", "full",
        keys={"shape": "mbpp"}, ranges=MBPP_RANGES, file="mbpp",
        note="MBPP's prompt and validation rows as a regression set: none of its test or training rows",
    ),
    "codecontests": Preset(
        "code", {"train": "train", "valid": "dev", "test": "test"}, "deepmind/code_contests",
        keys={"shape": "codecontests"},
    ),
    "apps": Preset("code", {"train": "train", "test": "test"}, "codeparrot/apps", keys={"shape": "apps"}),
    "spider": Preset("sql", {}, folder_key="path", note="--from its folder: dev.json, train_spider.json, database/"),
    "svamp": Preset("math", TEST, "ChilleD/SVAMP"),
    "math500": Preset("math", TEST, "HuggingFaceH4/MATH-500"),
    "zebralogic": Preset("zebra", TEST, "WildEval/ZebraLogic", "grid_mode"),
    "clrs": Preset("clrs", {"train": "train"}, "tomg-group-umd/CLRS-Text-train", note="the test sets are clrs_test"),
    "clrs_test": Preset("clrs", {"test_1": "test"}, "tomg-group-umd/CLRS-Text-test"),
    "grapharena": Preset("graph_rows", TEST, note="--from its rows as lines of JSON, docs/graphs.md"),
    "graphinstruct": Preset("graph_rows", TEST, note="--from GraphInstruct-Test of GraphWiz, docs/graphs.md"),
    "npg_muse": Preset(
        "graph_rows", {"train": "train"}, note="--from train_graph_6np_*.parquet or .jsonl, docs/graphs.md"
    ),
    "network": Preset(
        "graph_learning", {}, folder_key="path",
        note="--from a network's folder or file: Cora, OGB, CSV, GML, docs/graphs.md",
    ),
    "nlgraph": Preset("nlgraph", {}, folder_key="folder", note="--from its folder: cycle/test.json and so on"),
    **{
        name: Preset(
            "math", TEST, hub, "raw" if name == "aqua" else "", hub_split="train" if name == "aime24" else ""
        )
        for name, hub in MATH_SUITES.items()
    },
}  # fmt: skip


def how_to_make(paths: Sequence[Path]) -> str:
    """The commands that write these files where they are looked for, by their names; with the folder at any rate."""
    return " and ".join(dict.fromkeys(f"`{_command(path)}`" for path in paths))


def _command(path: Path) -> str:
    kind = path.suffix.lstrip(".")
    name = path.name.partition(".")[0]
    name = next((name.removesuffix(f"_{role}") for role in get_args(Role) if name.endswith(f"_{role}")), name)
    of_skill = [one for one in PRESETS if name.startswith(f"{one}_") and name.removeprefix(f"{one}_") in names("env")]
    what = f"{of_skill[0]} --env {name.removeprefix(f'{of_skill[0]}_')}" if of_skill else name
    what = what if of_skill or name in PRESETS or name in names("env") else "WHAT"
    to = " --to parquet" if kind == "parquet" else ""
    return f"rlvr data prepare {what}{to} -o {shlex.quote(str(path.parent))}"
