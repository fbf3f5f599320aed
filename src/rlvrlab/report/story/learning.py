"""Every run: accuracy phase by phase, the parts of the reward, and whether groups had anything to teach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlvrlab.evals.cards import Card, better_before, gain_lines, on_test, read_cards, told_keys
from rlvrlab.record.summary import Summary
from rlvrlab.report.reading import rounded
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.part import CELL, Part, Table, heat, lines, rows_of
from rlvrlab.shares import about, percent, points

SIGNAL = {
    "train/acc": "right",
    "groups/zero_variance": "groups without signal",
    "actor/entropy": "token entropy",
    "response_length/clip_ratio": "answers cut off",
}
WHEN = ("before", "last")
FEW = 5
"""Steps at either end of a run that a sentence compares."""


def phases(run: RunRecord) -> Part | None:
    """Held-out accuracy before, at best and at the end of each phase, and where an earlier state was better.

    The words are of test problems where the run was examined on them; dev problems have chosen, and are fewer.
    """
    found = Summary(line.row for line in run.metrics).phases
    if not found:
        return None
    head = ["phase", *(f"{when}{side}" for when in WHEN for side in ("", "_low", "_high")), "best", "best_step"]
    rows = []
    for name, entry in found.items():
        ends = [entry[when][key] for when in WHEN for key in ("accuracy", "low", "high")]
        rows.append([name, *ends, entry["best"]["accuracy"], entry["best"]["step"]])
    curves = {key.removeprefix("val-core/"): [(x, y) for x, y, _ in run.series(key)] for key in run.accuracy_keys}
    tables: dict[str, Table] = {
        "phases_summary": (head, rows),
        "learning": (["data", "step", "accuracy"], rows_of(curves)),
    }
    picture = lines("Learning on dev problems", curves, "accepted@1", [(m["x"], m["name"]) for m in run.marks])
    shown = {"learning": picture}
    cards = read_cards(run.root)
    if any(card.metrics for card in cards):
        tables["phases"], shown["phases"] = _on_test(cards)
    told = gain_lines(on_test(cards)) or [_change(name, entry) for name, entry in found.items()]
    told.append(better_before(run.root))
    return Part(tables, shown, [line for line in told if line])


def _on_test(cards: Sequence[Card]) -> tuple[Table, str]:
    """What the policy could do on test problems before training and after each phase: table and picture."""
    keys = told_keys([card.metrics for card in cards])
    names = [key.replace("_", " ") for key in keys]
    columns = [f"{card.phase}{' (control)' if card.control else ''}" for card in cards]
    rows = [
        [name, column, *(rounded(card.metrics.get(f"{key}{side}")) for side in ("", "_low", "_high")), None]
        for key, name in zip(keys, names, strict=True)
        for card, column in zip(cards, columns, strict=True)
    ]
    cells = [[rounded(card.metrics.get(key)) for card in cards] for key in keys]
    return (CELL, rows), heat("Test problems, phase by phase", names, columns, cells)


def _change(phase: str, entry: dict[str, Any]) -> str:
    from rlvrlab.report.gather.intervals import change

    first, last = entry["before"], entry["last"]
    moved = change(*((one["accuracy"], (one["low"], one["high"])) for one in (first, last)))
    since = f" (at step {first['step']})" if first.get("late") else ""
    beyond = "beyond chance" if moved["low"] > 0 or moved["high"] < 0 else "which may be chance"
    return (
        f"**{phase}** took accepted@1 on dev problems from {percent(first['accuracy'])}{since} to "
        f"{percent(last['accuracy'])}: {points(moved['value'], moved['low'], moved['high'])}, {beyond}."
    )


def reward_parts(run: RunRecord) -> Part | None:
    """The mean of each part of the reward over steps."""
    keys = [key for key in run.keys if key.startswith("reward/")]
    curves = {key.removeprefix("reward/"): [(x, y) for x, y, _ in run.series(key)] for key in keys}
    if not curves:
        return None
    told = []
    if len(curves) > 1:
        ends = [f"{name} {mean(c[:FEW]):.2f} → {mean(c[-FEW:]):.2f}" for name, c in curves.items() if c]
        told = [f"Parts of the reward, mean of the first and the last {FEW} steps: {', '.join(ends)}."]
    picture = lines("Parts of the reward", curves, "mean over answers")
    return Part({"reward_parts": (["part", "step", "value"], rows_of(curves))}, {"reward_parts": picture}, told)


def signal(run: RunRecord) -> Part | None:
    """What a probe would say, from the run's own steps: right answers, dead groups, entropy, length."""
    curves = {name: [(x, y) for x, y, _ in run.series(key)] for key, name in SIGNAL.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    silent = curves.get("groups without signal")
    if not silent:
        return None
    told = (
        f"Groups whose answers all earned the same: {about(mean(silent[:FEW]))} in the first {FEW} on-line "
        f"steps, {about(mean(silent[-FEW:]))} in the last {FEW}."
    )
    picture = lines("Is there signal to train on?", curves, "share, or nats")
    return Part({"signal": (["what", "step", "value"], rows_of(curves))}, {"signal": picture}, [told])


def mean(curve: list[tuple[int, float]]) -> float:
    """Of the values of some steps."""
    return sum(y for _, y in curve) / max(1, len(curve))
