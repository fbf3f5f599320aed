"""Multi-turn repair: learn to mend an own failed answer from the judge's feedback.

`repair` learns from hindsight: where a problem's answers are mixed, each refused one is a first turn and an accepted
one of the SAME group is what the second turn should have said. Half of each batch rehearses accepted first turns, so
that mending is not paid for with first tries. Pairs are drawn once and kept in artifacts/repair_pairs.jsonl.
`grpo_turns` is the on-line form: a failed try of each group is answered with feedback, its second tries form a group.
Trap: the failures of a good policy are mostly problems it cannot solve at all, so groups of second tries are often
dead; on small policies `repair` wins. Report the blind-resample control beside recovery_rate (evals/recovery.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.errors import UserError
from rlvrlab.randomness import generator
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.collect import collect
from rlvrlab.rollout.turns import Context, second_prompts, try_again
from rlvrlab.train.groups import Sorted, sort_groups
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.phases.online import Grpo
from rlvrlab.train.phases.sft import Example, imitate
from rlvrlab.train.schedule import learning_rate
from rlvrlab.types import Count, Fraction01, Positive, Rollout

PAIRS = "repair_pairs.jsonl"


@register("phase", "repair")
@dataclass(frozen=True)
class RepairPhase:
    """Second turns learnt from hindsight: what another answer to the same problem got right."""

    steps: Count = 120
    """Updates."""
    batch_size: Count = 32
    """Turns per update."""
    learning_rate: Positive = 0.005
    """Peak; [optimizer] shapes it."""
    problems: Count = 500
    """Training problems from which pairs are made, rollout.n answers each."""
    pairs_per_problem: Count = 4
    """At most this many distinct refused answers of one problem become first turns."""
    rehearsal: Fraction01 = 0.5
    """Share of a batch that repeats accepted first turns."""
    context: Context = "fresh"
    """fresh: feedback stands alone. conversation: it follows the tokens of the first turn."""

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """Make the pairs, unless a run that is being resumed has them already."""
        path = artifacts / PAIRS
        if not path.exists():
            write_rows(path, self._pairs(lab))
        rows = read_lines(path)
        turns = {turn: [row for row in rows if row["turn"] == turn] for turn in (0, 1)}
        if not turns[1]:
            raise UserError("repair: no problem got both right and wrong answers; train first or raise repair.problems")
        object.__setattr__(self, "_turns", turns)

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """Some repairs, some first turns, drawn by key."""
        turns: dict[int, list[Example]] = self._turns  # type: ignore[attr-defined]
        draw = generator(lab.recipe.seed, "repair", phase_step)
        rehearsed = round(self.rehearsal * self.batch_size)
        sizes = {0: rehearsed, 1: self.batch_size - rehearsed}
        chosen = [turns[t][i] for t, size in sizes.items() for i in draw.choice(len(turns[t]), size, replace=True)]
        rate = learning_rate(self.learning_rate, phase_step, self.steps, lab.recipe.optimizer)
        outcome = imitate(lab, chosen, rate)
        outcome.metrics["repair/pairs"] = float(len(turns[1]))
        return outcome

    def _pairs(self, lab: Lab) -> list[dict[str, Any]]:
        asked = lab.problems_at("repair", 0, min(self.problems, len(lab.train)))
        key, n = (lab.recipe.seed, "repair"), lab.recipe.rollout.n
        rollouts = collect(lab.engine, lab.env, lab.reward, asked, n=n, sampling=lab.sampling, key=key)
        pairs = hindsight(rollouts, self.pairs_per_problem)
        seconds = second_prompts(lab.engine, lab.env, [wrong for wrong, _ in pairs], self.context)
        rows = [
            _row(1, right, tokens, previous=wrong.completion.text, asked=text)
            for (wrong, right), (text, tokens) in zip(pairs, seconds, strict=True)
        ]
        firsts = {(r.problem.id, r.completion.tokens): r for r in rollouts if r.verdict.correct is True}
        return rows + [_row(0, r, r.prompt_tokens) for r in firsts.values()]


def hindsight(rollouts: Sequence[Rollout], per_problem: int) -> list[tuple[Rollout, Rollout]]:
    """(refused, accepted) of one group, distinct refused answers, accepted ones in turn."""
    pairs = []
    for _, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        group = list(members)
        right = list({r.completion.text: r for r in group if r.verdict.correct is True}.values())
        wrong = list({r.completion.text: r for r in group if r.verdict.correct is False}.values())
        if right:
            pairs += [(bad, right[i % len(right)]) for i, bad in enumerate(wrong[:per_problem])]
    return pairs


def _row(turn: int, answer: Rollout, prompt: Sequence[int], **texts: str) -> dict[str, Any]:
    tokens = {"prompt": list(prompt), "answer": list(answer.completion.tokens)}
    return {"turn": turn, "problem": answer.problem.id, **tokens, "text": answer.completion.text, **texts}


@register("phase", "grpo_turns")
@dataclass(frozen=True)
class GrpoTurns(Grpo):
    """GRPO over first tries and over second tries that answer the judge's feedback."""

    context: Context = "fresh"
    """fresh: feedback stands alone. conversation: it follows the tokens of the first turn."""

    default_advantage: ClassVar[str] = "grpo"

    def _collect(self, lab: Lab, phase_step: int) -> tuple[list[Rollout], Sorted]:
        firsts, _ = super()._collect(lab, phase_step)
        failed = {r.group_id: r for r in reversed(firsts) if r.verdict.correct is False}
        seconds = try_again(
            lab.engine,
            lab.env,
            lab.reward,
            list(failed.values()),
            n=lab.recipe.rollout.n,
            sampling=lab.sampling,
            key=(lab.recipe.seed, self.name, phase_step),
            context=self.context,
        )
        rollouts = firsts + seconds
        return rollouts, sort_groups(rollouts)
