"""What an evaluation says about a data set, under the names the field uses.

A sample is one judged answer. Whatever could not be judged is left out of every rate and counted apart (the task's own
failures among it as `bad_tasks`), with the bounds that would follow if all of it had been wrong or right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rlvrlab.evals.statistics import estimate, proportion
from rlvrlab.shares import check_k, pass_at_k, pass_hat_k
from rlvrlab.types import ErrorKind

RAN = tuple(str(kind) for kind in (ErrorKind.NONE, ErrorKind.WRONG, ErrorKind.RULE))
"""Errors of answers that were run to their end. As text: an enum member equals its text, but their hashes
differ."""
UNJUDGED = (ErrorKind.INFRA, ErrorKind.BAD_TASK)
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged answer."""

    problem_id: str
    sample: int
    """Which of the n answers to the problem this is, from 0."""
    accepted: bool | None
    """None when it could not be judged."""
    pass_ratio: float
    """Partial score in [0, 1]."""
    error_type: str
    judge_time: float
    """Seconds that judging took."""
    gen_tokens: int
    truncated: bool
    entropy: float | None = None
    """Mean token entropy, where the sampler tells it."""
    answer: str | None = None
    """The answer as the judge extracted it, for majority votes."""
    skill: str = ""
    level: str = ""
    turn: int = 0
    """0 for the first try, 1 … for repairs after feedback, -1 for a second try that was told nothing."""
    at_s: float = 0.0
    """Seconds of evaluation when it was judged."""
    accuracy: float | None = None
    """What mean accuracy is the mean of, where that is not the partial score: the recipe's reward."""
    stopped_early: bool = False
    """Were tests left out, so that pass_ratio is a lower bound?"""
    limited: bool = False
    """Has its problem tests that the environment's `most_tests` leaves out, so that accepted means less?"""
    answered: bool = True
    """False where the request failed: there is no answer, and its 0 tokens are nobody's."""

    @property
    def accuracy_or_ratio(self) -> float:
        """What mean accuracy is the mean of."""
        return self.pass_ratio if self.accuracy is None else self.accuracy


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items of each key, in the order in which they come."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


COSTS = {
    "avg_gen_tokens": "tokens per answer",
    "cost_per_solved_tokens": "tokens per solved problem",
    "cost_per_solved_judge_time": "judge seconds per solved problem",
    "avg_judge_time": "judge seconds, mean",
    "p50_judge_time": "judge seconds, median",
    "p95_judge_time": "judge seconds, 95th percentile",
    "throughput": "answers per second",
}
"""What answers cost, by the names of the numbers, in the words of terminal and page."""


def card_columns(known: Collection[str]) -> tuple[str, ...]:
    """The shares that tell most of a policy, in order: of answers that are run, how many ran to their end and how many
    are no program at all; of others, how many had the demanded form."""
    formed = ("exec_success_rate", "syntax_error_rate") if "exec_success_rate" in known else ("format_rate",)
    return ("accepted_at_1", "pass_ratio_mean", *formed, "zero_reward_rate", "recovery_rate", "blind_recovery_rate")


def dataset_metrics(
    samples: Sequence[Sample], wall_s: float | None = None, *, until_solved: bool = False, executed: bool = True
) -> dict[str, Any]:
    """All single numbers of one data set, at one sample per problem or more; rates are those of first turns.

    `executed`: answers are run, so it is told how many ran to their end.
    `until_solved`: answers were drawn until one was right. There are many where they are wrong, so rates over all of
    them would tell of hard problems, and a problem's mean would flatter: rates are those of first answers.
    """
    everything, drawn = samples, [s for s in samples if s.turn == 0]
    samples = [s for s in drawn if s.sample == 0] if until_solved else drawn
    judged, answered = [s for s in samples if s.accepted is not None], [s for s in samples if s.answered]
    first = [s for s in judged if s.sample == 0]
    ratios = np.array([s.pass_ratio for s in judged] or [0.0])
    times = np.array([s.judge_time for s in judged] or [0.0])
    out: dict[str, Any] = {
        "problems": len({s.problem_id for s in samples}),
        "samples": len(drawn),
        **proportion(sum(s.accepted is True for s in first), len(first)).named("accepted_at_1"),
        **_mean_accuracy(judged),
        "pass_ratio_mean": float(ratios.mean()),
        "pass_ratio_p50": float(np.percentile(ratios, 50)),
        "pass_ratio_p90": float(np.percentile(ratios, 90)),
        "zero_reward_rate": _share(sum(s.pass_ratio == 0 for s in judged), len(judged)),
        **({"exec_success_rate": _share(sum(s.error_type in RAN for s in judged), len(judged))} if executed else {}),
        "truncated_rate": _share(sum(s.truncated for s in answered), len(answered)),
        "avg_judge_time": float(times.mean()),
        "p50_judge_time": float(np.percentile(times, 50)),
        "p95_judge_time": float(np.percentile(times, 95)),
        "avg_gen_tokens": float(np.mean([s.gen_tokens for s in answered] or [0])),
    }
    # Per solved problem all samples are paid for; blind second tries are a control, and nobody's answers.
    paid = [s for s in everything if s.accepted is not None and s.turn >= 0]
    right = len({s.problem_id for s in paid if s.accepted})
    tokens, seconds = sum(s.gen_tokens for s in paid), sum(s.judge_time for s in paid)
    out |= _failures(judged)
    out["cost_per_solved_tokens"] = tokens / right if right else None
    out["cost_per_solved_judge_time"] = seconds / right if right else None
    out |= _unjudged(samples, drawn) | _recovery(everything)
    out["stopped_early"] = sum(s.stopped_early for s in judged)
    out["limited_tests"] = sum(s.limited for s in judged)
    entropies = [s.entropy for s in samples if s.entropy is not None]
    if entropies:
        out["avg_entropy"] = float(np.mean(entropies))
    if wall_s:
        out["throughput"] = sum(s.answered for s in drawn) / wall_s
    return out


def at_k(samples: Sequence[Sample], ks: Sequence[int]) -> dict[str, Any]:
    """Unbiased pass@k and pass^k with intervals over problems, and the majority answer's accuracy."""
    groups = grouped([s for s in samples if s.accepted is not None and s.turn == 0], lambda s: s.problem_id)
    drawn = Counter(s.problem_id for s in samples if s.turn == 0)
    for k in ks:
        check_k(max(drawn.values(), default=k), k)
    out: dict[str, Any] = {}
    for k in ks:
        # A failed request takes a sample away; a problem with fewer than k left has no estimate and is counted.
        counts = [(len(g), sum(s.accepted is True for s in g)) for g in groups.values() if len(g) >= k]
        out |= estimate([pass_at_k(n, c, k) for n, c in counts]).named(f"pass@{k}")
        out[f"pass^{k}"] = mean([pass_hat_k(n, c, k) for n, c in counts])
        if len(counts) < len(drawn):
            out[f"pass@{k}_left_out"] = len(drawn) - len(counts)
    if any(s.accepted is None for s in samples):  # the bounds if everything unjudged had been wrong, or right
        right = Counter(s.problem_id for s in samples if s.turn == 0 and s.accepted is True)
        missing = Counter(s.problem_id for s in samples if s.turn == 0 and s.accepted is None)
        for k in ks:
            whole = [p for p in drawn if drawn[p] >= k]
            out[f"pass@{k}_if_unjudged_wrong"] = mean([pass_at_k(drawn[p], right[p], k) for p in whole])
            out[f"pass@{k}_if_unjudged_right"] = mean([pass_at_k(drawn[p], right[p] + missing[p], k) for p in whole])
    out["majority"] = mean([majority(g) for g in groups.values()])
    return out


def at_budget(samples: Sequence[Sample], kind: str, amount: float, most: int) -> dict[str, Any]:
    """What a budget buys: the share solved within it, within parts of it, and per unit spent; `most` answers each.

    tokens and judge_s are a problem's own, summed over its answers in order; wall_s is the evaluation's clock.
    """
    groups = grouped(sorted(samples, key=lambda s: (s.sample, s.turn)), lambda s: s.problem_id)
    outcomes = {problem: solved_within(group, kind, amount) for problem, group in groups.items()}
    reached = [_cost_of_success(groups[problem], kind) for problem, known in outcomes.items() if known is not None]
    solved, unknown = sum(known is True for known in outcomes.values()), len(groups) - len(reached)
    spent = max((s.at_s for s in samples), default=0.0) if kind == "wall_s" else sum(_price(s, kind) for s in samples)
    out: dict[str, Any] = {
        "budget": f"{amount:g} {kind}",
        **proportion(solved, len(reached)).named("solved_at_budget"),
        "solved_at_budget_if_unjudged_wrong": _share(solved, len(groups)),
        "solved_at_budget_if_unjudged_right": _share(solved + unknown, len(groups)),
        "most_answers": max((len(group) for group in groups.values()), default=0),
        "given_up": sum(
            outcomes[problem] is not True and len(group) >= most and _spent(group, kind) < amount
            for problem, group in groups.items()
        ),
        f"spent_{kind}": spent,
        f"solved_per_{kind}": solved / spent if spent else None,
    }
    for part in (0.125, 0.25, 0.5, 1.0):
        within = sum(cost is not None and cost <= part * amount for cost in reached)
        out[f"solved_at_budget*{part:g}"] = _share(within, len(reached))
    return out


def solved_within(group: Sequence[Sample], kind: str, amount: float) -> bool | None:
    """Whether a problem's answers, in order, solve it within the budget; None where a failure hides that.

    A failed request that was followed by another one cost nothing and hides nothing. An answer that could not be judged
    may have been right, and one that asking ended with was never given.
    """
    cost = _cost_of_success(group, kind)
    if cost is not None and cost <= amount:
        return True
    hidden = any(s.accepted is None and s.answered for s in group) or (bool(group) and not group[-1].answered)
    return None if hidden else False


def _cost_of_success(group: Sequence[Sample], kind: str) -> float | None:
    """What had been spent on a problem when it was solved; None when it never was."""
    spent = 0.0
    for s in group:
        spent = s.at_s if kind == "wall_s" else spent + _price(s, kind)
        if s.accepted:
            return spent
    return None


def _spent(group: Sequence[Sample], kind: str) -> float:
    return group[-1].at_s if kind == "wall_s" else sum(_price(s, kind) for s in group)


def _price(s: Sample, kind: str) -> float:
    return float(s.gen_tokens) if kind == "tokens" else s.judge_time


def majority(group: Sequence[Sample]) -> float:
    """Is the most frequent answer right? A tie scores the mean of the tied answers; an empty answer does not vote."""
    votes = Counter(s.answer for s in group if s.answer is not None)
    if not votes:
        return 0.0
    top = {answer for answer, count in votes.items() if count == max(votes.values())}
    return mean([float(s.accepted is True) for s in group if s.answer in top])


def _mean_accuracy(judged: Sequence[Sample]) -> dict[str, float]:
    """Mean of the recipe's reward where it is an accuracy with partial credit, else of the partial score."""
    by_problem = grouped(judged, lambda s: s.problem_id).values()
    scores = [sum(s.accuracy_or_ratio for s in answers) / len(answers) for answers in by_problem]
    return estimate(scores).named("mean_accuracy")


def _failures(judged: Sequence[Sample]) -> dict[str, float]:
    """Rates of errors, and accuracy among well-formed answers alone: a gain may be nothing but format."""
    formed = [s for s in judged if s.error_type not in (ErrorKind.FORMAT, ErrorKind.SYNTAX)]
    right = sum(s.accepted is True for s in formed)
    out = {"format_rate": _share(len(formed), len(judged))}
    out |= {"accuracy_given_format": right / len(formed)} if formed else {}  # of none there is no share
    counts = Counter(s.error_type for s in judged)
    kinds = [str(kind) for kind in ErrorKind if kind not in (ErrorKind.NONE, *UNJUDGED)]
    return out | {f"{kind}_error_rate": _share(counts[kind], len(judged)) for kind in kinds}


def _unjudged(samples: Sequence[Sample], drawn: Sequence[Sample]) -> dict[str, float]:
    """How many of all answers drawn could not be judged, and what that leaves open of the samples that rates count."""
    first = [s for s in samples if s.sample == 0]
    missing, right = sum(s.accepted is None for s in first), sum(s.accepted is True for s in first)
    lost = [s for s in drawn if s.accepted is None]
    by_problem = grouped(samples, lambda s: s.problem_id).values()
    worst, best = (
        mean([mean([lost if s.accepted is None else s.accuracy_or_ratio for s in answers]) for answers in by_problem])
        for lost in (0.0, 1.0)
    )
    ratio = sum(s.pass_ratio for s in samples if s.accepted is not None)
    return {
        "unjudged": float(len(lost)),
        "bad_tasks": float(sum(s.error_type == ErrorKind.BAD_TASK for s in lost)),
        "accepted_at_1_if_unjudged_wrong": _share(right, len(first)),
        "accepted_at_1_if_unjudged_right": _share(right + missing, len(first)),
        "mean_accuracy_if_unjudged_wrong": worst,
        "mean_accuracy_if_unjudged_right": best,
        "pass_ratio_mean_if_unjudged_wrong": ratio / len(samples) if samples else 0.0,
        "pass_ratio_mean_if_unjudged_right": (ratio + sum(s.accepted is None for s in samples)) / (len(samples) or 1),
    }


def _recovery(samples: Sequence[Sample]) -> dict[str, float]:
    """The share of failed first tries with another turn that a later turn put right."""
    later = {(s.problem_id, s.sample) for s in samples if s.turn > 0}
    if not later:
        return {}
    failed = {(s.problem_id, s.sample) for s in samples if s.turn == 0 and s.accepted is False} & later
    mended = {(s.problem_id, s.sample) for s in samples if s.turn > 0 and s.accepted} & failed
    blind = [s for s in samples if s.turn < 0 and s.accepted is not None]
    first = {(s.problem_id, s.sample) for s in samples if s.turn == 0 and s.accepted}
    tried = {(s.problem_id, s.sample) for s in samples if s.turn == 0 and s.accepted is not None}
    without_feedback = [(s.problem_id, s.accepted is True) for s in blind]
    return {
        **_rate("recovery_rate", [(problem, (problem, sample) in mended) for problem, sample in sorted(failed)]),
        "accepted_after_repair": _share(len(first | mended), len(tried)),
        **(_rate("blind_recovery_rate", without_feedback) if blind else {}),
    }


def _rate(name: str, tries: Sequence[tuple[str, bool]]) -> dict[str, float]:
    """The share of tries that succeeded, each with its problem; the interval is for new problems."""
    from rlvrlab.evals.pooled import estimate_pooled

    by_problem = grouped(tries, lambda one: one[0]).values()
    return estimate_pooled([[float(right) for _, right in group] for group in by_problem]).named(name)


def mean(values: Sequence[float]) -> float:
    """Their mean, 0 where there are none."""
    return float(np.mean(values)) if values else 0.0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
