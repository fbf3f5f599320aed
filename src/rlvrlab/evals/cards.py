"""The cards of a run, and what each phase added by them: whether that is more than chance, and what follows from it.

A card is what the policy could do on test problems before or after a phase; train/card.py measures and writes them.
A gain is measured on test problems, problem by problem, where the run has cards, else on dev problems by their Wilson
intervals. Terminal, EXPERIMENT.md and page say it in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from rlvrlab.evals.metrics import card_columns
from rlvrlab.evals.noise import LEVEL, Interval
from rlvrlab.evals.statistics import Difference, compare, newcombe
from rlvrlab.record.files import read_facts, read_lines
from rlvrlab.record.headline import summarise
from rlvrlab.record.run import read_events, read_metrics
from rlvrlab.record.shapes import MEND, Record, refuse_other
from rlvrlab.record.summary import accuracy_of
from rlvrlab.shares import bracket, difference, hundredths, percent, points
from rlvrlab.student import normal_quantile

CARDS = Path("analysis") / "cards"
EARLIER = "before_extension"
"""Folder of the last cards that a run had before it was made longer."""
ENOUGH = 20
"""Problems below which a comparison hardly shows any gain."""
SOLVED = 0.95
"""Share of right answers before a phase from which on it has nearly nothing to add."""


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


class Arm(Protocol):
    """What the order of phases asks of a card, however it was read."""

    @property
    def control(self) -> bool:
        """Did the phases after it not start from here?"""


A = TypeVar("A", bound=Arm)


def origin_of(cards: Sequence[A], index: int) -> A | None:
    """What a phase started from: the last card before its own that is no control arm; None before training."""
    return next((before for before in reversed(cards[:index]) if not before.control), None)


def _read(folder: Path) -> list[Card]:
    return [_card(path) for path in _files(folder)]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*_*.json"), key=lambda path: int(path.name.partition("_")[0]))


def _card(path: Path) -> Card:
    facts = read_facts(path, MEND) or {}
    refuse_other(StoredCard, facts, str(path))
    return Card(**{name: facts[name] for name in Card._fields if name in facts})


def answers_behind(run_folder: Path, card: Card) -> frozenset[tuple[str, str, str]]:
    """Problem, turn and text of the answers that a card was made from; nothing where they were not kept."""
    rows: list[dict[str, Any]] = []
    for path in _files(run_folder / CARDS):
        if _card(path) == card:
            rows = read_lines(path.with_suffix(".answers.jsonl"), answers=True)
    return frozenset((str(row.get("problem")), str(row.get("turn")), str(row.get("answer"))) for row in rows)


def told_keys(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """The numbers of cards that a table of phases shows, those of all problems before those of each set."""
    names = {key for one in metrics for key in one}
    sets = sorted({key.rpartition("/")[0] for key in names if key.endswith("/accepted_at_1")})
    rows = [*card_columns(names), *sorted(key for key in names if key.startswith("pass@") and key[5:].isdigit())]
    rows += [f"{one}/{key}" for one in sets for key in rows]
    return [key for key in rows if any(isinstance(one.get(key), int | float) and isfinite(one[key]) for one in metrics)]


class Judged(Protocol):
    """What a comparison asks of a card, however it was read."""

    @property
    def outcomes(self) -> dict[str, float]:
        """1 or 0 by problem id."""


def change(before: Judged, after: Judged) -> Difference | None:
    """after − before, paired on the problems that both have a verdict on; None where there are none."""
    shared = sorted(before.outcomes.keys() & after.outcomes.keys())
    return compare([before.outcomes[i] for i in shared], [after.outcomes[i] for i in shared]) if shared else None


class Gain(NamedTuple):
    """The share of right answers before and after a phase, and the interval of the difference."""

    phase: str
    role: str
    """`test` or `dev`."""
    before: float
    after: float
    mean: float
    low: float
    high: float
    problems: int | None = None
    """Test problems that were compared; None on dev problems."""
    detectable: float | None = None
    """Smallest true difference that such a comparison finds 4 times in 5; None where it is not known."""
    control: bool = False
    since: int | None = None
    """The step of `before`, where the phase had begun by then."""
    first: bool = False
    """Nothing was trained before this phase."""

    @property
    def verdict(self) -> str:
        """`higher`, `lower` or `not shown`."""
        return Interval(self.low, self.high).verdict

    @property
    def words(self) -> str:
        """As `grpo is not shown to add anything: test 58.1 → 60.5 %, +2.3 points [-4.7, +9.3]`."""
        said = {
            "higher": "raised accepted@1",
            "lower": "lowered accepted@1",
            "not shown": "is not shown to add anything to accepted@1",
        }
        late = f" (step {self.since})" if self.since else ""
        numbers = f"{self.role} {hundredths(self.before)}{late} → {percent(self.after)}"
        gained = points(self.mean, self.low, self.high)
        count = f", {self.problems} problems" if self.problems else ""
        return f"{self.phase}{' (control)' * self.control} {said[self.verdict]}: {numbers}, {gained}{count}"

    @property
    def advice(self) -> str:
        """What to do about a phase that added nothing or did harm; empty where it helped."""
        if self.verdict == "higher" or self.control:
            return ""
        if self.verdict == "lower":
            return (
                f"look at what the reward pays (`rlvr check reward`) and at the answers of its last steps; a lower "
                f"{self.phase}.learning_rate, or go on from an earlier checkpoint"
            )
        if self.problems is not None and self.problems < ENOUGH:
            several = f"{self.problems} test problem{'s' * (self.problems != 1)}"
            return f"{several} can hardly show a gain: add rows, or raise eval.test_size as far as the data has them"
        if self.before >= SOLVED:
            return "nearly all was solved before it: take harder problems, or leave this phase out"
        if self.after == 0:
            return "no answer is right: easier problems, or more right answers to begin with (sft.references)"
        longer = f"more {self.phase}.steps" + ("" if self.first else ", or less training before it")
        if self.mean < 0:
            lower = f"take a lower {self.phase}.learning_rate"
            return f"several seeds; if it falls again, look at what the reward pays (`rlvr check reward`) and {lower}"
        if self.detectable:
            found = f"with {self.problems} test problems a true gain is found reliably only above"
            more = "more test problems (eval.test_size, as far as the data has them) or several seeds"
            return f"{found} {hundredths(self.detectable, 0)} points: {more}; or {longer}"
        return f"{longer}; eval.test_size = 200 asks test problems, which are compared one by one"


def on_test(cards: Sequence[Card]) -> list[Gain]:
    """What each phase added, by the cards before and after it."""
    found = []
    for index, card in list(enumerate(cards))[1:]:
        origin = origin_of(cards, index)
        paired = change(origin, card) if origin else None
        if origin is not None and paired is not None:
            before, after = (sum(one.outcomes.values()) / len(one.outcomes) for one in (origin, card))
            ends = (paired.mean, paired.low, paired.high)
            counts = (paired.problems, paired.detectable, card.control)
            found.append(Gain(card.phase, "test", before, after, *ends, *counts, first=origin.step == 0))
    return found


def on_dev(phases: Mapping[str, Any]) -> list[Gain]:
    """The same on dev problems; `phases` as in Summary.phases."""
    found: list[Gain] = []
    for name, entry in phases.items():
        if entry["last"]["step"] == entry["before"]["step"]:
            continue  # measured once only
        first, last = (_share(entry[when]) for when in ("before", "last"))
        ends = newcombe(first, last)
        since = entry["before"]["step"] if entry["before"].get("late") else None
        shares = (first[0], last[0], last[0] - first[0])
        found.append(Gain(name, "dev", *shares, *ends, since=since, first=not found))
    return found


def gains(run: Path) -> list[Gain]:
    """What each phase of a run added: on test problems where there are any, else on dev problems."""
    return on_test(read_cards(run)) or on_dev(summarise(run))


def gain_lines(found: Iterable[Gain]) -> list[str]:
    """A line per phase, with what follows from it."""
    return [f"{gain.words}.{f' Try: {gain.advice}.' if gain.advice else ''}" for gain in found]


def better_before(run: Path) -> str:
    """That an earlier state of the last phase was better than its last one beyond chance, and how to get it."""
    rows = read_metrics(run)
    last_phase = [row for row in rows if row["phase"] == rows[-1]["phase"]]
    known = [(row["step"], accuracy) for row in last_phase if (accuracy := accuracy_of(row))]
    if len(known) < 2:
        return ""
    (best_step, best), (last_step, last) = max(known, key=lambda point: point[1]["accuracy"]), known[-1]
    ends = newcombe(_share(last), _share(best))
    mean = best["accuracy"] - last["accuracy"]
    # The best is chosen among several: each of them is compared at a level that all comparisons share (Bonferroni).
    wider = normal_quantile(1 - (1 - LEVEL) / (len(known) - 1)) / normal_quantile(LEVEL)
    if mean - wider * (mean - ends.low) <= 0:
        return ""
    was, now = (f"{percent(one['accuracy'])} at step {step}" for step, one in ((best_step, best), (last_step, last)))
    what = f"An earlier state was better beyond chance: dev {was}, {now}"
    return f"{what}. It is kept as {run}@best: `rlvr eval --run {run}@best`."


def earlier_words(run_folder: Path, cards: Sequence[Card]) -> list[str]:
    """A line for each time that the run was made longer: what it could do before, and the change since then."""
    told = []
    for card in earlier_cards(run_folder):
        last = next((one for one in reversed(cards) if one.phase == card.phase and one.step > card.step), None)
        paired = None if last is None else change(card, last)
        if last is None or paired is None:
            continue
        share, low, high = (card.metrics.get(f"accepted_at_1{side}") or 0.0 for side in ("", "_low", "_high"))
        was = f"{percent(share)}{bracket(low, high, 100, 0)}"
        since = f"{difference(paired.mean)}{bracket(paired.low, paired.high, 100, 0, sign='+')}, {paired.p_told}"
        words = f"Before it was made longer ({card.phase}, step {card.step}): accepted@1 {was}"
        told.append(f"{words}; change until step {last.step}: {since}.\n")
    return told


def code_words(run_folder: Path, cards: Sequence[Card]) -> list[str]:
    """For each time that own code was accepted as it had become: which cards the code before it had judged and paid."""
    told = []
    for event in read_events(run_folder):
        step = event.get("step")
        if event["kind"] != "code_accepted" or step is None:
            continue
        before, after = ([card.phase for card in cards if (card.step > step) is late] for late in (False, True))
        if before and after:
            keys = sorted(event.get("changed") or {})
            what = "rewards" if keys == ["reward.code"] else "numbers"
            told.append(
                f"Own code changed after step {step} ({', '.join(keys)}): {', '.join(before)} measured by the code "
                f"before, {', '.join(after)} by the code since; their {what} do not compare."
            )
    return told


def _share(point: Mapping[str, Any]) -> tuple[float, Interval]:
    return point["accuracy"], Interval(point["low"], point["high"])
