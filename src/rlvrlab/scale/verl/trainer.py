"""Hooks before verl's synchronous trainer: credit, masks, group labels, and numbers as this laboratory records them.

verl's batch lives in its TransferQueue; the trainer knows its keys. Here the rows of a collection become rollouts of
ours, so that credit, filtering and metrics are the same code as in training without verl. What the actor's update
needs (the group of each row) is put back into the queue beside verl's own fields.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.batch import batch_of, pad
from rlvrlab.errors import InfrastructureError
from rlvrlab.evals.judged import Accuracy, BySkill
from rlvrlab.rollout.collect import as_row
from rlvrlab.scale.verl.actor import FACTS, GROUP
from rlvrlab.scale.verl.advantages import Extras, laid_out
from rlvrlab.scale.verl.collection import Collection
from rlvrlab.scale.verl.grouping import Labels
from rlvrlab.scale.verl.job import Job, current
from rlvrlab.train.batches import metrics_of, sort_groups
from rlvrlab.train.credit.credited import StepCredits
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Sampling

UNJUDGED_SHARE = 0.5
"""A batch in which more answers than this could not be judged stops the run."""
POLL_S = 0.25
"""Between two looks whether a batch is complete; verl looks every two seconds, much of a small model's step."""


class Held(NamedTuple):
    """What compute_score said of an answer to a held-out problem."""

    skill: str
    acc: float
    judged: float
    error: str
    truncated: float


class TrainerHooks:
    """Mixin placed before verl's PPOTrainerSync, so that its methods come first."""

    config: Any
    tokenizer: Any
    replay_buffer: Any
    global_steps: int

    def __init__(self, config: Any) -> None:
        from omegaconf import open_dict

        with open_dict(config):
            config.trainer.v1.trainer_mode = "sync"  # our name led here; for verl it is the synchronous trainer
        super().__init__(config)  # type: ignore[call-arg]
        self.replay_buffer.poll_interval = POLL_S
        self._rlvr_job: Job = current()
        self._rlvr_labels = Labels(self._rlvr_job)
        self._rlvr_metrics: dict[str, float] = {}
        self._rlvr_silent = False

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Calls verl's advantage function with our estimator; then adds step credit, masks and labels."""
        job, step = self._rlvr_job, self.global_steps - 1
        recipe = job.resolved.recipe
        found = Collection.fetch(job, batch, self.tokenizer, step)
        refuse_unjudged(found)
        with laid_out(Extras(found.value_BT, found.parts)) as given:
            after = super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        kinds = sort_groups(found.rollouts, by_parts=job.advantage.by_parts)
        plugin, credits = job.resolved.build("credit"), StepCredits()
        if plugin is not None:
            sampling = Sampling(recipe.rollout.max_tokens, recipe.rollout.temperature, recipe.rollout.top_p)
            credits = credit_of(plugin, found.rollouts, job.env, job.reward, found.sampler, sampling)
        spoken = {rollout.id for rollout in credits.speaking(kinds.dead)}
        live = {rollout.id for rollout in kinds.live} | spoken
        self._rlvr_silent = not live and not self.use_critic  # type: ignore[attr-defined]
        self._rlvr_metrics = metrics_of(found.rollouts, kinds) | given.counts | credits.metrics
        kept = [r.id in live or recipe.filter.dead_groups == "keep" for r in found.rollouts]
        found.put_back(after, _credited(found, credits), None if self._rlvr_silent else kept)
        label_B, facts = self._rlvr_labels.of(found, step, kept)
        if facts is not None:
            found.put_column(after, GROUP, label_B)
            after.extra_info[FACTS] = facts
        if recipe.record.rollouts != "none":
            _record(found, credits, job.folder / "rollouts", self.global_steps)
        return after

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """No update where nothing is to be learnt: an optimiser would move on by its momentum."""
        if self._rlvr_silent:
            metrics["actor/silent"] = 1.0
            return batch
        return super()._update_actor(batch, metrics)  # type: ignore[misc]

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *arguments: Any, **named: Any) -> None:
        """verl's, and ours above them: rewards of judged answers only, groups, accuracy, parts."""
        super()._compute_metrics(batch, metrics, *arguments, **named)  # type: ignore[misc]
        metrics.update(self._rlvr_metrics)

    def _val_metrics_update(
        self, sources: Any, uids: Any, infos: dict[str, list[Any]], turns: Any, **_: Any
    ) -> dict[str, float]:
        """Held-out accuracy of the whole and of every skill, with intervals, as without verl."""
        job = self._rlvr_job
        skills = [job.problems[name].skill for name in infos["problem"]]
        names = ("acc", "judged", "error", "truncated")
        rows = [Held(*row) for row in zip(skills, *(infos[name] for name in names), strict=True)]
        parts = {name: _accuracy([row for row in rows if row.skill == name]) for name in dict.fromkeys(skills)}
        return BySkill(_accuracy(rows), parts).metrics(job.env.name)


def refuse_unjudged(found: Collection) -> None:
    """Stop where too much of a batch could not be judged; no reward is made up for it."""
    unjudged = [rollout for rollout in found.rollouts if rollout.reward is None]
    if len(unjudged) > UNJUDGED_SHARE * len(found.rollouts):
        detail = next((rollout.verdict.detail for rollout in unjudged if rollout.verdict.detail), "")
        raise InfrastructureError(
            f"{len(unjudged)} of {len(found.rollouts)} answers could not be judged ({detail}); no reward is made up "
            "for them: mend the judge, then resume"
        )


def _credited(found: Collection, credits: StepCredits) -> dict[str, Any]:
    """Token advantages by row, where step credit changes them."""
    if not credits.answers:
        return {}
    answers = [rollout.completion.tokens for rollout in found.rollouts]
    batch = batch_of([()] * len(answers), answers, advantage_BT=pad(found.advantages()))
    after = credits.on(batch, found.rollouts)
    assert after.advantage_BT is not None
    return {r.id: after.advantage_BT[i, : len(answers[i])] for i, r in enumerate(found.rollouts)}


def _record(found: Collection, credits: StepCredits, folder: Path, step: int) -> None:
    """The answers of a step, for the process that follows verl."""
    folder.mkdir(exist_ok=True)
    steps = credits.rows()
    rows = [as_row(rollout, steps.get(rollout.id)) for rollout in found.rollouts]
    lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
    draft = folder / f".step_{step}.draft"
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.rename(folder / f"step_{step}.jsonl")


def _accuracy(rows: Sequence[Held]) -> Accuracy:
    judged = [row for row in rows if row.judged]
    errors = dict(Counter(str(row.error) for row in judged if not row.acc))
    solved, cut = sum(bool(row.acc) for row in judged), sum(bool(row.truncated) for row in rows)
    return Accuracy(solved, len(judged), len(rows) - len(judged), errors, cut)
