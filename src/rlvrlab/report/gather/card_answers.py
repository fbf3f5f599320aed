"""What a policy answered to test problems before training and after each phase, as the cards keep it.

A problem is shown with all its answers or not at all, so that it can be read from phase to phase; those whose verdict
changed come first. Second tries stand beside the answers that failed: told what went wrong, and blind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rlvrlab.evals.cards import origin_of
from rlvrlab.report.gather.cards import CardRecord, answers_file, became, cards_of, sides
from rlvrlab.report.gather.rollouts import CHARACTERS, LONGEST, MOST, Answers, name_of
from rlvrlab.report.reading import Fact, Line
from rlvrlab.report.run_record import RunRecord

KEPT = ("skill", "turn", "prompt", "correct", "error", "detail")
"""What is taken of a kept answer as it stands there; its id and what it follows are the page's own."""


class Stage(NamedTuple):
    """A card with its answers."""

    card: CardRecord
    origin: CardRecord | None
    """What the phase started from; None before training."""
    side: str
    file: str
    lines: list[Line]


def card_answers(run: RunRecord, answers: Answers) -> None:
    """Add them, to half of the room that the page still has."""
    stages = _stages(run)
    shown = _shown(stages, (MOST - len(answers)) // 2, (CHARACTERS - answers.characters) // 2)
    side_of = {id(stage.card): stage.side for stage in stages}
    for stage in stages:
        for number, row in stage.lines:
            if (problem := str(row.get("problem"))) in shown:
                told = {key: row.get(key) for key in KEPT} | {"problem": problem, "completion": row.get("answer")}
                change = ""
                if stage.origin is not None and not _is_second(row):
                    change = became(stage.origin, stage.card, problem)
                    side = side_of.get(id(stage.origin))
                    told["previous"] = name_of(side, problem) if side is not None else None
                answers.add(told, stage.file, number, stage.side, change=change)
    known = {str(line.row.get("problem")) for stage in stages for line in stage.lines}
    if len(shown) < len(known):
        text = f"answers to {len(shown)} of {len(known)} test problems are shown, those that changed first"
        answers.notes.append(f"{text}; all are in analysis/cards/.")


def _stages(run: RunRecord) -> list[Stage]:
    """Every card whose answers are kept, in the order of the phases."""
    cards = cards_of(run)
    found = []
    for i, (card, side) in enumerate(zip(cards, sides(cards), strict=True)):
        file = answers_file(card)
        if lines := run.folder.lines(file, ""):
            found.append(Stage(card, origin_of(cards, i), side, file, lines))
    return found


def _shown(stages: Sequence[Stage], rows: int, characters: int) -> Collection[str]:
    """The problems that fit; first those that were solved at one stage and not at another, or by a second try."""
    answers = Counter[str]()
    texts: dict[str, set[str]] = {}
    turned = set[str]()
    for stage in stages:
        for row in (line.row for line in stage.lines):
            problem = str(row.get("problem"))
            answers[problem] += 1
            texts.setdefault(problem, set()).update(str(row.get(key))[:LONGEST] for key in ("prompt", "answer"))
            mended = _is_second(row) and row.get("correct") is True
            if mended or (stage.origin is not None and became(stage.origin, stage.card, problem)):
                turned.add(problem)
    shown = set[str]()
    for problem in sorted(answers, key=lambda one: one not in turned):
        length = sum(map(len, texts[problem]))
        if answers[problem] <= rows and length <= characters:
            rows, characters = rows - answers[problem], characters - length
            shown.add(problem)
    return shown


def _is_second(row: Fact) -> bool:
    return isinstance(turn := row.get("turn"), int) and turn != 0
