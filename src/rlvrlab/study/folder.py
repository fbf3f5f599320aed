"""A study folder on disk: append-only logs, one folder per trial; what a kill leaves behind is always readable."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from rlvrlab import plain_files
from rlvrlab.errors import RunError, StorageError, UserError
from rlvrlab.plain_files import parsed
from rlvrlab.recipe.shipped import near_words, study_names
from rlvrlab.record.files import (
    Lines,
    Lock,
    numbered_lines,
    place_in,
    read_facts,
    read_lines,
    refuse_schema,
    utc_now,
    write_atomically,
    write_json,
)
from rlvrlab.record.shapes import Record, refuse_other
from rlvrlab.study.load import StudyFile, load_study
from rlvrlab.study.worker import read_result

TEXT, ORIGIN, DOCUMENT = "study.toml", "origin.json", "study.json"
EVENTS, DECISIONS = "events.jsonl", "decisions.jsonl"
SCHEMA = 2
"""Of study.json."""


class Event(Record):
    """A line of events.jsonl."""

    time: str
    kind: str


class OfTrial(Event):
    """One that is about a trial."""

    trial: str


class Started(OfTrial):
    """A trial's attempt began."""

    rung: int


class TrialEnded(Started):
    """A trial's attempt ended."""

    status: str
    now: str
    deaths: int
    why: str | None = None


KINDS: dict[str, type[OfTrial]] = {"started": Started, "ended": TrialEnded}
"""Events of a trial that hold more than its name."""


class Tested(Record):
    """An arm beside the trials that its numbers come from."""

    arm: str
    trials: list[str]


class Compared(Record):
    """One comparison that a decision rests on."""

    outcome: str
    problems: int


class Decision(Record):
    """A line of decisions.jsonl."""

    stage: str
    kind: str
    evidence: str
    chosen: str | None
    recommended: str | None
    runner_up: str | None
    by: str
    outcome: str
    words: str
    candidates: list[Tested]
    comparisons: list[Compared]
    kept: list[str] = Field(default_factory=list)


@dataclass
class TrialState:
    """What the folder knows of a trial."""

    status: str = "waiting"
    """waiting, running, finished, failed, timed_out."""
    rung: int = 0
    """Rung of the out-of-memory ladder; 0 trains the settings as they were asked for."""
    deaths: int = 0
    """Times its process or machine died."""
    attempts: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None

    def covers(self, suites: dict[str, str]) -> bool:
        """True when it is trained, and examined on all of these suites (name -> hash)."""
        done = self.result["evaluated"] if self.result else {}
        return self.result is not None and all(name in done and done[name]["hash"] == h for name, h in suites.items())

    def begin(self, when: str, rung: int) -> None:
        """Begin one more attempt; an earlier one without a recorded end was lost when the study's process died."""
        if self.attempts and self.attempts[-1]["ended"] is None:
            self.attempts[-1] |= {"status": "lost", "why": "the study's own process died"}
        facts = {"number": len(self.attempts) + 1, "rung": rung, "started": when, "ended": None}
        self.attempts.append({**facts, "status": "running", "why": None})

    @property
    def given_up(self) -> bool:
        """Nothing but `--retry` runs it again."""
        return self.status in ("failed", "timed_out")

    @property
    def why(self) -> str:
        """Why the last attempt ended, or nothing."""
        return str(self.attempts[-1].get("why") or "") if self.attempts else ""


class StudyFolder:
    """A study folder open for writing, by one process at a time."""

    def __init__(self, path: Path, file: StudyFile) -> None:
        self.path = path.resolve()
        for log in (EVENTS, DECISIONS):
            _log(self.path / log)
        if (self.path / ORIGIN).is_file():  # two studies in one folder would take each other's decisions for their own
            before, text = _origin(self.path), self.path / TEXT
            same_text = text.is_file() and text.read_text(encoding="utf-8") == file.text
            if before != str(file.path.resolve()) and not same_text:
                raise UserError(f"{self.path}: holds the study of {before}; give this one another name or output")
        elif self.path.is_dir() and not (self.path / ORIGIN).exists():
            names = [one.name for one in self.path.iterdir() if not one.name.endswith(".tmp")]
            strange = [name for name in names if name not in {".lock", EVENTS, DECISIONS, TEXT, "trials"}]
            if strange:
                raise UserError(f"{self.path}: is there and is no study ({strange[0]}); choose another name or output")
        written = read_facts(self.path / DOCUMENT, "remove it; it is made again")
        if written and written.get("schema") not in range(SCHEMA):  # what an earlier version wrote is made again
            refuse_schema(written, SCHEMA, self.path / DOCUMENT)
        try:
            (self.path / "trials").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path}: cannot be made ({error.strerror}); choose another output") from None
        self.lock = Lock(self.path)
        self._events, self._decisions = Lines(self.path / EVENTS), Lines(self.path / DECISIONS)
        write_atomically(self.path / TEXT, file.text)
        write_json(self.path / ORIGIN, {"name": file.study.name, "file": str(file.path.resolve())})

    def event(self, kind: str, **facts: Any) -> dict[str, Any]:
        """Append one to events.jsonl; a killed process loses none, a dead machine may lose the last ones."""
        row = {"time": utc_now(), "kind": kind, **facts}
        self._events.append(row)
        return row

    def decide(self, decision: dict[str, Any]) -> dict[str, Any]:
        """Append one; it gets its number and its time."""
        row = {"id": len(read_lines(self.path / DECISIONS)) + 1, "time": utc_now(), **decision}
        self._decisions.append(row)
        self._decisions.sync()
        return row

    def trial(self, name: str) -> Path:
        """A trial's folder, made when it is not there."""
        path = place_in(self.path, f"trials/{name}")
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(path, error) from error
        return path

    def close(self) -> None:
        """Let another process open it."""
        self._events.close()
        self._decisions.close()
        self.lock.release()


def _log(path: Path) -> Path:
    """A log's path, if there is a file or nothing; a pipe, a folder or a link into nowhere is damage to the study."""
    if os.path.lexists(path) and not path.is_file():
        remedy = "put back the file that the study wrote, or begin it anew in another folder"
        raise RunError(f"{path}: the study is damaged, this is no file; {remedy}")
    return path


def read_states(path: Path) -> dict[str, TrialState]:
    """From the events, and from the trials' own results: a result that was written counts, whoever saw it."""
    states: dict[str, TrialState] = {}
    for number, row in numbered_lines(_log(path / EVENTS)):
        where = f"{path / EVENTS}:{number}"
        refuse_other(Event, row, where)
        if "trial" not in row:
            continue
        refuse_other(KINDS.get(row["kind"], OfTrial), row, where)
        state = states.setdefault(row["trial"], TrialState())
        if row["kind"] == "started":
            state.begin(row["time"], row["rung"])
            state.status, state.rung = "waiting", row["rung"]  # until its end is known: whoever ran it may be dead
        elif row["kind"] == "ended":
            if state.attempts:
                state.attempts[-1] |= {"ended": row["time"], "status": row["status"], "why": row.get("why") or None}
            state.status, state.rung, state.deaths = row["now"], row["rung"], row["deaths"]
        elif row["kind"] == "retry":
            state.status, state.deaths = "waiting", 0
    for folder in (path / "trials").glob("*"):
        result = read_result(folder)
        if result is not None:
            state = states.setdefault(folder.name, TrialState())
            state.result, state.status = result, "finished"
    return states


def read_decisions(path: Path) -> list[dict[str, Any]]:
    """Every decision of a study folder, the oldest first; a later one on the same evidence takes its place.

    Those of an earlier version, which knew no outcomes, are left out: they are made again.
    """
    rows = [(number, row) for number, row in numbered_lines(_log(path / DECISIONS)) if "outcome" in row]
    for number, row in rows:
        refuse_other(Decision, row, f"{path / DECISIONS}:{number}")
    return [row for _, row in rows]


def find_study(path: Path) -> tuple[StudyFile, Path]:
    """A study file, or a study folder (its own copy, resolved where the original lies), and the folder."""
    if not os.path.lexists(path):
        near = near_words(path, study_names())
        how = "name its file (FILE.toml), its folder, or a part of its name below experiments/"
        raise UserError(f"{path}: no such study{near}; {how}; `rlvr recipes study` shows those that come with rlvrlab")
    if path.suffix == ".toml" or path.is_file():
        file = load_study(path)
        return file, file.folder
    if not (path / ORIGIN).is_file():
        raise UserError(f"{path}: neither a study file (.toml) nor a study folder; `rlvr study run FILE` makes one")
    home = Path(_origin(path))
    if not home.is_file():
        raise UserError(
            f"{path}: its study file {home} is gone; put it back beside its recipe (a copy is {path / TEXT})"
        )
    return load_study(home), path


def _origin(path: Path) -> str:
    """Where the study file of a folder lies."""
    try:
        return str(parsed(plain_files.read_text(path / ORIGIN))["file"])
    except (OSError, ValueError, KeyError, TypeError):
        remedy = "give the study file instead of the folder, and -o for another folder"
        raise UserError(f"{path / ORIGIN}: damaged; {remedy}") from None
