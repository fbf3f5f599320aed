"""The chance level of graph tasks: an answer that looks at no edge, chosen on training problems alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlvrlab.envs.graphs.environment import GraphEnvironment

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "studies" / "npg_muse")]

from blind_guesses import best_guesses, main, shares  # noqa: E402

SMALL = GraphEnvironment(tasks=("TSP", "MIS"), levels=(1,), sizes=(4, 5), style="bare", copies=8)


def test_the_guess_of_a_kind_is_the_reference_that_solves_most() -> None:
    train = SMALL.problems("train", 60, 0)
    guesses = best_guesses(SMALL, train)
    assert set(guesses) == {(task, (size,)) for task in ("TSP", "MIS") for size in (4, 5)}
    four = [problem for problem in train if problem.skill == "TSP" and problem.meta["size"] == 4]
    solved = [sum(SMALL.verify(problem, guess).correct is True for problem in four) for guess in map(SMALL.gold, four)]
    chosen = sum(SMALL.verify(problem, guesses["TSP", (4,)]).correct is True for problem in four)
    assert chosen == max(solved) >= len(four) / 3, "three tours of four airports: the best one is right in a third"


def test_a_kind_nobody_trained_is_not_solved(capsys: pytest.CaptureFixture[str]) -> None:
    train, asked = (SMALL.problems(role, 20, 0) for role in ("train", "test"))
    assert shares(SMALL, [p for p in train if p.skill == "MIS"], asked)["TSP"] == 0
    small = ["env.tasks=['TSP']", "env.levels=[1]", "env.sizes=[4,4]", "data.train_size=150", "eval.test_size=10"]
    main(str(ROOT / "recipes" / "nano_6np_mixed.toml"), *small)
    assert capsys.readouterr().out.startswith("TSP  ")
