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
LENGTHS = ("short", "medium", "long")


def qa_log(judged: Sequence[Judged], *key: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of <data set>_qa.jsonl, and for qa_summary.json how many there were and are of each stratum."""
    strata: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    edges = _thirds([one.answer.gen_tokens for one in judged])
    for one in judged:
        strata[_outcome(one), one.problem.skill, _length(one.answer.gen_tokens, edges)].append(one)
    rows, counts = [], []
    for stratum, members in sorted(strata.items()):
        picked = shuffled(members, *key, "qa", *stratum)[:PER_STRATUM]
        rows += [_row(one, stratum) for one in picked]
        names = dict(zip(("outcome", "skill", "length"), stratum, strict=True))
        counts.append({**names, "answers": len(members), "shown": len(picked)})
    return rows, {"answers": len(judged), "shown": len(rows), "length_edges": list(edges), "strata": counts}


def _outcome(one: Judged) -> str:
    if one.verdict.correct is None:
        return "unjudged"
    return "accepted" if one.verdict.correct else str(one.verdict.error)


def _thirds(lengths: Sequence[int]) -> tuple[float, float]:
    if not lengths:
        return 0.0, 0.0
    low, high = np.percentile(lengths, [100 / 3, 200 / 3])
    return float(low), float(high)


def _length(tokens: int, edges: tuple[float, float]) -> str:
    return LENGTHS[int(tokens > edges[0]) + int(tokens > edges[1])]


def _row(one: Judged, stratum: tuple[str, str, str]) -> dict[str, Any]:
    outcome, skill, length = stratum
    return {
        "problem": one.problem.id,
        "sample": one.sample,
        "outcome": outcome,
        "skill": skill,
        "length": length,
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
