"""rlvr doctor: what this machine can do, what is missing, and the remedy."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, table
from rlvrlab.errors import LabError, RunLocked
from rlvrlab.registry import HOMES, find, names

SINKS = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "tensorboardX"}
"""Sink, and the extra of rlvrlab that brings it -> the module it needs."""


KEPT_OUT = "a second writer is kept out"


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
    findings = list(_machine())
    findings += [
        Finding("surgeries" if kind == "surgery" else f"{kind}s", "ok", ", ".join(names(kind)))
        for kind in HOMES
        if names(kind)
    ]
    for name in names("engine"):
        if (lookup := find("engine", name).installed()) is not None:
            there, (fact, _, remedy) = lookup.state == "found", lookup.words.partition("; ")
            findings.append(Finding(lookup.what, "ok" if there else "missing", fact, remedy))
    for name, module in SINKS.items():
        if find_spec(module):
            findings.append(Finding(f"sink {name}", "ok", "installed"))
        else:
            findings.append(Finding(f"sink {name}", "missing", "optional", f"pip install 'rlvrlab[{name}]'"))
    broken = any(finding.state == "problem" for finding in findings)
    if as_json:
        print_json({"ok": not broken, "findings": [finding._asdict() for finding in findings]})
        return 1 if broken else 0
    marks = {"ok": Text("✓", "green"), "missing": Text("–", "yellow"), "problem": Text("✗", "red")}
    rows = [(marks[one.state], one.subject, one.fact, one.remedy) for one in findings]
    Console().print(table(("", "what", "found", "remedy"), rows))
    return 1 if broken else 0


def _machine() -> Iterator[Finding]:
    """Python, hardware, packages, disk, folder, locks, and how well the judge can isolate programs."""
    from rlvrlab.judge.isolation import probe
    from rlvrlab.record.facts import code_state, machine, package_versions

    facts = machine()
    yield _wanted("python", sys.version_info >= (3, 11), facts["python"], "use 3.11 or newer")
    yield Finding("machine", "ok", f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}")
    commit = code_state().get("commit", "")
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    yield Finding("packages", "ok", versions + (f", commit {commit[:10]}" if commit else ""))
    free_gb = shutil.disk_usage(Path.cwd()).free / 2**30
    yield _wanted("disk", free_gb > 1, f"{free_gb:.1f} GB free here", "free some space or set output_dir")
    writable = os.access(Path.cwd(), os.W_OK)
    yield _wanted("folder", writable, "writable" if writable else "read-only", "go to another folder or set output_dir")
    locks = _locks(Path.cwd() if writable else None)
    yield _wanted("file locks", locks == KEPT_OUT, locks, "put output_dir on a local disk")
    kernel = probe()
    level = f"{kernel.best} (Landlock {kernel.landlock_version}, seccomp {'yes' if kernel.seccomp else 'no'})"
    yield _wanted("judge", kernel.best != "weak", level, "code is refused, or judged remotely", otherwise="missing")
    yield from (Finding("judge", "missing", "optional", remark) for remark in kernel.remarks)


def _locks(place: Path | None) -> str:
    """Whether a lock in a folder there keeps a second writer out."""
    from rlvrlab.record.files import Lock

    try:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            held = Lock(Path(folder))
            try:
                Lock(Path(folder)).release()
            except RunLocked:
                return KEPT_OUT
            finally:
                held.release()
    except (LabError, OSError) as error:
        return f"none: {error}"
    return "two writers were let in"


def _wanted(subject: str, fine: bool, fact: str, remedy: str, otherwise: str = "problem") -> Finding:
    return Finding(subject, "ok", fact) if fine else Finding(subject, otherwise, fact, remedy)
