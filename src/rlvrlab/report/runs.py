"""The runs, evaluations, studies and audits below a folder, each summarised from a few kilobytes of its files.

entries = list_runs(Path("experiments"))
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import LabError
from rlvrlab.plain_files import LARGEST_COUNT, count, number, parsed, share
from rlvrlab.record.evaluation import SCHEMA as EVALUATION_SCHEMA
from rlvrlab.record.files import read_time, refuse_schema
from rlvrlab.record.headline import tested
from rlvrlab.record.run import SCHEMA as RUN_SCHEMA
from rlvrlab.record.summary import accuracy_of
from rlvrlab.report.follow import Row, glimpse, parse
from rlvrlab.report.status import Held, held_locks, last_news, state_of, study_state
from rlvrlab.report.tags import read_tags

DEPTH = 3
"""How far below a folder runs are looked for: experiments/study/arm/run."""
WINDOWS, WINDOW = 12, 16 << 10
"""How many places of a long logs/metrics.jsonl are read, and how many bytes at each."""
SMALL = 512 << 10
"""A log of up to so many bytes is read whole: some hundred steps, in a few milliseconds."""
LENGTH = re.compile(rb'"response_length/mean": ([0-9.e+-]{1,32})')
GROUPS = re.compile(rb'"groups/collected": ([0-9.e+-]{1,32})')
"""Find mean length and groups in a metrics line; with the group size, they give the number of generated tokens."""
NO_INFO = "run_info.json is missing: neither how it ended nor on which machine is recorded"
LARGEST = 4 << 20
"""A JSON file of more bytes than this is not read for a list."""
SIGNS = (
    ("study", ("study.json",)),
    ("run", ("config.json",)),
    ("evaluation", ("run_info.json", "problems.jsonl")),
    ("probe", ("probe.json",)),
    ("audit", ("duplicates_crosssplit.jsonl",)),
)
"""Kinds of folders and the files that each must have; the first kind that fits counts."""


@dataclass(frozen=True)
class Entry:
    """What a list shows of one folder."""

    folder: Path
    name: str
    """The folder's name, relative to the folder that was listed."""
    kind: str
    """run, evaluation, study, probe or audit."""
    status: str
    phase: str = ""
    step: int | None = None
    steps: int | None = None
    """Steps of all phases together, as the recipe has it."""
    metric: Mapping[str, Any] | None = None
    """accuracy, low and high: held-out for a run, accepted at first try for an evaluation."""
    metric_name: str = ""
    test: Mapping[str, Any] | None = None
    """accuracy, low and high on test problems, of the last card or else of the newest evaluation of this run."""
    curve: tuple[float, ...] = ()
    """Held-out accuracies that were seen, in order."""
    tokens: int | None = None
    """Tokens generated in training, or in the evaluation."""
    tokens_exact: bool = True
    """False where `tokens` is projected from parts of a long log."""
    started: str = ""
    age_s: float | None = None
    """Seconds since the start."""
    quiet_s: float | None = None
    """Seconds since something was last written."""
    tags: tuple[str, ...] = ()
    about: str = ""
    """The recipe's question, or what was evaluated."""
    seed: int | None = None
    note: str = ""
    """What could not be read."""

    def facts(self) -> dict[str, Any]:
        """The entry as plain JSON values."""
        return {**self.__dict__, "folder": str(self.folder), "tags": list(self.tags), "curve": list(self.curve)}


def find_runs(root: Path) -> list[Path]:
    """Folders of runs and the like at or below `root`; links are not followed, so nothing outside is found."""
    return sorted(_walk(root, DEPTH))


def list_runs(root: Path) -> list[Entry]:
    """Everything at or below `root`, newest first."""
    held = held_locks()
    return sort_runs([summarise_run(folder, root, held) for folder in find_runs(root)], "age")


def sort_runs(entries: Iterable[Entry], by: str) -> list[Entry]:
    """Names and statuses from A to Z; the youngest, the best and the longest first; what is unknown comes last."""
    keys: dict[str, Callable[[Entry], Any]] = {
        "age": lambda e: (e.age_s is None, e.age_s or 0.0, e.name),
        "name": lambda e: e.name,
        "status": lambda e: (e.status, e.age_s or 0.0),
        "metric": lambda e: (e.metric is None, -(e.metric or {}).get("accuracy", 0.0)),
        "step": lambda e: -(e.step or 0),
        "tokens": lambda e: -(e.tokens or 0),
    }
    return sorted(entries, key=keys[by])


def choose(entries: Iterable[Entry], search: str = "", tags: Sequence[str] = ()) -> list[Entry]:
    """The entries that have every word in their name, status, phase, tags or question, and carry all the tags."""
    words = search.lower().split()
    return [
        e
        for e in entries
        if all(word in f"{e.name} {e.kind} {e.status} {e.phase} {' '.join(e.tags)} {e.about}".lower() for word in words)
        and set(tags) <= set(e.tags)
    ]


def summarise_run(folder: Path, root: Path | None = None, held: list[Held] | None = None) -> Entry:
    """What a list says about one folder; whatever cannot be read is said in `note`."""
    name = str(folder.relative_to(root)) if root and folder != root else folder.name
    try:
        kind = kind_at(folder)
        if kind not in ("run", "evaluation"):
            said = str(read_table(folder / "study.json").get("status", "finished")) if kind == "study" else "finished"
            said = said if kind else "damaged"
            return Entry(
                folder,
                name,
                kind or "run",
                study_state(folder, said, held),
                tags=read_tags(folder),
                **_times(folder, {}),
            )
        info, config = read_table(folder / "run_info.json"), read_table(folder / "config.json")
        if "examined" in info:
            refuse_schema(info, EVALUATION_SCHEMA, folder / "run_info.json")
            return _evaluation_entry(folder, name, info, held)
        refuse_schema(config, RUN_SCHEMA, folder / "config.json")
        return _run_entry(folder, name, info, config, held)
    except Exception as error:  # one damaged folder must not hide the others
        return Entry(folder, name, "run", "damaged", note=f"{type(error).__name__}: {error}", tags=read_tags(folder))


def kind_at(folder: Path) -> str:
    """What a folder holds, by the files in it; empty for a folder like any other."""
    return next((kind for kind, signs in SIGNS if all((folder / name).is_file() for name in signs)), "")


def held_out(row: Row) -> dict[str, float] | None:
    """The held-out accuracy in a metrics line, where it is there with both bounds."""
    try:
        measured = accuracy_of(row)
    except KeyError:
        return None
    known = {name: exact for name, value in (measured or {}).items() if (exact := share(value)) is not None}
    return known if measured and len(known) == len(measured) else None


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    kind = kind_at(folder)
    if kind:
        yield folder
    if depth == 0 or kind not in ("", "study"):
        return
    try:
        below = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in below:
        if not entry.name.startswith("."):
            yield from _walk(Path(entry.path), depth - 1)


def _run_entry(folder: Path, name: str, info: Row, config: Row, held: list[Held] | None) -> Entry:
    recipe = config.get("recipe") or {}
    seen = glimpse(folder / "logs" / "metrics.jsonl", WINDOWS, WINDOW, SMALL)
    last: Row = next((rows[0] for line in reversed(seen.lines) if (rows := parse(line))), {})
    evaluated = parse(b"\n".join(line for line in seen.lines if b'"val-core/' in line))  # parsing all takes too long
    measured = [(row, accuracy) for row in evaluated if (accuracy := held_out(row))]
    key = next((k for k in measured[-1][0] if k.startswith("val-core/") and k.endswith("/acc")), "") if measured else ""
    steps = [count(recipe.get("phase_tables", {}).get(phase, {}).get("steps")) for phase in recipe.get("phases", [])]
    n = count(recipe.get("rollout", {}).get("n")) or 0
    generated = [answers * n for line in seen.lines if (answers := _written_tokens(line)) is not None]
    return Entry(
        folder,
        name,
        "run",
        state_of(folder, info, held, number(last.get("time/step_s")) or 0.0),
        phase=str(last.get("phase", "")),
        step=count(last.get("step")),
        steps=sum(known) if steps and len(known := [n for n in steps if n is not None]) == len(steps) else None,
        metric=measured[-1][1] if measured else None,
        metric_name=key,
        test=_tested(folder),
        curve=tuple(accuracy["accuracy"] for _, accuracy in measured),
        tokens=round(sum(generated) / seen.share) if generated else None,
        tokens_exact=seen.share == 1,
        tags=read_tags(folder),
        about=str(recipe.get("question") or ""),
        seed=count(recipe.get("seed")),
        note="" if (folder / "run_info.json").is_file() else NO_INFO,
        **_times(folder, info),
    )


def _tested(folder: Path) -> dict[str, float] | None:
    """The test result of a run; one that cannot be read is said on the run's own page."""
    with suppress(LabError, KeyError, TypeError, ValueError):
        if found := tested(folder):
            return _accuracy(found.accuracy, found.low, found.high)
    return None


def _accuracy(accuracy: Any, low: Any, high: Any) -> dict[str, Any] | None:
    """What a list shows of a share and its interval; None where it is no share."""
    exact = share(accuracy)
    return None if exact is None else {"accuracy": exact, "low": share(low), "high": share(high)}


def _written_tokens(line: bytes) -> float | None:
    """Mean length times groups of a metrics line; None where it does not have both, or not as counts can be."""
    length, groups = LENGTH.search(line), GROUPS.search(line)
    if length is None or groups is None:
        return None
    try:
        mean, many = float(length[1]), float(groups[1])
    except ValueError:
        return None
    return mean * many if 0 <= mean <= LARGEST_COUNT and 0 <= many <= LARGEST_COUNT else None


def _evaluation_entry(folder: Path, name: str, info: Row, held: list[Held] | None) -> Entry:
    examined = info["examined"]
    by_data = read_table(folder / "metrics.json")
    data = str(examined.get("data", ""))
    metrics: Row = by_data.get(data) or next(iter(by_data.values()), {})
    asked = [metrics.get(f"accepted_at_1{bound}") for bound in ("", "_low", "_high")]
    accuracy = _accuracy(*asked)
    protocol = examined.get("protocol", {}).get("name", "")
    answers, length = count(metrics.get("samples")), number(metrics.get("avg_gen_tokens"), 0, LARGEST_COUNT)
    return Entry(
        folder,
        name,
        "evaluation",
        state_of(folder, info, held),
        metric=accuracy,
        metric_name="accepted_at_1",
        test=accuracy if examined.get("roles") == ["test"] else None,
        tokens=round(answers * length) if answers and length is not None else None,
        tags=read_tags(folder),
        about=f"{protocol} on {data}",
        note="" if asked[0] is None or accuracy else "metrics.json: accepted_at_1 is no share",
        **_times(folder, info),
    )


def _times(folder: Path, info: Row) -> dict[str, Any]:
    now, started = time.time(), str(info.get("started") or "")
    begun = read_time(started)
    age = None if begun is None else now - begun.timestamp()
    return {"started": started, "age_s": age, "quiet_s": now - last_news(folder)}


def read_table(path: Path) -> Row:
    """A JSON file's table; empty when the file is not there."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.name} is larger than {LARGEST >> 20} MB")
        table = parsed(plain_files.read_text(path))
    except FileNotFoundError:
        return {}
    if not isinstance(table, dict):
        raise ValueError(f"{path.name} is no table")
    return table
