"""The cards of a run as they are stored: what its policy could do on test problems before and after each phase.

train/card.py measures and writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.evals.statistics import Difference, compare
from rlvrlab.record.files import read_facts
from rlvrlab.record.shapes import MEND, Record, refuse_other

CARDS = Path("analysis") / "cards"
EARLIER = "before_extension"
"""Folder of the last cards that a run had before it was made longer."""


class Card(NamedTuple):
    """A phase's end, measured."""

    phase: str
    step: int
    metrics: dict[str, Any]
    outcomes: dict[str, float]
    """1 or 0 by problem id; what could not be judged is left out."""
    control: bool = False
    """A control arm: the phases after it did not start from here."""
    seed: int | None = None
    """The recipe's seed: what is drawn for pass@k and second tries depends on it; None in cards of older versions."""
    asked: dict[str, Any] | None = None
    """Problems, protocol and scorer of the outcomes, as an evaluation records them; None in cards of older versions."""


class StoredCard(Record):
    """A card's file."""

    phase: str
    step: int
    metrics: dict[str, float | None]
    outcomes: dict[str, float]
    control: bool = False
    seed: int | None = None
    asked: dict[str, Any] | None = None


def read_cards(run_folder: Path) -> list[Card]:
    """In the order of the phases."""
    return _read(run_folder / CARDS)


def earlier_cards(run_folder: Path) -> list[Card]:
    """The last card of each time that the run was made longer afterwards, oldest first."""
    return sorted(_read(run_folder / CARDS / EARLIER), key=lambda card: card.step)


def origin_of(cards: Sequence[Card], index: int) -> Card:
    """What a phase started from: the last card before its own that is no control arm."""
    return next(before for before in reversed(cards[:index]) if not before.control)


def _read(folder: Path) -> list[Card]:
    cards = []
    for path in sorted(folder.glob("*_*.json"), key=lambda p: int(p.name.partition("_")[0])):
        facts = read_facts(path, MEND) or {}
        refuse_other(StoredCard, facts, str(path))
        cards.append(Card(**{name: facts[name] for name in Card._fields if name in facts}))
    return cards


def change(before: Card, after: Card) -> Difference:
    """Paired on the problems both have a verdict on."""
    shared = sorted(before.outcomes.keys() & after.outcomes.keys())
    return compare([before.outcomes[i] for i in shared], [after.outcomes[i] for i in shared])
