"""How many Countdown problems one fixed sum solves: python studies/countdown_gsm8k/fixed_sums.py

Targets to 100 are small beside numbers to 99, so a − b + c with the numbers as they stand is often right, above all
where they are listed in ascending order. For each setting and order the best signs are chosen on training problems and
scored on the test problems of its study: what a policy reaches that never looks at the target.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from rlvrlab.envs.countdown import Countdown
from rlvrlab.types import Problem

SETTINGS = {
    "1.5B model": (Countdown(numbers=(3, 4), target_low=10, target_high=100), 2000, 300),
    "SmolLM2": (Countdown(numbers=(2, 3), high=50, target_high=200), 2000, 400),
    "toy": (Countdown(numbers=(2,), high=30), 900, 120),
}
"""Environment, training and test problems of qwen_countdown.toml, smollm2_presets.toml and toy_countdown.toml."""


def is_solved(problem: Problem, signs: tuple[int, ...]) -> bool:
    """Whether its target is this sum of its numbers."""
    one = problem.reference
    return sum(sign * number for sign, number in zip(signs, one["numbers"], strict=True)) == one["target"]


def solved(problems: list[Problem], signs: tuple[int, ...]) -> int:
    """Problems with so many numbers whose target is this sum of them."""
    return sum(is_solved(problem, signs) for problem in problems if len(problem.reference["numbers"]) == len(signs))


def best_signs(problems: list[Problem], count: int) -> tuple[int, ...]:
    """The signs that solve most of these problems with so many numbers."""
    every = [signs for signs in product((1, -1), repeat=count) if 1 in signs]
    return max(every, key=lambda signs: solved(problems, signs))


def sums_by_problem(env: Countdown, trained: int, tested: int) -> dict[str, bool]:
    """Of each test problem whether the sum that is best on the training problems solves it."""
    train = env.problems("train", trained, 0)
    best = {count: best_signs(train, count) for count in env.numbers}
    tests = env.problems("test", tested, 0)
    return {one.id: is_solved(one, best[len(one.reference["numbers"])]) for one in tests}


def told(signs: tuple[int, ...]) -> str:
    """The sum in letters, a for the number that is listed first; it begins with one that is added."""
    letters = sorted(zip(signs, "abcd", strict=False), key=lambda pair: pair[0] < 0 and signs[0] < 0)
    return " ".join(f"{'+' if sign > 0 else '−'} {letter}" for sign, letter in letters).removeprefix("+ ")


def best_sums(env: Countdown, trained: int, tested: int) -> dict[str, tuple[str, float]]:
    """The best sum for each count of numbers with its share of the test problems in %, and the share of all."""
    train, test, right = env.problems("train", trained, 0), env.problems("test", tested, 0), 0
    found = {}
    for count in env.numbers:
        best = best_signs(train, count)
        here = sum(len(problem.reference["numbers"]) == count for problem in test)
        right += solved(test, best)
        found[str(count)] = told(best), 100 * solved(test, best) / here
    return found | {"all": ("one for each", 100 * right / len(test))} if len(found) > 1 else found


def main() -> None:
    """A row for each setting and number of numbers, and one for each whole setting."""
    print(
        "| setting | numbers | best fixed sum, ascending | % of test problems | best, shuffled | % of test problems |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (env, trained, tested) in SETTINGS.items():
        ascending = best_sums(replace(env, order="ascending"), trained, tested)
        shuffled = best_sums(env, trained, tested)
        for count in ascending:
            (one, share), (other, its_share) = ascending[count], shuffled[count]
            print(f"| {name} | {count} | {one} | {share:.1f} | {other} | {its_share:.1f} |")


if __name__ == "__main__":
    main()
