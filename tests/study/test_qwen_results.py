"""studies/qwen_coder_mbpp: its README and rounds say what its result files say, and its recipes are what ran."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe

STUDY = Path(__file__).parents[2] / "studies" / "qwen_coder_mbpp"
sys.path.insert(0, str(STUDY))
script = runpy.run_path(str(STUDY / "recompute.py"))
README = (STUDY / "README.md").read_text()
APART = {"04_floor_and_plus.md": "floor_tables.py", "05_plus_whole.md": "plus_tables.py"}
"""Rounds whose tables a script of its own prints."""
ROUNDS = "".join(path.read_text() for path in sorted((STUDY / "rounds").glob("*.md")) if path.name not in APART)
VARIANTS = ("kl", "refill", "entropy", "lowrate", "minibatches", "clip_higher", "hot", "pass_ratio")


@pytest.fixture(scope="module")
def results():
    return script["Results"]()


def test_headline_numbers(results) -> None:
    """Those of the README: MBPP greedy, MBPP and HumanEval at T = 1, each grpo − random for new seeds and problems."""
    answer = README[README.index("- **On MBPP it gains in each of three seeds**") : README.index("- **Corrected for")]
    stated = re.findall(r"\+?(\d+\.\d)(?: points[^[]*)? \[\+(\d+\.\d), \+(\d+\.\d)\]", re.sub(r"\s+", " ", answer))
    found = [results.over_seeds("grpo − random", script["MEASURES"][i]) for i in (0, 1, 4)]
    assert [tuple(map(float, one)) for one in stated] == [
        tuple(round(100 * value, 1) for value in (over.mean, over.both.low, over.both.high)) for over in found
    ]


def test_the_table_of_the_readme_is_for_new_seeds_and_problems(results) -> None:
    _, *rows = script["strict_table"](results)
    told = [
        line.split(" | ")[1:] for line in README[README.index("## Results") :].splitlines() if line.startswith("| ")
    ]
    for row, (grpo_random, grpo, random) in zip(rows[1:], told[1:], strict=True):
        assert row.split(" | ")[1:] == [grpo, random.removesuffix(" |"), f"{grpo_random} |"]


@pytest.fixture(scope="module")
def printed(results) -> dict[str, list[str]]:
    return dict((*script["tables"](results), *script["brake_tables"](script["Brakes"]())))


def test_every_row_of_the_tables_stands_in_a_round(printed) -> None:
    stated = set(ROUNDS.splitlines())
    assert {title: [row for row in rows if row not in stated] for title, rows in printed.items()} == {
        title: [] for title in printed
    }


def test_the_rounds_have_no_other_table_rows(printed) -> None:
    """A line that recompute.py does not print would not be noticed otherwise."""
    assert len(printed) == 13
    assert sum(line.startswith("|") for line in ROUNDS.splitlines()) == sum(map(len, printed.values()))


@pytest.mark.parametrize(("page", "own"), APART.items())
def test_a_round_with_a_script_of_its_own_has_its_rows_and_no_others(page: str, own: str) -> None:
    sys.path.insert(0, str(STUDY.parent))
    printed = runpy.run_path(str(STUDY / own))["tables"]()
    rows = [line for _, table in printed for line in table.splitlines()]
    told = (STUDY / "rounds" / page).read_text().splitlines()
    assert sorted(line for line in told if line.startswith("|")) == sorted(rows)


def test_second_answer(printed) -> None:
    """The gains of KL in pass@16 and its loss at T = 1 on MBPP are the extremes of the table of pairs."""
    text = (STUDY / "rounds" / "02_entropy.md").read_text()
    answer = re.sub(r"\s+", " ", text[text.index("**Result.**") : text.index("## What was run")])
    rows = [row.split(" | ") for row in printed["Question 2: against grpo of the same seed, in points"]]
    changes = [[cell.split(" [")[0] for cell in row[1:]] for row in rows if row[0].startswith("| kl ")]
    reach = sorted(float(row[column]) for row in changes for column in (2, 5))
    lost = sorted(float(row[1].replace("−", "")) for row in changes)
    assert len(changes) == 3 and f"pass@16 {reach[0]} to {reach[-1]} points above grpo" in answer
    assert f"{lost[0]} to {lost[-1]} points less often on MBPP" in answer


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
    """But for names, MBPP's own file, which prepared files replace, and keys younger than the run left at default."""
    ran = json.loads((STUDY / "results" / "grpo_s0.config.json").read_text())["recipe"]
    resolved = load_recipe(STUDY / f"{recipe}.toml", [])
    now = resolved.config()["recipe"]
    for table in ("env", "data", "rollout", "entropy"):
        for key in now[table].keys() - ran[table].keys():
            assert resolved.origins[f"{table}.{key}"] == "default"
            now[table].pop(key)
    for one in (ran, now):
        one["env"].pop("path")
        for key in ("train_file", "dev_file"):
            one["data"].pop(key)
        for key in ("name", "question"):
            one.pop(key)
        one["stop"].pop("deadline_s", None)  # a key that came later and changes no result
    assert {key for key in ran if ran[key] != now.get(key)} == differs


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_what_ran(variant) -> None:
    """grpo.toml with the settings stored beside each arm; refill was stopped by its answers after 18 steps."""
    arms = json.loads((STUDY / "results" / "round2" / "arms.json").read_text())
    ran = {arm: facts for arm, facts in arms.items() if arm.rpartition("_s")[0] == variant}
    assert ran
    for facts in ran.values():
        steps = f"grpo.steps={facts['steps']}"
        then = load_recipe(STUDY / "grpo.toml", [*facts["overrides"], steps]).config()["recipe"]
        now = load_recipe(STUDY / f"{variant}.toml", [facts["overrides"][0]]).config()["recipe"]
        assert {key for key in then if then[key] != now[key]} == {"name", "question"}
