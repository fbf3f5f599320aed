"""rlvr judge: one or more solutions against one problem, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvrlab import plain_files
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import printable
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import Found, program_in
from rlvrlab.types import ErrorKind, Verdict

if TYPE_CHECKING:
    from rlvrlab.judge.tasks import Task

PROSE = {".md", ".txt"}
NOT_JUDGED = 3
"""Exit code where the machine failed: neither a wrong answer (1) nor a wrong task (2)."""


@click.command("judge", short_help="Judge solutions against a problem.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-p", "--problem", required=True, type=click.Path(path_type=Path), help="Task file (JSON) or folder.")
@click.option("--cpu", "cpu_s", type=float, help="CPU seconds per test.")
@click.option("--memory", "memory_mb", type=click.IntRange(1), help="Megabytes of memory.")
@click.option("--hasty", is_flag=True, help="Leave the other tests out after one that ended the program.")
@click.option("--isolation", help="landlock, bwrap or weak.")
@click.option("--allow-weak", is_flag=True, help="Accept a machine that cannot isolate.")
@AS_JSON
def command(
    files: tuple[Path, ...], problem: Path, cpu_s: float | None, memory_mb: int | None, hasty: bool,
    isolation: str | None, allow_weak: bool, as_json: bool,
) -> int:  # fmt: skip
    """Judge solutions against a problem.

    \b
    rlvr judge solution.py -p task.json   a program and a task
    rlvr judge answer.md -p task.json     the code block of a completion
    rlvr judge a.py b.py -p tests/        a folder of 1.in, 1.out, 2.in, 2.out, …

    \b
    task.json: {"kind": "calls", "entry_point": "add",
                "calls": [{"arguments": [1, 2], "expected": 3}]}

    Kinds: stdio {tests: [[input, output], …]}, calls, tests {entry_point, tests: ["assert …"]}, syntax.
    The exit code is 0 when all are accepted, 1 when one is not, 2 when the task is at fault, 3 when the machine is.
    """
    from rlvrlab.judge.finding import Finding
    from rlvrlab.judge.judge import Judge
    from rlvrlab.judge.outcomes import Outcome

    task = read_task(problem, cpu_s, memory_mb)
    verdicts: dict[str, Verdict] = {}
    with Judge(isolation=isolation, allow_weak=allow_weak, every_test=not hasty) as judge:
        for path in files:
            program = program_in(read_text(path)) if path.suffix in PROSE else Found(_program_text(path))
            if program.code is None:
                verdicts[str(path)] = Finding(Outcome.NO_CODE, program.reason).verdict("none")
            else:
                verdicts[str(path)] = judge.verify(task, program.code)
    if as_json:
        from rlvrlab.judge.fusion.wire import verdict_to_wire

        click.echo(json.dumps({name: verdict_to_wire(verdict) for name, verdict in verdicts.items()}, indent=2))
    else:
        for name, verdict in verdicts.items():
            mark = {True: "✓", False: "✗", None: "?"}[verdict.correct]
            cost = f"{verdict.cost.get('cpu_s', 0.0):.2f} s, {verdict.cost.get('peak_mb', 0.0):.0f} MB"
            tests = f"{verdict.passed}/{verdict.total} tests"
            flags = f" [{', '.join(verdict.flags)}]" if verdict.flags else ""
            click.echo(printable(f"{mark} {name}: {verdict.detail} ({tests}, {cost}){flags}"))
    if any(verdict.error is ErrorKind.INFRA for verdict in verdicts.values()):
        return NOT_JUDGED
    if any(verdict.error is ErrorKind.BAD_TASK for verdict in verdicts.values()):
        return UserError.exit_code
    return 0 if all(verdict.correct for verdict in verdicts.values()) else 1


def read_task(path: Path, cpu_s: float | None = None, memory_mb: int | None = None) -> Task:
    """A task file or a folder of tests, with other limits where they are given."""
    from rlvrlab.judge.task_forms import task_of
    from rlvrlab.plain_files import parsed

    if path.is_dir():
        inputs = sorted(path.glob("*.in"))
        if not inputs:
            raise UserError(f"{path}: no *.in files; a folder problem is made of 1.in, 1.out, 2.in, 2.out, …")
        form: Any = {"kind": "stdio", "tests": [(read_text(one), read_text(one.with_suffix(".out"))) for one in inputs]}
    else:
        try:
            form = parsed(read_text(path), answers=True)
        except ValueError as error:
            raise UserError(f"{path}: not JSON: {error}") from None
    try:
        task = task_of(form)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    given: dict[str, Any] = {} if cpu_s is None else {"cpu_s": cpu_s, "job_cpu_s": cpu_s}
    given |= {} if memory_mb is None else {"memory_mb": memory_mb}
    try:
        return replace(task, limits=replace(task.limits, **given))
    except ValueError as error:
        raise UserError(f"--cpu, --memory: {error}") from None


def _program_text(path: Path) -> str:
    """The program in a file; one that is no text is the caller's mistake, and no wrong answer."""
    text = read_text(path)
    if not text.isascii() and any("\udc80" <= sign <= "\udcff" for sign in text):
        raise UserError(f"{path}: no program: its bytes are not UTF-8; save it as text in UTF-8")
    return text


def read_text(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become surrogates."""
    from rlvrlab.envs.data_files import missing

    try:
        return plain_files.read_bytes(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise UserError(missing(path)) from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; name a file that can be read") from None
