"""Who looked at a stage's arms before: found among the decisions so far, whatever the stage was called then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.plain_files import parsed
from rlvrlab.shares import per_hundred
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.identity import digest
from rlvrlab.study.looks import Decision, chance, level_of, rounds
from rlvrlab.study.views import StageView
from rlvrlab.study.worker import JOB

KINDS = ("choice", "extension", "confirmation")
"""Decisions that compared arms with statistics."""


@dataclass
class Past:
    """The decisions of a study folder, asked for looks."""

    chain: Chain
    folder: Path
    decisions: list[Decision]
    """The list that the board appends to."""
    _marks: dict[str, set[str]] = field(default_factory=dict)

    def earlier(self, view: StageView) -> list[Decision]:
        """Decisions that had looked at two or more of the stage's arms before, and were not declared looks of its own.

        A decision that was made on just these trials by just this rule, by a stage of any name, is the same look.
        """
        return [one for one in self._looked(view) if not self._beside(view, one)]

    def facts(self, view: StageView) -> dict[str, Any]:
        """What a decision of the stage tells about its looks."""
        rule, declared, undeclared = view.stage.select, view.stage.select.extend + 1, rounds(view.earlier)
        return {
            "look": len(view.earlier) + view.look, "looks": declared, "undeclared": undeclared,
            "level": level_of(rule.alpha, declared, undeclared), "chance": chance(rule.alpha, view.earlier),
            "earlier": [one.get("id") for one in view.earlier],
            "planned": {stage.name: self.chain.seeds(stage) for stage in self.chain.file.study.stages},
        }  # fmt: skip

    def told_beside(self, view: StageView) -> str:
        """That stages which stood in the file together compare the same arms, each at a level of its own."""
        own = [one for one in self._looked(view) if self._beside(view, one)]
        if not own:
            return ""
        names = ", ".join(dict.fromkeys(one["stage"] for one in own))
        alphas = {one["stage"]: float(one["alpha"]) for one in own} | {view.name: view.stage.select.alpha}
        most = f"{per_hundred(sum(alphas.values()))} of 100 studies"
        return f"{names} compared some of the same arms, each stage at its own α: one of them is wrong in up to {most}"

    def _looked(self, view: StageView) -> list[Decision]:
        """One decision for each look that others have taken before at two or more of the stage's arms."""
        same = [i for i, one in enumerate(self.decisions) if view.evidence and one["evidence"] == view.evidence]
        now = [_marks(arm.trials) for arm in view.live]
        found: dict[str, Decision] = {}
        for one in self.decisions[: same[0]] if same else self.decisions:
            if one["kind"] in KINDS and len(one["candidates"]) > 1 and one["evidence"] not in view.sequence:
                then = {mark for arm in one["candidates"] for trial in arm["trials"] for mark in self._marks_of(trial)}
                if sum(bool(own & then) for own in now) > 1:
                    found.setdefault(one["evidence"], one)  # a person's choice on what the rule saw is no look more
        return list(found.values())

    def _beside(self, view: StageView, decision: Decision) -> bool:
        """Another stage made it, when this one was in the file already with the seeds that it has now."""
        planned = decision.get("planned", {})
        return decision["stage"] != view.name and planned.get(view.stage.name) == self.chain.seeds(view.stage)

    def _marks_of(self, trial: str) -> set[str]:
        """By what a trial is known again that the study file may no longer ask for."""
        if trial not in self._marks:
            path = self.folder / "trials" / trial / JOB
            try:
                self._marks[trial] = {trial, _unseeded(parsed(plain_files.read_text(path))["identity"])}
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                self._marks[trial] = {trial}  # its own id tells it still
        return self._marks[trial]


def _marks(trials: Sequence[Trial]) -> set[str]:
    """By what trials of the same arm are known again: their ids, and what they are but for the seed."""
    return {mark for trial in trials for mark in (trial.id, _unseeded(trial.identity))}


def _unseeded(identity: dict[str, Any]) -> str:
    return digest({key: value for key, value in identity.items() if key != "seed"})
