"""A whole program that reads standard input and writes standard output, with files around it where asked for."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path

from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution


def run(job: Job, report: Report) -> None:
    """`python solution.py`, in the jail."""
    code = solution.compiled(job["code"], report)
    for name, content in job.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b64decode(content))
    try:
        solution.execute(code, solution.fresh_module("__main__"))
    finally:
        for name in job.get("fetch_files", ()):
            if Path(name).is_file():
                report("file", name, b64encode(Path(name).read_bytes()).decode())
