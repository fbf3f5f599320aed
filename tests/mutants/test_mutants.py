"""The planted bugs: where they are, that they are bugs, and that the lists are up to date."""

from __future__ import annotations

import ast
from itertools import groupby

import mutant_lists
import mutant_rooms
import pytest
from mutant_names import names_for, speaking_tests
from mutant_plants import Plant, plants_in
from mutant_rooms import LEFT_OUT, QUOTA, SOURCE

CODE = '''
def f(x: int = 2) -> bool:
    """A text of 3 words."""
    if x < 1 and not x:
        raise ValueError(f"{x + 1} is 7 too much")
    sync(x)
    return max(x - 1, -x) == 0
'''


def test_every_kind_is_found_and_what_is_said_is_left_alone() -> None:
    found = {(plant.kind, plant.old.strip(), plant.new.strip()) for plant in plants_in("f.py", CODE)}
    assert found == {
        ("constant", "2", "3"), ("comparison", "<", "<="), ("constant", "1", "2"), ("condition", "and", "or"),
        ("sign", "not", ""), ("dropped call", "sync(x)", "pass"), ("comparison", "==", "!="), ("constant", "0", "1"),
        ("extreme", "max", "min"), ("operator", "-", "+"), ("sign", "-", ""),
    }  # fmt: skip


def test_a_plant_changes_one_place_and_its_name_does_not_depend_on_lines() -> None:
    moved = "# one more line\n" + CODE
    names = [plant.name for plant in plants_in("f.py", CODE)]
    assert names == [plant.name for plant in plants_in("f.py", moved)] and len(set(names)) == len(names)
    first = next(plant for plant in plants_in("f.py", CODE) if plant.kind == "extreme")
    assert first.planted(CODE) == CODE.replace("max(", "min(")


SOURCE_OF_THREE = """
def inner():
    return 1

def _hidden():
    return inner() + 2

class Outer:
    def go(self):
        return _hidden()
"""
TESTS_OF_THREE = """
def helper():
    return Outer().go()

def test_by_a_helper():
    assert helper()

class TestSome:
    def test_itself(self):
        assert inner()

def test_of_something_else():
    pass
"""


def test_tests_that_speak_of_a_function_are_found_through_callers_and_helpers() -> None:
    assert names_for(SOURCE_OF_THREE, SOURCE_OF_THREE.index("1")) == {"inner", "go", "Outer"}
    assert names_for(SOURCE_OF_THREE, SOURCE_OF_THREE.index("2")) == {"go", "Outer"}
    found = speaking_tests("f.py", TESTS_OF_THREE, {"inner", "Outer"})
    assert found == ["f.py::test_by_a_helper", "f.py::TestSome::test_itself"]
    assert speaking_tests("f.py", TESTS_OF_THREE, set()) == []


@pytest.mark.long
@pytest.mark.slow
def test_there_are_enough_in_every_room_and_each_is_python() -> None:
    plants: list[Plant] = mutant_lists.every_plant()
    rooms = {plant.file.partition("/")[0].removesuffix(".py") for plant in plants}
    assert len(plants) >= 150 and rooms >= QUOTA.keys() - {"randomness"}
    assert len({plant.name for plant in plants}) == len(plants)
    for plant in plants:
        assert mutant_rooms.tests_for(plant), plant.name
    for file, planted in groupby(sorted(plants, key=lambda plant: plant.file), key=lambda plant: plant.file):
        text = (SOURCE / file).read_text("utf-8")
        sound = ast.dump(ast.parse(text))
        for plant in planted:
            assert ast.dump(ast.parse(plant.planted(text))) != sound, plant.name


def test_the_lists_name_what_is_there() -> None:
    for start in LEFT_OUT:
        assert list(SOURCE.glob(f"{start}*")), f"{start} in LEFT_OUT is gone"
    assert all(mutant_lists.accepted().values()), "a survivor is accepted for a reason"
