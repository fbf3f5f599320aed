"""Greedy accuracy on held-out problems: one answer each at temperature 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlvrlab.evals.statistics import wilson
from rlvrlab.rollout.collect import collect
from rlvrlab.types import Completion, Environment, Finish, Problem, Reward, Sampler, Sampling, Verdict


@dataclass(frozen=True)
class Accuracy:
    """How many were solved."""

    solved: int
    judged: int
    """Problems with a verdict: the denominator."""
    unjudged: int
    """Left out because the judge or sampler failed."""
    errors: dict[str, int]
    """Why the others failed."""
    truncated: int
    """Answers cut at max_tokens."""

    @property
    def value(self) -> float:
        """Share solved among those judged; 0 when none could be."""
        return self.solved / self.judged if self.judged else 0.0

    def metrics(self, data: str) -> dict[str, float]:
        """Under the field's names."""
        low, high = self.interval
        named = {"acc": self.value, "acc_low": low, "acc_high": high, "truncated": float(self.truncated)}
        named |= {"unjudged": float(self.unjudged), **{f"error/{k}": float(v) for k, v in self.errors.items()}}
        return {f"val-core/{data}/{name}": value for name, value in named.items()}

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval."""
        return wilson(self.solved, self.judged)


def greedy(sampler: Sampler, env: Environment, problems: Sequence[Problem], max_tokens: int) -> Accuracy:
    """Evaluate the policy as it is; deterministic."""
    sampling = Sampling(max_tokens=max_tokens, temperature=0.0)
    rollouts = collect(sampler, env, _no_reward, problems, n=1, sampling=sampling, key=("eval",))
    judged = [r for r in rollouts if r.verdict.correct is not None]
    return Accuracy(
        solved=sum(r.verdict.correct is True for r in judged),
        judged=len(judged),
        unjudged=len(rollouts) - len(judged),
        errors=dict(sorted(Counter(str(r.verdict.error) for r in judged if not r.verdict.correct).items())),
        truncated=sum(r.completion.finish is Finish.LENGTH for r in rollouts),
    )


def _no_reward(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    return Reward(verdict.score)
