"""Answers worth reading: a few of every kind, so that rare failures are seen beside common ones.

Strata are outcome × skill × length, length by thirds of the answers' own token counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvrlab.evals.judged import Judged
from rlvrlab.randomness import shuffled

PER_STRATUM = 3


def qa_log(judged: Sequence[Judged], *key: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of <data set>_qa.jsonl, and for qa_summary.json how many there were and are of each stratum."""
    strata: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    lengths = [one.answer.gen_tokens for one in judged]
    edges = [float(edge) for edge in np.percentile(lengths, [100 / 3, 200 / 3])] if lengths else [0.0, 0.0]
    for one in judged:
        correct = one.verdict.correct
        outcome = "unjudged" if correct is None else "accepted" if correct else str(one.verdict.error)
        length = ("short", "medium", "long")[sum(one.answer.gen_tokens > edge for edge in edges)]
        strata[outcome, one.problem.skill, length].append(one)
    rows, counts = [], []
    for stratum, members in sorted(strata.items()):
        picked = shuffled(members, *key, "qa", *stratum)[:PER_STRATUM]
        names = dict(zip(("outcome", "skill", "length"), stratum, strict=True))
        counts.append({**names, "answers": len(members), "shown": len(picked)})
        rows += [
            {
                "problem": one.problem.id,
                "sample": one.sample,
                **names,
                "level": one.problem.meta.get("level"),
                "prompt": one.problem.prompt,
                "completion": one.answer.completion.text,
                "answer": one.verdict.answer,
                "accepted": one.verdict.correct,
                "pass_ratio": one.verdict.score,
                "error_type": str(one.verdict.error),
                "detail": one.verdict.detail or one.answer.error,
                "gen_tokens": one.answer.gen_tokens,
                "judge_time": round(one.judge_s, 6),
                "finish": str(one.answer.completion.finish),
            }
            for one in picked
        ]
    return rows, {"answers": len(judged), "shown": len(rows), "length_edges": edges, "strata": counts}
