"""Answers in flight: with `pipeline.lag = 1` a step's answers are judged while the next step's are being drawn:

    draw t+1 with the policy of now   |   judge t
    update on t, whose answers the policy before drew: importance weights correct for that

The schedule is the recipe's and does not depend on how long anything takes. Answers in flight are plain data in the
memory that checkpoints hold, so a killed run goes on with the very answers it had drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from rlvrlab.rollout.collect import Asked, Judging, ask, judged_rollouts
from rlvrlab.train.batches import Collected, sort_groups
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Estimators, OnlinePhase
from rlvrlab.train.state import InFlight, Memory, Moment, stage_at
from rlvrlab.types import Branch, Completion, Finish, Problem, Turn

AGE = "pipeline/policy_age"
"""Updates between the policy that drew a step's answers and the one they are trained on."""


def pipelined(lab: Lab, phase: OnlinePhase, estimators: Estimators, now: Moment, memory: Memory) -> Collected:
    """This step's answers, judged while those of the next step are drawn."""

    def draw(at: Moment, problems: Sequence[Problem], judging: Judging | None) -> Asked:
        key, n = (lab.recipe.seed, phase.name, at.phase_step), lab.recipe.rollout.n
        sampling = lab.sampling_in(at.stage)
        return ask(lab.engine, judging, problems, n=n, sampling=sampling, key=key, shape=lab.shape)

    fitted = partial(estimators.limits.fitted, step=now.step) if estimators.limits else list
    waiting, following = memory.in_flight, None
    with Judging(lab.env) as judging:
        asked = landed(waiting, phase.name, now.phase_step, fitted, lab.train)
        age = waiting.get("age", 0) if waiting and asked else 0
        asked = asked or draw(now, fitted(lab.problems_in(now, phase.name, phase.batch_size)), judging)
        judging.hand_in(asked.items())
        if now.phase_step + 1 < phase.steps:
            stages, ahead = lab.stages(phase.steps), now.phase_step + 1
            stage = stage_at(stages, ahead)
            protected = lab.guard.protected_in(stage, stages) if lab.guard else ()
            then = replace(now, stage=stage, protected=protected, phase_step=ahead, step=now.step + 1)
            drawn = draw(then, lab.problems_in(then, phase.name, phase.batch_size), None)
            following = in_flight(drawn, phase.name, then.phase_step)
        rollouts = judged_rollouts(judging, lab.reward, asked)
    kinds = sort_groups(rollouts, by_parts=estimators.advantage.by_parts)
    return Collected(rollouts, kinds, replace(memory, in_flight=following), {AGE: float(age)})


def in_flight(asked: Asked, phase: str, phase_step: int) -> InFlight:
    """Drawn answers as plain data."""
    groups = [
        {
            "group": group,
            "problem": problem.id,
            "prompt": list(prompt),
            "answers": [{field.name: getattr(one, field.name) for field in fields(one)} for one in answers],
        }
        for (group, problem), prompt, answers in zip(*asked, strict=True)
    ]
    return {"phase": phase, "phase_step": phase_step, "groups": groups}


def aged(waiting: InFlight, version: int) -> InFlight:
    """The same answers after an update made this version of the policy."""
    return {**waiting, "age": version - waiting["groups"][0]["answers"][0]["policy_version"]}


def landed(
    waiting: InFlight | None, phase: str, phase_step: int, fitted: Callable[[Sequence[Problem]], list[Problem]],
    problems: Sequence[Problem],
) -> Asked | None:  # fmt: skip
    """The answers that were drawn for this very step, if any; `fitted` gives problems the limits they have now."""
    if waiting is None or (waiting["phase"], waiting["phase_step"]) != (phase, phase_step):
        return None
    by_id = {problem.id: problem for problem in problems}
    asked = fitted([by_id[row["problem"]] for row in waiting["groups"]])
    return Asked(
        [(row["group"], problem) for row, problem in zip(waiting["groups"], asked, strict=True)],
        [tuple(row["prompt"]) for row in waiting["groups"]],
        [[_completion(answer) for answer in row["answers"]] for row in waiting["groups"]],
    )


def _completion(row: dict[str, Any]) -> Completion:
    turns = tuple(Turn(by, text, (span[0], span[1]), tool, ok) for by, text, span, tool, ok in row["turns"])
    branches = tuple(Branch(tuple(path), end, share) for path, end, share in row.get("branches", ()))
    tokens, logprobs = tuple(row["tokens"]), tuple(row["logprobs"])
    return Completion(row["text"], tokens, logprobs, Finish(row["finish"]), row["policy_version"], turns, branches)
