"""What an evaluation says about a data set, under the names the field uses.

A sample is one judged answer. Whatever could not be judged is left out of every rate and counted apart, with the bounds
that would follow if all of it had been wrong or right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvrlab.evals.statistics import bootstrap, pass_at_k, pass_hat_k, wilson
from rlvrlab.types import ErrorKind

RAN = tuple(str(kind) for kind in (ErrorKind.NONE, ErrorKind.WRONG, ErrorKind.RULE))
"""The answer was run, or read, to its end. As text: an enum member equals its text, but their hashes differ."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged answer: an EvalResult."""

    problem_id: str
    sample: int
    """0 … n−1."""
    accepted: bool | None
    """None when it could not be judged."""
    pass_ratio: float
    """Partial score in [0, 1]."""
    error_type: str
    judge_time: float
    """Seconds."""
    gen_tokens: int
    truncated: bool
    entropy: float | None = None
    """Mean token entropy, where the sampler tells it."""
    answer: str | None = None
    """As extracted; for majority votes."""
    skill: str = ""


def dataset_metrics(samples: Sequence[Sample], wall_s: float | None = None) -> dict[str, Any]:
    """All single numbers of one data set, at one sample per problem or more."""
    judged = [s for s in samples if s.accepted is not None]
    first = [s for s in judged if s.sample == 0]
    ratios = np.array([s.pass_ratio for s in judged] or [0.0])
    times = np.array([s.judge_time for s in judged] or [0.0])
    solved = sum(s.accepted is True for s in first)
    low, high = wilson(solved, len(first))
    out: dict[str, Any] = {
        "problems": len({s.problem_id for s in samples}),
        "samples": len(samples),
        "accepted_at_1": _share(solved, len(first)),
        "accepted_at_1_low": low,
        "accepted_at_1_high": high,
        "mean_accuracy": float(ratios.mean()),
        "pass_ratio_mean": float(ratios.mean()),
        "pass_ratio_p50": float(np.percentile(ratios, 50)),
        "pass_ratio_p90": float(np.percentile(ratios, 90)),
        "zero_reward_rate": _share(sum(s.pass_ratio == 0 for s in judged), len(judged)),
        "exec_success_rate": _share(sum(s.error_type in RAN for s in judged), len(judged)),
        "truncated_rate": _share(sum(s.truncated for s in samples), len(samples)),
        "avg_judge_time": float(times.mean()),
        "p50_judge_time": float(np.percentile(times, 50)),
        "p95_judge_time": float(np.percentile(times, 95)),
        "avg_gen_tokens": float(np.mean([s.gen_tokens for s in samples] or [0])),
    }
    out |= _format(judged) | _errors(judged) | _cost(judged) | _unjudged(samples)
    entropies = [s.entropy for s in samples if s.entropy is not None]
    if entropies:
        out["avg_entropy"] = float(np.mean(entropies))
    if wall_s:
        out["throughput"] = len(samples) / wall_s
    return out


def at_k(samples: Sequence[Sample], ks: Sequence[int], *key: object) -> dict[str, float]:
    """Unbiased pass@k and pass^k with bootstrap intervals over problems, and the majority answer's accuracy."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for s in samples:
        if s.accepted is not None:
            groups[s.problem_id].append(s)
    counts = [(len(g), sum(s.accepted is True for s in g)) for g in groups.values()]
    out: dict[str, float] = {}
    for k in ks:
        scores = [pass_at_k(n, c, k) for n, c in counts]
        low, high = bootstrap(scores, *key, "pass", k)
        out |= {f"pass@{k}": float(np.mean(scores)), f"pass@{k}_low": low, f"pass@{k}_high": high}
        out[f"pass^{k}"] = float(np.mean([pass_hat_k(n, c, k) for n, c in counts]))
    out["majority"] = float(np.mean([majority(g) for g in groups.values()])) if groups else 0.0
    return out


def majority(group: Sequence[Sample]) -> float:
    """Is the most frequent answer right? Ties share: the mean over the tied answers. No answer is no vote."""
    votes = Counter(s.answer for s in group if s.answer is not None)
    if not votes:
        return 0.0
    top = [answer for answer, count in votes.items() if count == max(votes.values())]
    right = {s.answer: s.accepted is True for s in group}
    return sum(right[answer] for answer in top) / len(top)


def _format(judged: Sequence[Sample]) -> dict[str, float]:
    """How often there was an answer to judge, and how good those were: a gain may be nothing but format."""
    formed = [s for s in judged if s.error_type not in (ErrorKind.FORMAT, ErrorKind.SYNTAX)]
    right = sum(s.accepted is True for s in formed)
    return {"format_rate": _share(len(formed), len(judged)), "accuracy_given_format": _share(right, len(formed))}


def _errors(judged: Sequence[Sample]) -> dict[str, float]:
    counts = Counter(s.error_type for s in judged)
    kinds = [str(kind) for kind in ErrorKind if kind not in (ErrorKind.NONE, ErrorKind.INFRA)]
    return {f"{kind}_error_rate": _share(counts[kind], len(judged)) for kind in kinds}


def _cost(judged: Sequence[Sample]) -> dict[str, float | None]:
    """Per solved problem, all samples paid for; None when nothing was solved."""
    solved = len({s.problem_id for s in judged if s.accepted})
    tokens, seconds = sum(s.gen_tokens for s in judged), sum(s.judge_time for s in judged)
    return {
        "cost_per_solved_tokens": tokens / solved if solved else None,
        "cost_per_solved_judge_time": seconds / solved if solved else None,
    }


def _unjudged(samples: Sequence[Sample]) -> dict[str, float]:
    first = [s for s in samples if s.sample == 0]
    missing, right = sum(s.accepted is None for s in first), sum(s.accepted is True for s in first)
    return {
        "unjudged": float(sum(s.accepted is None for s in samples)),
        "accepted_at_1_if_unjudged_wrong": _share(right, len(first)),
        "accepted_at_1_if_unjudged_right": _share(right + missing, len(first)),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
