"""Did it learn? One sentence about a run, coloured by its outcome, with reasons and remedies where the answer is no."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import LabError
from rlvrlab.evals.cards import Card, Gain, better_before, change, gain_lines, on_dev, on_test
from rlvrlab.evals.compare import compare_folders
from rlvrlab.evals.matching import matching
from rlvrlab.record.evaluation import METRICS as EVALUATED
from rlvrlab.record.final import BASE
from rlvrlab.record.headline import Headline
from rlvrlab.report.gather import intervals
from rlvrlab.report.gather.cards import baseline, cards_of, end_cards
from rlvrlab.report.reading import STRANGE, Fact, as_table, number, place, rounded
from rlvrlab.report.run_record import METRICS, RunRecord
from rlvrlab.shares import hundredths

ACCEPTED = "accepted@1"
MOST_REASONS = 3
TONES = {"higher": "good", "lower": "bad", "not shown": "unclear"}
WORDS = {"higher": "Yes", "lower": "No, it got worse", "not shown": "No improvement is shown"}
NOTHING: Fact = {"role": "", "phases": [], "before": None, "after": None, "difference": None, "about": "", "why": [],
                 "caution": ""}  # fmt: skip
"""The parts of the sentence where nothing is known."""


class Change(NamedTuple):
    """What training did to the share of right answers."""

    role: str
    """`test`, or `dev`: problems that decide early stops and the best checkpoint, so a flattering number."""
    before: Fact
    after: Fact
    mean: float | None
    low: float | None
    high: float | None
    problems: int | None
    source: str
    """The file of the number after training."""
    detectable: float | None = None
    """Smallest true difference that such a comparison would find 4 times out of 5; None where it is not known."""

    @property
    def verdict(self) -> str:
        """As Difference.verdict; without an interval nothing is shown."""
        if self.low is None or self.high is None:
            return "not shown"
        return "higher" if self.low > 0 else "lower" if self.high < 0 else "not shown"


def answer(
    run: RunRecord, spans: Sequence[Fact], troubles: Sequence[Fact], tested: Sequence[Headline], alarms: Sequence[Fact]
) -> Fact:
    """The sentence. `spans`: held-out accuracy before and after each phase; `troubles`: health lights that are on;
    `alarms`: warnings that were not withdrawn."""
    kept = [one for one in spans if one["phase"] not in run.controls]
    found = _on_test(run, tested) or _on_dev(kept)
    if found is None:
        alone = _alone(run, tested, troubles)
        return alone | {"why": _unlike([*_pressing(troubles, alarms), *alone["why"]])}
    verdict, ended = found.verdict, run.status not in ("running", "stale", "not started")
    nothing_right = found.after["value"] == 0
    tone = "bad" if nothing_right and ended else TONES[verdict]
    if tone == "good" and run.status in ("failed", "killed", "damaged"):
        tone = "unclear"
    word, gains = "No" if nothing_right and ended else WORDS[verdict], _gains(run, kept)
    phases = [one for one in gains if not one.control]
    if word == "Yes" and len(phases) > 1:  # the recipe's question may be about one of them
        harmed = [one.phase for one in phases if one.verdict == "lower"]
        idle = [phases[-1].phase] if phases[-1].verdict == "not shown" else []
        if harmed or idle:
            what = f"{harmed[-1]} lowered it" if harmed else f"{idle[0]} is not shown to add anything"
            word, tone = f"Yes over all phases, but {what}", "unclear"
        else:
            word = "Yes, over all phases"
    standing = next((one for one in tested if one.source == found.source and one.problems == found.problems), None)
    count = f"{found.problems} problems" if found.problems else "problems that decide about training"
    count = standing.asked if standing and standing.asked else count
    reasons = [] if verdict == "higher" and not nothing_right else _reasons(found, troubles)
    return {
        "tone": tone,
        "word": word if ended else f"So far: {word[0].lower()}{word[1:]}",
        "role": found.role,
        "before": found.before,
        "after": found.after,
        "difference": {"mean": rounded(found.mean), "low": rounded(found.low), "high": rounded(found.high)},
        "about": f"{count}, 1 seed",
        "phases": _phases(run, gains),
        "why": _unlike([*_pressing(troubles, alarms), *reasons]),
        "caution": _caution(run, found, tested),
    }


def _on_test(run: RunRecord, tested: Sequence[Headline]) -> Change | None:
    """The result of the run against the policy before training, problem by problem.

    Where the result is an evaluation, the one of the policy before training that asked the same, as `rlvr compare
    RUN@base RUN` takes it; without one, or where it is a card, the cards.
    """
    result = next((one for one in tested if one.role == "test"), None)
    if result is None:
        return None
    return _by_evaluations(run, result) or _by_cards(run, result)


def _by_evaluations(run: RunRecord, result: Headline) -> Change | None:
    folder = (run.root / result.source).parent
    if Path(result.source).name != EVALUATED:
        return None
    try:
        first, last = matching([Path(f"{run.root}@{BASE}")], [folder])
        compared = compare_folders(first, last)
    except (LabError, OSError, *STRANGE):  # nobody asked before training, or other problems, or it cannot be read
        return None
    row = next((one for one in compared.measures if one.what == ACCEPTED), None)
    if row is None:  # the mean of several sampled answers is another number than the one that the run is known by
        return None
    gap = row.difference
    before, after = (
        _measured(run, one.folder.relative_to(run.root) / EVALUATED, value, step)
        for one, value, step in ((first[0], row.before, 0), (last[0], row.after, result.step))
    )
    return Change("test", before, after, gap.mean, gap.low, gap.high, compared.problems, result.source, gap.detectable)


def _measured(run: RunRecord, file: Path, value: float, step: int) -> Fact:
    """A share over the problems compared; its interval is that of all problems asked, so it is left out where they
    differ."""
    metrics = as_table(next(iter(run.folder.table(file.as_posix()).values()), None))
    same = rounded(metrics.get("accepted_at_1")) == rounded(value)
    bounds = {side: rounded(metrics.get(f"accepted_at_1_{side}")) if same else None for side in ("low", "high")}
    return {"value": rounded(value), **bounds, "from": place(file.as_posix(), step=step)}


def _by_cards(run: RunRecord, result: Headline) -> Change | None:
    """The newest card up to the step of the result; `result` may be an evaluation of more problems."""
    upto = [card for card in end_cards(run) if card.file == result.source or (card.step or 0) <= result.step]
    first, last = baseline(run), upto[-1] if upto else None
    paired = change(first, last) if first and last else None
    if first is None or last is None or paired is None:
        return None
    before, after = (
        {"value": rounded(sum(card.outcomes.values()) / len(card.outcomes)),
         "low": rounded(card.metrics.get("accepted_at_1_low")), "high": rounded(card.metrics.get("accepted_at_1_high")),
         "from": place(card.file, step=card.step)}
        for card in (first, last)
    )  # fmt: skip
    interval = (paired.mean, paired.low, paired.high)
    return Change("test", before, after, *interval, paired.problems, last.file, paired.detectable)


def _on_dev(spans: Sequence[Fact]) -> Change | None:
    """The first held-out accuracy against the last one of the same data set."""
    same = [one for one in spans if one["data"] == spans[0]["data"]]
    if not same or same[0]["before"]["from"]["line"] == same[-1]["last"]["from"]["line"]:
        return None
    before, after = same[0]["before"], same[-1]["last"]
    if before.get("late"):
        return None  # nobody asked before training, so nothing is known of what it added
    old, new = number(before["value"]), number(after["value"])
    if old is None or new is None:
        return None
    told = intervals.change((old, _bounds(before)), (new, _bounds(after)))
    return Change("dev", before, after, told["value"], told["low"], told["high"], None, METRICS)


def _gains(run: RunRecord, spans: Sequence[Fact]) -> list[Gain]:
    """What each phase added by itself: an earlier one may have done all the learning."""
    stored = [Card(one.phase, one.step or 0, one.metrics, one.outcomes, one.control) for one in cards_of(run)]
    begun = next((i for i, card in enumerate(stored) if card.outcomes and not card.control), len(stored))
    same = [one for one in spans if one["data"] == spans[0]["data"]]
    points = {
        one["phase"]: {
            when: {
                "step": told["from"]["step"],
                "accuracy": told["value"],
                "low": told["low"],
                "high": told["high"],
                "late": told.get("late", False),
            }
            for when, told in (("before", one["before"]), ("last", one["last"]))
        }
        for one in same
        if _bounds(one["before"]) and _bounds(one["last"])
    }
    return on_test(stored[begun:]) or on_dev(points)


def _phases(run: RunRecord, gains: Sequence[Gain]) -> list[str]:
    """The same in the words of the terminal."""
    told = gain_lines(gains)
    with suppress(LabError, OSError, *STRANGE):  # a line that cannot be read; the curves show what there is
        told.append(better_before(run.root))
    return [line for line in told if line]


def _pressing(troubles: Sequence[Fact], alarms: Sequence[Fact]) -> list[Fact]:
    """What must be read before the sentence is believed: warnings about the reward, and phases that did harm."""
    told = [{"why": one["text"], "try": "", "from": one["from"]} for one in alarms
            if one["subject"].startswith(("reward", "harm/"))]  # fmt: skip
    return told + [_reason(one) for one in troubles if one["state"] == "alarm" and one["metric"].startswith("hack/")]


def _bounds(point: Fact) -> tuple[float, float] | None:
    low, high = number(point.get("low")), number(point.get("high"))
    return None if low is None or high is None else (low, high)


def _alone(run: RunRecord, tested: Sequence[Headline], troubles: Sequence[Fact]) -> Fact:
    """A run with one measurement or none: what is known, and what is missing for an answer."""
    ended = run.status not in ("running", "stale", "not started")
    told = {**NOTHING, "tone": "unclear" if ended else "waiting", "word": "Not known" if ended else "Not yet known"}
    if tested:
        one = tested[0]
        source = place(one.source, step=one.step)
        bounds = {"low": rounded(one.low), "high": rounded(one.high)}
        told |= {"role": one.role, "after": {"value": rounded(one.accuracy), **bounds, "from": source}}
        told["tone"] = "bad" if one.accuracy == 0 and ended else told["tone"]
        told["about"] = one.asked
        told["caution"] = "Measured once only: nothing to compare it with. eval.test_size measures before and after."
        told["caution"] += f" Of step {one.step}{one.lacks}." if one.lacks else ""
    elif ended:
        told["why"] = [_reason(one) for one in troubles[:MOST_REASONS]]
        told["caution"] = "No evaluation is recorded: set eval.every and eval.test_size."
    else:
        told["caution"] = "No evaluation has been recorded so far."
    return told


def _unlike(reasons: Sequence[Fact]) -> list[Fact]:
    """The same without what is said twice."""
    return list({one["why"]: one for one in reversed(reasons)}.values())[::-1]


def _reason(light: Fact) -> Fact:
    return {"why": light["meaning"], "try": light["remedy"], "from": light["from"]}


def _reasons(found: Change, troubles: Sequence[Fact]) -> list[Fact]:
    """Why it did not improve, as far as the record tells, each with what to try."""
    reasons = [_reason(one) for one in troubles]
    alarmed = any(one["state"] == "alarm" for one in troubles)  # more problems would measure the same trouble
    if found.detectable and found.verdict == "not shown" and not alarmed:
        size = f"{hundredths(found.detectable, 0)} points"
        why = f"{found.problems} problems show a true difference of {size} only 4 times in 5"
        reasons.append({"why": why, "try": "raise eval.test_size, or train several seeds", "from": found.after["from"]})
    if not reasons:
        reasons.append({"why": "the recorded metrics are all in their ranges",
                        "try": "more steps, another learning rate, or easier problems (`rlvr probe` tells)",
                        "from": place(METRICS)})  # fmt: skip
    return reasons[:MOST_REASONS]


def _caution(run: RunRecord, found: Change, tested: Sequence[Headline]) -> str:
    """What a reader must know before quoting the sentence."""
    told = []
    if run.status in ("failed", "killed", "damaged", "interrupted", "preempted"):
        told.append(f"The run did not finish ({run.status}).")
    result = next((one for one in tested if one.role == "test"), None)
    if result and found.role == "test" and (result.lacks or rounded(result.accuracy) != found.after["value"]):
        told.append(f"The result of the run: {result.words}.")
    if found.role == "dev":
        more = "the test result below is not part of this sentence" if result else "eval.test_size adds a test result"
        told.append(f"On dev problems, which decide early stops and the best checkpoint; {more}.")
    told.append("One run: how much seeds differ is not known.")
    return " ".join(told)
