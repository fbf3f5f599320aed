"""The declared comparison at equal calls: sound recipes, equal numbers of candidates, seeds as units."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"))
import equal_calls
import spending

LARGE = equal_calls.DESIGNS["equal_calls"]


def test_every_candidate_is_a_sound_recipe_and_every_arm_has_as_many() -> None:
    assert {len(some) for some in equal_calls.CANDIDATES.values()} == {3}
    seeds = [seed for design in equal_calls.DESIGNS.values() for seed in (*design.tuning, *design.final)]
    assert len(set(seeds)) == len(seeds) and min(len(one.final) for one in equal_calls.DESIGNS.values()) >= 6
    same = set()
    for arm, some in equal_calls.CANDIDATES.items():
        for number in range(len(some)):
            recipe = equal_calls.recipe(arm, number, 3).recipe
            same.add((recipe.rollout.n, recipe.phase_tables["grpo"]["batch_size"], recipe.phase_tables["sft"]["steps"]))
            assert (recipe.credit is None) == (arm == "grpo") and recipe.data.seed == recipe.seed == 3
    assert len(same) == 1


def ended(arm: str, candidate: int, seed: int, accuracy: float) -> dict:
    end = {"step": 100, "tokens": 1000, "accuracy": accuracy, "whole": True}
    return {"arm": arm, "candidate": candidate, "seed": seed, "end": end}


def test_settings_are_chosen_on_tuning_seeds_and_judged_by_differences_of_seeds() -> None:
    rows = [
        ended(arm, number, seed, 0.5 + 0.1 * (arm == "tree" and number == 1))
        for arm in equal_calls.CANDIDATES
        for number in range(3)
        for seed in LARGE.tuning
    ]
    settings = equal_calls.chosen(rows, LARGE)
    assert settings == {"grpo": 0, "tree": 1, "trace": 0, "doubly_robust": 0}
    with pytest.raises(SystemExit, match="tuning seeds"):
        equal_calls.chosen(rows[1:], LARGE)
    gaps = np.array([0.01, 0.03, 0.02, 0.05, 0.02, 0.04, 0.03, 0.02])
    final = [ended("grpo", 0, seed, 0.4) for seed in range(8)]
    final += [ended("tree", 1, seed, 0.4 + gap) for seed, gap in enumerate(gaps)]
    final += [ended("tree", 0, seed, 0.9) for seed in range(8)]
    with pytest.raises(SystemExit, match="no final seed"):
        equal_calls.report(rows + final, settings, LARGE)
    final += [ended(arm, 0, seed, 0.4) for arm in ("trace", "doubly_robust") for seed in range(8)]
    line = next(
        line for line in equal_calls.report(rows + final, settings, LARGE).splitlines() if line.startswith("| tree")
    )
    assert "+2.8 [+1.7, +3.8]" in line and "0.008 (0.023)" in line


def test_sign_flips_and_the_interval_by_hand() -> None:
    assert equal_calls.sign_flips(np.array([1.0, 1.0, 1.0])) == 0.25
    assert equal_calls.sign_flips(np.array([1.0, -1.0])) == 1.0
    mean, low, high = equal_calls.difference(np.array([0.0, 2.0]))
    assert mean == 1.0 and high - mean == pytest.approx(12.706, abs=1e-3) == mean - low


class Env:
    def verify_many(self, items: list) -> list:
        return list(items)


def test_what_is_spent_is_counted_once_and_only_inside_the_block() -> None:
    """A process makes several runs, one after the other."""
    whole, answers = Env.verify_many, [[SimpleNamespace(tokens=(1, 2, 3))] * 2]
    for _ in range(2):
        lab = SimpleNamespace(env=Env(), engine=SimpleNamespace(sample=lambda requests: answers))
        with spending.spending(lab) as spent:
            assert lab.engine.sample([]) == answers and lab.env.verify_many([1, 2]) == [1, 2]
            spent.counting = False
            lab.env.verify_many([3])
        assert (spent.tokens, spent.calls) == (6, 2) and Env.verify_many is whole


def test_a_run_that_fails_twice_counts_with_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def attempt(job: equal_calls.Job) -> dict:
        tried.append(job)
        raise RuntimeError("no memory")

    monkeypatch.setattr(equal_calls, "attempt", attempt)
    monkeypatch.setattr(equal_calls, "STARTS", tmp_path / "starts.jsonl")
    equal_calls.STARTS.write_text('{"seed": 3, "accuracy": 0.25}\n')
    row = equal_calls.run((LARGE, "tree", 1, 3, 1000))
    assert len(tried) == 2 and row["end"]["accuracy"] == 0.25 and row["failed"].count("no memory") == 2
    assert equal_calls.whole([row]) == [row]
