"""A look that nobody declared is counted, told and paid for, under whatever name the stage goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from study_lab import HEAD, decision, run_study, stage, write_study

from rlvrlab.cli.verbs import rlvr
from rlvrlab.evals.statistics import compare_suites
from rlvrlab.study.contest import level
from rlvrlab.study.folder import find_study
from rlvrlab.study.looks import chance, level_of
from rlvrlab.study.plan import plan_study
from rlvrlab.study.power import enough
from rlvrlab.study.schema import Select

STAGE = """
[[stages]]
name = "n"
[stages.arms.two]
rollout.n = 2
[stages.arms.four]
rollout.n = 4
"""
MORE = "seeds = [0, 1, 2, 3]\n"
FEW = "seeds = [0, 1]\n"


def text(seeds: str, stages: str = STAGE) -> str:
    head, suites = HEAD.split("[suites", 1)
    return f"{head}{seeds}[suites{suites}{stages}"


def better(job: dict[str, Any]) -> float:
    """Four answers are better by twenty points or so; seeds scatter, so that two of them do not show it."""
    return 0.4 + 0.3 * (job["settings"]["rollout.n"] == 4) + (0.02, -0.02, 0.01, -0.01)[job["seed"] % 4]


def scattered(job: dict[str, Any]) -> float:
    return 0.4 + 0.2 * (job["settings"]["rollout.n"] == 4) + (0.06, -0.06, 0.03, -0.03)[job["seed"] % 4]


@pytest.fixture
def undecided(tmp_path: Path) -> Path:
    path = write_study(tmp_path, text(FEW))
    *_, made = run_study(path, scattered)
    assert decision(made, "n")["outcome"] == "undecided" and decision(made, "n")["level"] == 0.05
    return path


def test_more_seeds_after_the_decision_are_a_second_look_with_half_the_level(undecided: Path) -> None:
    first = decision(run_study(undecided, scattered)[2], "n")
    assert "more seeds now are a look that was not declared, and will be told at α = 0.025, which" in first["words"]
    assert "`select.extend`" in first["words"] and "seeds instead of 2 would decide it" in first["words"]
    home = str(undecided.parent / "out/tried")
    shown = CliRunner().invoke(rlvr, ["study", "select", home, "n"])
    assert shown.exit_code == 0 and "undecided" in shown.output, "two seeds have no p"
    undecided.write_text(text(MORE))
    planned = plan_study(find_study(undecided)[0], undecided.parent / "out/tried", cost=False)
    assert "at α = 0.025 (these arms were compared before" in planned.stages[0].power
    ended, _, made = run_study(undecided, scattered)
    one = decision(made, "n")
    assert (one["look"], one["looks"], one["undeclared"], one["level"], one["earlier"]) == (2, 1, 1, 0.025, [1])
    assert one["chance"] == pytest.approx(0.075) and one["outcome"] == "better"
    told = "look 2 at these arms was not declared beforehand (`select.extend`), so it is told at α = 0.025 and not 0.05"
    assert told in one["words"] and "at most 7.5 of 100 studies" in one["words"]
    assert told in next(row["text"] for row in made["caveats"] if row["kind"] == "looks")
    log, report = ((ended.folder / name).read_text() for name in ("DECISIONS.md", "REPORT.md"))
    assert (
        "look 2, not declared (after decision 1): α of this look 0.025" in log
        and "simultaneous 97.5 %, with the looks before 92.5 %" in log
    )
    assert told in report.partition("## What not to conclude")[2]
    assert told in (ended.folder / "analysis/report.html").read_text()
    again = decision(run_study(undecided, scattered)[2], "n")
    assert again["id"] == one["id"], "going on with a finished study is no look"


def test_the_interval_and_p_of_an_undeclared_look_are_those_of_its_level(undecided: Path) -> None:
    undecided.write_text(text(MORE))
    [row] = decision(run_study(undecided, scattered)[2], "n")["comparisons"]
    fresh = undecided.parent / "fresh"
    fresh.mkdir()
    [alone] = decision(run_study(write_study(fresh, text(MORE)), scattered)[2], "n")["comparisons"]
    assert row["low"] < alone["low"] and row["high"] > alone["high"] and row["mean"] == alone["mean"]
    assert row["p"] == pytest.approx(2 * alone["p"]) and (row["p"] < 0.05) == (row["outcome"] == "better")


def test_another_name_for_the_stage_hides_no_look(undecided: Path) -> None:
    renamed = STAGE.replace('"n"', '"m"')
    undecided.write_text(text(FEW, renamed))
    same = decision(run_study(undecided, scattered)[2], "m")
    assert (same["look"], same["undeclared"]) == (1, 0), "the same trials by the same rule are the same look"
    undecided.write_text(text(MORE, renamed))
    one = decision(run_study(undecided, scattered)[2], "m")
    assert (one["look"], one["undeclared"], one["level"]) == (2, 1, 0.025)
    undecided.write_text(text("seeds = [0, 1, 2, 3, 4, 5]\n"))
    third = decision(run_study(undecided, scattered)[2], "n")
    assert (third["look"], third["undeclared"], third["earlier"]) == (3, 2, [1, 3])
    assert third["level"] == 0.0125 and third["chance"] == pytest.approx(0.0875)


def test_other_seeds_and_another_rule_are_looks_too(undecided: Path) -> None:
    undecided.write_text(text("seeds = [7, 8]\n"))
    assert decision(run_study(undecided, scattered)[2], "n")["undeclared"] == 1
    undecided.write_text(text(FEW, STAGE + "[stages.select]\nmargin = 0.1\n"))
    assert decision(run_study(undecided, scattered)[2], "n")["look"] == 3


def test_declared_looks_stay_declared_and_share_the_level(tmp_path: Path) -> None:
    path = write_study(tmp_path, text(FEW, STAGE + "[stages.select]\nextend = 1\n"))
    *_, made = run_study(path, scattered)
    looks = [(one["look"], one["looks"], one["undeclared"], one["level"]) for one in made["decisions"]]
    assert looks == [(1, 2, 0, 0.025), (2, 2, 0, 0.025)]
    assert not [row for row in made["caveats"] if row["kind"] == "looks"]


def test_stages_that_stood_in_the_file_together_are_no_hidden_looks_but_a_caveat(tmp_path: Path) -> None:
    second = STAGE.replace('"n"', '"m"') + "[stages.arms.eight]\nrollout.n = 8\n"
    *_, made = run_study(write_study(tmp_path, text(FEW, STAGE + second)), better)
    assert decision(made, "m")["undeclared"] == 0
    [caveat] = [row for row in made["caveats"] if row["kind"] == "looks"]
    assert caveat["stages"] == ["m"] and "wrong in up to 10 of 100 studies" in caveat["text"]


def test_a_stage_that_shares_one_arm_asks_another_question(tmp_path: Path) -> None:
    path = write_study(tmp_path, text(FEW))
    run_study(path, better)
    other = STAGE.replace('"n"', '"m"').replace("rollout.n = 4", "rollout.n = 8").replace("four", "eight")
    path.write_text(text(FEW, STAGE + other))
    *_, made = run_study(path, better)
    assert decision(made, "m")["undeclared"] == 0 and stage(made, "m")["reused"]


def test_all_undeclared_looks_together_add_at_most_one_more_alpha() -> None:
    before: list[dict[str, Any]] = []
    for k in range(30):
        assert chance(0.05, before) == pytest.approx(0.05 * (2 - 0.5**k))
        before.append({"alpha": 0.05, "looks": 1, "undeclared": k})
    assert level_of(0.05, 3, 2) == pytest.approx(0.05 / 12)


Design = tuple[int, float, int]
"""Seeds at first, how they scatter, problems."""


def found_by_looking_again(rng: np.random.Generator, design: Design, looks: int, counted: bool = True) -> int:
    """The look at which two equal arms are told apart by who does what an undecided look advises; 0: at none."""
    (seeds, scatter, problems), most = design, 24
    ease = rng.normal(0, 0.15, problems)
    arms = [(rng.random((most, problems)) < 0.5 + rng.normal(0, scatter, (most, 1)) + ease).astype(float) for _ in "ab"]
    for look in range(looks):
        alpha = level(Select(), 2, 1, look if counted else 0)
        found = compare_suites([arms[0][:seeds]], [arms[1][:seeds]], share=True)
        interval = found.interval(1 - alpha)
        if not interval.low < 0 < interval.high:
            return look + 1
        size = enough(found, 0.0, alpha)
        seeds = min(most, max(seeds + 1, size.seeds if size else 2 * seeds))
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("design", [(2, 0.05, 100), (5, 0.1, 200)])
def test_equal_arms_are_told_apart_no_more_often_than_is_said(design: Design) -> None:
    """Of 4,000 studies 3.5 and 3.5 % with two and three looks for the first design, 6.4 and 7.0 % for the second; with
    every look told at the whole level 6.0 and 8.1 %, 7.6 and 9.4 %."""
    rng, rounds = np.random.default_rng(3), 1000
    found = [found_by_looking_again(rng, design, looks=3) for _ in range(rounds)]
    for looks, bound in ((2, 0.075), (3, 0.0875)):  # who stops after the second look has made the same first two
        wrong = sum(0 < look <= looks for look in found)
        assert wrong <= bound * rounds + 2 * (bound * (1 - bound) * rounds) ** 0.5, looks


@pytest.mark.slow
def test_three_looks_at_the_whole_level_would_be_wrong_too_often() -> None:
    rng, rounds = np.random.default_rng(3), 1000
    wrong = sum(found_by_looking_again(rng, (5, 0.1, 200), 3, counted=False) > 0 for _ in range(rounds))
    assert wrong > 0.07 * rounds
