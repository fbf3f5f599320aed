"""RFT (rejection sampling, expert iteration): maximum likelihood of the policy's own answers that were judged right.

They are those that may be trained on (rollout/trainable.py), drawn once, kept in artifacts/rft_answers.jsonl as the
very tokens that were sampled, and read back by a resumed run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlvrlab.errors import NothingToLearn
from rlvrlab.recipe import Recipe
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.trainable import usable
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Draws
from rlvrlab.train.phases.sft import Example, Imitation
from rlvrlab.types import Count

ANSWERS = "rft_answers.jsonl"


@register("phase", "rft")
@dataclass(frozen=True)
class RftPhase(Imitation):
    """Maximum likelihood of the policy's own answers that were judged right."""

    problems: Count = 200
    """Training problems that are tried, rollout.n answers each."""

    def draws(self, recipe: Recipe, available: int) -> Draws:
        """All answers come before the first step."""
        return Draws(before=min(self.problems, available) * recipe.rollout.n)

    def prepare(self, lab: Lab, artifacts: Path) -> list[Example]:
        """Draw and judge the answers, unless a run that is being resumed has them already."""
        path = artifacts / ANSWERS
        if not path.exists():
            asked = lab.problems_at("rft", 0, min(self.problems, len(lab.train)))
            rollouts = lab.ask(asked, (lab.recipe.seed, "rft"))
            right = {(r.problem.id, r.completion.tokens): r for r in rollouts if usable(r)}
            rows = [
                {"problem": r.problem.id, "prompt": list(r.prompt_tokens), "answer": list(r.completion.tokens)}
                for r in right.values()
            ]
            write_rows(path, rows)
        examples = read_lines(path, answers=True)
        if not examples:
            raise NothingToLearn(
                "rft: the policy solved none of the problems itself; do SFT first or raise rft.problems"
            )
        return examples
