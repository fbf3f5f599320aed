"""What fuzzing found stays mended, a few new inputs are tried each time, and every reader takes linear time."""

from __future__ import annotations

import random
import time

import pytest
from fuzz_inputs import LARGE, WORDS
from fuzz_targets import TARGETS, Input, Target
from fuzzing import fuzz, inputs, kept, shrunk, trouble_of
from hypothesis import given, settings
from hypothesis import strategies as st

FINDS = kept()


@pytest.mark.parametrize(("target", "given"), [find[1:] for find in FINDS], ids=[find[0] for find in FINDS])
def test_what_was_found_stays_mended(target: Target, given: Input) -> None:
    assert trouble_of(target, given) == ""


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
@settings(max_examples=5)
@given(seed=st.integers(0, 1 << 32))
def test_every_reader_takes_any_small_input(target: Target, seed: int) -> None:
    assert trouble_of(target, target.input(random.Random(seed), 200)) == ""


@pytest.mark.slow
def test_a_few_seconds_find_nothing() -> None:
    told: list[str] = []
    tried, finds = fuzz(10.0, 20_000, told.append)
    assert tried > len(TARGETS) and not finds, told


def test_a_seed_gives_the_same_inputs() -> None:
    for target in TARGETS:
        once, again = (next(inputs(target, 7)) for _ in range(2))
        assert once == again


@pytest.mark.parametrize("fault", ["an error", "slow", "a wrong span"])
def test_a_planted_fault_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr("fuzzing.QUICK_S", 0.005)  # the planted loop has no end

    def read(text: str) -> object:
        if "elif" in text and fault == "an error":
            raise KeyError("planted")
        if ";" in text and fault == "slow":
            while True:
                pass
        assert "@" not in text or fault != "a wrong span"
        return None

    target = Target("planted", read, "python")
    given = next(text for _, text in inputs(target, 0) if len(text) < 500 and trouble_of(target, text))
    trouble = trouble_of(target, given)
    small = shrunk(target, given, trouble, 30.0)
    assert len(small) <= 4 and trouble_of(target, small).partition(":")[0] == trouble.partition(":")[0]


@pytest.mark.parametrize(("power", "found"), [(1, False), (2, True)])
def test_slow_is_what_grows_faster_than_its_input(monkeypatch: pytest.MonkeyPatch, power: int, found: bool) -> None:
    monkeypatch.setattr("fuzzing.QUICK_S", 0.005)

    def read(text: str) -> None:
        ends = time.thread_time() + 0.01 * (len(text) / 1000) ** power  # twice what is allowed for all of it
        while time.thread_time() < ends:
            pass

    assert trouble_of(Target("planted", read, "python"), "a" * 1000).startswith("slow") is found


READERS = [target for target in TARGETS if target.kind != "value"]


@pytest.mark.slow
@pytest.mark.parametrize("target", READERS, ids=[target.name for target in READERS])
def test_a_million_characters_take_about_a_second(target: Target) -> None:
    rng = random.Random(target.name)
    for unit in ("a", " ", "\n", rng.choice(WORDS[target.kind]), rng.choice(WORDS[target.kind])):
        text = unit * (LARGE // len(unit))
        assert trouble_of(target, text.encode() if target.binary else text) == "", unit
