"""A run folder: experiments/<name>_<YYYYMMDD_HHMMSS>_<8 hex>/.

config.json      the recipe as resolved, with the origin of each value: enough to resume
run_info.json    status, machine, versions, data hashes, command
logs/            metrics.jsonl (one line per step), events.jsonl (what happened, in words)
rollouts/        step_N.jsonl: every judged answer
checkpoints/     global_step_N/, complete when its manifest.json is there
artifacts/ analysis/ EXPERIMENT.md
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import RunError, StorageError, UserError
from rlvrlab.plain_files import parsed, sync_folder
from rlvrlab.record.files import (
    Lines,
    Lock,
    mend_tail,
    place_in,
    read_facts,
    read_lines,
    refuse_schema,
    split_lines,
    stamp_now,
    to_json,
    utc_now,
    write_json,
    write_rows,
)
from rlvrlab.record.redact import redact
from rlvrlab.record.summary import WITHDRAWN, Summary

SCHEMA = 1
METRICS: dict[str, type] = {"step": int, "phase": str}
EVENTS: dict[str, type] = {"time": str, "kind": str, "text": str}
"""What every line of the two logs has."""
SEAL = "seal.json"
"""In every checkpoint: what `Run.seal` gave when it was written."""
FOLDERS = ("logs", "rollouts", "checkpoints", "artifacts", "analysis")


class Run:
    """An open run folder; the only writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = Lock(folder)
        with ExitStack() as undo:
            undo.callback(self.lock.release)
            folders = [place_in(folder, name) for name in FOLDERS]
            try:  # folders that a copy may have dropped because they were empty, and what a killed writer left behind
                for below in folders:
                    below.mkdir(exist_ok=True)
                for leftover in (path for below in (folder, *folders) for path in below.glob(".*.[0-9]*.tmp")):
                    leftover.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(folder, error) from error
            self.so_far = Summary(read_metrics(folder), read_events(folder))
            self._unsaid: list[str] = []
            torn = [name for name in ("metrics", "events") if mend_tail(self._log(name))]
            self._metrics = undo.enter_context(Lines(self._log("metrics")))
            self._events = undo.enter_context(Lines(self._log("events")))
            for name in torn:
                text = f"logs/{name}.jsonl ended in the middle of a line; kept aside as {name}.jsonl.torn"
                self.event("torn_line", text)
            undo.pop_all()

    @classmethod
    def create(cls, parent: Path, name: str, config: dict[str, Any], info: dict[str, Any] | None = None) -> Run:
        """A new folder with a name nobody else has; it appears complete enough to be resumed, or not at all."""
        stamp = stamp_now()
        folder = parent / f"{name}_{stamp}_{secrets.token_hex(4)}"
        draft = parent / f".draft_{folder.name}"
        try:
            draft.mkdir(parents=True)
            for below in FOLDERS:
                (draft / below).mkdir()
            write_json(draft / "config.json", redact({"schema": SCHEMA, **config}))
            sha256 = config_sha256(read_config(draft))
            write_json(draft / "run_info.json", redact({**(info or {}), "config_sha256": sha256}))
            draft.rename(folder)
            sync_folder(parent)
        except (OSError, StorageError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            why = error.why if isinstance(error, StorageError) else error.strerror or error
            raise UserError(f"{folder}: cannot be made ({why}); choose another output_dir") from None
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Run:
        """An existing folder, to go on with it."""
        read_config(folder)
        if not os.access(folder, os.W_OK):
            raise UserError(f"{folder}: read-only; a run can only be resumed where it can write")
        return cls(folder)

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.jsonl"

    def metrics(self, row: dict[str, Any]) -> None:
        """Append one step's line to logs/metrics.jsonl."""
        self._metrics.append(row)
        self.so_far.add_metrics(row)

    def event(self, kind: str, text: str, **facts: Any) -> None:
        """Append to logs/events.jsonl what a reader of the run should know."""
        row = redact({"time": utc_now(), "kind": kind, "text": text, **facts})
        self._events.append(row)
        self.so_far.add_event(row)

    def warn(self, subject: str, text: str, **facts: Any) -> None:
        """A warning event, once per subject: a run that stays unwell says so once."""
        if subject not in self.so_far.standing:
            self.event("warning", text, subject=subject, **facts)
            self._unsaid.append(text)

    def new_warnings(self) -> list[str]:
        """Those since the last call, for whoever watches the run."""
        unsaid, self._unsaid = self._unsaid, []
        return unsaid

    def withdraw(self, subject: str, text: str, **facts: Any) -> None:
        """Take back a warning that does not hold any more."""
        if subject in self.so_far.standing:
            self.event(WITHDRAWN, text, subject=subject, **facts)

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Write all judged answers of a step."""
        write_rows(self.folder / "rollouts" / f"step_{step}.jsonl", rows)

    def sync(self) -> None:
        """Everything logged so far is on the disk when this returns."""
        self._metrics.sync()
        self._events.sync()

    def info(self, **facts: Any) -> dict[str, Any]:
        """Merge facts into run_info.json and return all of it; secrets are left out."""
        merged = {**read_info(self.folder), **redact(facts)}
        write_json(self.folder / "run_info.json", merged)
        return merged

    def reconfigure(self, config: dict[str, Any], words: str, kind: str = "reconfigured", **facts: Any) -> None:
        """Change config.json on purpose: it is written anew, and `words` say why in an event.

        Whoever changes the file in another way finds the run refused, because its seals do not fit any more.
        """
        config = json.loads(to_json(redact({"schema": SCHEMA, **config})))
        earlier, before = read_info(self.folder).get("config_before", []), config_sha256(read_config(self.folder))
        # The hashes go on record first: killed in between, either file is one that the run knows.
        self.info(config_before=[*earlier, before, config_sha256(config)])
        write_json(self.folder / "config.json", config)
        self.info(config_sha256=config_sha256(config))
        self.event(kind, words, **facts)

    def seal(self) -> dict[str, Any]:
        """What a checkpoint remembers of the recipe and of both logs, as they are now (record/seal.py)."""
        config = read_config(self.folder)
        logs = {"metrics": self._metrics.seal(), "events": self._events.seal()}
        return {"config": config_sha256(config), "recipe": config["recipe"], **logs}

    def rewind(self, covered: Callable[[int, dict[str, Any]], bool], step: int) -> int:
        """Set aside the lines after a checkpoint, by number and content, in logs/superseded.jsonl. Returns how many."""
        aside = self.folder / "logs" / "superseded.jsonl"
        self._metrics.close()
        moved = split_lines(self._log("metrics"), covered, aside)
        self._metrics = Lines(self._log("metrics"))
        self.so_far = Summary(read_metrics(self.folder), read_events(self.folder))
        for number, path in rollout_files(self.folder).items():
            if number > step:
                path.unlink()  # made again, byte for byte, by the steps that follow
        return moved

    def close(self) -> None:
        """Close the logs and release the lock."""
        self._metrics.close()
        self._events.close()
        self.lock.release()


LOST = "restore it from a copy, or begin a new run with `rlvr train RECIPE`: the run's recipe is in no other file"


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a run folder, or a clear refusal."""
    path = folder / "config.json"
    try:
        config: dict[str, Any] = parsed(plain_files.read_text(path))
    except FileNotFoundError:
        raise no_run(folder) from None
    except (ValueError, OSError) as error:
        raise RunError(f"{path}: cannot be read ({error}); {LOST}") from None
    if not isinstance(config, dict) or "schema" not in config:
        raise RunError(f"{path}: not a run's configuration; {LOST}")
    refuse_schema(config, SCHEMA, path)
    return config


def no_run(folder: Path) -> UserError:
    """What every verb says of a folder that no run has written."""
    return UserError(f"{folder}: not a run folder (no config.json); `rlvr runs` lists yours")


def config_sha256(config: dict[str, Any]) -> str:
    """Hash of a configuration, whatever the spaces and the order of its keys."""
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()


def read_info(folder: Path) -> dict[str, Any]:
    """run_info.json, empty when there is none yet."""
    return read_facts(folder / "run_info.json", "restore it or delete it") or {}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """All whole lines of logs/metrics.jsonl."""
    return read_lines(folder / "logs" / "metrics.jsonl", METRICS)


def rollout_files(folder: Path) -> dict[int, Path]:
    """Step -> the file with its judged answers, in the order of the steps."""
    named = {path.stem.removeprefix("step_"): path for path in (folder / "rollouts").glob("step_*.jsonl")}
    return {int(step): named[step] for step in sorted(filter(str.isdigit, named), key=int)}


def read_events(folder: Path) -> list[dict[str, Any]]:
    """All whole lines of logs/events.jsonl."""
    return read_lines(folder / "logs" / "events.jsonl", EVENTS)
