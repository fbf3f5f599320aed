"""studies/countdown_gsm8k/gsm8k_forms.py: a number is found in whatever form, and the parts of a gain add up to it."""

from __future__ import annotations

import json
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "studies" / "countdown_gsm8k"
forms = runpy.run_path(str(STUDY / "gsm8k_forms.py"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2 + 3 = 5\n#### 5", 5),
        ("He is \\(\\boxed{1,021}\\) years old in 3 years.", 1021),
        ("\\boxed{7}\n#### 8", 8),
        ("#### 7\n#### 8", 8),  # a hedge to the verifier; here the last number
        ("so \\[ \\frac{360}{4} = 90.5", Fraction(181, 2)),
        ("It is -4, then", -4),
        ("none at all", None),
    ],
)
def test_the_number_is_found_in_whatever_form(text: str, number: Fraction | None) -> None:
    assert forms["number_told"](text) == number


def marks(outcomes: dict, what: str, arm: str) -> np.ndarray:
    return np.array([int(one) for one in outcomes[what][arm]])


def test_every_answer_that_was_accepted_tells_the_right_number_and_parts_add_up() -> None:
    exams = forms["Exams"](STUDY / "results" / "qwen_gsm8k.json")
    outcomes = json.loads((STUDY / "results" / "qwen_gsm8k.json").read_text())["outcomes"]["gsm8k"]
    for arm in exams.arms:
        assert (marks(outcomes, "told", arm) >= marks(outcomes, "greedy", arm)).all()
    rows = [row.split(" | ") for row in forms["parts_table"](exams).splitlines()[2:]]
    *parts, whole = [float(points.rstrip(" |").replace("−", "-")) for _, points in rows]
    assert whole == pytest.approx(sum(parts), abs=0.2)  # each is rounded to a tenth
