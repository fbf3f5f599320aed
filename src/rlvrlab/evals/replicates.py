"""Which evaluations may stand on one side as seeds: the same folder, run, seed or answers never count twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from rlvrlab.errors import UserError
from rlvrlab.evals.metrics import grouped
from rlvrlab.record.evaluation import Stored
from rlvrlab.record.files import read_facts

Side = TypeVar("Side", bound=Stored)
CLOCK = ("judge_s", "at_s", "server", "attempts")
"""What differs when the same policy answers the same questions again."""


def refuse_repeats(before: Sequence[Stored], after: Sequence[Stored]) -> list[str]:
    """One clear line where something is there twice: replicates must be different training runs.

    The same answers on both sides are no false replicate, but returned as notes: their difference is 0 whatever was
    trained.
    """
    refuse_same_folders(before, after)
    # Only evaluations that read the same, word for word, need a closer look, which takes long.
    read_alike = grouped([*before, *after], lambda one: hash(frozenset(_texts(one)))).values()
    groups = [group for group in read_alike if len(group) > 1]
    prints = {id(one): answers_of(one) for alike in groups for one in alike}
    same, why, notes = "hold the same answers", "one is a copy, or the same policy was asked twice", list[str]()
    for alike in groups:
        first = [one for one in alike if any(one is other for other in before)]
        second = [one for one in alike if all(one is not other for other in before)]
        for side in (first, second):
            _refuse(side, lambda one: prints[id(one)], f"{same}: {why}")
        twins = [(one, two) for one in first for two in second if prints[id(one)] == prints[id(two)]]
        notes += [f"{one.folder} and {two.folder} {same}: {why}" for one, two in twins]
    refuse_same_runs(before, after)
    return notes


def refuse_same_folders(before: Sequence[Stored], after: Sequence[Stored]) -> None:
    """Nothing is compared with itself, and counts once on its side."""
    both = {one.folder.resolve() for one in before} & {one.folder.resolve() for one in after}
    if both:
        told = f"{both.pop().name} stands on both sides, so there is nothing to compare"
        raise UserError(f"compare: {told}; name another run, or another checkpoint of this one (RUN@base, RUN@20)")
    for side in (before, after):
        _refuse(side, lambda one: str(one.folder.resolve()), "are the same folder")


def refuse_same_runs(before: Sequence[Stored], after: Sequence[Stored]) -> None:
    """Two results of one run, or of two runs of one seed, are no two replicates."""
    for runs in (before, after):
        _refuse(runs, lambda one: one.examined["who"].get("run"), "are evaluations of one run, {}")
        _refuse(runs, training_seed, "are runs of the same seed, {}")


def _refuse(side: Sequence[Stored], mark: Callable[[Stored], object], words: str) -> None:
    seen: dict[object, Stored] = {}
    for one in side:
        key = mark(one)
        if key is not None and key in seen:
            told = words.format(key)
            raise UserError(f"compare: {seen[key].folder} and {one.folder} {told}; give every run once, one per seed")
        seen[key] = one


def _texts(one: Stored) -> Iterator[tuple[str, int, str]]:
    return ((one.keys[row["problem"]], row["sample"], row["completion"]) for row in one.rows)


def answers_of(stored: Stored) -> str:
    """Fingerprint of the answers.

    Engines tell entropies or log-probabilities, in which no two policies agree. Where a server told neither, two
    policies may honestly have written the same: then the times are part of the print, and only copies are found.
    """
    told = any("entropy" in row or "logprobs" in row for row in stored.rows)
    rows = []
    for row in stored.rows:
        kept = {name: value for name, value in row.items() if not (told and name in CLOCK)}
        rows.append(json.dumps({**kept, "problem": stored.keys[row["problem"]]}, sort_keys=True))
    rows.sort()
    return hashlib.sha256("\n".join([stored.examined["protocol_hash"], *rows]).encode()).hexdigest()


def training_seed(stored: Stored) -> int | None:
    """The seed of the run that trained the policy; None where none was trained or nothing is known of it."""
    who: dict[str, Any] = stored.examined["who"]
    if "training_seed" in who or "run" not in who:
        seed = who.get("training_seed")
    else:  # recorded before evaluations told it: below the run there is its recipe
        config = read_facts(stored.folder.resolve().parent.parent / "config.json", "restore it") or {}
        recipe = config.get("recipe", config)
        seed = recipe.get("seed") if isinstance(recipe, dict) else None
    return seed if isinstance(seed, int) else None


def pairs(before: Sequence[Side], after: Sequence[Side], paired: bool | None) -> tuple[Sequence[Side], bool]:
    """The second side in the order of the first, and whether the two are compared run by run.

    By itself that is done for stages of the same runs only. Seeds of equal number in two recipes share little, and with
    a handful of them the degrees of freedom that pairing costs are worth more (docs/statistics.md).
    """
    runs = [[one.examined["who"].get("run") for one in side] for side in (before, after)]
    if paired is not False and len(before) > 1 and None not in runs[0] and set(runs[0]) == set(runs[1]):
        by_run = dict(zip(runs[1], after, strict=True))
        return [by_run[run] for run in runs[0]], True
    if not paired:
        return after, False
    seeds = [[training_seed(one) for one in side] for side in (before, after)]
    if len(before) != len(after) or (None not in seeds[0] + seeds[1] and set(seeds[0]) != set(seeds[1])):
        raise UserError(
            f"compare: comparing in pairs needs the same seeds on both sides, not {seeds[0]} and {seeds[1]}"
        )
    if None in seeds[0] + seeds[1]:
        return after, True  # in the order given
    by_seed = dict(zip(seeds[1], after, strict=True))
    return [by_seed[seed] for seed in seeds[0]], True
