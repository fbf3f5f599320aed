"""Where the time of a step went: the parts add up to the whole, and the largest brings the advice that fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.record.profile import PARTS, REST, advice, profile_of

seconds = st.floats(0.001, 100)


def row(phase: str, step_s: float, **parts: float) -> dict[str, object]:
    return {"phase": phase, "time/step_s": step_s, **{f"time/{name}_s": s for name, s in parts.items()}}


@given(st.lists(st.dictionaries(st.sampled_from([p for p in PARTS if p != "record"]), seconds), min_size=1), seconds)
def test_parts_add_up(steps: list[dict[str, float]], more: float) -> None:
    rows = [row("grpo", sum(parts.values()) + more, **parts) for parts in steps]
    found = profile_of(rows)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.seconds for one in found) == pytest.approx(sum(float(str(r["time/step_s"])) for r in rows))


def test_phases_are_told_apart_and_what_is_not_known_is_the_rest() -> None:
    rows = [{"phase": "sft", "step": 0}, row("sft", 2.0, update=1.5), row("grpo", 4.0, judge=3.0), row("grpo", 4.0)]
    found = {(one.phase, one.words): (one.seconds, one.share, one.per_step) for one in profile_of(rows)}
    assert found == {
        ("sft", "update"): (1.5, 0.75, 1.5),
        ("sft", REST): (0.5, 0.25, 0.5),
        ("grpo", "waiting for verdicts"): (3.0, 0.375, 1.5),
        ("grpo", REST): (5.0, 0.625, 2.5),
    }
    assert profile_of([{"phase": "sft", "step": 0}]) == []


@pytest.mark.parametrize(
    ("part", "pipeline", "words"),
    [
        ("judge", {}, 'pipeline.limits = "learnt"'),
        ("judge", {"limits": "learnt", "lag": 0}, "pipeline.lag = 1"),
        ("judge", {"limits": "learnt", "lag": 1}, "rlvr serve judge"),
        ("evaluate", {}, "eval.every"),
        ("sample", {}, "rollout.max_tokens"),
        ("update", {}, "micro_tokens"),
        ("credit", {}, "[credit]"),
    ],
)
def test_advice_follows_from_the_largest_part(part: str, pipeline: dict[str, object], words: str) -> None:
    [told] = advice(profile_of([row("grpo", 1.0, **{part: 0.9})]), {"pipeline": pipeline})
    assert words in told and told.startswith("grpo: 90% is ")


def test_nothing_is_said_of_a_step_without_a_large_part() -> None:
    assert not advice(profile_of([row("grpo", 1.0, judge=0.1, sample=0.4, update=0.4)]), {})
