"""A whole program that reads standard input and writes standard output, with files around it where asked for."""

from __future__ import annotations

import atexit
import gc
import os
import re
from contextlib import suppress
from types import ModuleType

from rlvrlab.judge.jail import files
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution

LINGERING = re.compile(r"__del__|\byield\b|FileIO|open\((?!\s*0\s*[),])")
"""What may have something to say when it is let go of: objects with a method for their end, suspended generators, files
that were written to and not closed. Other programs are spared the work."""


def run(job: Job, report: Report) -> None:
    """`python solution.py`, in the jail."""
    code = solution.compiled(job["code"], report)
    given, fetched, folder = job.get("files", {}), job.get("fetch_files", ()), os.getcwd()  # noqa: PTH109
    if given or fetched:
        from base64 import b64decode, b64encode  # a library that hardly any job needs
    for name, content in given.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)  # noqa: PTH103, PTH120
        files.write(name, b64decode(content))
    try:
        module = solution.fresh_module("__main__", job["code"])
        if LINGERING.search(job["code"]):
            atexit.register(_clear, module)  # the first one registered is the last one called
        solution.execute(code, module)
    finally:
        for name in fetched:  # beside the program, wherever it has gone meanwhile
            with suppress(OSError):  # one that it may not read itself is none: a link to somewhere else
                if files.is_file(f"{folder}/{name}"):
                    report("file", name, b64encode(files.content(f"{folder}/{name}")).decode())


def _clear(module: ModuleType) -> None:
    """Let go of what the program's names mean, as an interpreter does at its end: private names first."""
    names = vars(module)
    for private in (True, False):
        for name in list(names):
            if name.startswith("_") is private and not name.startswith("__"):
                names[name] = None
    gc.collect()
