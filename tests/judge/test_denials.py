"""What words take back is no answer, and what they say of something else is one; thinking ends by any spelled tag."""

from __future__ import annotations

import pytest

from rlvrlab.judge.denials import is_denied
from rlvrlab.judge.extract import boxed, fenced, hashed, program_in, tagged, value_in
from rlvrlab.judge.thinking import NAMES, SPELLINGS, after_thinking

DENIED = (
    "The answer is not X", "It is not X", "it isn't X", "It’s not the right answer: X", "not X", "NOT X", "never X",
    "The answer cannot be X", "The answer can't be X", "It is not equal to X", "is not necessarily the optimal list X",
    "anything but X", "everything except X", "The wrong answer is X", "incorrect answer: X", "an invalid list: X",
    "**not** X", "is not $X", "X is not the answer", "X is wrong.", "X isn't correct", "X is not right",
    "X cannot be it", "X, which is not the answer", "**X** is incorrect", "X is no solution", "neither X",
)  # fmt: skip
ASSERTED = (
    "The answer is X", "It is not 4 but X", "It is not 4. X", "prime or not X", "whether or not X", "If not, it is X",
    "no two of them are adjacent: X", "nodes that are not connected to each other are X",
    "such a tour does not exist: X", "I was wrong: X", "4 is wrong, X", "not\nX", "nothing is left: X",
    "X is the answer, not 4", "X. It is not a tree.", "X is not connected to the others", "X are not adjacent",
    "X is not the only answer", "X is right", "knot X", "It is false that there is more: X", "one cannot do better: X",
    "X\nis wrong",
)  # fmt: skip


@pytest.mark.parametrize("sentence", DENIED)
def test_words_that_take_an_answer_back(sentence: str) -> None:
    place = sentence.index("X")
    assert is_denied(sentence, place, place + 1)
    for mark in ("\\boxed{5}", "<answer>5</answer>"):
        said = sentence.replace("X", mark)
        assert boxed(said) is None and tagged(said) is None


@pytest.mark.parametrize("sentence", ASSERTED)
def test_words_that_speak_of_something_else(sentence: str) -> None:
    place = sentence.index("X")
    assert not is_denied(sentence, place, place + 1)
    assert boxed(sentence.replace("X", "\\boxed{5}")) == tagged(sentence.replace("X", "<answer>5</answer>")) == "5"


def test_marks_and_blocks_that_are_denied() -> None:
    assert hashed("The answer is not #### 5") is None and hashed("It is not.\n#### 5") == "5"
    assert value_in("It is not\n```\n5\n```").code is None and value_in("It is\n```\n5\n```").code == "5\n"
    assert fenced("This is not the answer:\n```json\n5\n```", ("json",)) is None
    program = "This is not the answer:\n```python\nprint(5)\n```"
    assert program_in(program).code == "print(5)\n", "a program is what it does"


@pytest.mark.parametrize(("opening", "closing"), SPELLINGS)
def test_any_spelling_of_a_tag_hides_what_is_thought(opening: str, closing: str) -> None:
    assert after_thinking(f"{opening}5{closing}6") == "6"
    assert after_thinking(f"{opening}5") is after_thinking(f"<think>.</think>4\n{opening}5") is None
    assert after_thinking(f"{opening}5</think>6") == "6", "what closes whatever was opened"
    assert after_thinking(f"<think>a {opening} b</think>6", must_think=True) == "6"
    if "think" not in closing.lower().strip("</ |>[]").split():
        assert after_thinking(f"<think>5{closing}6") is None, "its own alone is closed by another spelling"


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
@pytest.mark.parametrize("name", NAMES)
def test_every_name_in_every_case(name: str, case) -> None:
    assert after_thinking(f"<{case(name)}>5") is None
    assert after_thinking(f"<{case(name)}>5</{case(name)}>6") == "6"


@pytest.mark.parametrize(
    "text", ["<rethink>5", "<thinker>5", "<think-tank>5", "answers[THINK] = 5", "[think]", "a < think"]
)
def test_what_only_looks_like_a_tag(text: str) -> None:
    assert after_thinking(text) == text


def test_where_thinking_is_asked_for_only_its_own_tag_will_do() -> None:
    assert after_thinking("<THINK>4</THINK>5", must_think=True) is None
    assert after_thinking("<think>3</think><THINK>4</THINK>5", must_think=True) == "5"
