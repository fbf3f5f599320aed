"""A run folder: experiments/<name>_<YYYYMMDD_HHMMSS>_<8 hex>/.

config.json      the recipe as resolved, with the origin of each value: enough to resume
run_info.json    status, machine, versions, data hashes, command
logs/            metrics.jsonl (one line per step), events.jsonl (what happened, in words)
rollouts/        step_N.jsonl: every judged answer
checkpoints/     global_step_N/, complete when its manifest.json is there
artifacts/ analysis/ EXPERIMENT.md
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlvrlab.errors import RunError, UserError
from rlvrlab.record.files import Lines, mend_tail, read_lines, split_lines, write_json, write_rows
from rlvrlab.record.lock import Lock
from rlvrlab.record.redact import redact

SCHEMA = 1
FOLDERS = ("logs", "rollouts", "checkpoints", "artifacts", "analysis")


class Run:
    """An open run folder; the only writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warned: set[str] = set()
        self.lock = Lock(folder)
        torn = [name for name in ("metrics", "events") if mend_tail(self._log(name))]
        self._metrics, self._events = Lines(self._log("metrics")), Lines(self._log("events"))
        for name in torn:
            self.event("torn_line", f"logs/{name}.jsonl ended in the middle of a line; kept aside as {name}.jsonl.torn")

    @classmethod
    def create(cls, parent: Path, name: str, config: dict[str, Any]) -> Run:
        """A new folder with a name nobody else has; config.json is there before anything runs."""
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime())
        folder = parent / f"{name}_{stamp}_{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True)
            for below in FOLDERS:
                (folder / below).mkdir()
        except OSError as error:
            raise UserError(f"{folder}: cannot be made ({error.strerror}); choose another output_dir") from None
        write_json(folder / "config.json", redact({"schema": SCHEMA, **config}))
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
        """One step's line."""
        self._metrics.append(row)

    def event(self, kind: str, text: str, **facts: Any) -> None:
        """Something a reader should know."""
        self._events.append(redact({"time": _now(), "kind": kind, "text": text, **facts}))

    def warn(self, subject: str, text: str, **facts: Any) -> None:
        """A warning event, once per subject: a run that stays unwell says so once."""
        if subject not in self._warned:
            self._warned.add(subject)
            self.event("warning", text, subject=subject, **facts)

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """All answers of a step."""
        write_rows(self.folder / "rollouts" / f"step_{step}.jsonl", rows)

    def sync(self) -> None:
        """Everything logged so far is on the disk when this returns."""
        self._metrics.sync()
        self._events.sync()

    def info(self, **facts: Any) -> dict[str, Any]:
        """Merge facts into run_info.json."""
        merged = {**read_info(self.folder), **redact(facts)}
        write_json(self.folder / "run_info.json", merged)
        return merged

    def rewind(self, covered: Callable[[dict[str, Any]], bool], step: int) -> int:
        """Set aside what came after a checkpoint: lines go to logs/superseded.jsonl. Returns how many."""
        aside = self.folder / "logs" / "superseded.jsonl"
        self._metrics.close()
        moved = split_lines(self._log("metrics"), covered, aside)
        self._metrics = Lines(self._log("metrics"))
        for path in (self.folder / "rollouts").glob("step_*.jsonl"):
            if int(path.stem.removeprefix("step_")) > step:
                path.unlink()  # made again, byte for byte, by the steps that follow
        return moved

    def close(self) -> None:
        """Release the folder."""
        self._metrics.close()
        self._events.close()
        self.lock.release()


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a run folder, or a clear refusal."""
    path = folder / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder}: not a run folder (no config.json); `ls experiments/` shows yours") from None
    except (ValueError, OSError) as error:
        raise RunError(f"{path}: cannot be read ({error})") from None
    if config.get("schema") != SCHEMA:
        raise RunError(
            f"{path}: schema {config.get('schema')}, this version reads {SCHEMA}; use the version that wrote it"
        )
    return config


def read_info(folder: Path) -> dict[str, Any]:
    """run_info.json, empty when there is none yet."""
    path = folder / "run_info.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """All whole lines of logs/metrics.jsonl."""
    return read_lines(folder / "logs" / "metrics.jsonl")


def read_events(folder: Path) -> list[dict[str, Any]]:
    """All whole lines of logs/events.jsonl."""
    return read_lines(folder / "logs" / "events.jsonl")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
