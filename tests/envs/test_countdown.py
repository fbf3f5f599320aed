"""Countdown: the table of verdicts, hostile answers, the generator and its roles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expression_oracle import expressions, oracle
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from texts import any_text

from rlvrlab.envs.countdown import Countdown, Instance
from rlvrlab.errors import UserError
from rlvrlab.registry import find, keys_of
from rlvrlab.types import Environment, ErrorKind, Problem

GOLDEN = Path(__file__).with_name("countdown_answers.jsonl")
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
CONFIGS = {
    "default": {},
    "bare": {"style": "bare"},
    "tiny": {"numbers": (2,), "low": 1, "high": 9, "style": "bare"},
    "subset": {"use_all": False, "high": 20},
    "no division": {"numbers": (2, 3), "operators": "+-*"},
    "six": {"numbers": (6,), "target_high": 99},
    "ascending": {"order": "ascending"},
}


def ask(numbers: list[int], target: int) -> Problem:
    return Problem("p", "countdown", "countdown", "", {"numbers": numbers, "target": target})


def text_of(answer: str | list[list[Any]]) -> str:
    return answer if isinstance(answer, str) else "".join(piece * times for piece, times in answer)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['style']}: {row['what']}" for row in ROWS])
def test_table_of_verdicts(row: dict[str, Any]) -> None:
    options = {key: row[key] for key in ("style", "use_all", "operators") if key in row}
    verdict = Countdown(**options).verify(ask(row["numbers"], row["target"]), text_of(row["answer"]))
    assert (verdict.correct, verdict.error.value) == (row["correct"], row["error"]), verdict.detail
    assert dict(verdict.parts) == row["parts"]
    assert verdict.score == float(row["correct"])
    assert bool(verdict.detail) is not row["correct"]
    assert len(verdict.detail) < 300 and verdict.detail.replace("…", "").isascii() and "\n" not in verdict.detail
    assert verdict.answer is None or len(verdict.answer) <= 200


def test_table_is_large_enough_and_covers_every_kind() -> None:
    assert len(ROWS) >= 60
    assert {row["error"] for row in ROWS} == {"none", "format", "syntax", "rule", "wrong_answer"}


@given(any_text(max_size=60) | st.text(alphabet="0123456789+-*/() \n<>answerthik", max_size=60), st.booleans())
def test_any_text_gets_a_verdict_and_none_is_right_by_accident(text: str, tagged: bool) -> None:
    if tagged:
        text = f"<think></think><answer>{text}</answer>"
    verdict = Countdown(style="think" if tagged else "bare").verify(ask([3, 7], 21), text)
    assert verdict.correct in (True, False)
    assert verdict.correct is (verdict.error is ErrorKind.NONE)
    if verdict.correct:
        expected = oracle(verdict.answer or "")
        assert expected is not None and expected[0] == 21 and sorted(expected[1]) == [3, 7]


@given(expressions, st.integers(0, 99))
def test_verdict_on_expressions_agrees_with_the_oracle(text: str, other: int) -> None:
    expected = oracle(text)
    if expected is None:
        return
    value, numbers = expected
    target = int(value) if value is not None and value.denominator == 1 else other
    verdict = Countdown(style="bare").verify(ask(numbers, target), text)
    assert verdict.correct is (value == target)
    with_one_more = Countdown(style="bare").verify(ask([*numbers, other], target), text)
    assert with_one_more.error is ErrorKind.RULE


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_self_check_passes(options: dict[str, Any]) -> None:
    checks = Countdown(**options).self_check()
    assert [check for check in checks if not check.ok] == []
    assert sum(check.name == "gold" for check in checks) == 6
    assert len({check.name for check in checks}) > 40


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_no_cheat_and_every_solution_is_accepted_on_many_problems(options: dict[str, Any]) -> None:
    env = Countdown(**options)
    for problem in env.problems("train", 30, seed=3):
        assert env.verify(problem, env.gold(problem) or "").correct is True
        accepted = [name for name, text in env.cheats(problem).items() if env.verify(problem, text).correct]
        assert accepted == [], problem.id


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_problems_keep_their_promises(options: dict[str, Any]) -> None:
    env = Countdown(**options)
    problems = env.problems("train", 80, seed=1)
    assert len({problem.id for problem in problems}) == len({problem.key for problem in problems}) == 80
    for index, problem in enumerate(problems):
        numbers, target = problem.reference["numbers"], problem.reference["target"]
        assert len(numbers) == problem.meta["level"] == env.numbers[index % len(env.numbers)]
        assert all(env.low <= number <= env.high for number in numbers)
        assert env.target_low <= target <= env.target_high
        assert oracle(problem.meta["solution"])[0] == target  # type: ignore[index]
        assert set(problem.meta["solution"]) & set("+-*/") <= set(env.operators)
        assert (problem.skill, problem.role) == ("countdown", "train")
        json.dumps([problem.reference, dict(problem.meta)])


@pytest.mark.parametrize("options", [CONFIGS["default"], CONFIGS["tiny"]])
def test_roles_never_share_an_instance_whatever_the_seed(options: dict[str, Any]) -> None:
    sizes = {"train": 60, "dev": 8, "test": 8}
    env = Countdown(**options)
    ids = {role: {p.id for s in range(25) for p in env.problems(role, size, s)} for role, size in sizes.items()}  # type: ignore[arg-type]
    assert not ids["train"] & ids["dev"] and not ids["train"] & ids["test"] and not ids["dev"] & ids["test"]


def test_roles_and_distinctness_hold_where_draws_repeat_themselves() -> None:
    env = Countdown(numbers=(3,), high=18)
    sizes = {"train": 3000, "dev": 300, "test": 300}
    ids = [problem.id for role, size in sizes.items() for problem in env.problems(role, size, 0)]  # type: ignore[arg-type]
    assert len(set(ids)) == 3600


def test_role_does_not_depend_on_settings() -> None:
    one = Countdown(numbers=(3,), high=12, style="bare").problems("train", 400, 0)
    other = Countdown(numbers=(3,), high=14, operators="+-*").problems("test", 150, 5)
    assert not {problem.id for problem in one} & {problem.id for problem in other}


def test_same_seed_same_problems_and_a_prefix_stays_one() -> None:
    for env in (Countdown(), Countdown(numbers=(2, 3), high=20, style="bare")):
        long = env.problems("dev", 40, seed=7)
        assert env.problems("dev", 40, seed=7) == long
        assert env.problems("dev", 13, seed=7) == long[:13]
        assert env.problems("dev", 40, seed=8) != long


PUBLISHED_RANGES: dict[str, Any] = {"numbers": (3, 4), "target_low": 10, "target_high": 100}


def listed(problems: list[Problem]) -> list[tuple[str, str, list[int]]]:
    return [(problem.id, problem.role, problem.reference["numbers"]) for problem in problems]


def test_orders_differ_in_nothing_but_the_order() -> None:
    """The same instances with the same ids and solutions in the same roles, so no permutation is in another role."""
    for role in ("train", "dev", "test"):
        ascending, shuffled = (Countdown(order=order).problems(role, 60, 5) for order in ("ascending", "shuffled"))  # type: ignore[arg-type]
        for one, other in zip(ascending, shuffled, strict=True):
            numbers = other.reference["numbers"]
            assert one.reference["numbers"] == sorted(numbers)
            assert (one.id, one.role, one.meta) == (other.id, other.role, other.meta)
            assert f"the numbers {', '.join(map(str, numbers))}. " in other.prompt
            assert f"the numbers {', '.join(map(str, sorted(numbers)))}. " in one.prompt


@given(st.lists(st.integers(1, 99), min_size=2, max_size=6), st.integers(0, 999), st.randoms())
def test_the_order_is_decided_by_the_content_alone(numbers: list[int], target: int, random: Any) -> None:
    instance = Instance(tuple(sorted(numbers)), target)
    assert sorted(instance.shuffled) == list(instance.numbers)
    mixed = list(numbers)
    random.shuffle(mixed)
    assert Instance(tuple(sorted(mixed)), target).shuffled == instance.shuffled


def test_an_instance_is_listed_alike_whatever_seed_setting_or_published_row_it_comes_from() -> None:
    small = Countdown(numbers=(2,), high=9, style="bare")
    one, other = ({p.id: p for p in small.problems("train", 80, seed)} for seed in (0, 1))
    assert len(one.keys() & other.keys()) > 40
    assert all(one[key] == other[key] for key in one.keys() & other.keys())
    for problem in Countdown().problems("test", 20, 0):
        numbers, target = problem.reference["numbers"], problem.reference["target"]
        for row in ({"nums": numbers, "target": target}, {"nums": sorted(numbers), "target": target}):
            read = Countdown().read_row(row)
            assert read is not None and read.role == "test"
            assert listed(read.problems("test")) == listed([problem])


def test_known_orders_stay_what_they_are() -> None:
    """Other orders would be other problems under the same version."""
    assert [Instance((2, 5, 9), target).shuffled for target in (43, 44, 45)] == [[2, 9, 5], [2, 9, 5], [5, 2, 9]]
    assert Instance((1, 3, 4, 6), 24).shuffled == [3, 1, 6, 4]


def test_where_a_number_stands_says_nothing_about_its_size() -> None:
    problems = Countdown(numbers=(4,)).problems("train", 2000, 0)
    places = np.array([np.argsort(np.argsort(problem.reference["numbers"])) for problem in problems])
    shares = np.array([np.bincount(places[:, place], minlength=4) for place in range(4)]) / len(problems)
    assert np.abs(shares - 0.25).max() < 0.05  # 0.01 is one standard deviation


def share_of_best_fixed_sums(env: Countdown, size: int = 2000) -> float:
    """The share of problems that one sum with fixed signs by place solves, the best one for each count of numbers."""
    problems, right = env.problems("train", size, 0), 0
    for level in env.numbers:
        asked = [p.reference for p in problems if p.meta["level"] == level]
        numbers, targets = np.array([one["numbers"] for one in asked]), np.array([one["target"] for one in asked])
        signs = np.array(list(product((1, -1), repeat=level)))
        right += int((numbers @ signs.T == targets[:, None]).sum(axis=0).max())
    return right / size


def test_a_sum_with_fixed_signs_is_worth_much_less_where_numbers_are_shuffled() -> None:
    assert share_of_best_fixed_sums(Countdown(order="ascending", **PUBLISHED_RANGES)) == pytest.approx(0.2685)
    assert share_of_best_fixed_sums(Countdown(**PUBLISHED_RANGES)) == pytest.approx(0.164)


@pytest.mark.slow
def test_problems_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from rlvrlab.envs.countdown import Countdown\n"
        "for env in (Countdown(), Countdown(numbers=(2,), high=9)):\n"
        "    print([(p.id, p.prompt, p.meta['solution']) for p in env.problems('test', 10, 0)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1


def test_a_small_space_is_given_out_completely_and_then_refused() -> None:
    env = Countdown(numbers=(2,), low=1, high=9)
    sizes = {}
    for role in ("train", "dev", "test"):
        with pytest.raises(UserError, match="there are only") as caught:
            env.problems(role, 10_000, 0)
        sizes[role] = int(str(caught.value).split("there are only ")[1].split()[0])
        assert len(env.problems(role, sizes[role], 0)) == sizes[role]
    every = {(a, b, value) for a in range(1, 10) for b in range(a, 10) for value in (a + b, b - a, a * b)}
    every |= {(a, b, b // a) for a in range(1, 10) for b in range(a, 10) if b % a == 0}
    assert sum(sizes.values()) == sum(value >= 1 for *_, value in every)


def test_a_large_space_with_few_instances_ends_with_advice() -> None:
    env = Countdown(numbers=(3,), low=50, high=99, target_low=0, target_high=1, operators="-")
    with pytest.raises(UserError, match=r"a long search found only \d+ different ones with 3 numbers; .*widen low"):
        env.problems("test", 10_000, 0)


def test_levels_alternate_evenly() -> None:
    levels = [problem.meta["level"] for problem in Countdown(numbers=(2, 3, 4)).problems("train", 30, 0)]
    assert levels[:4] == [2, 3, 4, 2] and set(Counter(levels).values()) == {10}


def test_gold_of_a_loaded_problem_comes_from_the_solver() -> None:
    env = Countdown()
    assert env.verify(ask([1, 3, 4, 6], 24), env.gold(ask([1, 3, 4, 6], 24)) or "").correct is True
    assert env.gold(ask([1, 1], 99)) is None
    assert env.gold(ask([0, 5], 5)) is None


def test_prompts() -> None:
    bare = Countdown(numbers=(2,), style="bare").problems("train", 1, 0)[0]
    first, second = bare.reference["numbers"]
    assert bare.prompt == f"{first} {second} = {bare.reference['target']}\n"
    low, high = sorted((first, second))
    assert bare.id == f"countdown:2:{low},{high}={bare.reference['target']}"
    think = Countdown(use_all=False).problems("train", 1, 0)[0].prompt
    assert "<think> </think>" in think and "<answer> </answer>" in think and "at most once" in think


def test_it_is_an_environment_found_by_name() -> None:
    assert find("env", "countdown") is Countdown
    assert isinstance(Countdown(), Environment)
    assert (Countdown.name, Countdown.version) == ("countdown", "2")
    assert len(keys_of(Countdown)) <= 12


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"numbers": ()}, "numbers"),
        ({"numbers": (1,)}, "numbers"),
        ({"numbers": (7,)}, "numbers"),
        ({"numbers": (3, 3)}, "numbers"),
        ({"low": 0}, "low"),
        ({"low": 9, "high": 8}, "high"),
        ({"high": 10**7}, "high"),
        ({"target_low": -1}, "target_low"),
        ({"target_low": 9, "target_high": 8}, "target_high"),
        ({"operators": ""}, "operators"),
        ({"operators": "+^"}, "operators"),
        ({"operators": "++"}, "operators"),
        ({"style": "chat"}, "style"),
        ({"order": "descending"}, "order"),
    ],
)
def test_bad_settings_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Countdown(**options)


def test_recipe_table_is_checked() -> None:
    adapter = TypeAdapter(Countdown)
    assert adapter.validate_json('{"numbers": [3], "style": "bare"}') == Countdown(numbers=(3,), style="bare")
    for table in ('{"hihg": 9}', '{"high": "9"}', '{"style": "chat"}', '{"low": 0}'):
        with pytest.raises(ValidationError):
            adapter.validate_json(table)


AUDITED = """
import json, sys
from rlvrlab.envs.countdown import Countdown
from rlvrlab.types import Problem
envs = {style: Countdown(style=style) for style in ("think", "bare")}
problems = {style: env.problems("train", 3, 0) for style, env in envs.items()}
jobs = [(env, p, text) for style, env in envs.items() for p in problems[style] for text in env.cheats(p).values()]
for row in map(json.loads, open(sys.argv[1])):
    text = row["answer"] if isinstance(row["answer"], str) else "".join(piece * n for piece, n in row["answer"])
    problem = Problem("p", "countdown", "countdown", "", {"numbers": row["numbers"], "target": row["target"]})
    jobs.append((envs[row["style"]], problem, text))
for style, env in envs.items():  # the first answer of a style brings its reader along
    assert env.verify(problems[style][0], env.gold(problems[style][0])).correct
events = []
sys.addaudithook(lambda event, args: events.append(event))
for env, problem, text in jobs:
    env.verify(problem, text)
seen = sorted(set(events))
print(len(jobs), seen)
"""


def test_judging_hostile_answers_raises_no_audit_event_at_all() -> None:
    """Not one exec, compile, import, open, os.system or subprocess; Python reports each of these to the hook."""
    done = subprocess.run([sys.executable, "-c", AUDITED, str(GOLDEN)], capture_output=True, text=True, check=True)
    jobs, _, events = done.stdout.strip().partition(" ")
    assert int(jobs) > 400
    assert events == "[]"
