"""The one number a run is known by: on test problems where there are any answers to them, else plainly on dev."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.record.evaluation import evaluation_facts, evaluations_of
from rlvrlab.record.files import read_facts
from rlvrlab.record.run import read_metrics
from rlvrlab.record.summary import Summary

CARDS = Path("analysis") / "cards"


class Headline(NamedTuple):
    """A run's result."""

    role: str
    """`test`, or `dev`: problems that chose the checkpoint, so a flattering number."""
    accuracy: float
    low: float
    high: float
    problems: int | None
    step: int
    source: str
    """The file it comes from, below the run."""

    @property
    def words(self) -> str:
        """As `test 76.7 % [68.3, 83.3], 120 problems, step 230`."""
        count = f", {self.problems} problems" if self.problems else ""
        return f"{self.role} {percent(self._asdict())}{count}, step {self.step}"


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
    """The result on test problems: the last card's, else that of the newest evaluation of the trained policy."""
    return _from_card(folder) or _from_evaluation(folder)


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
    remedy = f"set eval.test_size, or `rlvr eval --run {folder}`"
    return f"Result: {told} (95 % interval over problems). No test result: {remedy}"


def _from_card(folder: Path) -> Headline | None:
    """The card of the policy that the run ended with; the baseline (card 0) and control arms are nobody's result."""
    numbered = {path: path.name.partition("_")[0] for path in (folder / CARDS).glob("*_*.json")}
    files = [path for path, index in numbered.items() if index.isdigit() and int(index) > 0]
    for path in sorted(files, key=lambda path: int(numbered[path]), reverse=True):
        card = read_facts(path, "remove it; a resume makes it again") or {}
        metrics = card.get("metrics")
        if isinstance(metrics, dict) and "accepted_at_1" in metrics and not card.get("control"):
            return _headline(metrics, int(card.get("step") or 0), path.relative_to(folder))
    return None


def _from_evaluation(folder: Path) -> Headline | None:
    """The newest evaluation of a trained policy on test problems."""
    for path in reversed(evaluations_of(folder)):
        examined = evaluation_facts(path)["examined"]
        step = examined["who"].get("step")
        by_data = read_facts(path / "metrics.json", "evaluate again") or {}
        metrics = by_data.get(examined["data"])
        if examined.get("roles") == ["test"] and step and isinstance(metrics, dict) and "accepted_at_1" in metrics:
            return _headline(metrics, int(step), (path / "metrics.json").relative_to(folder))
    return None


def _headline(metrics: dict[str, Any], step: int, source: Path) -> Headline:
    low, high = metrics["accepted_at_1_low"], metrics["accepted_at_1_high"]
    return Headline("test", metrics["accepted_at_1"], low, high, metrics.get("problems"), step, source.as_posix())


def summarise(folder: Path) -> dict[str, Any]:
    """Per phase: held-out accuracy before, best and last, with 95 % intervals."""
    return Summary(read_metrics(folder)).phases


def percent(point: dict[str, Any]) -> str:
    """An accuracy with its interval, as `81.5 % [75.6, 86.2]`."""
    return f"{100 * point['accuracy']:.1f} % [{100 * point['low']:.1f}, {100 * point['high']:.1f}]"
