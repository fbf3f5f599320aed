"""The generator: forms, determinism, roles apart by behaviour, hidden tests hidden, and how many problems there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product
from random import Random
from typing import Any

import pytest
from slow_cases import some_slow

from rlvrlab.envs.minicode import Minicode, environment
from rlvrlab.envs.minicode.arguments import BY_NUMBER
from rlvrlab.envs.minicode.control import BRANCHES, LOOPS
from rlvrlab.envs.minicode.grammar import Program
from rlvrlab.envs.minicode.levels import LEVELS, draw_arguments, draw_atom
from rlvrlab.envs.minicode.lists import LIST_ENDS, LISTS
from rlvrlab.envs.minicode.programs import behaviour, role_of
from rlvrlab.envs.minicode.prompts import arguments_text
from rlvrlab.envs.minicode.skills import draw_problem
from rlvrlab.errors import UserError
from rlvrlab.registry import find, keys_of
from rlvrlab.types import Environment, Problem, Role

ALL = Minicode(levels=tuple(LEVELS))
ROLES: tuple[Role, ...] = ("train", "dev", "test")
LITERAL = r"\[[\d,]*\]"


def of(problems: list[Problem], skill: str) -> list[Problem]:
    return [problem for problem in problems if problem.skill == skill]


def test_prompts_of_the_first_levels_have_the_measured_form() -> None:
    problems = Minicode().problems("train", 120, 0)
    result = rf"(?:{LITERAL}|-?\d+)"
    forms = {
        "gen": rf"#gen [a-z0-9 ;><]+\n#{LITERAL}>{result}\ndef f\(x\):\n",
        "fix": rf"#fix [a-z0-9 ;><]+\ndef f\(x\):\n( x=.*\n)+ return .*\n#{LITERAL}>{result} not .+\ndef f\(x\):\n",
        "min": r"#min\ndef f\(x\):\n( x=.*\n)+ return .*\ndef f\(x\):\n",
        "out": rf"#out\ndef f\(x\):\n( x=.*\n)+ return .*\n#{LITERAL}=",
    }
    for skill, form in forms.items():
        assert len(of(problems, skill)) == 30
        for problem in of(problems, skill):
            assert re.fullmatch(form, problem.prompt), problem.prompt
            assert problem.id.startswith(f"minicode:{skill}:{problem.meta['level']}:")
    for problem in of(problems, "gen"):
        assert (
            len(problem.meta["spec"].split(";")) - (problem.meta["solution"].count(" return x\n") == 0)
            == (problem.meta["level"])
        )


def test_skills_and_levels_alternate_evenly() -> None:
    problems = Minicode(skills=("gen", "min"), levels=(2, 5)).problems("train", 8, 0)
    assert [(p.skill, p.meta["level"]) for p in problems] == [("gen", 2), ("min", 2), ("gen", 5), ("min", 5)] * 2


def test_problems_are_distinct_plain_and_complete() -> None:
    problems = ALL.problems("train", 360, 5)
    assert len({p.id for p in problems}) == len({p.prompt for p in problems}) == len({p.key for p in problems}) == 360
    for problem in problems:
        assert json.loads(json.dumps([problem.reference, dict(problem.meta)])) == [problem.reference, problem.meta]
        assert problem.source == "minicode" and problem.role == "train"
        if problem.skill != "out":
            hidden = problem.reference["hidden"]
            assert len(hidden) == 8 and len({repr(given) for given, _ in hidden}) == 8
            assert len({repr(want) for _, want in hidden}) >= 3
            assert any(given[0] != want for given, want in hidden), "the identity is no task"


def test_hidden_inputs_are_in_no_prompt_and_not_public() -> None:
    for problem in Minicode(levels=tuple(LEVELS), examples=4).problems("train", 360, 6):
        if problem.skill == "out":
            continue
        hidden = {arguments_text(given) for given, _ in problem.reference["hidden"]}
        shown = {line[1:].split(">")[0] for line in problem.prompt.splitlines() if line.startswith("#")}
        public = {arguments_text(given) for given, _ in problem.meta["public"]}
        assert len(public) == 6 and not hidden & (shown | public)


def test_same_seed_same_problems_and_a_prefix_stays_one() -> None:
    long = ALL.problems("dev", 60, 7)
    assert ALL.problems("dev", 60, 7) == long
    assert ALL.problems("dev", 17, 7) == long[:17]
    assert ALL.problems("dev", 60, 8) != long


@pytest.mark.slow
def test_problems_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from rlvrlab.envs.minicode import Minicode\n"
        "print([(p.id, p.prompt, p.reference) for p in Minicode(levels=tuple(range(1, 10))).problems('test', 72, 0)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 10_000


def results(problem: Problem, inputs: list[list[Any]]) -> str:
    """What the solution's text does, found by running it: our own programs, in a test, independent of the meanings."""
    space: dict[str, Any] = {}
    exec(problem.reference["header"] + problem.meta["solution"], space)
    return repr([space["f"](*given) for given in inputs])


@pytest.mark.parametrize("level", some_slow(LEVELS, {1, 4, 7}))
def test_roles_never_share_a_behaviour(level: int) -> None:
    sizes = {"train": 80, "dev": 30, "test": 30}
    env = Minicode(skills=("gen", "fix", "min"), levels=(level,))
    found = {role: [p for s in range(2) for p in env.problems(role, size, s)] for role, size in sizes.items()}  # type: ignore[arg-type]
    behaviours = {role: {p.meta["behaviour"] for p in problems} for role, problems in found.items()}
    assert all(behaviours.values())
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not behaviours[one] & behaviours[other]
    kinds = {plan.arguments for plan in LEVELS[level]}
    random = Random(11)
    for arguments in kinds:
        inputs = [draw_arguments(arguments, random, 3, 9) for _ in range(60)]
        seen: dict[str, str] = {}
        for role, problems in found.items():
            for problem in problems:
                if [type(v) for v in problem.reference["hidden"][0][0]] == [type(v) for v in inputs[0]]:
                    assert seen.setdefault(results(problem, inputs), role) == role, problem.prompt


def test_roles_do_not_depend_on_level_skill_or_style() -> None:
    test = {p.meta["behaviour"] for p in Minicode(skills=("out",), levels=(1, 2)).problems("test", 200, 0)}
    train = {p.meta["behaviour"] for p in Minicode(levels=(1, 2, 3, 4), style="chat").problems("train", 800, 1)}
    assert not test & train


def test_more_than_a_million_problems_at_level_four_alone() -> None:
    """Programs that differ in text, times the share that is given out as a problem; wordings and inputs not counted."""
    lists, branches = {atom.text for atom in LISTS.atoms}, {atom.text for atom in BRANCHES.atoms}
    assert len(lists) == len(LISTS.atoms) and len(branches) == len(BRANCHES.atoms) and not lists & branches
    places = 3
    texts = places * len(branches) * len(lists) ** 2 * len(LIST_ENDS)
    random, draws = Random(0), 1500
    given = sum(draw_problem("gen", 4, "train", random, 8, 1, "bare") is not None for _ in range(draws))
    share = given / draws - 4 * (0.25 / draws) ** 0.5
    assert texts > 19_000_000 and texts * share > 1_000_000, (texts, share)


@pytest.mark.long
def test_a_million_behaviours_counted_one_by_one() -> None:
    """Level 9: four statements drawn, every list statement as the fifth.

    Equal results on the probes count once, so few probes count too few behaviours, never too many.
    """
    random, found, tried = Random(0), set(), 0
    inputs = [draw_arguments(("list", "number"), random, size, size) for size in (5, 6, 7, 8)]
    while len(found) < 1_000_000:
        state = [x for x, _ in inputs]
        for pool in random.sample((BY_NUMBER, LOOPS, LISTS, BRANCHES), 4):
            atom = draw_atom(pool, random)
            state = [atom.run(x, y) for x, (_, y) in zip(state, inputs, strict=True)]
        tried += 1
        assert tried < 200_000, f"only {len(found)}"
        for leaf in LISTS.atoms:
            found.add(hash(tuple([tuple(leaf.run(x, y)) for x, (_, y) in zip(state, inputs, strict=True)])))


def test_level_two_is_counted_exactly() -> None:
    programs = [Program(("list",), atoms, end) for atoms in product(LISTS.atoms, repeat=2) for end in LIST_ENDS]
    kinds = {behaviour(program) for program in programs}
    assert len(programs) == 42 * 42 * 4 and len(kinds) > 2000
    shares = {role: sum(role_of(p) == role for p in programs) / len(programs) for role in ROLES}
    assert 0.4 < shares["train"] < 0.8 and min(shares["dev"], shares["test"]) > 0.1


def test_a_small_space_runs_out_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "FRUITLESS_DRAWS", 200)
    with pytest.raises(UserError, match=r"a long search found only \d+ different ones of min at level 1"):
        Minicode(skills=("min",), levels=(1,)).problems("dev", 50_000, 0)


def test_chat_prompts_say_what_is_wanted() -> None:
    for problem in Minicode(style="chat").problems("train", 12, 0):
        assert "block" in problem.prompt and f"#{problem.skill}" in problem.prompt


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"skills": ()}, "skills"),
        ({"skills": ("gen", "gen")}, "skills"),
        ({"skills": ("write",)}, "gen, fix, min, out"),
        ({"levels": (0,)}, "levels"),
        ({"levels": (10,)}, "1 to 9"),
        ({"levels": ()}, "levels"),
        ({"examples": 9}, "examples"),
        ({"tests": 3}, "tests"),
        ({"style": "verse"}, "style"),
    ],
)
def test_bad_settings_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Minicode(**options)


def test_it_is_an_environment_found_by_name() -> None:
    assert find("env", "minicode") is Minicode
    assert isinstance(Minicode(), Environment)
    assert (Minicode.name, Minicode.version) == ("minicode", "3")
    assert len(keys_of(Minicode)) <= 12
