"""Of runs that were examined several times, the evaluations of their final checkpoints that ask the same of all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import NotAlike, UserError
from rlvrlab.record.evaluation import Stored, evaluation_facts, read_evaluations
from rlvrlab.record.final import LAST, checkpoint_words, examined_of, final_step, split_run, standing


class Candidate(NamedTuple):
    """An evaluation that could be compared."""

    folder: Path
    asked: str
    """Data set, roles, protocol and scorer: equal texts are equal questions, of perhaps more or fewer problems."""
    problems: str
    """Hash of the problems."""
    words: str
    """The same for people."""
    order: int
    """Its place among those that may stand for its run: higher is better suited (record/final.py)."""


def matching(before: Sequence[Path], after: Sequence[Path], anyway: bool = False) -> tuple[list[Stored], list[Stored]]:
    """The evaluations to compare: a folder names itself; a run the best suited of its final checkpoint, and RUN@STEP of
    that one, that all others can match."""
    choices = [_candidates(folder) for folder in (*before, *after)]
    chosen = _best(choices, lambda one: one.asked + one.problems) or _best(choices, lambda one: one.asked)
    if not chosen:
        if not anyway and any(len(some) > 1 for some in choices):
            asked = [", ".join(dict.fromkeys(one.words for one in some)) for some in choices]
            told = "; ".join(f"{one}: {what}" for one, what in zip((*before, *after), asked, strict=True))
            make = f"make one: `rlvr eval --run {after[-1]}` with the --size, --role and protocol of the other"
            raise NotAlike(f"compare: no evaluation asks the same of all ({told}); {make}")
        chosen = [some[-1] for some in choices]  # the comparison itself says what differs
    stored = read_evaluations([one.folder for one in chosen])
    return stored[: len(before)], stored[len(before) :]


def _best(choices: Sequence[Sequence[Candidate]], key: Callable[[Candidate], str]) -> list[Candidate]:
    """One candidate of each, all of one key, as well suited as there are; nothing where no key is everywhere."""
    latest = [{key(one): one for one in some} for some in choices]
    shared = [asked for asked in latest[0] if all(asked in some for some in latest)]
    if not shared:
        return []
    best = max(shared, key=lambda asked: min(some[asked].order for some in latest))
    return [some[best] for some in latest]


def _candidates(named: Path) -> list[Candidate]:
    folder, which = split_run(str(named))
    if not folder.is_dir():
        raise UserError(f"{named}: no such folder; give an evaluation folder or a run")
    if (folder / "config.json").exists():
        inside = [(one.folder, one.facts) for one in standing(folder, which)]
        if not inside:
            raise NotAlike(_not_examined(folder, which))
    else:
        if which != LAST:
            raise UserError(f"{named}: {folder} is no run, so it has no checkpoint {which!r}; leave it out")
        inside = [(folder, evaluation_facts(folder)["examined"])]
    found = []
    for place, (path, facts) in enumerate(inside):
        asked = json.dumps([facts.get(key) for key in ("data", "roles", "protocol_hash", "scorer")], sort_keys=True)
        words = f"{facts['data']}, {facts.get('problems', '?')} problems, {facts['protocol']['name']}"
        found.append(Candidate(path, asked, str(facts.get("data_hash")), words, place - len(inside)))
    return found


def _not_examined(run: Path, which: str) -> str:
    """A run without an evaluation of the checkpoint that stands for it: what there is, and what to do."""
    other = sorted({one.step for one in examined_of(run) if one.step is not None})
    if which != LAST:
        return f"{run}@{which}: this checkpoint has not been evaluated; `rlvr eval --run {run}@{which}` does"
    if not other:
        return f"{run}: this run has not been evaluated; `rlvr eval --run {run}` does"
    at_end = checkpoint_words(final_step(run))
    there = ", ".join(checkpoint_words(step) for step in other)
    name = other[-1] or "base"
    return (
        f"{run}: its last checkpoint{f' ({at_end})' if at_end else ''} has not been evaluated, only {there}; "
        f"`rlvr eval --run {run}` does, or name the other: {run}@{name}"
    )
