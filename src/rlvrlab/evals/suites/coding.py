"""Countdown, GSM8K and programs. MBPP_reg are MBPP's prompt and validation rows, for regression: dev, never test."""

from __future__ import annotations

from rlvrlab.evals.suites.base import ENDINGS, Member, Suite, published, test_file


def _named(*stems: str) -> tuple[str, ...]:
    return tuple(f"{stem}{ending}" for stem in stems for ending in ENDINGS)


CODING = Suite(
    "coding",
    "arithmetic and programs",
    (
        Member("countdown", "countdown", 1000, 100, group="arithmetic"),
        published("gsm8k", 1319, 100, group="arithmetic"),
        published(
            "humaneval", 164, 40, group="programs", files=(*_named("humaneval/HumanEval"), *test_file("humaneval")),
        ),
        published("mbpp_reg", 100, 50, role="dev", group="programs", files=_named("mbpp_reg_dev", "mbpp/mbpp")),
        published(
            "codecontests_valid", 117, 30, preset="codecontests", role="dev", group="programs",
            files=_named("codecontests/valid", "codecontests_dev"),
        ),
        published(
            "codecontests_test", 165, 30, preset="codecontests", group="programs", files=test_file("codecontests"),
        ),
    ),
)  # fmt: skip
