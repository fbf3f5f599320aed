"""Looks at a comparison that nobody declared: their level, what they add to the chance of a wrong finding, their words.

A stage declares its looks before the first one (`select.extend`), and these share its `alpha`. Who decides about the
same arms again, on other trials or by another rule, looks once more. What the earlier looks spent cannot be taken back,
so the first such look has alpha / 2, the second alpha / 4, and so on: all of them add at most one more alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlvrlab.shares import per_hundred

Decision = dict[str, Any]


def level_of(alpha: float, looks: int, undeclared: int) -> float:
    """The level of one look of a stage that declared so many, after so many rounds of looks that nobody declared."""
    return alpha / (looks * 2**undeclared)


def rounds(before: Sequence[Decision]) -> int:
    """Rounds of looks that nobody declared, this one included; declared looks of one round share its level."""
    return 1 + max((one.get("undeclared", 0) for one in before), default=-1)


def chance(alpha: float, before: Sequence[Decision]) -> float:
    """How often equal arms are told apart at most by all of these looks and the declared ones of the present round."""
    spent = [level_of(one.get("alpha", alpha), one.get("looks", 1), one.get("undeclared", 0)) for one in before]
    return min(1.0, sum(spent) + level_of(alpha, 1, rounds(before)))


def told(decision: Decision) -> str:
    """That a look was not declared, and how it is counted; nothing for one that was."""
    if not decision.get("undeclared"):
        return ""
    return (
        f"look {decision['look']} at these arms was not declared beforehand (`select.extend`), so it is told "
        f"at α = {decision['level']:.3g} and not {decision['alpha']:g}; looking this often tells equal arms apart in "
        f"at most {per_hundred(decision['chance'])} of 100 studies"
    )


def price(decision: Decision) -> str:
    """What more seeds would cost a stage whose declared looks are over, beside the advice to run more."""
    compared = decision["comparisons"]
    if decision["outcome"] != "undecided" or not any(one["enough"]["seeds"] > one["seeds"] for one in _sized(compared)):
        return ""
    level = level_of(decision["alpha"], decision["looks"], decision["undeclared"] + 1)
    wanted = [one["enough_undeclared"] for one in _sized(compared)]
    takes = f", which takes about {max(size['seeds'] for size in wanted)} seeds" if all(wanted) else ""
    return (
        f"more seeds now are a look that was not declared, and will be told at α = {level:.3g}{takes}; `select.extend` "
        "declares looks beforehand"
    )


def _sized(compared: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in compared if one["enough"]]


def number_words(decision: Decision) -> str:
    """`look 1 of 3`, or `look 2, not declared: α of this look 0.025`."""
    if not decision.get("undeclared"):
        return f"look {decision['look']} of {decision['looks']}"
    before = ", ".join(map(str, decision["earlier"]))
    return f"look {decision['look']}, not declared (after decision {before}): α of this look {decision['level']:.3g}"


def sure(decision: Decision) -> str:
    """How sure the intervals of a decision are together, and with those of looks before that were not declared."""
    alpha = float(decision["alpha"])
    if not decision.get("undeclared"):
        return f"simultaneous {per_hundred(1 - alpha)} %"
    own, together = 1 - decision["level"], 1 - decision["chance"]
    return f"simultaneous {per_hundred(own)} %, with the looks before {per_hundred(together)} %"
