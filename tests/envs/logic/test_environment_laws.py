"""What holds for every environment made of rows, queries and logic: one list, the same questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.clrs import Clrs
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.sql import Sql
from rlvrlab.envs.zebra import Zebra
from rlvrlab.errors import UserError
from rlvrlab.registry import find, keys_of
from rlvrlab.types import Environment, ErrorKind

ENVIRONMENTS: dict[str, Any] = {
    "gsm8k": Gsm8k(),
    "gsm8k, thinking": Gsm8k(levels=(2, 5), style="think"),
    "math": Mathematics(),
    "math, thinking": Mathematics(style="think"),
    "sql": Sql(levels=(1, 3, 5)),
    "zebra": Zebra(levels=(1, 2)),
    "zebra, plain": Zebra(levels=(2,), style="plain"),
    "clrs": Clrs(),
    "clrs, a small space": Clrs(algorithms=("naive_string_matcher",), lengths=(4,)),
    "clrs, traces": Clrs(trace=True, lengths=(5,)),
    "clrs, thinking": Clrs(style="think", algorithms=("bfs", "quicksort")),
}
UNJAILED = {name: env for name, env in ENVIRONMENTS.items() if name != "sql"}
"""Those whose every verdict needs no worker."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument, choices in (("env", ENVIRONMENTS), ("unjailed", UNJAILED)):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, choices.values(), ids=choices)


def test_it_is_registered_and_small(env: Environment) -> None:
    assert isinstance(env, Environment)
    assert find("env", env.name) is type(env)
    assert len(keys_of(type(env))) == len(fields(type(env))) <= 12  # type: ignore[arg-type]
    assert type(env).__module__.startswith("rlvrlab.envs.")
    documentation = sys.modules[type(env).__module__].__doc__ or ""
    assert all(word in documentation for word in ("id ", "prompt", "completion", "reference", "Traps:"))


def test_problems_are_distinct_and_plain(env: Environment) -> None:
    problems = env.problems("train", 30, seed=1)
    assert len({problem.id for problem in problems}) == len({problem.key for problem in problems}) == 30
    assert len({problem.prompt for problem in problems}) == 30
    for problem in problems:
        assert json.loads(json.dumps([problem.reference, dict(problem.meta)])) == [
            problem.reference,
            dict(problem.meta),
        ]
        assert (problem.role, problem.source) == ("train", env.name)


def test_same_seed_same_problems_and_a_prefix_stays_one(env: Environment) -> None:
    long = env.problems("dev", 12, seed=7)
    assert env.problems("dev", 12, seed=7) == long
    assert env.problems("dev", 5, seed=7) == long[:5]
    assert env.problems("dev", 12, seed=8) != long


def test_roles_never_share_a_problem(env: Environment) -> None:
    prompts = {
        role: {problem.prompt for seed in range(2) for problem in env.problems(role, 12, seed)}  # type: ignore[arg-type]
        for role in ("train", "dev", "test")
    }
    assert not prompts["train"] & prompts["dev"]
    assert not prompts["train"] & prompts["test"]
    assert not prompts["dev"] & prompts["test"]


def test_gold_is_right_and_no_cheat_is(unjailed: Any) -> None:
    for problem in unjailed.problems("test", 10, seed=3):
        assert unjailed.verify(problem, unjailed.gold(problem)).correct is True
        found = {name: unjailed.verify(problem, text).correct for name, text in unjailed.cheats(problem).items()}
        assert {name: correct for name, correct in found.items() if correct is not False} == {}


def test_self_check(unjailed: Environment) -> None:
    checks = unjailed.self_check()
    assert [check for check in checks if not check.ok] == []
    assert len({check.name for check in checks if not check.expected}) >= 12


def test_one_problems_gold_is_not_anothers(unjailed: Any) -> None:
    problems = unjailed.problems("train", 40, seed=5)
    for one, other in pairwise(problems):
        same = one.reference == other.reference
        assert unjailed.verify(other, unjailed.gold(one)).correct is same


@given(any_text(max_size=60), st.sampled_from(["{}", "#### {}", "<think></think>{}", '{{"House 1": {}}}', "[{}]"]))
def test_any_text_gets_a_verdict(text: str, frame: str) -> None:
    for env in UNJAILED.values():
        problem = env.problems("train", 1, seed=0)[0]
        verdict = env.verify(problem, frame.format(text))
        assert verdict.correct in (True, False)
        assert verdict.correct is (verdict.error is ErrorKind.NONE)
        assert 0 <= verdict.score <= 1 and (verdict.score < 1 or verdict.correct)


@pytest.mark.slow
def test_nothing_depends_on_the_hash_seed() -> None:
    program = (
        "import hashlib\n"
        "from rlvrlab.registry import find\n"
        "for name in ('gsm8k', 'math', 'sql', 'zebra', 'clrs'):\n"
        "    env = find('env', name)()\n"
        "    made = [(p.id, p.prompt, p.key) for p in env.problems('test', 10, 0)]\n"
        "    print(hashlib.sha256(repr(made).encode()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.slow
def test_judging_executes_and_opens_nothing() -> None:
    program = (
        "import sys\n"
        "from rlvrlab.registry import find\n"
        "envs = [find('env', name)() for name in ('gsm8k', 'math', 'zebra', 'clrs')]\n"
        "problems = [(env, env.problems('train', 2, 0)) for env in envs]\n"
        "items = [(env, p, text) for env, found in problems for p in found for text in env.cheats(p).values()]\n"
        "[env.verify(p, text) for env, p, text in items]\n"
        "events = []\n"
        "sys.addaudithook(lambda name, _: events.append(name))\n"
        "[env.verify(p, text) for env, p, text in items]\n"
        "print(len(items), sorted(set(events)))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    tried, _, events = run.stdout.partition(" ")
    assert int(tried) > 150 and events.strip() == "[]"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Gsm8k, {"levels": ()}, "gsm8k: levels"),
        (Gsm8k, {"levels": (9,)}, "1 to 8"),
        (Gsm8k, {"style": "x"}, "allowed"),
        (Mathematics, {"style": "x"}, "allowed"),
        (Sql, {"levels": (1, 1)}, "distinct"),
        (Sql, {"timeout_s": 0.0}, "timeout_s"),
        (Zebra, {"levels": (6,)}, "1 to 5"),
        (Clrs, {"algorithms": ("bsf",)}, "did you mean 'bfs'"),
        (Clrs, {"algorithms": ("minimum",), "trace": True}, "minimum"),
        (Clrs, {"lengths": (2,)}, "from 4"),
    ],
)
def test_mistakes_are_named(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        kind(**options)


def test_asking_for_too_many_says_so(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}')
    for kind in (Gsm8k, Mathematics):
        with pytest.raises(UserError, match="3 test problems asked for"):
            kind(path=str(tmp_path / "rows.jsonl")).problems("test", 3, 0)
    with pytest.raises(UserError, match="problems asked for"):
        Clrs(algorithms=("naive_string_matcher",), lengths=(4,)).problems("test", 500, 0)
