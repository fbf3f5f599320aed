"""Symbolic equality by math-verify: one pair per child, so no answer can touch another's verdict."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from rlvrlab.judge.jail.child import Job, Report

try:
    math_verify: Any = importlib.import_module("math_verify")
except ImportError:  # the worker then answers that it is missing
    math_verify = None

logging.disable(logging.WARNING)


def _parsed(text: str) -> Any:
    wrapped = text if "$" in text or "\\boxed" in text else f"${text}$"
    forms = [math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig()]
    return math_verify.parse(wrapped, forms, parsing_timeout=None)


def _equal(gold: Any, answer: Any) -> bool:
    return bool(math_verify.verify(gold, answer, timeout_seconds=None))


def run(job: Job, report: Report) -> None:
    """Is the answer the gold answer? The supervisor is the only clock."""
    if math_verify is None:
        report("missing")
        return
    gold, answer = _parsed(job["gold"]), _parsed(job["answer"])
    if not gold:
        report("bad_gold")
    elif not answer:
        report("unreadable")
    else:
        report("equal", _equal(gold, answer))


if math_verify is not None:
    # Builds the parser's tables and sympy's caches once, in the process everybody is forked from.
    for pair in (("\\frac{1}{2}", "0.5"), ("x^2+1", "1+x^2"), ("(1,2)", "(1,3)")):
        _equal(*map(_parsed, pair))
