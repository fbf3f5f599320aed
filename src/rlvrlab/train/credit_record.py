"""What a run keeps of step credit: the steps of each answer beside it in rollouts/step_N.jsonl.

    "steps": [{"start": 0, "end": 6, "kind": "statement", "credit": 0.25, "advantage": 1.1},
              {"start": 6, "end": 12, "kind": "statement", "credit": null, "advantage": 0.85, "examined": false}]

start, end   characters of the completion
credit       in units of reward; null: not known, because nobody asked (`examined` is there, and false) or because no
             altered answer ran and was judged
advantage    mean over the step's tokens as they were trained on, credit included; null: not trained on
Suffixes: B rows, T tokens, S steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.credit.steps import GLUE
from rlvrlab.train.credit import Credited, StepCredits
from rlvrlab.train.phases.base import StepRow
from rlvrlab.types import Rollout


def step_rows(
    credits: StepCredits, batch: TokenBatch | None = None, used: Sequence[Rollout] = ()
) -> dict[str, list[StepRow]]:
    """By rollout; `batch` is what `used` were trained on, and None where nothing was."""
    trained: dict[str, Floats] = {}
    if credits.answers and batch is not None and batch.advantage_BT is not None:
        advantage_BT = np.where(batch.loss_BT, batch.advantage_BT, np.nan)
        trained = {rollout.id: advantage_BT[row] for row, rollout in enumerate(used)}
    return {name: _rows(one, trained.get(name)) for name, one in credits.answers.items()}


def _rows(one: Credited, advantage_T: Floats | None) -> list[StepRow]:
    steps = one.trajectory.segments.steps
    mean_S = np.full(len(steps), np.nan) if advantage_T is None else _means(one, advantage_T)
    return [
        {
            "start": step.span[0],
            "end": step.span[1],
            "kind": step.kind,
            "credit": _number(credit),
            "advantage": _number(mean),
            **({} if examined else {"examined": False}),
        }
        for step, credit, mean, examined in zip(steps, one.raw_S, mean_S, one.examined_S, strict=True)
    ]


def _means(one: Credited, advantage_T: Floats) -> Floats:
    """Over the tokens of each step; NaN is a token that is not trained on."""
    step_T = one.trajectory.step_T
    advantage_T = advantage_T[: len(step_T)]
    used_T = (step_T != GLUE) & ~np.isnan(advantage_T)
    count_S = np.bincount(step_T[used_T], minlength=len(one.raw_S))
    sum_S = np.bincount(step_T[used_T], advantage_T[used_T], minlength=len(one.raw_S))
    return np.where(count_S > 0, sum_S / np.maximum(count_S, 1), np.nan)


def _number(value: float) -> float | None:
    """Six decimals are plenty, and + 0.0 turns −0.0 into 0.0."""
    return round(float(value), 6) + 0.0 if np.isfinite(value) else None
