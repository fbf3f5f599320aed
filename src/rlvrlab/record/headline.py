"""The one number a run is known by: its final checkpoint on the most test problems it was asked, else plainly dev."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.plain_files import count, share
from rlvrlab.record.files import read_facts
from rlvrlab.record.final import examined_of, final_step, standing
from rlvrlab.record.run import read_metrics
from rlvrlab.record.summary import Summary
from rlvrlab.shares import percent

Rank = tuple[bool, int, bool, int, int]
"""How well a number is suited to be the result: own data, problems, one greedy answer, a card, how new."""


class Headline(NamedTuple):
    """A run's result."""

    role: str
    """`test`, or `dev`: problems that decide early stops and the best checkpoint, so a flattering number."""
    accuracy: float
    low: float
    high: float
    problems: int | None
    step: int
    source: str
    """The file it comes from, below the run."""
    whole: int | None = None
    """How many problems there would have been, where only a part of them was asked."""
    final: int | None = None
    """The final step, where the number is of an earlier one."""

    @property
    def words(self) -> str:
        """As `test 76.7 % [68.3, 83.3], 120 problems, step 230`."""
        count = f", {self.asked}" if self.asked else ""
        return f"{self.role} {percent(self.accuracy, self.low, self.high)}{count}, step {self.step}{self.lacks}"

    @property
    def asked(self) -> str:
        """As `120 problems`, or `36 of 120 problems` where only a part was asked; empty where nobody counted."""
        part = f" of {self.whole}" if self.whole else ""
        return f"{self.problems}{part} problems" if self.problems else ""

    @property
    def lacks(self) -> str:
        """What keeps it from being the result of the run, in words; nothing where it is of the final checkpoint."""
        return f" (the last checkpoint, step {self.final}, was not tested)" if self.final else ""


def headlines(folder: Path, so_far: Summary | None = None) -> list[Headline]:
    """The result first, what stands beside it after: test then dev, or dev alone; none before the first evaluation.

    `so_far` saves reading the metrics.
    """
    test = tested(folder)
    phases = list((so_far.phases if so_far else summarise(folder)).values())
    dev = []
    if phases:
        last = phases[-1]["last"]
        dev = [Headline("dev", last["accuracy"], last["low"], last["high"], None, last["step"], "logs/metrics.jsonl")]
    return [test, *dev] if test else dev


def tested(folder: Path) -> Headline | None:
    """The result on test problems: of the final checkpoint the one on the most of them, be it a card or an evaluation.

    Where the final checkpoint was never tested, that of the latest step that was, which then says so.
    """
    found = [*_evaluated(folder), *_cards(folder)]
    if not found:
        return None
    final = final_step(folder) or max(one.step for _, one in found)
    stands = [one.folder for one in standing(folder)]
    at_end = [pair for pair in found if pair[1].step == final]
    at_end = at_end or [pair for pair in found if (folder / pair[1].source).parent in stands]
    if at_end:
        return max(at_end)[1]
    return max(found, key=lambda pair: (pair[1].step, pair[0]))[1]._replace(final=final)


def headline_words(folder: Path, so_far: Summary | None = None) -> str:
    """The result of a run in one line."""
    return in_words(headlines(folder, so_far), folder)


def in_words(found: Sequence[Headline], folder: Path) -> str:
    """One line for screens and pages; it says so where the number is on dev only."""
    if not found:
        return ""
    told = "; ".join(one.words for one in found)
    if found[0].role == "test":
        return f"Result: {told} (95 % intervals over problems)"
    remedy = f"phases are tested when they end, where eval.test_size is set; or `rlvr eval --run {folder}`"
    return f"Result: {told} (95 % interval over problems). No test result of what was trained: {remedy}"


def _cards(folder: Path) -> list[tuple[Rank, Headline]]:
    """Cards of the phases' ends, in order; the baseline (card 0) and control arms are nobody's result."""
    numbered = {path: path.name.partition("_")[0] for path in (folder / "analysis" / "cards").glob("*_*.json")}
    files = [path for path, index in numbered.items() if index.isdigit() and int(index) > 0]
    found = []
    for path in sorted(files, key=lambda path: int(numbered[path])):
        card = read_facts(path, "remove it; a resume makes it again") or {}
        metrics = card.get("metrics")
        made = _headline(metrics, count(card.get("step")) or 0, path.relative_to(folder))
        if made is not None and not card.get("control"):
            found.append(((True, made.problems or 0, True, 1, int(numbered[path])), made))
    return found


def _evaluated(folder: Path) -> list[tuple[Rank, Headline]]:
    """Evaluations of trained policies on test problems."""
    found = []
    for one in examined_of(folder):
        by_data = read_facts(one.numbers, "evaluate again") or {}
        metrics = by_data.get(one.facts["data"])
        own, on_test, problems, greedy, order = one.rank
        made = _headline(metrics, one.step, one.numbers.relative_to(folder)) if one.step else None
        if on_test and made is not None:
            found.append(((own, problems, greedy, 0, order), made._replace(whole=one.info.get("part_of"))))
    return found


def _headline(metrics: Any, step: int, source: Path) -> Headline | None:
    """What was measured; None where it is not there, or no share with its bounds."""
    if not isinstance(metrics, dict):
        return None
    accuracy, low, high = (share(metrics.get(f"accepted_at_1{bound}")) for bound in ("", "_low", "_high"))
    if accuracy is None or low is None or high is None:
        return None
    return Headline("test", accuracy, low, high, count(metrics.get("problems")), step, source.as_posix())


def summarise(folder: Path) -> dict[str, Any]:
    """Per phase: held-out accuracy before, best and last, with 95 % intervals."""
    return Summary(read_metrics(folder)).phases


ACCEPTED = "accepted@1 on dev problems (the share answered right, one greedy answer each)"
"""What the percentages of a run's phases are, for beside a table."""


def highest(point: dict[str, Any]) -> str:
    """The best accuracy of several, as `87.5 %`: it was chosen, so the interval of one evaluation is too high."""
    return percent(point["accuracy"])


def began(point: dict[str, Any]) -> str:
    """The first accuracy of a phase, as `0.0 % [0.0, 3.1]`; it says so where the phase had begun when it was taken."""
    return accuracy_words(point) + (f" at step {point['step']}" if point.get("late") else "")


def accuracy_words(point: dict[str, Any]) -> str:
    """An accuracy with its interval, as `81.5 % [75.6, 86.2]`."""
    return percent(point["accuracy"], point["low"], point["high"])
