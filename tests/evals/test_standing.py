"""A finding counts once it persists and is taken back once it is gone; one odd step says nothing."""

from __future__ import annotations

import pytest

from rlvrlab.evals.monitors import ONLINE, PERSISTS, RECOVERS, Standing, Watch

BAD, GOOD = 0.001, 0.5


def row(step: int, entropy: float, phase: str = "grpo", **more: float) -> dict[str, object]:
    return {"step": step, "phase": phase, "actor/entropy": entropy, **more}


def told(values: list[float], phase: str = "grpo") -> list[tuple[int, str]]:
    """(step, what) of every change, for the entropy of step after step."""
    standing, news = Standing(), []
    for step, value in enumerate(values):
        one = standing.add(ONLINE, row(step, value, phase))
        news += [(step, "found") for _ in one.found] + [(step, "recovered") for _ in one.recovered]
    return news


def test_one_step_is_no_finding_and_a_few_in_a_row_are_one() -> None:
    assert told([BAD, GOOD] * 6) == []
    assert told([GOOD] * 2 + [BAD] * 9) == [(1 + PERSISTS, "found")]


def test_a_finding_is_taken_back_after_steps_without_it_and_may_come_again() -> None:
    values = [BAD] * PERSISTS + [GOOD] * RECOVERS + [BAD] * PERSISTS
    last = len(values) - 1
    assert told(values) == [(PERSISTS - 1, "found"), (last - PERSISTS, "recovered"), (last, "found")]
    assert told([BAD] * PERSISTS + [GOOD] * (RECOVERS - 1) + [BAD]) == [(PERSISTS - 1, "found")]


def test_answers_that_could_not_be_judged_are_said_at_once() -> None:
    one = Standing().add(ONLINE, row(0, GOOD, **{"groups/unjudged_rows": 2.0}))
    assert [finding.metric for finding in one.found] == ["groups/unjudged_rows"]


@pytest.mark.parametrize(
    ("preset", "norm", "odd"),
    [("hf/full/nano", 0.9, False), ("toy", 0.13, False), ("hf/full/100m", 3.8, False), ("hf/lora/1b", 0.27, False),
     ("hf/full/1b", 0.9, True), ("hf/full/nano", 40.0, True), ("toy", 30.0, True), ("", 40.0, False),
     (None, 40.0, False)],
)  # fmt: skip
def test_the_gradient_is_held_against_what_policies_of_its_kind_train_at(
    preset: str | None, norm: float, odd: bool
) -> None:
    standing = Standing(preset)
    for step in range(PERSISTS):
        news = standing.add(ONLINE, row(step, GOOD, **{"actor/grad_norm": norm}))
    assert [one.metric for one in news.found] == (["actor/grad_norm"] if odd else [])


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_resumed_watch_knows_what_the_first_one_knew(cut: int) -> None:
    rows = [row(step, value) for step, value in enumerate([BAD] * 4 + [GOOD] * 7)]
    whole, again = Watch(), Watch(rows[:cut])
    expected = [whole.examine(ONLINE, one) for one in rows]
    assert [again.examine(ONLINE, one) for one in rows[cut:]] == expected[cut:]


def test_steps_of_different_phases_do_not_add_up() -> None:
    standing = Standing()
    for step in range(PERSISTS - 1):
        standing.add(ONLINE, row(step, BAD, "grpo"))
    assert standing.add(ONLINE, row(9, BAD, "ppo")).found == []
