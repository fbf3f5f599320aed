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


def test_missing_distances_are_said() -> None:
    row = json.loads(ROWS.read_text().splitlines()[1])
    row["problem_text"] = row["problem_text"].replace("ABC to ZZT: 25\n", "")
    with pytest.raises(ValueError, match="no distance for ABC to ZZT"):
        ENV.read_row(row)


def test_nothing_is_made_here() -> None:
    with pytest.raises(UserError, match=r"set env.path .* or env.type = \"graph\""):
        ENV.problems("train", 1, 0)
