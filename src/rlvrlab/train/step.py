"""The on-line step, on one screen: GRPO, PPO, REINFORCE and their kin differ in what they declare, not in their step.

collect → judge → sort and filter → advantages → step credit → update (surgery, guard) → record
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlvrlab.batch import TokenBatch
from rlvrlab.notes import timed
from rlvrlab.train.batches import (
    Collected,
    assemble,
    correction_of,
    metrics_of,
    minibatches,
    penalises_reward,
    sort_groups,
    training_batch,
)
from rlvrlab.train.lab import Lab, shows_answers
from rlvrlab.train.phases.base import Estimators, OnlinePhase, StepOutcome
from rlvrlab.train.state import Memory, Moment, State, stage_at
from rlvrlab.train.update import (
    Applied,
    apply,
    counted_share,
    gradients,
    learning_rate,
    mean_metrics,
    publish,
    shares,
)
from rlvrlab.types import Objective, Problem, Rollout


def online_step(phase: OnlinePhase, lab: Lab, estimators: Estimators, state: State, memory: Memory) -> StepOutcome:
    """One collection and the updates on it; the `step` of every on-line phase."""
    recipe, engine = lab.recipe, lab.engine
    now, memory = enter(lab, phase, estimators, state, memory)
    # collect and judge
    rollouts, kinds, memory, told = collect_groups(lab, phase, estimators, now, memory)
    memory = observe(lab, now, memory, rollouts)
    if estimators.limits:
        estimators.limits.learn(rollouts, state.step)
    metrics = metrics_of(rollouts, kinds, lab.answer_length) | told
    # credit of steps; a group without signal stays if its steps have some
    credits, spoken = None, list[Rollout]()
    if lab.credit:
        from rlvrlab.train.credit.methods import credit_of

        with timed("credit"):
            sampling = lab.sampling_in(now.stage)
            credits = credit_of(lab.credit, rollouts, lab.env, lab.reward, engine, sampling, memory.credit)
        memory, spoken = replace(memory, credit=credits.remembered), credits.speaking(kinds.dead)
        metrics |= credits.metrics
    metrics |= {"stage/index": float(now.stage.index)} if lab.protocol else {}
    # filter
    used = rollouts if recipe.filter.dead_groups == "keep" else [*kinds.live, *spoken]
    silent = not kinds.live and not spoken
    if not used or (silent and phase.critic is None):
        collected = Collected(rollouts, kinds, memory, metrics)
        return silent_outcome(lab, state, now, collected, credits.rows() if credits else {})
    # advantages
    if recipe.entropy.floor:
        estimators, told = estimators.above_floor(assemble(rollouts, recipe.rollout.max_tokens))
        metrics |= told
    with timed("score"):
        objective = corrected(lab, phase, estimators)
        asked = {"reused": phase.updates_per_step > 1, "critic": phase.critic is not None}
        asked |= {"weighed": objective is estimators.objective}
        batch, counts = training_batch(used, engine, recipe, estimators.advantage, **asked)
        batch = credits.on(batch, used) if credits else batch
        counted = 1.0
        if recipe.filter.dead_groups == "count":
            whole = assemble(rollouts, recipe.rollout.max_tokens).scale
            counted = counted_share(batch.scale, whole, objective.aggregation)
    # update
    applied: list[Applied] = []
    with timed("update"):
        parts = minibatches(batch, phase.minibatches, phase.epochs, recipe.seed, phase.name, state.phase_step)
        for i, part in enumerate(parts):
            one, memory = update(lab, phase, now, memory, part, used, objective, i, counted)
            applied.append(one)
    updated = mean_metrics([one.metrics for one in applied])
    if objective is not estimators.objective:
        from rlvrlab.objectives.correction import with_sample_size

        updated = with_sample_size(updated)
    metrics |= counts | updated | phase.fit_critic(engine, batch)
    memory, more = settle(lab, now, memory, updated=True)
    metrics |= more
    skipped, steps = any(one.skipped for one in applied), credits.rows(batch, used) if credits else {}
    return StepOutcome(metrics, memory, rollouts, silent=silent, skipped=skipped, events=now.events, steps=steps)


def collect_groups(lab: Lab, phase: OnlinePhase, estimators: Estimators, now: Moment, memory: Memory) -> Collected:
    """A batch of judged answers; with refill, other problems in place of those whose group is dead."""
    if lab.recipe.pipeline.lag:
        from rlvrlab.train.pipeline import pipelined

        return pipelined(lab, phase, estimators, now, memory)
    by_parts, limits, size = estimators.advantage.by_parts, estimators.limits, phase.batch_size
    refills = lab.recipe.filter.max_refills if lab.recipe.filter.dead_groups == "refill" else 0
    rollouts: list[Rollout] = []
    for attempt in range(1 + refills):
        stream = phase.name if attempt == 0 else f"{phase.name}/refill{attempt}"
        problems = lab.problems_in(now, stream, size)
        problems = limits.fitted(problems, now.step) if limits else problems
        key, sampling = (lab.recipe.seed, stream, now.phase_step), lab.sampling_in(now.stage)
        rollouts += lab.ask(problems, key, sampling, shape=lab.shape)
        kinds = sort_groups(rollouts, by_parts=by_parts)
        if not kinds.dead or len(kinds.live) >= size * lab.recipe.rollout.n:
            break
    if phase.tries > 1:
        rollouts += phase.second_tries(lab, rollouts, now.phase_step, lab.sampling_in(now.stage))
        kinds = sort_groups(rollouts, by_parts=by_parts)
    return Collected(rollouts, kinds, memory, {})


def silent_outcome(
    lab: Lab, state: State, now: Moment, collected: Collected, steps: dict[str, list[dict[str, Any]]]
) -> StepOutcome:
    """Of a step whose answers teach nothing: the guard has its say, and why nothing was learnt is told."""
    rollouts, kinds, memory, metrics = collected
    memory, more = settle(lab, now, memory, updated=False)
    refills = lab.recipe.filter.dead_groups == "refill"
    notes = [kinds.why_silent(shows_answers(lab.resolved, state.phase), refills)]
    return StepOutcome(metrics | more, memory, rollouts, silent=True, notes=notes, events=now.events, steps=steps)


def corrected(lab: Lab, phase: OnlinePhase, estimators: Estimators) -> Objective:
    """The objective; with importance weights of its own where the one update on a batch computes what they need.

    Otherwise they come with the batch, from a pass over it before the first update; a KL in the reward asks for the
    same log-probs before there are advantages.
    """
    correction = correction_of(lab.recipe)
    if correction is None or phase.updates_per_step > 1 or penalises_reward(lab.recipe):
        return estimators.objective
    from rlvrlab.objectives.correction import CorrectedInUpdate

    return CorrectedInUpdate(estimators.objective, correction)


def enter(lab: Lab, phase: OnlinePhase, estimators: Estimators, state: State, memory: Memory) -> tuple[Moment, Memory]:
    """Where this step stands; begins a stage where one is due."""
    stages = lab.stages(phase.steps)
    stage = stage_at(stages, state.phase_step) if lab.protocol else stages[0]

    def ask(problems: Sequence[Problem], key: tuple[object, ...], greedy: bool) -> list[Rollout]:
        if greedy:
            return lab.ask(problems, key, replace(lab.sampling_in(stage), temperature=0.0), n=1)
        return lab.ask(problems, key, lab.sampling_in(stage))

    def policy_loss(rollouts: list[Rollout]) -> tuple[TokenBatch, Objective]:
        critic = phase.critic is not None
        batch, _ = training_batch(rollouts, lab.engine, lab.recipe, estimators.advantage, critic=critic)
        return batch, estimators.objective

    now = Moment(
        stage,
        lab.guard.protected_in(stage, stages) if lab.guard else (),
        phase.name,
        state.phase_step,
        state.step,
        lab.recipe.seed,
        lab.train,
        engine=lab.engine,
        answers=lab.recipe.rollout.n,
        ask=ask,
        policy_loss=policy_loss,
        anchor_kl=lab.engine.anchor_kl,
    )
    if memory.stage == (phase.name, stage.index):
        return now, memory
    if stage.index > 0 and not stage.carry:
        lab.engine.fresh_optimizer()
        lab.engine.freeze_reference()
    with timed("guard"):
        kept = lab.guard.begin(now, memory.guard) if lab.guard else memory.guard
    if len(stages) > 1:
        now.events.append(("stage", f"stage {stage.index + 1} of {len(stages)} begins: {stage.name}"))
    return now, replace(memory, stage=(phase.name, stage.index), guard=kept)


def observe(lab: Lab, now: Moment, memory: Memory, rollouts: Sequence[Rollout]) -> Memory:
    """What guard and grouping learn from judged answers, before they are trained on."""
    with timed("guard"):
        kept = lab.guard.observe(now, memory.guard, rollouts) if lab.guard else memory.guard
    difficulty = lab.grouping.observed(memory.difficulty, rollouts) if lab.surgery else memory.difficulty
    return replace(memory, guard=kept, difficulty=difficulty)


def settle(lab: Lab, now: Moment, memory: Memory, *, updated: bool) -> tuple[Memory, dict[str, float]]:
    """The guard's last word on this step's parameters; then they are published, if they changed."""
    metrics: dict[str, float] = {}
    if lab.guard:
        with timed("guard"):
            kept, moved, metrics = lab.guard.settle(now, memory.guard)
        memory, updated = replace(memory, guard=kept), updated or moved
    if updated:
        version = publish(lab.engine)
        if memory.in_flight is not None:
            from rlvrlab.train.pipeline import aged

            memory = replace(memory, in_flight=aged(memory.in_flight, version))
    return memory, metrics


def update(
    lab: Lab,
    phase: OnlinePhase,
    now: Moment,
    memory: Memory,
    batch: TokenBatch,
    used: Sequence[Rollout],
    objective: Objective,
    part: int,
    counted: float,
) -> tuple[Applied, Memory]:
    """One optimiser step on a part of the collection; `used` are the rollouts the whole collection is made of, and
    `counted` is what their loss counts in the mean."""
    settings, engine, surgery = lab.recipe.optimizer, lab.engine, lab.surgery
    rate = learning_rate(phase.learning_rate, now.phase_step, phase.steps, settings)
    groups, rates = {"all": batch}, {"all": [0.0]}
    if surgery is not None:
        groups, rates = lab.grouping.parts(batch, used, memory.difficulty)
    sizes = [one.scale for one in groups.values()]
    share_S = shares([s.rows for s in sizes], [s.tokens for s in sizes], objective.aggregation)
    halved = surgery is not None and bool(surgery.noise_every) and now.phase_step % surgery.noise_every == 0
    found = gradients(engine, groups, objective, share_S, halved=halved)
    weight_S, metrics = share_S, {f"surgery/size/{name}": float(len(own)) for name, own in rates.items() if surgery}
    if surgery is not None:
        from rlvrlab.surgery.base import Scene
        from rlvrlab.train.surgery import operate

        success_S = np.array([np.mean(own) for own in rates.values()])
        key = (lab.recipe.seed, phase.name, now.phase_step, part)
        scene = Scene(np.zeros((0, 0)), share_S, success_S, tuple(groups), key)
        try:
            found, weight_S, remembered, more = operate(engine, surgery, found, scene, memory.surgery)
        except np.linalg.LinAlgError as error:  # a ValueError too, but the gradients are finite: the method failed
            engine.release(found.vectors)
            words = f"{type(surgery).__name__} found no weights ({error}); the update is left out"
            now.events.append(("surgery_failed", words))
            return Applied(metrics | {"surgery/failed": 1.0}, skipped=False), memory
        except ValueError as error:
            engine.release(found.vectors)
            now.events.append(("surgery", str(error)))
            return Applied(metrics, skipped=True), memory
        memory, metrics = replace(memory, surgery=remembered), metrics | more
    applied, kept = apply(engine, found, counted * weight_S, rate, settings.max_grad_norm, lab.guard, now, memory.guard)
    return Applied(applied.metrics | metrics, applied.skipped), replace(memory, guard=kept)
