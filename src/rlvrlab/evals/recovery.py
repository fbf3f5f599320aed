"""Can the policy mend what it got wrong? recovery_rate, and what the same number of blind tries would have mended.

A second try also succeeds by luck: without the blind control the rate misleads. So beside each failed first try
stand a greedy second try that sees the feedback, and one plain sample that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from rlvrlab.evals.statistics import proportion
from rlvrlab.rollout.collect import collect
from rlvrlab.rollout.turns import try_again
from rlvrlab.types import Completion, Environment, Problem, Reward, Rollout, Sampler, Sampling, Verdict


@dataclass(frozen=True)
class Recovery:
    """Second tries at problems whose first try failed."""

    failed: int
    """First tries that were judged wrong."""
    judged: int
    """Second tries that could be judged: the denominator."""
    recovered: int
    repeated: int
    """Second answers equal to the first, word for word."""
    blind_judged: int
    blind: int
    """Failures that one sample without feedback mended."""

    @classmethod
    def of_all(cls, parts: Sequence[Recovery]) -> Recovery:
        """Several sets of problems as one."""
        return cls(*(sum(counts) for counts in zip(*(astuple(part) for part in parts), strict=True)))

    def metrics(self) -> dict[str, float]:
        """Rates with their intervals; a rate of nothing is 0 with the interval (0, 1)."""
        return {
            "first_failures": float(self.failed),
            **proportion(self.recovered, self.judged).named("recovery_rate"),
            **proportion(self.blind, self.blind_judged).named("blind_recovery_rate"),
            "repeated_answer_rate": self.repeated / max(1, self.judged),
        }


def recovery(
    sampler: Sampler, env: Environment, firsts: Sequence[Rollout], max_tokens: int, *key: Any
) -> tuple[Recovery, list[Rollout], list[Rollout]]:
    """Greedy second tries after feedback, one sampled blind try each: the counts, the second tries, the blind ones."""
    failed = [r for r in firsts if r.verdict.correct is False]
    greedy, free = Sampling(max_tokens, temperature=0.0), Sampling(max_tokens)
    again = try_again(sampler, env, score, failed, n=1, sampling=greedy, key=(*key, "repair"))
    problems = list({r.problem.id: r.problem for r in failed}.values())
    blind = collect(sampler, env, score, problems, n=1, sampling=free, key=(*key, "blind")) if problems else []
    before = {r.id: r.completion.text for r in failed}
    known, known_blind = ([r.verdict.correct for r in some if r.verdict.correct is not None] for some in (again, blind))
    counts = Recovery(
        failed=len(failed),
        judged=len(known),
        recovered=sum(known),
        repeated=sum(r.completion.text == before[r.previous] for r in again),
        blind_judged=len(known_blind),
        blind=sum(known_blind),
    )
    return counts, again, blind


def score(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    """The verdict's own score as the reward, where no recipe says what an answer is worth."""
    return Reward(verdict.score)
