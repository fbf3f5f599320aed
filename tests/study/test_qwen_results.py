"""studies/qwen_coder_mbpp: its README says what its result files say, and its recipes are what ran."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe

STUDY = Path(__file__).parents[2] / "studies" / "qwen_coder_mbpp"
script = runpy.run_path(str(STUDY / "recompute.py"))
README = (STUDY / "README.md").read_text()
QUICK = ("arm_table", "seed_table", "training_table", "entropy_table", "time_table")


@pytest.fixture(scope="module")
def results():
    return script["Results"]()


def test_headline_numbers(results) -> None:
    """The three of the README's answer: MBPP greedy, MBPP and HumanEval at T = 1, each grpo − random over seeds."""
    answer = README[README.index("**Answer.**") : README.index("## Commands")]
    stated = re.findall(r"\+?(\d+\.\d)(?: points[^[]*)? \[\+(\d+\.\d), \+(\d+\.\d)\]", re.sub(r"\s+", " ", answer))
    assert [tuple(map(float, one)) for one in stated] == [
        tuple(round(100 * value, 1) for value in (over.mean, over.mean - over.half, over.mean + over.half))
        for over in (results.over_seeds("grpo − random", script["MEASURES"][i]) for i in (0, 1, 4))
    ]


@pytest.mark.parametrize("name", [*QUICK, "pair_table"])
def test_every_row_of_the_tables_stands_in_the_readme(results, name) -> None:
    assert [line for line in script[name](results) if line not in README.splitlines()] == []


def test_the_readme_has_no_other_table_rows(results) -> None:
    """Six tables with a head, a rule and so many rows: a line that recompute.py does not print would not be noticed."""
    assert sum(line.startswith("|") for line in README.splitlines()) == 6 * 2 + 8 + 18 + 11 + 8 + 4 + 7


def test_agrees_with_the_summary_first_computed(results) -> None:
    stored = json.loads((STUDY / "results" / "summary.json").read_text())
    for measure in script["MEASURES"]:
        for arm, line in stored["arms"].items():
            assert results.scores(arm, measure).mean() == pytest.approx(line[measure.key]["value"])
        then = stored["together"][f"grpo - random / {measure.key}"]
        assert results.over_seeds("grpo − random", measure).both.mean == pytest.approx(then["change"])


def test_no_result_names_a_place_on_a_machine() -> None:
    texts = [path.read_text() for path in (STUDY / "results").rglob("*.json*")]
    assert not any(re.search(r'"[^"]*(/work|/root|/tmp|/home)/?', text) for text in texts)


@pytest.mark.parametrize(
    ("recipe", "differs"),
    [
        ("grpo", set()),
        ("random", {"reward"}),
        ("entropy", {"entropy"}),
    ],
)
def test_recipes_are_what_ran(recipe, differs) -> None:
    """But for names, and MBPP's own file, which prepared files replace."""
    ran = json.loads((STUDY / "results" / "grpo_s0.config.json").read_text())["recipe"]
    now = load_recipe(STUDY / f"{recipe}.toml", []).config()["recipe"]
    for one in (ran, now):
        one["env"].pop("path")
        for key in ("train_file", "dev_file"):
            one["data"].pop(key)
        for key in ("name", "question"):
            one.pop(key)
    assert {key for key in ran if ran[key] != now.get(key)} == differs
