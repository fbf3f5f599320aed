"""Of runs that were examined several times, the newest evaluations that ask the same of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.record.evaluation import Stored, evaluation_facts, evaluations_of, read_evaluations


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
    """Its place among those of its run: higher is newer."""


def matching(before: Sequence[Path], after: Sequence[Path], anyway: bool = False) -> tuple[list[Stored], list[Stored]]:
    """The evaluations to compare: a folder names itself, a run the newest of its own that all others can match."""
    choices = [_candidates(folder) for folder in (*before, *after)]
    chosen = _newest(choices, lambda one: one.asked + one.problems) or _newest(choices, lambda one: one.asked)
    if not chosen:
        if not anyway and any(len(some) > 1 for some in choices):
            raise UserError(_nothing_matches([*before, *after], choices))
        chosen = [some[-1] for some in choices]  # the comparison itself says what differs
    stored = read_evaluations([one.folder for one in chosen])
    return stored[: len(before)], stored[len(before) :]


def _newest(choices: Sequence[Sequence[Candidate]], key: Callable[[Candidate], str]) -> list[Candidate]:
    """One candidate of each, all of one key, as new as there are; nothing where no key is everywhere."""
    latest = [{key(one): one for one in some} for some in choices]
    shared = [asked for asked in latest[0] if all(asked in some for some in latest)]
    if not shared:
        return []
    newest = max(shared, key=lambda asked: min(some[asked].order for some in latest))
    return [some[newest] for some in latest]


def _candidates(folder: Path) -> list[Candidate]:
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give an evaluation folder or a run")
    is_run = (folder / "config.json").exists()
    inside = evaluations_of(folder) if is_run else [folder]
    if not inside:
        raise UserError(f"{folder}: this run has not been evaluated; `rlvr eval --run {folder}` does")
    found = []
    for place, path in enumerate(inside):
        facts: dict[str, Any] = evaluation_facts(path)["examined"]
        asked = json.dumps([facts.get(key) for key in ("data", "roles", "protocol_hash", "scorer")], sort_keys=True)
        words = f"{facts['data']}, {facts.get('problems', '?')} problems, {facts['protocol']['name']}"
        found.append(Candidate(path, asked, str(facts.get("data_hash")), words, place - len(inside)))
    return found


def _nothing_matches(folders: Sequence[Path], choices: Sequence[Sequence[Candidate]]) -> str:
    asked = [", ".join(dict.fromkeys(one.words for one in some)) for some in choices]
    told = "; ".join(f"{folder}: {what}" for folder, what in zip(folders, asked, strict=True))
    return (
        f"compare: no evaluation asks the same of all ({told}); "
        f"make one: `rlvr eval --run {folders[-1]}` with the --size, --role and protocol of the other"
    )
