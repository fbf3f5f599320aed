"""A run's folder from its first line to its last, whoever trains: what it starts with, where it runs, how it ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError, LabError, OwnCodeError, RunError, TrainingDiverged, UserError, remedied
from rlvrlab.evals.monitors import ranges_of
from rlvrlab.notes import note
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.experiment import REPORT_PAGE, going_on, made_again, write_experiment
from rlvrlab.record.facts import code_state, machine, package_versions
from rlvrlab.record.files import utc_now
from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.train import checkpoint
from rlvrlab.train.lab import Lab, Supplies

READER_LEFT = "the pipe or terminal that it wrote to was closed"
GO_ON = "free space, then --resume"
"""What to do about a disk that refuses a training."""


def create(lab: Lab, command: Sequence[str]) -> Run:
    """A new folder with all that a resume needs."""
    resolved = lab.resolved
    preset = resolved.build("engine").preset()
    kind = preset.name if preset else ""
    config = {**resolved.config(), "folder": str(resolved.folder.resolve())}  # a resume may start elsewhere
    facts = {
        "command": list(command),
        "data": lab.data_facts(),
        "started": utc_now(),
        "preset": kind,
        "watched": [str(r) for r in ranges_of(kind)],
    }
    return Run.create(Path(resolved.recipe.output_dir), resolved.recipe.name, config, facts)


def check_data(folder: Path, has: Supplies) -> None:
    """Refuse to go on with other data; more or fewer test problems may have been asked for (eval.test_size)."""
    before, now = read_info(folder).get("data"), has.data_facts()
    if before is None:
        return
    if "test" not in before or before["test"]["size"] != now.get("test", {}).get("size"):
        before, now = ({key: value for key, value in facts.items() if key != "test"} for facts in (before, now))
    if before == now:
        return
    words = f"{folder}: the data is not what this run started with"
    if before["environment"] == now["environment"] and before["version"] != now["version"]:
        versions = f"{now['environment']} was version {before['version']} and is {now['version']} now"
        remedy = "go on with the rlvrlab that began it, or start a new run with its recipe"
        raise UserError(f"{words}: {versions}, with other problems or another scoring; {remedy}")
    raise UserError(f"{words}: {_differences(before, now)}; {_remedy(folder, has)}")


def set_page_aside(run: Run, step: int) -> None:
    """Rename the page of a run that goes on: it tells of the run as it was after that step."""
    page = run.folder / REPORT_PAGE
    if page.is_file():
        aside = page.with_name(f"{page.stem}_until_step_{step}{page.suffix}")
        page.replace(aside)
        run.event("report", f"the page of the run until now is {aside.name}; `rlvr report` makes a new one")


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What of the data is another one, in words."""
    told = []
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if key in ("train", "dev", "test") and old and new:
            sizes = "other" if old["size"] == new["size"] else f"→ {new['size']}"
            told.append(f"{key}: {old['size']} {sizes} problems")
        elif key == "files":
            was, is_now = old or {}, new or {}
            names = [role for role in {**was, **is_now} if was.get(role) != is_now.get(role)]
            told.append(f"files of {', '.join(names)}")
        else:
            told.append(f"{key} {old} → {new}")
    return ", ".join(told)


def _remedy(folder: Path, has: Supplies) -> str:
    """Which files to restore, as far as the recipe names any, or how to train on the data of now."""
    home = has.resolved.folder
    named = [value for table in ("env", "data") for _, value in flatten(has.resolved.plain()[table])]
    files = [str(home / one) for value in named for one in (value if isinstance(value, list) else [value])
             if isinstance(one, str) and one and (home / one).is_file()]  # fmt: skip
    command, _ = made_again(folder, read_config(folder), read_info(folder))
    return f"restore {', '.join(dict.fromkeys(files)) or 'it'} as it was, or train anew on what is there now: {command}"


def change_recipe(run: Run, now: Resolved, changed: dict[str, Any], words: str, kind: str, **facts: Any) -> None:
    """Write another recipe into a run's folder on purpose; `changed` (key -> from, to) is kept as its history.

    `facts` go into the event that says so.
    """
    config = read_config(run.folder)
    history = [*config.get("history", []), {"time": utc_now(), "changed": changed}]
    kept = {"folder": config["folder"], "history": history}
    run.reconfigure({**config, **now.config(), **kept}, words, kind=kind, changed=changed, **facts)


def without_checkpoints(folder: Path) -> RunError:
    """What is said of a finished run that cannot go on: made again from its first step it would be another run."""
    command, _ = made_again(folder, read_config(folder), read_info(folder))
    words = f"{folder}: finished, and no complete checkpoint is left to go on from"
    return RunError(f"{words}; restore {folder / 'checkpoints'}, or train anew: {command}")


def note_resume(run: Run, step: int, moved: int) -> None:
    """Say and record after which step a run goes on, and how many lines of the log beyond it were set aside, if any."""
    lines = f"{moved} line{'s' * (moved != 1)} of the log beyond it"
    again = f"; {lines} moved to logs/superseded.jsonl, their steps are made again" if moved else ""
    words = f"resumes after step {step}{again}"
    run.event("resume", words, step=step)
    note("resume", words)


@contextmanager
def recorded(run: Run) -> Iterator[None]:
    """Around training: the folder records where it runs and, if it fails, why."""
    try:
        with remedied(GO_ON):
            _note_machine(run)
            yield
    except KeyboardInterrupt:
        close(run, "killed", "stopped at once by a second Ctrl-C")
        raise
    except BrokenPipeError:
        close(run, "killed", READER_LEFT)
        raise
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # as Rich ends a program nobody reads
            close(run, "killed", READER_LEFT)
            raise
        words = f"a plug-in or a package ended the program (sys.exit({left.code!r}))"
        close(run, "failed", words)
        raise InfrastructureError(f"{words}; the run is in {run.folder}") from left
    except OwnCodeError as error:
        step, phase = run.so_far.newest or (0, "the first phase")
        found = checkpoint.complete(run.folder / "checkpoints")  # which a resume goes on from
        kept = f"checkpoint {found[0].name}" if found else "no checkpoint yet, so from the beginning"
        words = f"{error} (step {step + 1}, {phase}; {kept})"
        close(run, "failed", words, own_code=True)
        remedy = going_on(run.folder, read_config(run.folder), read_info(run.folder))
        raise OwnCodeError(f"{words}. {remedy}") from error
    except Exception as error:
        words = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        close(run, "failed", words, resumable=not isinstance(error, UserError | TrainingDiverged))
        raise


def _note_machine(run: Run) -> None:
    """What it runs on now; where a resumed run finds other versions or another machine, that is said."""
    before = read_info(run.folder)
    now = {"packages": package_versions(), "machine": machine(), "code": code_state()}
    changes = [
        f"{key} {old} → {now[kind].get(key)}"
        for kind in now
        for key, old in before.get(kind, {}).items()
        if old != now[kind].get(key)
    ]
    if changes:
        text = f"not where it was before: {', '.join(changes)}; the last digits of what follows may differ"
        run.event("environment", text)
    run.info(status="running", **now)
    write_experiment(run.folder, run.so_far)


def close(run: Run, status: str, words: str, *, resumable: bool = True, own_code: bool = False) -> None:
    """Say how it ended; on a full disk even that may fail, and must not hide why.

    A run that is not `resumable` failed by what it was given, and would fail there again; one that failed in the user's
    `own_code` goes on once that is mended.
    """
    try:
        facts = {"resumable": resumable, "failed_in_own_code": own_code}
        run.info(status=status, ended=utc_now(), result=run.so_far.phases, **facts)
        run.event("end", f"{status}: {words}")
        run.sync()
        write_experiment(run.folder, run.so_far)
    except (LabError, OSError) as error:
        print(f"could not record the end of the run: {error}", file=sys.stderr)
