"""One trial in a process of its own: train or resume, examine, write result.json.

    python -m rlvrlab.study.worker STUDY/trials/ID

Everything it needs is in ID/job.json. The run folder is an ordinary one: `rlvr train` would have made the same, and
`rlvr train --resume` goes on with it. Exit codes: 0 done, 3 out of memory, 4 asked to stop, 1 anything else; the reason
is in failure.json.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab import plain_files
from rlvrlab.errors import InfrastructureError, LabError, RunError, RunLocked
from rlvrlab.fate import share_fate
from rlvrlab.plain_files import parsed
from rlvrlab.record.files import Lock, write_json
from rlvrlab.record.shapes import Record, refuse_other

if TYPE_CHECKING:
    from rlvrlab.recipe import Resolved

JOB, RESULT, FAILURE = "job.json", "result.json", "failure.json"
DONE, FAILED, OUT_OF_MEMORY, STOPPED = 0, 1, 3, 4
LOCK_WAIT_S = 60.0
"""A worker whose parent was killed ends after its step; its successor waits that long for the folder."""
PARENT = "RLVR_STUDY_PARENT"


class Examined(Record):
    """What a trial keeps of one suite."""

    hash: str
    members: dict[str, str]
    scores: str


class Result(Record):
    """result.json of a trial; one that is anything else counts as not there, and the trial is run again."""

    run: str
    rung: int
    evaluated: dict[str, Examined]
    seconds: float = 0.0


def main(words: list[str]) -> int:
    """Run the job of the trial folder that is named; the exit code says how it ended."""
    follow_parent()
    folder = Path(words[0])
    lock = _locked(folder)
    try:
        (folder / FAILURE).unlink(missing_ok=True)
        return _run(folder, json.loads((folder / JOB).read_text(encoding="utf-8")))
    except KeyboardInterrupt:
        return _failed(folder, STOPPED, "interrupted")
    except Exception as error:
        if is_out_of_memory(error):
            return _failed(folder, OUT_OF_MEMORY, f"out of memory: {error}".rstrip(": "))
        if isinstance(error, LabError):
            return _failed(folder, FAILED, str(error))
        traceback.print_exc()
        return _failed(folder, FAILED, f"{type(error).__name__}: {error}")
    finally:
        lock.release()


def is_out_of_memory(error: BaseException) -> bool:
    """True of Python's and torch's errors, and of a library's that only says so."""
    named = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return named or "out of memory" in str(error).lower()


def follow_parent() -> None:
    """Ask the kernel for SIGTERM when the study's process dies, however it dies (Linux only)."""
    parent = os.environ.get(PARENT)
    if parent is not None and not share_fate(int(parent), signal.SIGTERM):
        sys.exit(STOPPED)


def _locked(folder: Path) -> Lock:
    """Wait for a predecessor whose study was killed: it ends after its step."""
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return Lock(folder)
        except RunLocked:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _run(folder: Path, job: dict[str, Any]) -> int:
    from rlvrlab.record.run import read_info, read_metrics
    from rlvrlab.report.run_record import RunRecord
    from rlvrlab.report.story.skills import kept
    from rlvrlab.scale.session import resume, start
    from rlvrlab.study.examine import examine, prepared
    from rlvrlab.study.identity import source_hash

    home = folder / "runs" / f"rung{job['rung']}"
    resolved = _resolved(folder, home, job)
    before = read_result(folder)
    examined: dict[str, Any] = before["evaluated"] if before and before["rung"] == job["rung"] else {}
    missing = {name: one for name, one in job["suites"].items() if examined.get(name, {}).get("hash") != one["hash"]}
    ready = [prepared(name, one, resolved) for name, one in missing.items()]
    begun = sorted(path for path in home.glob("*") if (path / "config.json").is_file())
    if begun and read_info(begun[-1]).get("status") == "finished":
        run = begun[-1]
    else:
        ended = resume(begun[-1], _silent) if begun else start(resolved, _silent, job["command"])
        if ended.status != "finished":
            return _failed(folder, STOPPED, "asked to stop; what is trained is kept")
        run = ended.folder
    seconds = sum(row.get("time/step_s", 0.0) for row in read_metrics(run))
    examined |= {one.name: examine(folder, run, one) for one in ready}
    facts = {"run": run.relative_to(folder).as_posix(), "rung": job["rung"], "seconds": round(seconds, 4)}
    facts |= {"source": source_hash()[:16], "data": read_info(run).get("data"), "evaluated": examined}
    write_json(folder / RESULT, facts | {"retention": kept(RunRecord(run))})
    return DONE


def _resolved(folder: Path, home: Path, job: dict[str, Any]) -> Resolved:
    """The recipe of the run, after checking that it is still the one that was planned."""
    from rlvrlab.recipe import load_recipe
    from rlvrlab.study.identity import identity_of
    from rlvrlab.study.settings import words

    recipe, own = Path(job["recipe"]), {"name": job["name"], "output_dir": str(home), "seed": job["seed"]}
    now, planned = identity_of(load_recipe(recipe, words(job["settings"])), job["seed"], job["code"]), job["identity"]
    if now != planned:
        changed = ", ".join(key for key in now if now[key] != planned[key])
        raise InfrastructureError(f"{folder.name}: {changed} changed since the trial was planned; run the study again")
    given = words({**job["settings"], **job["more"], **own})
    job["command"] = ["rlvr", "train", *map(shlex.quote, [str(recipe), *given])]
    return replace(load_recipe(recipe, given), idle=())  # a study's settings are for arms of several phases


def read_result(folder: Path) -> dict[str, Any] | None:
    """result.json of a trial, if it is there and whole."""
    try:
        result: dict[str, Any] = parsed(plain_files.read_text(folder / RESULT))
        refuse_other(Result, result, RESULT)
    except (OSError, ValueError, RunError):
        return None
    return result


def read_failure(folder: Path) -> str:
    """Why the last attempt failed, as far as it could say."""
    try:
        return str(parsed(plain_files.read_text(folder / FAILURE))["why"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _failed(folder: Path, code: int, why: str) -> int:
    write_json(folder / FAILURE, {"code": code, "why": why})
    print(f"error: {why}", file=sys.stderr)
    return code


def _silent(*_: object) -> None:
    """The run folder is the record; nobody watches a trial's terminal."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
