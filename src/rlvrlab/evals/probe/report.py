"""The numbers of a probe: per problem, per skill and level, over all; each with an interval over problems.

A group is useful when its rewards differ. For groups of k answers the expected share of useful ones is estimated
without bias from m ≥ k answers per problem: k of them drawn without replacement are all equal with probability
Σ_v C(c_v, k) / C(m, k), where c_v of the m earned reward v. For right-or-wrong rewards its expectation is
1 − p^k − (1 − p)^k. No unbiased estimate exists for k > m; the share grows with k, so the one at m is a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.evals.answering import Answerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.metrics import grouped, mean
from rlvrlab.evals.protocol import Protocol
from rlvrlab.evals.statistics import estimate
from rlvrlab.types import Environment, ErrorKind, Finish, Problem, RewardFunction, Sampling

SIZES = (4, 8, 16, 32)
"""Group sizes whose expected share of useful groups is told."""
USEFUL_VARIANCE = 0.05
"""A problem is useful when the variance of its rewards is above this."""


@dataclass(frozen=True, slots=True)
class Try:
    """One answer, as far as the probe looks at it."""

    problem: Problem
    correct: bool | None
    """None when it could not be judged."""
    reward: float | None
    """None when it could not be judged."""
    formed: bool
    """Whether there was an answer in the demanded form."""
    truncated: bool
    gen_tokens: int
    entropy: float | None
    """Mean token entropy in nats, where it is known."""
    text: str = ""


class Measured(NamedTuple):
    """A mean over problems and its 95 % interval."""

    value: float
    low: float
    high: float


class Useful(NamedTuple):
    """How many groups of n answers would teach something."""

    n: int
    share: Measured
    at_least: bool
    """Fewer than n answers were drawn: the share is a lower bound."""


@dataclass(frozen=True)
class OfProblem:
    """What the answers to one problem say."""

    problem: Problem
    rewards: tuple[float, ...]
    """Rewards of the judged answers."""
    accuracy: float
    variance: float
    """Unbiased, of the rewards; 0 when only one could be judged."""
    truncated: float
    formed: float
    entropy: float | None
    unjudged: int

    @property
    def mixed(self) -> bool:
        """Whether the rewards differ."""
        return len(set(self.rewards)) > 1

    @property
    def useful(self) -> bool:
        """Whether there is enough variance to learn from."""
        return self.variance > USEFUL_VARIANCE

    @property
    def level(self) -> str:
        """The problem's level as the environment says; – when it has none."""
        return str(self.problem.meta.get("level", "–"))

    def share_useful(self, k: int) -> float:
        """Probability that k of the answers, drawn without replacement, earned different rewards."""
        m = len(self.rewards)
        return 1.0 - sum(comb(count, k) for count in Counter(self.rewards).values()) / comb(m, k)


@dataclass(frozen=True)
class Line:
    """One line of the table: a skill at a level, or everything."""

    skill: str
    level: str
    problems: int
    accuracy: Measured
    variance: Measured
    mixed: Measured
    truncated: Measured
    format_rate: Measured
    entropy: Measured | None
    unjudged: int

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {k: v._asdict() if isinstance(v, Measured) else v for k, v in vars(self).items()}


@dataclass(frozen=True)
class Report:
    """Everything a probe found."""

    total: Line
    lines: tuple[Line, ...]
    """One line per skill and level."""
    useful: tuple[Useful, ...]
    problems: tuple[OfProblem, ...]
    """The problems with at least one judged answer."""
    unjudged_problems: int
    n: int
    """Answers drawn per problem."""
    gen_tokens: float
    """Mean length of an answer."""

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "n": self.n,
            "total": self.total.facts(),
            "lines": [line.facts() for line in self.lines],
            "useful": [{"n": u.n, "at_least": u.at_least, **u.share._asdict()} for u in self.useful],
            "unjudged_problems": self.unjudged_problems,
            "gen_tokens": self.gen_tokens,
            "problems": [
                {"id": p.problem.id, "skill": p.problem.skill, "level": p.level, "accuracy": p.accuracy,
                 "variance": p.variance, "judged": len(p.rewards), "useful": p.useful}
                for p in self.problems
            ],
        }  # fmt: skip


def try_problems(
    answerer: Answerer, env: Environment, reward: RewardFunction, problems: Sequence[Problem], *, n: int,
    sampling: Sampling, seed: int = 0, observe: Callable[[], None] = lambda: None,
) -> list[Try]:  # fmt: skip
    """`n` tries of each problem, in the order of the problems; judged under the environment's own limits.

    `observe` is called whenever some are judged.
    """
    protocol = Protocol("EVAL@k", n, (1,), sampling)
    tries = []
    for one in evaluate(answerer, env, problems, protocol, seed=seed, observe=lambda batch: observe()).judged:
        verdict, completion = one.verdict, one.answer.completion
        tries.append(
            Try(
                one.problem,
                verdict.correct,
                None if verdict.correct is None else reward(one.problem, completion, verdict).value,
                formed=verdict.error not in (ErrorKind.FORMAT, ErrorKind.SYNTAX),
                truncated=completion.finish is Finish.LENGTH,
                gen_tokens=one.answer.gen_tokens,
                entropy=one.answer.entropy,
                text=completion.text,
            )
        )
    return tries


def report(tries: Sequence[Try], sizes: Sequence[int] = SIZES) -> Report:
    """The numbers of a probe from its tries; those of one problem need not be neighbours."""
    by_id = grouped(tries, lambda one: one.problem.id)
    whole = []
    for group in by_id.values():
        judged = [one for one in group if one.reward is not None]
        rewards = tuple(one.reward for one in judged if one.reward is not None)
        entropies = [one.entropy for one in group if one.entropy is not None]
        whole.append(OfProblem(
            problem=group[0].problem,
            rewards=rewards,
            accuracy=mean([one.correct is True for one in judged]),
            variance=float(np.var(rewards, ddof=1)) if len(rewards) > 1 else 0.0,
            truncated=mean([one.truncated for one in group]),
            formed=mean([one.formed for one in judged]),
            entropy=mean(entropies) if entropies else None,
            unjudged=len(group) - len(judged),
        ))  # fmt: skip
    seen = [p for p in whole if p.rewards]
    lines = [_line(*kind, group) for kind, group in sorted(by_kind(seen).items())]
    useful = []
    for k in sizes:
        enough = [p for p in seen if len(p.rewards) >= k]
        shares = [p.share_useful(k) for p in enough] or [p.share_useful(len(p.rewards)) for p in seen]
        useful.append(Useful(k, measured(shares), at_least=not enough))
    return Report(
        total=_line("all", "", seen, sum(p.unjudged for p in whole)),
        lines=tuple(lines),
        useful=tuple(useful),
        problems=tuple(seen),
        unjudged_problems=len(whole) - len(seen),
        n=max((len(group) for group in by_id.values()), default=0),
        gen_tokens=mean([one.gen_tokens for one in tries]),
    )


def by_kind(problems: Iterable[OfProblem]) -> dict[tuple[str, str], list[OfProblem]]:
    """The problems of each skill and level."""
    return grouped(problems, lambda p: (p.problem.skill, p.level))


def _line(skill: str, level: str, problems: Sequence[OfProblem], unjudged: int | None = None) -> Line:
    def mean(of: Callable[[OfProblem], float]) -> Measured:
        return measured([of(p) for p in problems])

    entropies = [p.entropy for p in problems if p.entropy is not None]
    return Line(
        skill=skill,
        level=level,
        problems=len(problems),
        accuracy=mean(lambda p: p.accuracy),
        variance=mean(lambda p: p.variance),
        mixed=mean(lambda p: float(p.mixed)),
        truncated=mean(lambda p: p.truncated),
        format_rate=mean(lambda p: p.formed),
        entropy=measured(entropies, share=False) if entropies else None,
        unjudged=sum(p.unjudged for p in problems) if unjudged is None else unjudged,
    )


def measured(score_P: Sequence[float], share: bool | None = None) -> Measured:
    """Mean and interval over problems; nothing that is measured here can be negative."""
    found = estimate(score_P, share=share)
    return Measured(found.value, max(0.0, found.low), found.high)
