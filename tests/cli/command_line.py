"""The real `rlvr` in a process of its own, and a recipe that takes a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rlvrlab.cli import main
from rlvrlab.cli.verbs import rlvr as program

RLVR = [sys.executable, "-c", "from rlvrlab.cli import main; main()"]
TINY = """name = "tiny"
phases = ["sft", "grpo"]

[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"

[data]
train_size = 40
dev_size = 4

[rollout]
n = 2
max_tokens = 6

[engine]
type = "toy"
buckets = 8

[sft]
steps = 2
batch_size = 4

[grpo]
steps = 2
batch_size = 2
"""


def tiny(folder: Path, extra: str = "") -> Path:
    path = folder / "tiny.toml"
    path.write_text(TINY + extra, encoding="utf-8")
    return path


def rlvr(*words: str, folder: Path, program: list[str] | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it in `folder`; no terminal, no colour wishes of the caller."""
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "PYTHONIOENCODING")}
    return subprocess.run(
        [*(program or RLVR), *words], cwd=folder, env={**kept, **env}, capture_output=True, timeout=300, text=True,
        encoding="utf-8",
    )  # fmt: skip


def inside(monkeypatch, capsys, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The same without a process of its own: `main` as the script calls it."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["rlvr", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out = capsys.readouterr()
    return subprocess.CompletedProcess(words, int(left.value.code or 0), out.out, out.err)


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of a user's mistake: nothing but `error: …`, exit code 2."""
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("error: ") for line in lines), done.stderr
    return lines


def every_parameter() -> list[tuple[str, click.Parameter]]:
    found: list[tuple[str, click.Parameter]] = []

    def walk(command: click.Command, words: str) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                walk(command.get_command(context, name), f"{words} {name}".strip())
        else:
            found.extend((words, parameter) for parameter in command.params)

    walk(program, "")
    return found
