"""What a reader of the decisions must not conclude: interactions nobody ran, few seeds, arms that fell out."""

from __future__ import annotations

from typing import Any

from rlvrlab.errors import LabError
from rlvrlab.study import looks
from rlvrlab.study.board import Board
from rlvrlab.study.measures import of_shares, size_words
from rlvrlab.study.select import alike_words
from rlvrlab.study.views import StageView, Survey

MOST_COMBINATIONS = 64
"""Beyond this many, combinations are not looked up: only those under the chosen arm count as run."""


def caveats(board: Board, survey: Survey) -> list[dict[str, Any]]:
    """Rows {kind, stages, text}, stage by stage."""
    rows: list[dict[str, Any]] = [
        {"kind": "test", "stages": [one.partition(":")[0].removeprefix("stages.")], "text": one.partition(";")[0]}
        for one in board.chain.file.chosen_on_test()
    ]
    for view in survey.stages:
        if view.decision is None:
            continue
        if view.kind == "compare" and len(view.arms) > 1:
            rows += _interactions(board, view, view.decision["chosen"], survey)
        rows += _of_decision(board, view, view.decision)
    return rows


def _interactions(board: Board, view: StageView, chosen: str, survey: Survey) -> list[dict[str, Any]]:
    """Arms of an earlier stage that were never tried with those of a later one."""
    rows = []
    later = {stage.name for stage in board.chain.downstream(view.name)}
    for other in survey.stages:
        if other.kind != "compare" or other.name not in later or len(other.arms) < 2 or not other.arms[0].trials:
            continue
        combinations = len(view.arms) * len(other.arms)
        run = _together(board, view, other, survey.choices)
        if run < combinations:
            text = (
                f"{other.name} was compared under {view.name} = {chosen} only: {combinations - run} of "
                f"{combinations} combinations were not run, so an interaction would go unseen"
            )
            rows.append({"kind": "interaction", "stages": [view.name, other.name], "text": text})
    return rows


def _together(board: Board, view: StageView, other: StageView, choices: dict[str, str]) -> int:
    """Combinations of arms that some finished trial has, whichever stage asked for it."""
    if len(view.arms) * len(other.arms) > MOST_COMBINATIONS:
        return len(other.arms)
    count = 0
    for arm in view.arms:
        for late in other.arms:
            try:
                trials = board.chain.trials(other.stage, late.name, {**choices, view.name: arm.name})
            except LabError:  # this combination cannot even be written down
                continue
            states = [board.states.get(trial.id) for trial in trials]
            count += any(state is not None and state.result is not None for state in states)
    return count


def _of_decision(board: Board, view: StageView, decision: dict[str, Any]) -> list[dict[str, Any]]:
    """What weakens one decision: a person's override, few or failed seeds, changed code, little power."""
    rows = []

    def add(kind: str, text: str) -> None:
        rows.append({"kind": kind, "stages": [view.name], "text": text})

    if decision["by"] == "person" and decision["chosen"] != decision["recommended"]:
        add("override", f"{view.name}: a person chose {decision['chosen']} over {decision['recommended']}")
    seeds = {one["arm"]: len(one["trials"]) for one in decision["candidates"]}
    if len(seeds) > 1 and min(seeds.values()) == 1:
        add("seeds", f"{view.name}: one seed per arm: differences between seeds are not in the intervals")
    missing = [arm.name for arm in view.live if arm.name not in seeds]
    short = [a.name for a in view.live if a.name in seeds and seeds[a.name] < len(a.trials)]
    results = [
        (board.states[t].result or {}) for one in decision["candidates"] for t in one["trials"] if t in board.states
    ]
    if len({result.get("source") for result in results}) > 1:
        add("code", f'{view.name}: source files changed between its trials (same version); `code = "source"` is strict')
    if missing:
        add("excluded", f"{view.name}: no finished trial, not compared: {', '.join(missing)}")
    if short:
        add("excluded", f"{view.name}: compared without some failed seeds: {', '.join(short)}")
    for arms in decision.get("alike", ()):  # earlier versions did not look
        add("alike", f"{view.name}: {alike_words(arms)}")
    for words in filter(None, (looks.told(decision), board.past.told_beside(view))):
        add("looks", f"{view.name}: {words}")
    if words := unseen(decision["comparisons"], board.chain.file.study.seed_spread):
        add("power", f"{view.name}: {words}")
    return rows


def unseen(comparisons: list[dict[str, Any]], planned: float | None = None) -> str:
    """Which differences the undecided comparisons could not have shown; nothing where all are decided.

    `planned` is the scatter of seeds that the plan assumed (`seed_spread`): where another one was seen, the plan and
    this sentence tell two sizes, and both say why.
    """
    undecided = [one for one in comparisons if one["outcome"] == "undecided" and one["problems"]]
    if not undecided:
        return ""
    beyond = [one for one in undecided if one["detectable"] is None]
    most = max(beyond or undecided, key=lambda one: float(one["detectable"] or one.get("scatter") or 0.0))
    share, scatter = of_shares(most), most.get("scatter")  # of one seed, or in earlier records, nothing is known
    few = f"{most['seeds']} seeds that scatter by {size_words(scatter, share)}, as here," if scatter else "so few seeds"
    assumed = scatter is not None and planned is not None and share
    plan = (
        f"; the plan assumed that seeds scatter by {100 * (planned or 0):g} points (`seed_spread`)" if assumed else ""
    )
    if beyond:
        return f"undecided; with {few} no difference, however large, is seen 4 times in 5{plan}"
    size = size_words(most["detectable"], share)
    least = f"differences below {size} could not have been seen 4 times in 5{plan}"
    return f"undecided; with {few} {least}" if scatter else f"undecided; {least}"
