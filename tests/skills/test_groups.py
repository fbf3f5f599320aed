"""Who belongs together: metadata, running difficulty, clusters of prompts, and the random control."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import numpy as np
import pytest

from rlvrlab.errors import UserError
from rlvrlab.skills import groups
from rlvrlab.types import Problem


def problem(i: int, prompt: str = "p", **fields) -> Problem:
    return Problem(f"id{i}", fields.pop("source", "src"), fields.pop("skill", "sk"), prompt, meta=fields)


def test_metadata_strategies_read_the_problem() -> None:
    problems = [problem(0, skill="a", tool="sql"), problem(1, skill="b", task_type="repair", source="other")]
    assert groups.labels("task_type", problems, {}) == ["a", "repair"]
    assert groups.labels("source", problems, {}) == ["src", "other"]
    assert groups.labels("tool", problems[:1], {}) == ["sql"]
    assert groups.labels("difficulty", problems, {"id0": "difficulty1"}) == ["difficulty1", "unknown"]


def test_a_strategy_that_the_problems_cannot_answer_is_refused() -> None:
    """One group of everything would look like surgery and be none."""
    with pytest.raises(UserError, match=r'"tool": problem id1 has no \'tool\'.*allowed: task_type, source, difficulty'):
        groups.labels("tool", [problem(0, tool="sql"), problem(1)], {})
    with pytest.raises(UserError, match=r"unknown surgery\.group_strategy 'tols'.*did you mean 'tool'"):
        groups.labels("tols", [problem(0)], {})


def test_what_each_strategy_needs() -> None:
    assert set(groups.STRATEGIES) == set(get_args(groups.Strategy))
    assert [name for name, entry in groups.STRATEGIES.items() if entry.needs_pass_rates] == ["difficulty"]
    problems = [problem(i) for i in range(9)]
    assert groups.divided("random", problems, 3, 0) == groups.at_random(problems, 3, 0)
    assert groups.divided("source", problems, 3, 0) == groups.divided("difficulty", problems, 3, 0) == {}


def test_difficulty_bins_are_quantiles_of_a_running_rate() -> None:
    rates: dict[str, float] = {}
    for _ in range(30):
        rates = groups.running_rates(rates, {f"id{i}": i / 99 for i in range(100)})
    found = groups.by_difficulty(rates, groups.difficulty_edges(list(rates.values()), 4))
    assert Counter(found.values()) == {f"difficulty{i}": 25 for i in range(4)}
    assert found["id0"] == "difficulty0" and found["id99"] == "difficulty3"
    moved = groups.running_rates({"x": 1.0}, {"x": 0.0, "new": 0.25})
    assert moved == {"x": groups.MOMENTUM, "new": 0.25}


def test_equal_rates_make_one_group_and_no_rates_none() -> None:
    """All problems equally hard: the empty bins are simply not there."""
    edges = groups.difficulty_edges([0.0] * 50, 4)
    assert set(groups.by_difficulty({"a": 0.0, "b": 0.0}, edges).values()) == {"difficulty0"}
    assert groups.difficulty_edges([], 4) == []
    assert groups.by_difficulty({"a": 0.5}, []) == {"a": "difficulty0"}


def test_clusters_find_the_kinds_of_prompt() -> None:
    kinds = {"sum": "add the numbers {} and {} please", "sql": "SELECT name FROM users WHERE id = {} LIMIT {}"}
    rng = np.random.default_rng(0)
    twenty = enumerate(list(kinds.items()) * 20)
    problems = [problem(i, text.format(*rng.integers(0, 99, 2)), skill=kind) for i, (kind, text) in twenty]
    found = groups.by_embedding(problems, 2, seed=3)
    by_kind = {kind: {found[p.id] for p in problems if p.skill == kind} for kind in kinds}
    assert all(len(names) == 1 for names in by_kind.values()) and by_kind["sum"] != by_kind["sql"]
    assert found == groups.by_embedding(problems, 2, seed=3)


def test_fewer_distinct_prompts_make_fewer_clusters() -> None:
    assert len(set(groups.by_embedding([problem(i) for i in range(9)], 4, 0).values())) == 1
    assert set(groups.by_embedding([problem(0, "")], 4, 0).values()) == {"cluster0"}


def test_random_groups_are_fixed_even_and_follow_the_seed() -> None:
    problems = [problem(i) for i in range(400)]
    found = groups.at_random(problems, 4, 0)
    assert all(70 < size < 130 for size in Counter(found.values()).values())
    assert found == groups.at_random(problems[::-1], 4, 0) and found != groups.at_random(problems, 4, 1)
