"""A few problems per skill and answers to them: what a skill is remembered by once it is no longer trained.

The answers stand in a guard's plain memory under "answers":
    {skill: {problem id: {"prompt": tokens, "answers": [tokens, …]}}}
Which problems stand for a skill is a function of the training problems and the seed, so it is not saved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.engines.base import Snapshot, Trainable
from rlvrlab.evals.metrics import grouped
from rlvrlab.randomness import generator, shuffled
from rlvrlab.rollout.trainable import verified
from rlvrlab.skills.embedding import centres, features, nearest
from rlvrlab.train.guards.base import Guard
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import Count, Problem, Rollout, skills_of


def quotas(skills: Sequence[str], per_skill: int, total: int) -> dict[str, int]:
    """Problems each skill may keep: at most `per_skill`, at most `total` together.

    Where there are more skills than room, the first ones get one problem each and the rest none.
    """
    room = max(0, total)
    share, extra = divmod(room, len(skills)) if skills else (0, 0)
    return {skill: min(per_skill, share + (i < extra)) for i, skill in enumerate(skills)}


def stratified(problems: Sequence[Problem], size: int, *key: object) -> list[Problem]:
    """`size` problems, spread evenly over levels; keyed, and a smaller choice is the beginning of a larger one."""
    strata = grouped(sorted(problems, key=lambda p: p.id), lambda problem: str(problem.meta.get("level", "")))
    mixed = [shuffled(members, *key, "memory", level) for level, members in sorted(strata.items())]
    in_turn = chain.from_iterable(zip_longest(*mixed))
    return [problem for problem in in_turn if problem is not None][:size]


KEPT_ANSWERS = 2
"""Latest distinct right answers per problem."""
SURROGATES = 0xD800
"""The first code point that is no character."""


@dataclass(frozen=True)
class RemembersSkills(Guard):
    """A guard that remembers skills by a few problems, and perhaps by answers to them."""

    memory_per_skill: Count = 32
    """Problems remembered of each skill."""
    memory_total: Count = 256
    """For all skills together; skills that find no room get none, which is reported."""

    def problems(self, train: Sequence[Problem], seed: int) -> dict[str, list[Problem]]:
        """The problems that stand for each skill: stratified by level, the same in every run of the seed."""
        skills = skills_of(train)
        room = quotas(skills, self.memory_per_skill, self.memory_total)
        own = {name: [problem for problem in train if problem.skill == name] for name in skills}
        return {name: stratified(own[name], room[name], seed, name) for name in skills}

    def with_problems(self, now: Moment, kept: Kept) -> Kept:
        """`kept` with the remembered problems in `live`; choosing them takes a look at every training problem."""
        if "problems" in kept.live:
            return kept
        return kept._replace(live={**kept.live, "problems": self.problems(now.train, now.seed)})

    def anchors(self, kept: Kept) -> set[int]:
        """Where skills were anchored, or the stage began."""
        return set(kept.memory.get("steps", {}).values())

    def rebuild(self, engine: Trainable, kept: Kept, step: int) -> Kept:
        """The parameters there; a guard that needs more of them makes that itself."""
        return kept._replace(live=with_snapshot(engine, kept.live, step))


def with_snapshot(engine: Trainable, live: dict[str, Any], step: int) -> dict[str, Any]:
    """`live` with the parameters the engine has now, as those of `step`."""
    snapshots = live.get("snapshots", {})
    return live if step in snapshots else {**live, "snapshots": {**snapshots, step: engine.snapshot()}}


def anchored(now: Moment, kept: Kept, name: str) -> Kept:
    """`kept` with the parameters of this moment as the anchor under that name: a skill's, or the stage's."""
    steps = {**kept.memory.get("steps", {}), name: now.step}
    return kept._replace(memory={**kept.memory, "steps": steps}, live=with_snapshot(now.engine, kept.live, now.step))


def anchor(kept: Kept, name: str) -> Snapshot:
    """The parameters at that anchor."""
    return kept.live["snapshots"][kept.memory["steps"][name]]


def without_anchors(kept: Kept, names: Collection[str]) -> Kept:
    """`kept` without these anchors, and without parameters that no other anchor needs."""
    steps = {name: step for name, step in kept.memory.get("steps", {}).items() if name not in names}
    snapshots = {step: one for step, one in kept.live.get("snapshots", {}).items() if step in steps.values()}
    return kept._replace(memory={**kept.memory, "steps": steps}, live={**kept.live, "snapshots": snapshots})


def remembered(kept: Kept, skill: str) -> list[Problem]:
    """The problems that stand for a skill; the guard has called `with_problems` before."""
    return kept.live["problems"].get(skill, [])


def with_answers(kept: Kept, rollouts: Sequence[Rollout], most: int, *, as_drawn: bool = False) -> Kept:
    """With these answers to remembered problems added, the latest `most` of each problem.

    Right answers are examples, so each is kept once. Answers `as_drawn` stand for the policy's distribution: right or
    wrong, and as often as they were drawn, so that a mean over them is a mean over samples.
    """
    answers = {skill: dict(rows) for skill, rows in kept.memory.get("answers", {}).items()}
    wanted = {problem.id for problems in kept.live["problems"].values() for problem in problems}
    for rollout in rollouts:
        if rollout.turn or rollout.problem.id not in wanted or not (as_drawn or verified(rollout)):
            continue  # a second try answers another prompt
        rows = answers.setdefault(rollout.problem.skill, {})
        tokens = list(rollout.completion.tokens)
        before = rows.get(rollout.problem.id, {"prompt": list(rollout.prompt_tokens), "answers": []})
        others = [answer for answer in before["answers"] if as_drawn or answer != tokens]
        rows[rollout.problem.id] = {**before, "answers": [*others, tokens][-most:]}
    return kept._replace(memory={**kept.memory, "answers": answers})


def refilled(now: Moment, kept: Kept, skill: str) -> tuple[Kept, int]:
    """Remembered problems without a right answer are asked once more; also how many answers that took."""
    stored = kept.memory.get("answers", {}).get(skill, {})
    missing = [problem for problem in remembered(kept, skill) if problem.id not in stored]
    rollouts = now.asked(missing, "fill", skill)
    return with_answers(kept, rollouts, KEPT_ANSWERS), len(rollouts)


def sampled(now: Moment, kept: Kept, skill: str, *, only_right: bool = False) -> Kept:
    """The skill's answers are replaced by what the policy says now, right or wrong, or only where it is right.

    Where nothing can be sampled the answers that are there stay.
    """
    if now.ask is None:
        return kept
    drawn = now.asked(remembered(kept, skill), "sample", skill)
    rollouts = [rollout for rollout in drawn if verified(rollout) or not only_right]
    emptied = {**kept.memory.get("answers", {}), skill: {}}
    kept = kept._replace(memory={**kept.memory, "answers": emptied})
    return with_answers(kept, rollouts, now.answers, as_drawn=True)


def answers_batch(kept: Kept, skill: str) -> TokenBatch | None:
    """All answers to the skill's problems; None when there are none."""
    stored: dict[str, Any] = kept.memory.get("answers", {}).get(skill, {})
    rows = [(item["prompt"], answer) for item in stored.values() for answer in item["answers"]]
    return batch_of([p for p, _ in rows], [a for _, a in rows], skill=skill) if rows else None


def some(batch: TokenBatch, rows: int, *key: object) -> TokenBatch:
    """So many rows, drawn by key, as a batch of their own; all of them where `rows` is 0 or there are no more."""
    if not 0 < rows < len(batch):
        return batch
    return batch.rows(np.sort(generator(*key).permutation(len(batch))[:rows])).rescaled()


def clusters(batch: TokenBatch, count: int, seed: int) -> list[TokenBatch]:
    """Batches of their own, of rows whose prompts are alike: k-means on n-grams of tokens, each token one character."""
    prompts = list(dict.fromkeys(batch.prompts))
    feature_PD = features(["".join(chr(token % SURROGATES) for token in prompt) for prompt in prompts])
    cluster_P = dict(zip(prompts, nearest(feature_PD, centres(feature_PD, count, seed)), strict=True))
    cluster_B = np.array([cluster_P[prompt] for prompt in batch.prompts])
    return [batch.rows(np.flatnonzero(cluster_B == k)).rescaled() for k in np.unique(cluster_B)]


def halves(batch: TokenBatch) -> list[TokenBatch]:
    """Two parts of whole prompts that add up to the batch, or the batch itself where it has only one prompt."""
    prompts = list(dict.fromkeys(batch.prompts))
    if len(prompts) < 2:
        return [batch]
    first = set(prompts[::2])
    split = [[i for i, prompt in enumerate(batch.prompts) if (prompt in first) is side] for side in (True, False)]
    return [batch.rows(index) for index in split]
