"""rlvr doctor: what this machine can do, what is missing, and the remedy."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json

SINKS = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "tensorboardX"}
"""Sink, and the extra of rlvrlab that brings it -> the module it needs."""


class Finding(NamedTuple):
    """One line of what `rlvr doctor` prints."""

    subject: str
    state: str
    """ok, missing or problem."""
    fact: str
    remedy: str = ""


@click.command("doctor", short_help="Look at this machine: what works, what is missing, what to do.")
@AS_JSON
def command(as_json: bool) -> int:
    """Look at this machine: what works, what is missing, what to do."""
    from rlvrlab.registry import HOMES, names

    findings = [*_system(), *_storage(), *_isolation()]
    findings += [Finding(f"{kind}s", "ok", ", ".join(names(kind))) for kind in HOMES if names(kind)]
    for name, module in SINKS.items():
        if find_spec(module):
            findings.append(Finding(f"sink {name}", "ok", "installed"))
        else:
            findings.append(Finding(f"sink {name}", "missing", "optional", f"pip install 'rlvrlab[{name}]'"))
    broken = any(finding.state == "problem" for finding in findings)
    if as_json:
        print_json({"ok": not broken, "findings": [finding._asdict() for finding in findings]})
        return 1 if broken else 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("", "what", "found", "remedy", box=None)
    marks = {"ok": Text("✓", "green"), "missing": Text("–", "yellow"), "problem": Text("✗", "red")}
    for one in findings:
        table.add_row(marks[one.state], one.subject, Text(one.fact), Text(one.remedy))
    Console().print(table)
    return 1 if broken else 0


def _system() -> list[Finding]:
    from rlvrlab.record.facts import code_state, machine, package_versions

    facts = machine()
    supported = sys.version_info >= (3, 11)
    python = Finding(
        "python", "ok" if supported else "problem", facts["python"], "" if supported else "use 3.11 or newer"
    )
    cores = Finding("machine", "ok", f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}")
    commit = code_state().get("commit", "")
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    return [python, cores, Finding("packages", "ok", versions + (f", commit {commit[:10]}" if commit else ""))]


def _storage() -> list[Finding]:
    free_gb = shutil.disk_usage(Path.cwd()).free / 2**30
    space = Finding("disk", "ok" if free_gb > 1 else "problem", f"{free_gb:.1f} GB free here",
                    "" if free_gb > 1 else "free some space or set output_dir")  # fmt: skip
    writable = os.access(Path.cwd(), os.W_OK)
    here = Finding("folder", "ok" if writable else "problem", "writable" if writable else "read-only",
                   "" if writable else "go to another folder or set output_dir")  # fmt: skip
    return [space, here, _locking()]


def _locking() -> Finding:
    from rlvrlab.errors import RunLocked
    from rlvrlab.record.lock import Lock

    with tempfile.TemporaryDirectory(dir=Path.cwd() if os.access(Path.cwd(), os.W_OK) else None) as folder:
        held = Lock(Path(folder))
        try:
            Lock(Path(folder))
        except RunLocked:
            return Finding("file locks", "ok", "a second writer is kept out")
        finally:
            held.release()
    return Finding("file locks", "problem", "two writers were let in", "put output_dir on a local disk")


def _isolation() -> list[Finding]:
    from rlvrlab.judge.isolation import probe

    kernel = probe()
    level = f"{kernel.best} (Landlock {kernel.landlock_version}, seccomp {'yes' if kernel.seccomp else 'no'})"
    strong = kernel.best != "weak"
    jail = Finding(
        "judge", "ok" if strong else "missing", level, "" if strong else "code is refused, or judged remotely"
    )
    return [jail, *(Finding("judge", "missing", "optional", remark) for remark in kernel.remarks)]
