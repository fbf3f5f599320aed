"""Which judged answers may become training data, and why the others may not.

    why_not      what it means                                                                    a rejected answer?
    None         right, complete and unsuspicious: may be imitated                                no
    "unjudged"   the sampler or the judge failed, so nothing is known about it                    no
    "truncated"  cut at max_tokens: its end is missing, and imitating it teaches not to end       no
    "flagged"    the judge noted an oddity (early_exit, blocked_syscall, …), right or not         no
    "wrong"      complete, unsuspicious and judged wrong                                          yes

The first reason in this order is given, so "wrong" says that nothing else stands against the answer: it may be the
rejected side of a preference pair or the failed try of a repair.

Trap: a judge that cannot rule out a forged verdict flags every answer it sees ("integrity: weak" of the assert mode,
"integrity_weak" of the reasoning_gym data sets that execute answers), so none of those may be trained on.

A stored answer is a row of rollouts/step_*.jsonl, as rollout/collect.py:as_row writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rlvrlab.types import Finish, Rollout

Reason = Literal["unjudged", "truncated", "flagged", "wrong"]


def usable(answer: Rollout | Mapping[str, Any]) -> bool:
    """May this answer be imitated? Right, complete and unsuspicious."""
    return why_not(answer) is None


def verified(rollout: Rollout) -> bool:
    """Was it judged right, with nothing odd about it? Unlike a usable answer it may end at max_tokens.

    Enough for what is measured and not imitated: a skill may be remembered by it (train/guards/memory.py).
    """
    return (
        rollout.verdict.correct is True and rollout.completion.finish is not Finish.ERROR and not rollout.verdict.flags
    )


def why_not(answer: Rollout | Mapping[str, Any]) -> Reason | None:
    """The first reason against imitating a rollout or a stored answer, None when there is none."""
    if isinstance(answer, Rollout):
        correct, finish, flags = answer.verdict.correct, answer.completion.finish, answer.verdict.flags
    else:
        correct, finish, flags = answer["correct"], Finish(answer["finish"]), answer["flags"]
    if correct is None or finish is Finish.ERROR:
        return "unjudged"
    if finish is Finish.LENGTH:
        return "truncated"
    if flags:
        return "flagged"
    return None if correct else "wrong"
