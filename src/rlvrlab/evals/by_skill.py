"""Held-out accuracy of the whole and of every skill, from one evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rlvrlab.engines.base import Engine
from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import Accuracy, evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.stopwatch import timed
from rlvrlab.types import Environment, Problem, skills_of


class BySkill(NamedTuple):
    """How many were solved."""

    whole: Accuracy
    skills: dict[str, Accuracy]

    @property
    def value(self) -> float:
        """Accuracy over all skills."""
        return self.whole.value

    def metrics(self, data: str) -> dict[str, float]:
        """The whole's; with several skills also `val-core/<data>/<skill>/acc`, of `…/n` answers, and the worst."""
        found = self.whole.metrics(data)
        if len(self.skills) > 1:
            values = {skill: accuracy.value for skill, accuracy in self.skills.items()}
            found |= {f"val-core/{data}/{skill}/acc": value for skill, value in values.items()}
            found |= {f"val-core/{data}/{skill}/n": float(part.judged) for skill, part in self.skills.items()}
            found[f"val-core/{data}/worst_skill/acc"] = min(values.values())
        return found


def evaluate_skills(engine: Engine, env: Environment, problems: Sequence[Problem], max_tokens: int) -> BySkill:
    """EVAL@1 of a policy, under the environment's own judge limits; deterministic."""
    protocol = replace(eval_at_1(max_tokens), run_timeout_s=None, memory_mb=None)
    with timed("evaluate"):
        found = evaluate(EngineAnswerer(engine), env, problems, protocol)
    parts = {
        skill: replace(found, judged=tuple(one for one in found.judged if one.problem.skill == skill)).accuracy()
        for skill in skills_of(problems)
    }
    return BySkill(found.accuracy(), parts)
