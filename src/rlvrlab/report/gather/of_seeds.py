"""What several runs of one recipe come to: the mean over their seeds with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvrlab.evals.statistics import estimate
from rlvrlab.report.gather.answer import NOTHING
from rlvrlab.report.gather.cards import end_cards
from rlvrlab.report.gather.intervals import interval
from rlvrlab.report.gather.overview import result
from rlvrlab.report.reading import Fact, place, rounded
from rlvrlab.report.run_record import RunRecord
from rlvrlab.shares import hundredths

ALONE = "There is nothing to compare it with."


def mean_of_seeds(runs: Sequence[RunRecord]) -> Fact:
    """The sentence that opens the page of one recipe's runs."""
    told = {**NOTHING, "tone": "unclear", "word": f"One recipe, {len(runs)} runs", "caution": ALONE}
    return told | (_of_cards(runs) or _of_results(runs))


def _of_cards(runs: Sequence[RunRecord]) -> Fact:
    """From the verdicts at the end of training on the problems that all runs were asked."""
    cards = [card for run in runs for card in end_cards(run)[-1:]]
    shared = sorted(set.intersection(*(set(card.outcomes) for card in cards))) if len(cards) == len(runs) else []
    if not shared:
        return {}
    found = estimate(np.array([[card.outcomes[key] for key in shared] for card in cards], dtype=np.float64))
    return {
        "role": "accepted@1 on test problems",
        "after": {"value": rounded(found.value), "low": rounded(found.low), "high": rounded(found.high),
                  "from": place("analysis/cards/")},
        "about": f"mean of {len(runs)} seeds{_spread(found.spread)} on {len(shared)} problems",
        "caution": f"Interval of 95 % for new seeds and new problems. {ALONE}",
    }  # fmt: skip


def _of_results(runs: Sequence[RunRecord]) -> Fact:
    """From the runs' own shares, where no verdicts on the same problems are recorded: over seeds alone."""
    by_role = [{one.role: one for one in result(run)} for run in runs]
    role = next((role for role in by_role[0] if all(role in own for own in by_role)), None)
    if role is None:
        return {"word": f"One recipe, {len(runs)} runs: not every run has a result yet"}
    shares = [own[role].accuracy for own in by_role]
    found = interval(shares, within=(0.0, 1.0))
    none = "" if found["low"] is not None else "The seeds are all equal, so their spread is not known. "
    return {
        "role": f"accepted@1 on {role} problems",
        "after": {"value": found["value"], "low": found["low"], "high": found["high"],
                  "from": place(by_role[0][role].source)},
        "about": f"mean of {len(runs)} seeds{_spread(float(np.std(shares, ddof=1)))}",
        "caution": f"{none or 'Interval of 95 % over seeds alone (Student). '}{ALONE}",
    }  # fmt: skip


def _spread(spread: float | None) -> str:
    return "" if spread is None else f" (they scatter by {hundredths(spread)} points)"
