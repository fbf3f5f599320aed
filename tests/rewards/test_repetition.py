"""The tandem-repeat test: exact, against the definition, and fast."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlvrlab.rewards.repetition import MAX_TEXT, tandem_period

STOCK = "the of and to in is that it was for on are as with his they be at one have this from or had by not"
WORDS = STOCK.split()


def prose(random: Random, length: int) -> str:
    return " ".join(random.choices(WORDS, k=length // 3 + 1))[:length]


def by_definition(text: str) -> bool:
    """Some block of at least 20 characters, five times in a row."""
    return any(
        text[i : i + period] * 5 == text[i : i + 5 * period]
        for period in range(20, len(text) // 5 + 1)
        for i in range(len(text) - 5 * period + 1)
    )


@given(
    st.text(alphabet="ab", max_size=45),
    st.integers(1, 8),
    st.text(alphabet="abc", max_size=60),
    st.text(alphabet="ab", max_size=40),
)
@example("a" * 20, 5, "", "")
@example("a" * 19 + "b", 5, "x", "")
@example("a" * 18 + "b", 6, "x", "y")
def test_agrees_with_the_definition(block: str, times: int, before: str, after: str) -> None:
    text = before + block * times + after
    period = tandem_period(text)
    assert bool(period) is by_definition(text)
    if period:
        assert period >= 20 and any(
            text[i : i + period] * 5 == text[i : i + 5 * period] for i in range(len(text) - 5 * period + 1)
        )


@pytest.mark.slow
def test_no_planted_repeat_is_missed() -> None:
    for seed in range(1000):
        random = Random(seed)
        block = prose(random, random.randint(20, 300))
        text = (
            prose(random, random.randint(0, 3000))
            + block * random.randint(5, 9)
            + prose(random, random.randint(0, 999))
        )
        assert tandem_period(text), seed


def test_no_false_alarm_on_prose_and_four_repeats() -> None:
    for seed in range(40):
        random = Random(seed)
        assert tandem_period(prose(random, 3000)) == 0
        block = prose(random, 200)
        assert tandem_period("x" + block * 4 + "y" + prose(random, 100)) == 0
        assert tandem_period("x" + (block * 5)[:-1] + "\0") == 0


@pytest.mark.parametrize("text", ["", "a", "a" * 99, "ab" * 49, "\ud800" * 50])
def test_short_texts_have_none(text: str) -> None:
    assert tandem_period(text) == 0


def test_surrogates_and_wide_characters() -> None:
    assert tandem_period("\ud800" * 100) == 20
    assert tandem_period("😀é" * 60) == 20


def test_the_end_of_a_long_text_decides() -> None:
    loop, rest = "round and round and round it goes. ", prose(Random(0), MAX_TEXT)
    assert tandem_period(rest + loop * 50)
    assert tandem_period(loop * 50 + rest) == 0


def test_fast_enough_on_twenty_thousand_characters(quickly) -> None:
    random = Random(1)
    ragged = "".join("a" * random.randint(40, 95) + "b" for _ in range(300))
    texts = [prose(random, 20_000), prose(random, 10_000) * 2, prose(random, 4_100) * 5, "a" * 20_000, ragged]
    for text in texts:
        # 0.02 is what the benchmark shows; loaded machines get room.
        quickly(0.05, lambda text=text: tandem_period(text[:20_000]))
