"""The partial-prompt probe: a policy that has memorised is found out, one that has not is not accused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.evals.answering import Answer, Ask, Ready, failed
from rlvrlab.evals.contamination import (
    CONTINUE,
    bare_texts,
    compared,
    contamination,
    halved,
    longest_common_subsequence,
    words,
)
from rlvrlab.types import Completion, Problem

QUESTIONS = [
    f"{name} has {n} red marbles and gives {n // 2} of them to a friend; how many marbles does {name} have left now?"
    for n, name in enumerate(["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hanna"], 7)
]
ASKED = "Read carefully.\n\n{}\nSolve it step by step. End with a line that holds #### and the final number alone."
PROBLEMS = [Problem(f"p{i}", "gsm8k", "gsm8k", ASKED.format(q), "1") for i, q in enumerate(QUESTIONS)]


class Parrot:
    """Continues any text it knows; says something else otherwise."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known, self.seen = list(known), list[Ask]()

    def identity(self) -> dict[str, str]:
        return {"kind": "parrot"}

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        for ask in asks:
            self.seen.append(ask)
            begun = ask.problem.prompt.removeprefix(CONTINUE)
            rest = next((text[len(begun) :] for text in self.known if text.startswith(begun)), " a cow in the meadow")
            yield [(ask, Answer(Completion(rest, (), ()), 5) if rest != "FAIL" else failed("gone"))]


def test_a_policy_that_knows_half_of_the_questions_is_found_at_one_half() -> None:
    parrot = Parrot(QUESTIONS[:4])
    found = contamination(parrot, PROBLEMS, "gsm8k")
    facts = found.facts()
    assert (facts["problems"], facts["exact"]) == (8, 0.5)
    assert facts["exact_low"] < 0.5 < facts["exact_high"]
    assert facts["rouge_l_low"] <= facts["rouge_l"] <= facts["rouge_l_high"]
    assert [one.exact for one in found.problems] == [True] * 4 + [False] * 4, "worst first"
    assert all(ask.sampling.temperature == 0 for ask in parrot.seen)
    assert not any("####" in ask.problem.prompt or "####" in one.rest for ask in parrot.seen for one in found.problems)


def test_an_innocent_policy_is_not_accused_and_chat_models_are_asked_in_words() -> None:
    parrot = Parrot([])
    facts = contamination(parrot, PROBLEMS, "gsm8k", chat=True).facts()
    assert (facts["exact"], facts["prefix"]) == (0.0, 0.0) and facts["rouge_l"] < 0.3
    assert all(ask.problem.prompt.startswith(CONTINUE) for ask in parrot.seen)


def test_what_is_too_short_or_unanswered_is_counted_apart() -> None:
    short = [Problem("s", "x", "x", "Two plus two?", "4"), Problem("t", "x", "x", "One?", "4")]
    facts = contamination(Parrot([]), short, "x").facts()
    assert (facts["problems"], facts["too_short"], facts["exact"]) == (0, 2, 0.0)

    class Broken(Parrot):
        def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
            yield [(ask, failed("connection refused")) for ask in asks]

    facts = contamination(Broken([]), PROBLEMS, "gsm8k").facts()
    assert (facts["problems"], facts["unanswered"]) == (0, 8)


def test_by_hand() -> None:
    one = compared("p", "May. How many clips?", "May. How many did she sell")
    assert (one.exact, one.prefix) == (False, pytest.approx(4 / 6))
    assert one.rouge_l == pytest.approx(2 * 4 / 12)
    assert compared("p", "a b c", "A  b c and more").exact
    assert compared("p", "a b c", "").rouge_l == 0.0
    assert halved("one two three four five six seven eight nine ten") == (
        "one two three four five six", "seven eight nine ten",
    )  # fmt: skip
    assert halved("word") == ("word", "")


def test_instructions_are_what_all_prompts_share() -> None:
    assert bare_texts(PROBLEMS) == QUESTIONS
    assert bare_texts(PROBLEMS[:1]) == [PROBLEMS[0].prompt]


@given(st.lists(st.sampled_from("abc"), max_size=7), st.lists(st.sampled_from("abc"), max_size=7))
def test_the_longest_common_subsequence_against_all_subsequences(a: list[str], b: list[str]) -> None:
    def below(text: list[str]) -> set[tuple[str, ...]]:
        return {tuple(c for i, c in enumerate(text) if mask >> i & 1) for mask in range(2 ** len(text))}

    assert longest_common_subsequence(a, b) == max(len(s) for s in below(a) & below(b))


@given(any_text(max_size=60), st.floats(0, 1))
def test_halves_hold_all_words_in_order(text: str, share: float) -> None:
    given_part, rest = halved(text, share)
    assert words(given_part) + words(rest) == words(text)
