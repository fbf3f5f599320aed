"""The sentence a comparison opens with: which side is better, by how much, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence

from rlvrlab.report.gather.answer import NOTHING, TONES
from rlvrlab.report.reading import Fact, Section, as_table, place, rounded, section, words
from rlvrlab.shares import hundredths


def opening(paired: Section | None, missing: Sequence[Fact], alone: Fact | None = None) -> Section:
    """The top of a comparison's page; `paired` is its paired test, `alone` what is told of a single recipe's runs."""
    told = dict(NOTHING)
    if paired is not None:
        told |= _decided(paired)
    else:
        reasons = [one["why"] for one in missing if one["what"] == "paired test"]
        told |= {"tone": "unclear", "word": "Not known which is better",
                 "caution": words(reasons[-1] if reasons else "", 500)} if alone is None else alone  # fmt: skip
    source = "config.json" if paired is None else paired["source"]
    return section("answer", "answer", "Is it better?" if alone is None else "What came out", told, source)


def _decided(paired: Section) -> Fact:
    """What the first row of the paired test says."""
    data = paired["data"]
    before, after = (words(name, 60) for name in data["names"])
    row = data["tables"][0]["rows"][0]
    difference, verdict = as_table(row["difference"]), str(row["verdict"])
    word = {"higher": f"Yes, {after} is better than {before}", "lower": f"No, {after} is worse than {before}"}
    detectable = difference.get("detectable")
    why = []
    if verdict == "not shown" and isinstance(detectable, float):
        size = f"{hundredths(detectable, 0)} points"
        why = [{"why": f"such a comparison finds a true difference of {size} only 4 times in 5",
                "try": "more problems, or more seeds of each", "from": data["from"]}]  # fmt: skip
    problems = difference.get("problems")
    return {
        "tone": TONES.get(verdict, "unclear"),
        "word": word.get(verdict, f"No difference between {before} and {after} is shown"),
        "role": words(row["what"], 80),
        **{side: {"value": rounded(row[side]), "from": place(paired["source"])} for side in ("before", "after")},
        "difference": {side: rounded(difference.get(side)) for side in ("mean", "low", "high")},
        "about": f"{problems} problems" if problems else "",
        "why": why,
        "caution": words(difference.get("caution") or "", 500),
    }
