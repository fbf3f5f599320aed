"""Hooks before verl's synchronous trainer: credit, masks, group labels, and numbers as this laboratory records them.

verl's batch lives in its TransferQueue; the trainer knows its keys. Here the rows of a collection become rollouts of
ours, so that credit, filtering and metrics are the same code as in training without verl. What the actor's update
needs (the group of each row) is put back into the queue beside verl's own fields.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rlvrlab.batch import batch_of
from rlvrlab.errors import InfrastructureError
from rlvrlab.evals.evaluate import Accuracy
from rlvrlab.rollout.collect import as_row
from rlvrlab.scale.verl.actor import FACTS, GROUP
from rlvrlab.scale.verl.advantages import Extras, laid_out
from rlvrlab.scale.verl.collection import Collection
from rlvrlab.scale.verl.grouping import Labels
from rlvrlab.scale.verl.job import Job, current
from rlvrlab.train.credit import StepCredits, credit_of, step_rows
from rlvrlab.train.evaluation import BySkill
from rlvrlab.train.groups import metrics_of, sort_groups
from rlvrlab.types import Sampling

UNJUDGED_SHARE = 0.5
"""A batch in which more answers than this could not be judged stops the run."""


class TrainerHooks:
    """Before verl's PPOTrainerSync."""

    config: Any
    tokenizer: Any
    global_steps: int

    def __init__(self, config: Any) -> None:
        from omegaconf import open_dict

        with open_dict(config):
            config.trainer.v1.trainer_mode = "sync"  # our name led here; for verl it is the synchronous trainer
        super().__init__(config)  # type: ignore[call-arg]
        self._rlvr_job: Job = current()
        self._rlvr_labels = Labels(self._rlvr_job)
        self._rlvr_metrics: dict[str, float] = {}
        self._rlvr_silent = False

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """verl's own around our estimator; then step credit, masks and labels."""
        job, step = self._rlvr_job, self.global_steps - 1
        found = Collection.fetch(job, batch, self.tokenizer, step)
        self._rlvr_refuse(found)
        with laid_out(Extras(found.value_BT, found.parts)) as given:
            after = super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        kinds = sort_groups(found.rollouts, by_parts=job.advantage.by_parts)
        credits = self._rlvr_credits(found)
        spoken = {rollout.id for rollout in credits.speaking(kinds.dead)}
        live = {rollout.id for rollout in kinds.live} | spoken
        self._rlvr_silent = not live and not self.use_critic  # type: ignore[attr-defined]
        self._rlvr_metrics = metrics_of(found.rollouts, kinds) | given.counts | credits.metrics
        kept = [r.id in live or job.resolved.recipe.filter.dead_groups == "keep" for r in found.rollouts]
        found.put_back(after, self._rlvr_credited(found, credits), None if self._rlvr_silent else kept)
        self._rlvr_label(found, after, step)
        self._rlvr_record(found, credits)
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
        rows = list(zip(infos["acc"], infos["judged"], infos["error"], skills, strict=True))
        names = list(dict.fromkeys(skills))
        parts = {name: _accuracy([row for row in rows if row[3] == name]) for name in names}
        return BySkill(_accuracy(rows), parts).metrics(job.env.name)

    def _rlvr_refuse(self, found: Collection) -> None:
        unjudged = sum(rollout.reward is None for rollout in found.rollouts)
        if unjudged > UNJUDGED_SHARE * len(found.rollouts):
            detail = next((r.verdict.detail for r in found.rollouts if r.reward is None and r.verdict.detail), "")
            raise InfrastructureError(
                f"{unjudged} of {len(found.rollouts)} answers could not be judged ({detail}); no reward is made up for "
                "them: mend the judge, then resume"
            )

    def _rlvr_credits(self, found: Collection) -> StepCredits:
        job = self._rlvr_job
        plugin = job.resolved.build("credit")
        if plugin is None:
            return StepCredits()
        settings = job.resolved.recipe.rollout
        sampling = Sampling(settings.max_tokens, settings.temperature, settings.top_p)
        return credit_of(plugin, found.rollouts, job.env, job.reward, found.sampler, sampling)

    def _rlvr_credited(self, found: Collection, credits: StepCredits) -> dict[str, Any]:
        """Token advantages by row, where step credit changes them."""
        if not credits.answers:
            return {}
        advantages = found.advantages()
        answers = [rollout.completion.tokens for rollout in found.rollouts]
        batch = batch_of([()] * len(answers), answers, advantage_BT=found.padded(advantages))
        after = credits.on(batch, found.rollouts)
        assert after.advantage_BT is not None
        return {r.id: after.advantage_BT[i, : len(answers[i])] for i, r in enumerate(found.rollouts)}

    def _rlvr_label(self, found: Collection, batch: Any, step: int) -> None:
        label_B, facts = self._rlvr_labels.of(found, step)
        if facts is None:
            return
        found.put_column(batch, GROUP, label_B)
        batch.extra_info[FACTS] = facts

    def _rlvr_record(self, found: Collection, credits: StepCredits) -> None:
        if self._rlvr_job.resolved.recipe.record.rollouts == "none":
            return
        folder = self._rlvr_job.folder / "rollouts"
        folder.mkdir(exist_ok=True)
        steps = step_rows(credits)
        rows = [as_row(rollout, steps.get(rollout.id)) for rollout in found.rollouts]
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
        draft = folder / f".step_{self.global_steps}.draft"
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.rename(folder / f"step_{self.global_steps}.jsonl")


def _accuracy(rows: Sequence[tuple[Any, Any, Any, str]]) -> Accuracy:
    judged = [row for row in rows if row[1]]
    errors: dict[str, int] = {}
    for acc, _, error, _ in judged:
        if not acc:
            errors[str(error)] = errors.get(str(error), 0) + 1
    solved = sum(bool(row[0]) for row in judged)
    return Accuracy(solved, len(judged), len(rows) - len(judged), errors, 0)
