"""Text and meaning of every statement agree; pools fit together; programs say what they do."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rlvrlab.envs.code.shared_judge import shared_judge
from rlvrlab.envs.minicode.arguments import BY_LIST, BY_NUMBER
from rlvrlab.envs.minicode.control import BRANCHES, LOOPS
from rlvrlab.envs.minicode.grammar import Atom, Kind, body
from rlvrlab.envs.minicode.levels import LEVELS, draw_arguments, draw_program
from rlvrlab.envs.minicode.lists import LIST_ENDS, LISTS
from rlvrlab.envs.minicode.programs import BEFORE_SORT, IDLE, behaviour, with_idle_work, with_mistake
from rlvrlab.envs.minicode.texts import DICT_ENDS, DICTS, TABLES, TEXT_ENDS, TEXTS
from rlvrlab.judge.tasks import Call, CallsTask

INPUTS = 8
TABLE: dict[str, tuple[tuple[Atom, ...], tuple[Kind, ...]]] = {
    "lists": (LISTS.atoms, ("list",)),
    "branches": (BRANCHES.atoms, ("list",)),
    "loops": (LOOPS.atoms, ("list",)),
    "texts": (TEXTS.atoms, ("text",)),
    "tables": (TABLES.atoms, ("text",)),
    "dicts": (DICTS.atoms, ("dict",)),
    "by number": (BY_NUMBER.atoms, ("list", "number")),
    "by list": (BY_LIST.atoms, ("list", "list")),
    "list ends": (LIST_ENDS, ("list",)),
    "text ends": (TEXT_ENDS, ("text",)),
    "dict ends": (DICT_ENDS, ("dict",)),
}


def judged(functions: list[str], calls: list[tuple[int, list[Any], Any]]) -> Any:
    """One program with many functions, f(i, x, y) calls the i-th: one job for the judge instead of thousands."""
    text = "".join(f"def f{i}(x,y=None):\n{one}" for i, one in enumerate(functions))
    text += f"F=[{','.join(f'f{i}' for i in range(len(functions)))}]\ndef f(i,*a):\n return F[i](*a)\n"
    return shared_judge().verify(CallsTask("f", tuple(Call((i, *given), want) for i, given, want in calls)), text)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_every_text_means_what_its_meaning_says(name: str) -> None:
    atoms, kinds = TABLE[name]
    random = Random(0)
    calls = []
    for index, atom in enumerate(atoms):
        for size in (0, *range(2, INPUTS + 1)):
            given = draw_arguments(kinds, random, size, size)
            calls.append((index, given, atom.run(given[0], given[1] if len(given) > 1 else None)))
    functions = [body([a.text] if a.text.startswith("return") else [a.text, "return x"]) for a in atoms]
    verdict = judged(functions, calls)
    assert verdict.correct, verdict.detail
    assert verdict.total == len(atoms) * INPUTS


def test_a_wrong_meaning_would_be_noticed() -> None:
    assert judged([" return x[::-1]\n"], [(0, [[1, 2]], [1, 2])]).correct is False


def test_idle_statements_change_nothing() -> None:
    random = Random(1)
    for kind, ways in IDLE.items():
        inputs = [draw_arguments((kind,), random, size, size) for size in range(6)]
        functions = [body([*way, "return x"]) for way in ways]
        calls = [(i, given, given[0]) for i in range(len(ways)) for given in inputs]
        assert judged(functions, calls).correct, kind
    inputs = [draw_arguments(("list",), random, size, size) for size in range(6)]
    functions = [body([way, "return sorted(x)"]) for way in BEFORE_SORT]
    assert judged(
        functions, [(i, given, sorted(given[0])) for i in range(len(BEFORE_SORT)) for given in inputs]
    ).correct


def test_the_first_levels_are_the_measured_family() -> None:
    assert (len(LISTS.operations), len(LISTS.atoms), len(LIST_ENDS)) == (16, 42, 4)
    assert all(len(atom.words) == 3 and len(set(atom.words)) == 3 for atom in LISTS.atoms)
    [drop] = [atom for atom in LISTS.atoms if atom.text == "x=x[2:]"]
    assert drop.words == ("drop 2", "skip 2", "without first 2")
    for level in (1, 2, 3):
        assert [len(plan.pools) for plan in LEVELS[level]] == [level]


def test_statements_of_a_plan_fit_together() -> None:
    for level, plans in LEVELS.items():
        for plan in plans:
            kinds: list[str] = [plan.arguments[0]]
            for pool in plan.pools:
                for atom in pool.atoms:
                    assert atom.takes == kinds[-1], (level, atom.text)
                kinds.append(pool.atoms[0].gives)
                assert {atom.gives for atom in pool.atoms} == {kinds[-1]}
            assert {end.takes for end in plan.ends} == {kinds[-1]}
            assert len(set(kinds)) == 1 or not plan.shuffled


def test_meanings_leave_their_arguments_alone() -> None:
    random = Random(2)
    for level in LEVELS:
        for _ in range(50):
            program = draw_program(level, random)
            given = draw_arguments(program.arguments, random, 3, 8)
            before = repr(given)
            program(given)
            assert repr(given) == before


def test_mistakes_fit_and_idle_work_is_longer() -> None:
    random = Random(3)
    for level in LEVELS:
        for _ in range(100):
            program = draw_program(level, random)
            assert len(with_mistake(program, level, random).atoms) == len(program.atoms)
            behaviour(with_mistake(program, level, random))
            assert len(body(with_idle_work(program, random))) > len(program.body)


def test_equal_behaviour_has_one_fingerprint_whatever_the_text() -> None:
    by_text = {atom.text: atom for atom in LISTS.atoms}
    program = draw_program(2, Random(0))
    reverse, rotate = by_text["x=x[::-1]"], by_text["x=x[1:]+x[:1]"]
    end = LIST_ENDS[0]
    nothing = program._replace(atoms=(), end=end)
    twice = program._replace(atoms=(reverse, reverse), end=end)
    once = program._replace(atoms=(rotate,), end=end)
    assert behaviour(nothing) == behaviour(twice) != behaviour(once)
