"""One predicate says which answers may be trained on, for rollouts and for stored answers alike."""

from __future__ import annotations

import pytest

from rlvrlab.rollout.collect import as_row
from rlvrlab.rollout.trainable import usable, why_not
from rlvrlab.types import Completion, Finish, Problem, Rollout, Verdict

CASES = [
    (Verdict(True), Finish.STOP, None),
    (Verdict(False), Finish.STOP, "wrong"),
    (Verdict(True, flags=("early_exit",)), Finish.STOP, "flagged"),
    (Verdict(False, flags=("early_exit",)), Finish.STOP, "flagged"),
    (Verdict(True), Finish.LENGTH, "truncated"),
    (Verdict(False, flags=("early_exit",)), Finish.LENGTH, "truncated"),
    (Verdict(None), Finish.STOP, "unjudged"),
    (Verdict(None), Finish.LENGTH, "unjudged"),
    (Verdict(True), Finish.ERROR, "unjudged"),
]


@pytest.mark.parametrize(("verdict", "finish", "reason"), CASES)
def test_the_first_reason_is_the_same_for_a_rollout_and_its_row(
    verdict: Verdict, finish: Finish, reason: str | None
) -> None:
    completion = Completion("4", (1,), (-0.5,), finish)
    rollout = Rollout("1/p/0", "1/p", Problem("p", "s", "s", "2+2"), (0,), completion, verdict, None)
    assert why_not(rollout) == why_not(as_row(rollout)) == reason
    assert usable(rollout) is usable(as_row(rollout)) is (reason is None)
