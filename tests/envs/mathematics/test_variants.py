"""Near-misses of a reference are refused and respellings accepted, for references of every shape and of all suites."""

from __future__ import annotations

import importlib.util
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from variants import Variants, near_misses, respellings

from rlvrlab.envs.data_set import split_rows
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.mathematics.environment import compared
from rlvrlab.judge.extract import boxed
from rlvrlab.judge.modes.mathematics import exactly_equal
from rlvrlab.types import Problem, Verdict

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)
GOLDS = (
    "$x=\\frac{9}{2}$",
    "- \\frac { 2 } { 9 }", "$\\left(-3, \\frac{1}{2}, 1\\right)$", "$80-10 i$", "5.4 \\text{ cents}",
    "$\\frac{7 x+3 y}{x^{2} y^{2}}$", "p - q", "$y=c e^{-(\\ln x)^{2} / 2}$", "$\\max$ at $x=0$, min at $x= \\pm 11$",
    "$P(X=25)=0.45, P(X=30)=0.55$, and $P(X=x)=0$ otherwise", "3:4", "17.5%", "$12 \\mathrm{~min}$", "1:58 am",
    "concave up on $(0, \\infty)$", "$C$ is not invertible", "$(-\\infty,-1) \\cup(0,1)$", "x > \\frac { 1 } { 3 }",
    "$\\left[\\begin{array}{rr}12 & -7 \\\\ -5 & 3\\end{array}\\right]$", "$\\sum_{k=1}^{30} 2^{k-1}$", "$2+\\pi$",
    "$\\cos (t)=0$ when $t=\\frac{\\pi}{2}+\\pi k$ for any integer $k$.", "\\{1\\pm\\sqrt{5},-2\\}", "$5 \\sqrt[3]{2}$",
    "radius: 1 , center: $(2,3,5)$", "$[-3,0) \\cup(0,4) \\cup[5, \\infty)$", "$x^{2}+50=0$", "$2 x^{5 / 2} / 5+C$",
    "11:55 p.m. on 24 December 2014.", "204_5", "15\\mbox{ cm}^2", "$2\\frac58$", "October", "6.7E-5",
    "$-2,10$", "$2,600$", "0", "12",
)  # fmt: skip
SUITES = ("math_suites/*.jsonl.gz", "math500/test.jsonl.gz", "svamp/SVAMP.json.gz")
SAMPLE = 40
"""References of the suites that the judge's worker is asked about: each variant costs it a quarter of a second."""


@cache
def references() -> list[str]:
    """Every reference of the suites that is no choice, once."""
    beside = Path(__file__).resolve().parents[4] / "shared"
    root = Path(os.environ.get("RLVRLAB_DATA") or Path(os.environ.get("RLVRLAB_SHARED", beside)) / "data")
    paths = [path for pattern in SUITES for path in sorted(root.glob(pattern))]
    if not paths:
        pytest.skip("needs math_suites under RLVRLAB_DATA or RLVRLAB_SHARED/data")
    found: dict[str, None] = {}
    for path in paths:
        env = Mathematics(path=str(path))
        for role, size in Counter(role for _, role in split_rows(env, path)).items():
            asked = [problem.reference for problem in env.problems(role, size, 0)]
            found |= dict.fromkeys(one["answer"] for one in asked if not one["choices"])
    return list(found)


def at_once(answer: str, gold: str) -> bool | None:
    """The verdict as far as it needs no worker."""
    read = boxed(f"\\boxed{{{answer}}}")
    if not read:
        return False
    verdict = compared(read, gold)
    return bool(verdict.correct) if isinstance(verdict, Verdict) else exactly_equal(read, gold)


def judged_wrongly(golds: Any, variants: Callable[[str], Variants], right: bool) -> list[tuple[str, str, str]]:
    found = ((kind, gold, text) for gold in golds for kind, text in variants(gold))
    return [one for one in found if at_once(one[2], one[1]) is (not right)]


@pytest.mark.parametrize(("variants", "right"), [(near_misses, False), (respellings, True)])
def test_references_of_every_shape(variants: Callable[[str], Variants], right: bool) -> None:
    assert judged_wrongly(GOLDS, variants, right) == []


def test_every_kind_of_change_is_made_and_nearly_all_are_settled_without_a_worker() -> None:
    misses = [(kind, text, gold) for gold in GOLDS for kind, text in near_misses(gold)]
    assert {kind for kind, _, _ in misses} == {
        "number", "case", "letter", "sign", "relation", "bracket", "function", "word", "list", "renamed", "scale",
        "percent", "unit", "roman", "cents", "stuck", "money",
    }  # fmt: skip
    left = [miss for miss in misses if at_once(*miss[1:]) is None]
    assert len(misses) > 250 and len(left) < 0.1 * len(misses)
    assert all(text != gold for _, text, gold in misses)


@pytest.mark.parametrize(
    ("gold", "text"),
    [("6.7E-5", "6.7e-5"), ("$2 x+C$", "$2 x+c$"), ("13 \\text{ apples}", "13 \\text{ otter}"), ("Evelyn", "evelyn")],
)
def test_what_only_looks_like_a_near_miss_is_none(gold: str, text: str) -> None:
    assert text not in [one for _, one in near_misses(gold)]


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [("f^{\\prime}(x)", "f'(x)", True), ("y''", "y^{\\prime\\prime}", True), ("f(x)", "f'(x)", False)],
)
def test_primes_are_written_in_two_ways(answer: str, gold: str, right: bool) -> None:
    assert at_once(answer, gold) is right


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("variants", "right"), [(near_misses, False), (respellings, True)])
def test_all_references_of_all_suites(variants: Callable[[str], Variants], right: bool) -> None:
    golds = references()
    assert len(golds) > 4500
    assert judged_wrongly(golds, variants, right) == []


NOT_AN_EXPRESSION = re.compile(r"(?<!\\)\b[a-zA-Z]{3}|[=<>,;:]|approx|mbox|text|mathrm|circ|[0-9]_|[^$]\$.")
"""Parts of such a reference have no value, and the parser passes them over."""


def value_of(text: str) -> Any:
    """What a formula comes to where each variable has a value of its own; None for anything but one expression."""
    import math_verify
    import sympy

    wrapped = text if "$" in text else f"${text}$"
    found = math_verify.parse(wrapped, [math_verify.LatexExtractionConfig()], parsing_timeout=None)
    if not found or not isinstance(found[0], sympy.Expr):
        return None
    values = {one: sympy.Rational(7 * (sum(map(ord, one.name)) % 89) + 3, 7) for one in found[0].free_symbols}
    number = found[0].subs(values).evalf(30)
    return number if number.is_number and number.is_finite else None


def differ_in_value(golds: list[str], variants: Callable[[str], Variants], kinds: set[str]) -> list[bool]:
    """For every variant that is one expression, as its reference is: does it come to another value?"""
    found = []
    for gold in golds:
        value = value_of(gold)
        texts = [text for kind, text in variants(gold) if kind in kinds] if value is not None else []
        pairs = [(value, other) for other in map(value_of, texts) if other is not None]
        found += [bool(abs(one - other) > 1e-20 * (1 + abs(one))) for one, other in pairs]
    return found


@needs_math_verify
@pytest.mark.slow
def test_variants_are_what_they_claim_to_be_by_their_values() -> None:
    """The generator against arithmetic: neither side knows the judge."""
    plain = [gold for gold in references() if not NOT_AN_EXPRESSION.search(gold)]
    golds = random.Random(1).sample(plain, 2 * SAMPLE)
    same = differ_in_value(
        golds, respellings, {"fraction", "exponent", "quotient", "product", "sum", "root", "decimals"}
    )
    other = differ_in_value(golds, near_misses, {"number", "sign", "letter", "function"})
    assert len(same) > 20 and not any(same)
    assert len(other) > 50 and all(other)


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize(("variants", "right"), [(near_misses, False), (respellings, True)])
def test_what_is_left_to_the_worker_on_a_sample(variants: Callable[[str], Variants], right: bool) -> None:
    golds = references() if right else random.Random(2).sample(references(), 1000)  # near-misses are many
    pairs = [(text, gold) for gold in golds for _, text in variants(gold) if at_once(text, gold) is None]
    chosen = random.Random(0).sample(pairs, SAMPLE)
    problems = [Problem("p", "math", "math", "", {"answer": gold, "choices": 0}) for _, gold in chosen]
    verdicts = Mathematics().verify_many(
        [(p, f"\\boxed{{{pair[0]}}}") for p, pair in zip(problems, chosen, strict=True)]
    )
    wrong = [pair for pair, verdict in zip(chosen, verdicts, strict=True) if verdict.correct is not right]
    assert len(wrong) <= (0 if not right else SAMPLE // 20), wrong
