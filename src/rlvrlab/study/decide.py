"""Decisions as the log keeps them: by the rule, by a person, after a halving round, after a confirmation."""

from __future__ import annotations

import math
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.study import looks
from rlvrlab.study.board import Board
from rlvrlab.study.chain import Trial
from rlvrlab.study.select import Recommendation
from rlvrlab.study.views import EXTENSION, StageView


def choice(board: Board, view: StageView, kind: str = "choice") -> dict[str, Any]:
    """The rule's decision for a stage whose trials are over: a winner, or more seeds while it is undecided."""
    recommended = board.recommendation(view)
    decision = _facts(board, view, recommended, kind)
    rule = view.stage.select
    if kind == "choice" and recommended.outcome == "undecided" and view.look <= rule.extend:
        seeds = len(view.stage.seeds or board.chain.file.study.seeds)
        words = f"{seeds} more seeds for every arm (look {view.look} of {rule.extend + 1}); {recommended.words}"
        return decision | {"kind": EXTENSION, "chosen": None, "words": _with(words, looks.told(decision))}
    if kind != "confirmation":
        return decision | {"words": _with(recommended.words, looks.told(decision), looks.price(decision))}
    # The question is another one: does the order of the chain's beginning hold at its end?
    first, second = view.arms[0].name, view.arms[1].name
    if recommended.outcome != "better":
        words = f"{first} and {second} at the end of the chain: {recommended.words}"
    elif recommended.chosen == first:
        words = f"{first} is better than {second} at the end of the chain too: the choice holds"
    else:
        words = f"{second} is better than {first} at the end of the chain: the greedy choice was wrong; select {second}"
    return decision | {"words": _with(words, looks.told(decision))}


def override(board: Board, view: StageView, arm: str, reason: str, who: str) -> dict[str, Any]:
    """A person's decision, beside what the rule recommends."""
    recommended = board.recommendation(view)
    known = [one.arm for one in board.candidates(view)]
    if arm not in known:
        remedy = f"finished arms: {', '.join(known)}"
        raise UserError(f"stage {view.name}: arm {arm!r} has no finished trial to choose; {remedy}")
    decision = _facts(board, view, recommended, "choice")
    agrees = "as the rule recommends" if arm == recommended.chosen else f"the rule recommends {recommended.chosen}"
    words = f"{arm}: chosen by {who} ({agrees}): {reason}"
    if arm != recommended.chosen:
        decision |= {"runner_up": recommended.chosen, "outcome": "undecided", "significant": False}
    return decision | {"chosen": arm, "by": "person", "reason": reason, "who": who, "words": words}


def halving(board: Board, view: StageView) -> dict[str, Any]:
    """Which arms go on: the best share by the rule's score, without a test; the trials of full size are tested."""
    trials = view.small
    candidates = board.candidates(view, trials)
    if not candidates:
        kept = [arm.name for arm in view.live]
        words = "no small trial finished: all arms go on"
        return _bare(board, view, "halving") | {"kept": kept, "chosen": None, "words": words}
    recommended = board.recommendation(view, trials)
    value = recommended.score or {recommended.chosen: 0.0}
    order = sorted((c.arm for c in candidates), key=lambda arm: -value.get(arm, -math.inf))
    count = max(1, math.ceil(view.stage.halving[view.round].keep * len(view.live)))
    kept, gone = order[:count], [arm.name for arm in view.live if arm.name not in order[:count]]
    words = f"round {view.round + 1}: {', '.join(kept)} go on; dropped: {', '.join(gone) or 'none'}"
    untested = {"runner_up": None, "outcome": "undecided", "significant": False}
    decision = _facts(board, view, recommended, "halving", trials) | untested
    return decision | {"kept": kept, "chosen": order[0], "words": words}


def _with(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _facts(
    board: Board, view: StageView, recommended: Recommendation, kind: str, trials: dict[str, list[Trial]] | None = None
) -> dict[str, Any]:
    """The decision with the numbers it rests on, each beside the trials it came from."""
    candidates = []
    for one in board.candidates(view, trials):
        metrics: dict[str, float | None] = {}
        for metric in board.metrics_of(view):
            if metric in one.scores:
                values = [value for column in one.scores[metric] for value in column.values()]
                metrics[metric] = sum(values) / len(values) if values else None
            else:
                metrics[metric] = one.costs[metric.partition(".")[2]]
        score, cost = recommended.score.get(one.arm), one.costs[view.stage.select.cost]
        row = {"arm": one.arm, "score": score, "metrics": metrics, "cost": cost, "trials": list(one.trials)}
        candidates.append(row)
    return _bare(board, view, kind) | {
        "chosen": recommended.chosen,
        "recommended": recommended.chosen,
        "runner_up": recommended.runner_up,
        "outcome": recommended.outcome,
        "significant": recommended.outcome == "better",
        "words": recommended.words,
        "candidates": candidates,
        "comparisons": [one.plain() for one in recommended.comparisons],
        "alike": [list(arms) for arms in recommended.alike],
        "front": None if recommended.front is None else list(recommended.front),
    }


def _bare(board: Board, view: StageView, kind: str) -> dict[str, Any]:
    """A decision's keys in their order, before anything is decided."""
    rule = view.stage.select
    return {"stage": view.name, "kind": kind, "rule": rule.rule, "alpha": rule.alpha, "margin": rule.margin,
            **board.past.facts(view), "paired": rule.paired, "cost": rule.cost, "chosen": None,
            "recommended": None, "runner_up": None, "by": "rule", "reason": None, "who": None, "outcome": "undecided",
            "significant": False, "words": "", "candidates": [], "comparisons": [], "front": None,
            "alike": [], "evidence": view.evidence}  # fmt: skip
