"""The declared comparison at equal calls on the sparse testbed: equal numbers of candidates, seeds as units."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"))
import sparse_calls


def ended(arm: str, candidate: int, seed: int, calls: int) -> dict:
    facts = {"reached": calls < sparse_calls.CALLS, "calls": calls, "answers": calls}
    return {"arm": arm, "candidate": candidate, "seed": seed, **facts}


def test_every_candidate_is_a_sound_recipe_and_every_arm_has_as_many() -> None:
    assert {len(some) for some in sparse_calls.CANDIDATES.values()} == {6}
    assert not set(sparse_calls.TUNING) & set(sparse_calls.FINAL)
    for arm, some in sparse_calls.CANDIDATES.items():
        recipes = [sparse_calls.recipe((arm, k, 7)).recipe for k in range(len(some))]
        assert {(one.rollout.n, one.rollout.max_tokens, one.seed) for one in recipes} == {(8, 16, 7)}
        assert len({str((one.phase_tables["grpo"], one.credit)) for one in recipes}) == 6


def test_settings_come_from_tuning_seeds_and_the_factor_from_the_final_ones() -> None:
    tuning = [
        ended(arm, k, seed, 2000 - 100 * (k == 4)) for arm in sparse_calls.CANDIDATES for k in range(6)
        for seed in sparse_calls.TUNING
    ]  # fmt: skip
    settings = sparse_calls.chosen(tuning)
    assert set(settings.values()) == {4}
    final = [ended("grpo", k, seed, calls) for seed in sparse_calls.FINAL for k, calls in ((4, 2000), (2, 1500))]
    final += [ended("tree", k, seed, 1000 + 10 * (seed % 2)) for seed in sparse_calls.FINAL for k in (4, 1)]
    final += [ended("doubly_robust", 4, seed, sparse_calls.CALLS) for seed in sparse_calls.FINAL]
    *_, grpo, steady, tree, robust, afterwards = sparse_calls.report(tuning + final, settings).splitlines()
    assert "| 16/16 | 2000 [2000, 2000] |" in grpo and "| 16/16 | 1500 [1500, 1500] |" in steady
    assert "| 1.99 [1.98, 2.00], 0.000 (0.000) | 1.49 [1.49, 1.50], 0.000 (0.000) |" in tree
    assert "| 1.99 [1.98, 2.00], not tested |" in afterwards
    assert "| 0/16 | 4800 [4800, 4800] |" in robust and "| 0.42 [0.42, 0.42], 0.000 (0.000) |" in robust


def test_calls_are_answers_and_different_replays_up_to_the_look_that_reached_the_threshold(monkeypatch) -> None:
    monkeypatch.setattr(sparse_calls, "CALLS", 200)
    looks = iter([0.5, 0.9])
    monkeypatch.setattr(sparse_calls, "success", lambda lab, step: next(looks))
    plain = sparse_calls.run(("grpo", 0, 7))
    assert (plain["reached"], plain["calls"], plain["answers"], plain["steps"]) == (False, 200, 224, 7)
    asked = sparse_calls.run(("doubly_robust", 0, 7))
    assert asked["reached"] and asked["calls"] > asked["answers"] == 32 * asked["steps"]
