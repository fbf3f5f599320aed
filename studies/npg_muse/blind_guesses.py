"""What an answer scores that does not look at the edges: for each task and size the best single one of the references.

python studies/npg_muse/blind_guesses.py recipes/nano_6np_mixed.toml [KEY=VALUE ...]

The guess is chosen on training problems and asked the test problems of the recipe's own card. A policy that scores no
more has learnt how answers look and nothing about graphs.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.recipe import load_recipe
from rlvrlab.types import Environment, Problem

TRIED = 60
"""Training problems of a task and size that a guess is chosen on; their references are the guesses."""
Kind = tuple[str, tuple[int, ...]]
"""A task, and how many nodes its graphs have."""


def kind_of(problem: Problem) -> Kind:
    """What a blind policy may look at."""
    return problem.skill, tuple(graph["n"] for graph in problem.reference["graphs"])


def right(env: Environment, problems: Sequence[Problem], guess: str) -> int:
    """How many of the problems this answer solves."""
    return sum(env.verify(problem, guess).correct is True for problem in problems)


def best_guesses(env: Environment, train: Sequence[Problem]) -> dict[Kind, str]:
    """For each kind the reference that solves most problems of it."""
    alike = defaultdict[Kind, list[Problem]](list)
    for problem in train:
        alike[kind_of(problem)].append(problem)
    best = {}
    for kind, problems in alike.items():
        tried = problems[:TRIED]
        guesses = dict.fromkeys(env.gold(problem) or "" for problem in tried)
        best[kind] = max(guesses, key=lambda guess: right(env, tried, guess))
    return best


def shares(env: Environment, train: Sequence[Problem], asked: Sequence[Problem]) -> dict[str, float]:
    """The share of problems that the best blind guesses solve, by task and in all."""
    best = best_guesses(env, train)
    solved = defaultdict[str, list[int]](list)
    for problem in asked:
        found = right(env, [problem], best.get(kind_of(problem), ""))
        solved[problem.skill].append(found)
        solved["all"].append(found)
    return {task: sum(found) / len(found) for task, found in solved.items()}


def main(path: str, *changes: str) -> None:
    """Print the table of one recipe."""
    resolved = load_recipe(Path(path), changes)
    env, data = resolved.build("env"), resolved.recipe.data
    train = env.problems("train", data.train_size, data.seed)
    asked = env.problems("test", resolved.recipe.eval.test_size, data.seed)
    for task, share in shares(env, train, asked).items():
        print(f"{task}  {100 * share:.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
