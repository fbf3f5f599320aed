"""Examine a policy: ask, judge, keep. One path for training, `rlvr eval`, `rlvr probe` and the suites.

    evaluation = evaluate(EngineAnswerer(engine), env, problems, eval_at_k(n=8, ks=(1, 8)), seed=0)
    evaluation.metrics()      every number under the field's name, with intervals
    evaluation.judged         every answer with its verdict, in the order of the problems
    evaluation.samples        the same as plain metrics.Sample records

    with Servers(["http://127.0.0.1:8000"], model="my-model") as servers:
        evaluate(ServerAnswerer(servers), env, problems, eval_at_1(), store=EvaluationFolder…)

With a `store` (record/evaluation.py) every judged answer is on the disk before the next is looked at, and what a former
call left there is not asked again; what could not be judged then, is. A failed request is no wrong answer: its verdict
is None, it is counted apart, and asked again when the evaluation is resumed.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rlvrlab.engines.base import Engine
from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.errors import InfrastructureError, ModelChanged, OwnCodeError, UserError
from rlvrlab.evals.answering import BLIND, Answerer, Ask, EngineAnswerer, HandsInEarly, Ready
from rlvrlab.evals.hacks.signals import answer_metrics
from rlvrlab.evals.judged import Accuracy, BySkill, Judged, as_row, from_row
from rlvrlab.evals.metrics import Sample, at_budget, at_k, dataset_metrics
from rlvrlab.evals.protocol import Budget, eval_at_1
from rlvrlab.evals.protocol import Protocol as EvalProtocol
from rlvrlab.notes import timed
from rlvrlab.rewards.total import AbsentReward, PartialCredit, paid
from rlvrlab.rollout.collect import Item, Judging
from rlvrlab.types import RULES, Environment, Finish, Problem, RewardFunction, Sampling, Verdict, skills_of, unjudged


@dataclass(frozen=True)
class Evaluation:
    """All that was found out about one data set."""

    data: str
    """The environment's name, or the data set's."""
    protocol: EvalProtocol
    judged: tuple[Judged, ...]
    """Judged answers in the order of the problems, then of the samples."""
    wall_s: float
    executed: bool = True
    """Whether the answers are programs or queries that are run."""
    reward: RewardFunction | None = None
    """The recipe's, where there is one: what training pays for such answers is told beside."""

    @property
    def samples(self) -> list[Sample]:
        """The judged answers as the records that metrics are made of."""
        return [one.as_sample() for one in self.judged]

    def metrics(self) -> dict[str, Any]:
        """Every number, under the field's names; hack/… where answers are programs, rule/… where problems tell it."""
        hacks = answer_metrics([(one.problem, one.verdict) for one in self.judged])
        told = metrics_of(self.samples, self.protocol, self.wall_s, executed=self.executed) | hacks
        told |= rule_metrics({one.problem.id: one.problem for one in self.judged}.values())
        if self.reward is None:
            return told
        # Under a budget there are many answers where they are wrong; rates are those of first ones, as everywhere.
        alike = [one for one in self.judged if self.protocol.budget is None or one.sample == 0]
        return told | reward_metrics(alike, self.reward)

    def accuracy(self) -> Accuracy:
        """Counts of what was solved, for training."""
        first = [one for one in self.judged if one.turn == 0]
        known = [one for one in first if one.verdict.correct is not None]
        reasons = (one.verdict.detail for one in first if one.verdict.correct is None)
        return Accuracy(
            solved=sum(one.verdict.correct is True for one in known),
            judged=len(known),
            unjudged=len(first) - len(known),
            errors=dict(sorted(Counter(str(one.verdict.error) for one in known if not one.verdict.correct).items())),
            truncated=sum(one.answer.completion.finish is Finish.LENGTH for one in first),
            why_unjudged=next(reasons, ""),
        )


class Store(Protocol):
    """Where judged answers survive an interruption; rows are those of `as_row`."""

    def rows(self) -> list[dict[str, Any]]:
        """What is there already, the newest of each answer."""

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep these rows; they are on the disk when this returns."""


Observer = Callable[[list[Judged]], None]


def evaluate(
    answerer: Answerer, env: Environment, problems: Sequence[Problem], protocol: EvalProtocol, *, seed: int = 0,
    data: str = "", store: Store | None = None, observe: Observer | None = None, reward: RewardFunction | None = None,
) -> Evaluation:  # fmt: skip
    """Every problem answered and judged under `protocol`; resumes what `store` holds.

    `env` should come from `protocol.applied(env)` where the protocol's judge limits matter. `seed` keys the sampling.
    `observe` is called with each batch of judged answers, those found in the store included. `reward` is the recipe's:
    its mean and its parts are told, and where it is an accuracy with partial credit, mean accuracy is its mean.
    """
    refuse_unaskable(env, problems, protocol)
    credit = reward if isinstance(reward, PartialCredit) else None
    with Judging(env) as judging:
        session = _Session(answerer, judging, protocol, seed, store, observe or (lambda batch: None), credit)
        session.restore(problems)
        if isinstance(env, BaseEnvironment):
            env.refuse_judge(problems)
        try:
            if protocol.budget is None:
                pairs = ((p, i) for p in problems for i in range(protocol.n))
                session.ask(Ask(p, i, protocol.sampling, (seed, "eval", p.id, i)) for p, i in pairs)
                if protocol.tries > 1:
                    session.ask(session.second_tries())
            else:
                session.spend(problems, protocol.budget)
        except InfrastructureError as error:
            session.void(error)
            raise
    order = {problem.id: index for index, problem in enumerate(problems)}
    judged = sorted(session.judged.values(), key=lambda one: (order[one.problem.id], one.sample, one.turn))
    executed = isinstance(env, BaseEnvironment) and env.runs_answers
    known = None if isinstance(reward, AbsentReward) else reward
    return Evaluation(data or env.name, protocol, tuple(judged), session.clock(), executed, known)


def refuse_unaskable(env: Environment, problems: Sequence[Problem], protocol: EvalProtocol) -> None:
    """UserError for what no policy could be asked like this; before anybody is asked."""
    if not problems:
        raise UserError("nothing to evaluate: no problems; check --size, --role and the environment's keys")
    if len({p.id for p in problems}) < len(problems):
        twice = next(name for name, count in Counter(p.id for p in problems).items() if count > 1)
        raise UserError(f"problem {twice!r} is there twice; ids must be distinct")
    if protocol.tries > 1:
        from rlvrlab.rollout.turns import refuse_silent

        refuse_silent(env)


def greedy(engine: Engine, env: Environment, problems: Sequence[Problem], max_tokens: int) -> Evaluation:
    """EVAL@1 of a policy in training, under the environment's own judge limits; deterministic."""
    protocol = replace(eval_at_1(max_tokens), run_timeout_s=None, memory_mb=None)
    return evaluate(EngineAnswerer(engine), env, problems, protocol)


def evaluate_skills(engine: Engine, env: Environment, problems: Sequence[Problem], max_tokens: int) -> BySkill:
    """The same, counted for the whole and for every skill."""
    with timed("evaluate"):
        found = greedy(engine, env, problems, max_tokens)
    parts = {
        skill: replace(found, judged=tuple(one for one in found.judged if one.problem.skill == skill)).accuracy()
        for skill in skills_of(problems)
    }
    return BySkill(found.accuracy(), parts)


def reward_metrics(judged: Sequence[Judged], reward: RewardFunction) -> dict[str, Any]:
    """What a reward pays for judged first answers: mean, share of zero, mean of each part.

    An answer on which a reward of the user's own fails is left out and counted: nothing is trained here.
    """
    first = [one for one in judged if one.turn == 0 and one.verdict.correct is not None]
    given = []
    for one in first:
        with suppress(OwnCodeError):
            given.append(paid(reward, one.problem, one.answer.completion, one.verdict))
    if not given:
        return {}
    names = dict.fromkeys(name for one in given for name in one.parts)
    parts = {f"reward/{name}": sum(one.parts.get(name, 0.0) for one in given) / len(given) for name in names}
    mean, zeros = sum(one.value for one in given) / len(given), sum(one.value == 0 for one in given)
    told: dict[str, Any] = {"reward_mean": mean, "reward_zero_rate": zeros / len(given)}
    told |= parts if len(parts) > 1 else {}
    return told | ({"reward_failed": len(first) - len(given)} if len(given) < len(first) else {})


def rule_metrics(problems: Iterable[Problem]) -> dict[str, float]:
    """By rule, the share of problems that it gets right, of those that tell it: what a policy is held against."""
    told: dict[str, list[bool]] = defaultdict(list)
    for problem in problems:
        for name, right in problem.meta.get(RULES, {}).items():
            told[f"rule/{name}"].append(right)
    return {name: sum(rights) / len(rights) for name, rights in told.items()}


def metrics_of(
    samples: Sequence[Sample], protocol: EvalProtocol, wall_s: float, *, executed: bool = True
) -> dict[str, Any]:
    """One data set's numbers under a protocol; also for samples read back from a folder."""
    metrics = dataset_metrics(samples, wall_s, until_solved=protocol.budget is not None, executed=executed)
    if protocol.budget is not None:
        return metrics | at_budget(samples, protocol.budget.kind, protocol.budget.amount, protocol.n)
    return metrics | (at_k(samples, protocol.ks) if protocol.n > 1 else {})


class _Session:
    """One evaluation under way."""

    def __init__(
        self, answerer: Answerer, judging: Judging, protocol: EvalProtocol, seed: int, store: Store | None,
        observe: Observer, credit: RewardFunction | None,
    ) -> None:  # fmt: skip
        self._answerer, self._judging, self._protocol, self._seed = answerer, judging, protocol, seed
        self._store, self._observe, self._credit = store, observe, credit
        self.judged: dict[tuple[str, int, int], Judged] = {}
        self._before_s = 0.0
        self._started = time.monotonic()

    def clock(self) -> float:
        """Seconds of evaluation so far, those before an interruption included."""
        return self._before_s + time.monotonic() - self._started

    def restore(self, problems: Sequence[Problem]) -> None:
        """Take over what the store holds of these problems."""
        by_id = {problem.id: problem for problem in problems}
        for row in self._store.rows() if self._store else ():
            if row["problem"] in by_id and row["sample"] < self._protocol.n:
                one = from_row(row, by_id[row["problem"]])
                self.judged[one.problem.id, one.sample, one.turn] = one
        self._before_s = max((one.at_s for one in self.judged.values()), default=0.0)
        if self.judged:
            self._observe([one for one in self.judged.values() if one.verdict.correct is not None])

    def ask(self, asks: Iterable[Ask]) -> None:
        """Have these answered and judged, unless they are already."""
        missing = (ask for ask in asks if not self._known(*ask.name))
        for ready in self._answers(missing):
            self._judge(ready)

    def _answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        """They are judged while others are still being drawn, where other processes judge them."""
        if self._judging.early and isinstance(self._answerer, HandsInEarly):
            return self._answerer.handing_in(asks, self._judging.hand_in)
        return self._answerer.answers(asks)

    def second_tries(self) -> list[Ask]:
        """For each failed first answer: a greedy try after feedback, and a sampled one that is told nothing.

        The blind one says how many a second try mends by luck. Of the n answers to a problem only the first is
        followed up.
        """
        from rlvrlab.rollout.turns import feedback

        firsts = [one for one in self.judged.values() if one.turn == 0 and one.sample == 0]
        wrong = [one for one in firsts if one.verdict.correct is False]
        failed = [one for one in wrong if not all(self._known(one.problem.id, one.sample, t) for t in (1, BLIND))]
        told = feedback(self._judging.env, [(one.problem, one.answer.completion.text, one.verdict) for one in failed])
        longest = self._protocol.sampling.max_tokens
        greedy, free = Sampling(longest, temperature=0.0), Sampling(longest)
        asks = []
        for one, text in zip(failed, told, strict=True):
            key = self._seed, "eval", one.problem.id, one.sample
            asks.append(Ask(one.problem, one.sample, greedy, (*key, "repair"), 1, text))
            asks.append(Ask(one.problem, one.sample, free, (*key, "blind"), BLIND))
        return asks

    def spend(self, problems: Sequence[Problem], budget: Budget) -> None:
        """Round by round: one more answer for every problem that is unsolved and has budget left."""
        for round_ in range(self._protocol.n):
            asks = []
            for problem in problems:
                if self._known(problem.id, round_, 0) or self._over(problem, budget):
                    continue
                sampling = self._protocol.sampling
                if budget.kind == "tokens":
                    left = int(budget.amount - self._spent(problem, "tokens"))
                    sampling = replace(sampling, max_tokens=min(sampling.max_tokens, left))
                asks.append(Ask(problem, round_, sampling, (self._seed, "eval", problem.id, round_)))
            if not asks and all(self._over(problem, budget) for problem in problems):
                return
            for ready in self._answers(asks):
                self._judge(ready)
                if budget.kind == "wall_s" and self.clock() >= budget.amount:
                    return

    def _over(self, problem: Problem, budget: Budget) -> bool:
        """Whether a problem is solved or has nothing left to spend."""
        if any(one.verdict.correct for one in self._of(problem)):
            return True
        left = budget.amount - (self.clock() if budget.kind == "wall_s" else self._spent(problem, budget.kind))
        return left < 1 if budget.kind == "tokens" else left <= 0

    def _spent(self, problem: Problem, kind: str) -> float:
        return sum(one.answer.gen_tokens if kind == "tokens" else one.judge_s for one in self._of(problem))

    def _of(self, problem: Problem) -> Iterator[Judged]:
        answers = (self.judged.get((problem.id, sample, 0)) for sample in range(self._protocol.n))
        return (one for one in answers if one is not None)

    def _known(self, problem: str, sample: int, turn: int) -> bool:
        one = self.judged.get((problem, sample, turn))
        return one is not None and one.verdict.correct is not None

    def _judge(self, ready: Ready) -> None:
        batch = [self._credited(one) for one in judge_answers(self._judging.verdicts, ready, self.clock)]
        if self._store:
            self._store.append([as_row(one) for one in batch])
        for one in batch:
            self.judged[one.problem.id, one.sample, one.turn] = one
        self._observe(batch)

    def _credited(self, one: Judged) -> Judged:
        if self._credit is None or one.verdict.correct is None:
            return one
        return replace(one, credit=self._credit(one.problem, one.answer.completion, one.verdict).value)

    def void(self, error: InfrastructureError) -> None:
        """A server that changed its model: what it said since it was last known to be the right one is taken back."""
        if not isinstance(error, ModelChanged) or self._store is None:
            return
        since = error.since - self._started + self._before_s
        doubtful = [one for one in self.judged.values() if one.answer.server == error.server and one.at_s >= since]
        self._store.append([{**as_row(one), "void": str(error), "correct": None} for one in doubtful])


def judge_answers(
    verify: Callable[[Sequence[Item]], list[Verdict]], ready: Ready, clock: Callable[[], float]
) -> list[Judged]:
    """A failed request is not judged; equal answers to one problem are judged once, those judged already not again."""
    wanted = {
        (ask.problem.id, answer.completion.text): (ask.problem, answer.completion.text)
        for ask, answer in ready
        if answer.completion.finish is not Finish.ERROR and answer.verdict is None
    }
    started = time.perf_counter()
    verdicts = dict(zip(wanted, verify(list(wanted.values())), strict=True)) if wanted else {}
    share = (time.perf_counter() - started) / max(1, len(wanted))
    batch = []
    for ask, answer in ready:
        verdict, judge_s = answer.verdict, answer.judge_s
        if verdict is None:
            failed = answer.completion.finish is Finish.ERROR
            known = None if failed else verdicts.get((ask.problem.id, answer.completion.text))
            verdict = known or unjudged(f"the sampler failed: {answer.error}")
            judge_s = float(verdict.cost.get("wall_s", share))
        batch.append(Judged(ask.problem, ask.sample, answer, verdict, judge_s, clock(), ask.turn))
    return batch
