"""A few problems per skill and answers to them: what a skill is remembered by once it is no longer trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.rollout.collect import collect
from rlvrlab.skills.memory import quotas, stratified
from rlvrlab.train.protocols.base import skills_of
from rlvrlab.types import Problem, Rollout, Sampling

if TYPE_CHECKING:
    from rlvrlab.train.guards.base import Moment
    from rlvrlab.train.lab import Lab

KEPT_ANSWERS = 2
"""Latest distinct right answers per problem."""
Stored = dict[str, dict[str, Any]]
"""Problem id -> {"prompt": tokens, "answers": [tokens, …]}."""


class Bank:
    """Lives in a guard's memory: `answers` by skill, plain data."""

    def __init__(self, memory: dict[str, Any], per_skill: int, total: int) -> None:
        self._memory, self._per_skill, self._total = memory, per_skill, total
        self._chosen: dict[str, list[Problem]] | None = None

    def problems(self, lab: Lab, skill: str) -> list[Problem]:
        """The problems that stand for a skill: stratified by level, the same in every run of the seed."""
        if self._chosen is None:
            skills = skills_of(lab.train)
            room = quotas(skills, self._per_skill, self._total)
            own = {name: [problem for problem in lab.train if problem.skill == name] for name in skills}
            self._chosen = {name: stratified(own[name], room[name], lab.recipe.seed, name) for name in skills}
        return self._chosen.get(skill, [])

    def keep(self, lab: Lab, rollouts: Sequence[Rollout]) -> None:
        """Right answers to remembered problems, the latest ones."""
        for rollout in rollouts:
            skill = rollout.problem.skill
            wanted = {problem.id for problem in self.problems(lab, skill)}
            if rollout.verdict.correct is True and rollout.problem.id in wanted:
                self._add(self._stored(skill), rollout, KEPT_ANSWERS)

    def fill(self, now: Moment, skill: str) -> int:
        """Ask the remembered problems without a right answer once more; returns how many answers that took."""
        stored = self._stored(skill)
        missing = [problem for problem in self.problems(now.lab, skill) if problem.id not in stored]
        rollouts = ask(now, missing, "fill", skill)
        self.keep(now.lab, rollouts)
        return len(rollouts)

    def sample(self, now: Moment, skill: str) -> int:
        """Replace the skill's answers by what the policy says now, right or wrong; returns how many."""
        rollouts = ask(now, self.problems(now.lab, skill), "sample", skill)
        self._memory.setdefault("answers", {})[skill] = {}
        for rollout in rollouts:
            self._add(self._stored(skill), rollout, now.lab.recipe.rollout.n)
        return len(rollouts)

    def batch(self, skill: str) -> TokenBatch | None:
        """All answers to the skill's problems; None when there are none."""
        rows = [(item["prompt"], answer) for item in self._stored(skill).values() for answer in item["answers"]]
        return batch_of([p for p, _ in rows], [a for _, a in rows], skill=skill) if rows else None

    def covered(self, skill: str) -> int:
        """Problems with an answer."""
        return len(self._stored(skill))

    def _stored(self, skill: str) -> Stored:
        found: Stored = self._memory.setdefault("answers", {}).setdefault(skill, {})
        return found

    @staticmethod
    def _add(stored: Stored, rollout: Rollout, most: int) -> None:
        tokens = list(rollout.completion.tokens)
        item = stored.setdefault(rollout.problem.id, {"prompt": list(rollout.prompt_tokens), "answers": []})
        others = [answer for answer in item["answers"] if answer != tokens]
        item["answers"] = [*others, tokens][-most:]


def ask(now: Moment, problems: Sequence[Problem], *purpose: object, greedy: bool = False) -> list[Rollout]:
    """Judged answers to a guard's own problems."""
    lab = now.lab
    sampling: Sampling = replace(lab.sampling, temperature=0.0) if greedy else lab.sampling
    n = 1 if greedy else lab.recipe.rollout.n
    if not problems:
        return []
    key = now.key(*purpose)
    return collect(lab.engine, lab.env, lab.reward, problems, n=n, sampling=sampling, key=key)


def halves(batch: TokenBatch) -> list[TokenBatch]:
    """Two parts of whole prompts that add up to the batch, or the batch itself where it has only one prompt."""
    prompts = list(dict.fromkeys(batch.prompts))
    if len(prompts) < 2:
        return [batch]
    first = set(prompts[::2])
    split = [[i for i, prompt in enumerate(batch.prompts) if (prompt in first) is side] for side in (True, False)]
    return [batch.rows(index) for index in split]
