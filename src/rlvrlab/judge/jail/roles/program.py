"""A whole program that reads standard input and writes standard output, with files around it where asked for."""

from __future__ import annotations

import os

from rlvrlab.judge.jail import files
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution


def run(job: Job, report: Report) -> None:
    """`python solution.py`, in the jail."""
    code = solution.compiled(job["code"], report)
    given, fetched = job.get("files", {}), job.get("fetch_files", ())
    if given or fetched:
        from base64 import b64decode, b64encode  # a library that hardly any job needs
    for name, content in given.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)  # noqa: PTH103, PTH120
        files.write(name, b64decode(content))
    try:
        solution.execute(code, solution.fresh_module("__main__"))
    finally:
        for name in fetched:
            if files.is_file(name):
                report("file", name, b64encode(files.content(name)).decode())
