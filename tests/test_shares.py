"""Shares, differences and intervals in words: one house style, and no minus sign on what rounds to zero."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from sources import SOURCE

from rlvrlab.evals.cards import Card, Gain
from rlvrlab.evals.compare import bounds_note
from rlvrlab.shares import (
    about,
    bracket,
    cell,
    difference,
    markdown_cell,
    pass_at_k,
    percent,
    points,
    share_words,
    signed,
)
from rlvrlab.skills.metrics import diversity
from rlvrlab.study.measures import difference_words
from rlvrlab.train.card import card_table

NEGATIVE_ZERO = re.compile(r"[-−]0(\.0+)?(?![\d.])")
TINY = (-0.0001, -0.0004, 0.0004)


def test_house_style() -> None:
    assert percent(0.815, 0.756, 0.862) == "81.5 % [75.6, 86.2]" and percent(0.815) == "81.5 %"
    assert cell(0.633, 0.507, 0.744) == "63.3 [50.7, 74.4]" and about(0.452) == "45 %"
    assert points(0.023, -0.047, 0.093) == "+2.3 points [-4.7, +9.3]" and points(-0.05) == "-5.0 points"
    assert difference(0.023, -0.047, 0.093) == "+2.3 [-4.7, +9.3]" and signed(0.35) == "+0.35"
    assert bracket(None, 0.3) == bracket(0.2, None) == "" and percent(0.5, None, 0.6) == "50.0 %"
    late = {"value": 0.3, "low": 0.2, "high": 0.4, "late": True, "from": {"step": 8}}
    assert share_words(late) == "30.0 [20.0, 40.0] at step 8" and share_words(None) == "–"


def test_what_rounds_to_zero_has_no_minus_sign_anywhere() -> None:
    gain = Gain("grpo", "test", 0.5, 0.4999, *TINY)
    cards = [Card("sft", 1, {}, {"a": 1.0}), Card("grpo", 2, {}, {"a": 1.0})]
    told = [points(*TINY), difference(*TINY), signed(-0.001), percent(-1e-9), gain.words, str(card_table(cards)),
            *bounds_note("accepted@1", (-0.0001, 0.2)), difference_words(*TINY, share=True)]  # fmt: skip
    assert [text for text in told if NEGATIVE_ZERO.search(text)] == []


def test_a_cell_of_a_table_ends_nothing() -> None:
    assert markdown_cell("a|b\nc") == "a\\|b c" and markdown_cell(None) == "None"


def test_no_file_writes_percentages_of_its_own() -> None:
    """`45%` stood beside `45.0 %` in one table. The axes of figures are Vega's, which has a format of its own."""
    own = re.compile(r":\.\d%[}\"]|100 \* [^}{]*:[+.][^}]*\}|:\+\.\d[fg]\}")
    found = {
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if own.search(line)
    }
    assert {line for line in found if not line.startswith("shares.py")} == set()


@pytest.mark.parametrize(("right", "wrong"), [(0, 4), (1, 3), (3, 1), (4, 0)])
def test_diversity_counts_pass_at_k_as_evaluations_do(right: int, wrong: int) -> None:
    group = [True] * right + [False] * wrong
    found = diversity([group], [["text"] * len(group)])
    assert {f"pass@{k}": found[f"pass@{k}"] for k in (1, 2, 4)} == {
        f"pass@{k}": pass_at_k(4, right, k) for k in (1, 2, 4)
    }


def test_cards_without_a_shared_problem_have_no_change() -> None:
    from rlvrlab.evals.cards import change

    one, two = SimpleNamespace(outcomes={"a": 1.0}), SimpleNamespace(outcomes={"b": 0.0})
    assert change(one, two) is None and change(one, one) is not None
