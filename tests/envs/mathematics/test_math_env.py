"""Mathematics: row shapes, exact numbers first, symbols in the jailed worker; word problems made here."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.answers import squeezed
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.gsm_synthetic import LARGEST, stories
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.mathematics.equality import is_hedged
from rlvrlab.envs.mathematics.shapes import Item, item_of
from rlvrlab.envs.split import role_of
from rlvrlab.errors import UserError
from rlvrlab.types import ErrorKind, Problem

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)


@pytest.mark.parametrize(
    ("row", "item"),
    [
        ({"problem": "q", "solution": "s", "answer": "3"}, Item("q", "3", 0)),
        ({"question": "q", "answer": 70.0}, Item("q", "70.0", 0)),
        ({"content": "q", "answer": "x"}, Item("q", "x", 0)),
        ({"problem": "q", "solution": "so \\boxed{1.6} cm"}, Item("q", "1.6", 0)),
        ({"question": "q", "options": ["A)5", "B)6"], "correct": "B"}, Item("q\nA) 5\nB) 6", "B", 2)),
        ({"question": "q", "choices": ["x", "y"], "answer": 1, "type": "t"}, Item("q\nA) x\nB) y", "B", 2)),
        ({"question": "q", "options": "A) 1 B) 2", "Answer": "A"}, Item("q\nA) 1 B) 2", "A", 4)),
        (
            {"question": "q", "options": {"A": "1", "B": "2"}, "label": "B", "answer": None},
            Item("q\nA) 1\nB) 2", "B", 2),
        ),
        ({"question": "q", "options": None, "label": None, "answer": "2"}, Item("q", "2", 0)),
        (
            {"question": "q", "options": ["1", "2", "3"], "label": "A C", "answer": None},
            Item("q\nA) 1\nB) 2\nC) 3", "AC", 3),
        ),
        ({"question": "q", "answer": "C. x", "choice_answer": "C"}, Item("q", "C", 4)),
        ({"question": "q", "answer": "\\ln 2", "choice_answer": ""}, Item("q", "\\ln 2", 0)),
        ({"question": "q", "answer": "ACD", "type": "multi"}, Item("q", "ACD", 4)),
        ({"question": "q", "answer": "1/2", "type": "blank"}, Item("q", "1/2", 0)),
        ({"question": "q", "context": None, "final_answer": ["$\\frac{9}{32}$"]}, Item("q", "$\\frac{9}{32}$", 0)),
        ({"Body": "b.", "Question": "q?", "Answer": 51.0}, Item("b. q?", "51.0", 0)),
        ({"body": "b", "question": "q?", "answer": "9 (apples)"}, Item("b q?", "9", 0)),
        ({"input": "q", "target": 43.0}, Item("q", "43.0", 0)),
        ({"question": "q", "table": "t", "choices": None, "answer": "3"}, Item("t\nq", "3", 0)),
        (
            {"question": "q", "table": "t", "choices": ["yes", "no"], "answer": "no"},
            Item("t\nq\nA) yes\nB) no", "B", 2),
        ),
        ({"question": "q", "answer": "2*9=18\n#### 18"}, Item("q", "18", 0)),
        ({"question": "q", "answer": ""}, None),
    ],
)
def test_shapes(row: dict[str, Any], item: Item | None) -> None:
    assert item_of(row) == item


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "q"}, ":1: columns"),
        ({"problem": "q", "solution": "no box"}, ":1: column 'solution'"),
        ({"question": "q", "options": ["A)5", "B)6"], "correct": "C"}, ":1: the answer 'C'"),
        ({"question": "q", "choices": ["x"], "answer": 30}, ":1:"),
        ({"question": "q", "options": 3, "correct": "A"}, ":1:"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = tmp_path / "rows_test.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(UserError, match=re.escape(str(path)) + message):
        Mathematics(path=str(path)).problems("test", 1, 0)


@pytest.mark.parametrize(
    ("answer", "gold", "hedged"),
    [
        ("x = 5", "5", False), ("f(x) = 5", "5", False), ("\\text{Area} = 5", "5", False), ("6=5", "5", True),
        ("x=6=5", "5", True), ("2x=5", "5", True), ("5 \\text{ or } 6", "5", True), ("5 or 6", "12,345", True),
        ("x=1 \\text{ or } x=2", "1,2", False), ("x=1, y=2", "(1,2)", False), ("(3,4)=(1,2)", "(1,2)", True),
        ("y=x+1", "y=x+1", False), ("5 \\approx 5.1", "5", True), ("not 5", "1,2", True),
        ("x \\ne 3", "x \\ne 3", False),
    ],
)  # fmt: skip
def test_hedges(answer: str, gold: str, hedged: bool) -> None:
    assert is_hedged(answer, gold) is hedged


def ask(gold: str) -> Problem:
    return Problem("p", "math", "math", "", {"answer": gold, "choices": 0})


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}", True), ("x^2+2x+1", "(x+1)^2", True), ("x=5", "5", True),
        ("\\sqrt{25}", "5", True), ("2^5", "32", True), ("(3,\\pi/2)", "\\left( 3, \\frac{\\pi}{2} \\right)", True),
        ("\\{2,1\\}", "\\{1,2\\}", True), ("(1,2)", "(2,1)", False), ("\\sqrt{26}", "5", False),
        ("x^2", "(x+1)^2", False), ("5 \\pm 1", "5", False), ("\\text{no idea}", "\\sqrt{2}", False),
        ("__import__('os')", "\\sqrt{2}", False),
    ],
)  # fmt: skip
def test_symbols(answer: str, gold: str, right: bool) -> None:
    verdict = Mathematics().verify(ask(gold), f"\\boxed{{{answer}}}")
    assert verdict.correct is right
    assert verdict.score == verdict.parts["correct"] == float(right)


@needs_math_verify
@pytest.mark.slow
def test_a_tower_of_powers_is_ended_and_not_right() -> None:
    verdict = Mathematics().verify(ask("\\sqrt{2}"), "\\boxed{9^{9^{9^9}}}")
    assert verdict.correct is False and verdict.error in (ErrorKind.TIMEOUT, ErrorKind.MEMORY)


@pytest.mark.skipif(importlib.util.find_spec("math_verify") is not None, reason="math-verify is there")
def test_without_math_verify_symbols_stay_unjudged_and_numbers_do_not() -> None:
    verdict = Mathematics().verify(ask("\\sqrt{2}"), "\\boxed{2^{1/2}}")
    assert (verdict.correct, verdict.error) == (None, ErrorKind.INFRA) and "rlvrlab[math]" in verdict.detail
    assert Mathematics().verify(ask("18"), "\\boxed{18}").correct is True
    assert Mathematics().verify(ask("\\sqrt{2}"), "\\boxed{\\sqrt{2}}").correct is True


def test_a_broken_problem_is_unjudged_and_leaves_its_neighbours_alone() -> None:
    broken = Problem("b", "math", "math", "", None)
    verdicts = Mathematics().verify_many([(broken, "\\boxed{1}"), (ask("1"), "\\boxed{1}")])
    assert [verdict.correct for verdict in verdicts] == [None, True]


def test_made_exercises_cover_every_kind() -> None:
    problems = Mathematics().problems("train", 50, 0)
    kinds = Counter(bool(problem.reference["choices"]) for problem in problems)
    assert kinds == {False: 40, True: 10}
    letters = {problem.reference["answer"] for problem in problems if problem.reference["choices"]}
    assert len(letters) >= 3, "the right choice is not always the same letter"


def test_made_exercises_belong_to_their_role_by_content() -> None:
    for role in ("train", "dev", "test"):
        problems = Mathematics().problems(role, 60, 3)  # type: ignore[arg-type]
        questions = [problem.prompt.rpartition("\nReason")[0] for problem in problems]
        assert {role_of("mathematics", squeezed(question)) for question in questions} == {role}


def played(question: str) -> int:
    """Read a made story back, sentence by sentence: an oracle that shares nothing with the generator."""
    first, *rest = re.split(r"(?<=\.) ", question)
    value = int(re.search(r"has (\d+)", first).group(1))  # type: ignore[union-attr]
    for sentence in rest[:-1]:
        numbers = [int(digits) for digits in re.findall(r"\d+", sentence)]
        if "finds" in sentence:
            value += numbers[0]
        elif "buys" in sentence:
            value += numbers[0] * numbers[1]
        elif "sells" in sentence:
            value -= numbers[0] * numbers[1]
        elif "gives presents" in sentence:
            value *= numbers[0]
        elif "gives" in sentence:
            value -= numbers[0]
        else:
            assert "heaps" in sentence
            assert value % numbers[0] == 0
            value //= numbers[0]
        assert 1 <= value <= LARGEST
    return value


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_made_stories_are_true(steps: int) -> None:
    stream = stories(steps, "train", 0)
    for _ in range(40):
        story = next(stream)
        assert played(story.question) == int(story.answer)
        for left, right in re.findall(r"<<([^=]+)=(\d+)>>", story.solution):
            one, sign, other = re.fullmatch(r"(\d+)([-+*/])(\d+)", left).groups()  # type: ignore[union-attr]
            a, b = Fraction(one), Fraction(other)
            assert {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign] == int(right)


def test_arithmetic_never_crosses_roles_under_other_names() -> None:
    def numbers(role: Any) -> set[tuple[str, ...]]:
        kinds = ("finds", "gives presents", "gives", "buys", "sells", "splits")
        found = Gsm8k(levels=(1,)).problems(role, 150, 1)
        return {
            (*re.findall(r"\d+", p.prompt.split("\n")[0]), next(kind for kind in kinds if kind in p.prompt))
            for p in found
        }

    assert not numbers("train") & numbers("test") and not numbers("train") & numbers("dev")
