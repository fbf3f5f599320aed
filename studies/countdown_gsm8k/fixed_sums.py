"""How many Countdown problems one fixed sum solves: python studies/countdown_gsm8k/fixed_sums.py

The numbers of a problem are listed in ascending order, and targets to 100 are small beside numbers to 99, so a − b + c
with the numbers as they stand is often right. For each setting the best signs are chosen on training problems and
scored on the test problems of its study: what a policy reaches that never looks at the target.
"""

from __future__ import annotations

from itertools import product

from rlvrlab.envs.countdown import Countdown
from rlvrlab.types import Problem

SETTINGS = {
    "1.5B model": (Countdown(numbers=(3, 4), target_low=10, target_high=100), 2000, 300),
    "SmolLM2": (Countdown(numbers=(2, 3), high=50, target_high=200), 2000, 400),
}
"""Environment, training and test problems of qwen_countdown.toml and smollm2_presets.toml."""


def solved(problems: list[Problem], signs: tuple[int, ...]) -> int:
    """Problems with so many numbers whose target is this sum of them."""
    asked = [problem.reference for problem in problems]
    return sum(
        sum(sign * number for sign, number in zip(signs, one["numbers"], strict=True)) == one["target"]
        for one in asked
        if len(one["numbers"]) == len(signs)
    )


def main() -> None:
    """A row for each setting and number of numbers, and one for each whole setting."""
    print(
        "| setting | numbers | best fixed sum on training problems | of test problems, % |\n| --- | --- | --- | --- |"
    )
    for name, (env, trained, tested) in SETTINGS.items():
        train, test, right = env.problems("train", trained, 0), env.problems("test", tested, 0), 0
        for count in env.numbers:
            every = [(1, *signs) for signs in product((1, -1), repeat=count - 1)]
            best = max(every, key=lambda signs: solved(train, signs))
            here = sum(len(problem.reference["numbers"]) == count for problem in test)
            right += solved(test, best)
            told = "a" + "".join(f" {'+' if sign > 0 else '−'} {'abcd'[i]}" for i, sign in enumerate(best) if i)
            print(f"| {name} | {count} | {told} | {100 * solved(test, best) / here:.1f} |")
        print(f"| {name} | all | one for each | {100 * right / len(test):.1f} |")


if __name__ == "__main__":
    main()
