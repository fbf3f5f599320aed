"""The cards of a run: what its policy could do on test problems before training and after each phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlvrlab.errors import LabError
from rlvrlab.evals.cards import EARLIER, change, code_words, earlier_words, origin_of, read_cards, told_keys
from rlvrlab.report.reading import STRANGE, Fact, Section, as_table, number, place, rounded, section, words
from rlvrlab.report.run_record import RunRecord

FOLDER = "analysis/cards/"


BECAME = {1.0: "became right", 0.0: "became wrong"}
"""What happened to the answer of a problem since its phase began, by its new outcome."""


class CardRecord(NamedTuple):
    """One card as read."""

    order: int
    """0: before training; n: after the nth phase."""
    phase: str
    step: int | None
    control: bool
    """A control arm: the phases after it did not start from here."""
    metrics: dict[str, Any]
    outcomes: dict[str, float]
    """Problem -> 1 if it was solved, else 0; what could not be judged is left out."""
    file: str
    asked: dict[str, Any]
    """Problems, protocol and scorer; empty in cards of older versions."""


def cards_of(run: RunRecord) -> list[CardRecord]:
    """Every card that can be read, in the order of the phases."""
    cards = []
    for path in (run.root / FOLDER).glob("*_*.json"):
        index, _, _ = path.name.partition("_")
        table = run.folder.table(f"{FOLDER}{path.name}") if index.isdigit() else {}
        metrics, verdicts = as_table(table.get("metrics")), as_table(table.get("outcomes"))
        if metrics or verdicts:
            outcomes = {str(key): value for key, one in verdicts.items() if (value := number(one)) is not None}
            phase, step = words(table.get("phase", "?"), 60), table.get("step")
            cards.append(
                CardRecord(int(index), phase, step if isinstance(step, int) else None, table.get("control") is True,
                           metrics, outcomes, f"{FOLDER}{path.name}", as_table(table.get("asked")))
            )  # fmt: skip
    return sorted(cards, key=lambda card: card.order)


def end_cards(run: RunRecord) -> list[CardRecord]:
    """The cards of the policies that phases ended with; controls and the baseline (card 0) do not count."""
    return [card for card in cards_of(run) if card.order > 0 and card.outcomes and not card.control]


def baseline(run: RunRecord) -> CardRecord | None:
    """The card of the policy before training."""
    return next((card for card in cards_of(run) if card.order == 0 and card.outcomes), None)


def sides(cards: Sequence[CardRecord]) -> list[str]:
    """A name for the answers behind each card."""
    phases = [card.phase for card in cards]
    places = [f" ({card.order})" if phases.count(card.phase) > 1 else "" for card in cards]
    return [
        f"test, after {card.phase}{place}" if card.order else "test, before training"
        for card, place in zip(cards, places, strict=True)
    ]


def answers_file(card: CardRecord) -> str:
    """Where its answers are kept; those of older versions have none."""
    return f"{card.file.removesuffix('.json')}.answers.jsonl"


def became(origin: CardRecord, card: CardRecord, problem: str) -> str:
    """What happened to the answer since the phase began; nothing where the verdict is the same, or one is missing."""
    before, after = origin.outcomes.get(problem), card.outcomes.get(problem)
    return "" if before is None or after is None or before == after else BECAME.get(after, "")


def phases(run: RunRecord) -> Section | None:
    """Every phase before and after, with the paired difference; control arms are branches."""
    cards = cards_of(run)
    if not any(card.metrics for card in cards):
        return None
    keys = told_keys([card.metrics for card in cards])
    columns = [f"{card.phase}{' (control)' if card.control else ''}" for card in cards]
    cells = [[_measured(card, key) for card in cards] for key in keys]
    data = {"columns": columns, "rows": [key.replace("_", " ") for key in keys], "cells": cells,
            "steps": [_step(run, cards, i) for i in range(1, len(cards))], **_said(run)}  # fmt: skip
    note = (
        "Test problems that nothing was tuned on, greedy, with 95 % intervals; differences are paired by problem, each "
        "by itself."
    )
    return section("phases", "phases", "Phases", data, FOLDER, note)


def _said(run: RunRecord) -> dict[str, list[str]]:
    """Which cards other code measured, and what the run could do each time that it was made longer afterwards."""
    try:
        cards = read_cards(run.root)
        earlier = [line.strip() for line in earlier_words(run.root, cards)]
        return {"code": code_words(run.root, cards), "earlier": earlier}
    except (LabError, OSError, *STRANGE) as error:
        run.folder.miss(f"{FOLDER}{EARLIER}", f"could not be read ({words(str(error), 100)})")
        return {"code": [], "earlier": []}


def _step(run: RunRecord, cards: list[CardRecord], i: int) -> Fact:
    """A phase against what it started from: the last card before it that is no control arm."""
    after, origin = cards[i], origin_of(cards, i)
    paired = change(origin, after) if origin else None
    told: Fact = {
        "name": after.phase,
        "control": after.control,
        "origin": origin.phase if origin else "",
        "before": _measured(origin, "accepted_at_1") if origin else None,
        "after": _measured(after, "accepted_at_1"),
        "difference": None,
    }
    if paired is not None:
        told["difference"] = {key: rounded(getattr(paired, key)) for key in ("mean", "low", "high", "p")}
        told["difference"] |= {"verdict": paired.verdict, "problems": paired.problems}
    if origin is not None and paired is not None:
        moved = Counter(became(origin, after, problem) for problem in after.outcomes)
        kept = (run.root / answers_file(after)).exists()
        told["became"] = {"side": sides(cards)[i] if kept else "", **{words: moved[words] for words in BECAME.values()}}
    return told


def _measured(card: CardRecord, key: str) -> Fact:
    bounds = {side: rounded(card.metrics.get(f"{key}_{side}")) for side in ("low", "high")}
    source = place(card.file, step=card.step, key=f"metrics.{key}")
    return {"value": rounded(card.metrics.get(key)), **bounds, "from": source}
