"""A whole program that reads standard input and writes standard output, with files around it where asked for."""

from __future__ import annotations

import gc
import os
import re
import sys
import weakref
from contextlib import suppress
from functools import partial
from types import ModuleType

from rlvrlab.judge.jail import files
from rlvrlab.judge.jail.child import Job, Report, at_last
from rlvrlab.judge.jail.roles import solution

LINGERING = re.compile(r"__del__|\byield\b|IOBase|FileIO|TextIOWrapper|Buffered|open\((?!\s*0\s*[),])")
"""What may have something to say when it is let go of: objects with a method for their end, suspended generators,
streams and files that were written to and not closed. Other programs are spared the work."""


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
            at_last.append(partial(_let_go, weakref.ref(module)))
        solution.execute(code, module)
    finally:
        for name in fetched:  # beside the program, wherever it has gone meanwhile
            with suppress(OSError):  # one that it may not read itself is none: a link to somewhere else
                if files.is_file(f"{folder}/{name}"):
                    report("file", name, b64encode(files.content(f"{folder}/{name}")).decode())


def _let_go(program: weakref.ref[ModuleType]) -> None:
    """Let go of the program as an interpreter does: with its names intact, and without them where it is still held.

    An object that is a part of a cycle, such as a stream with a method of its own, is told of its end by the collection
    of garbage, and what it does then may need any of the names.
    """
    sys.modules.pop("__main__", None)
    gc.collect()
    if (module := program()) is not None:
        names = vars(module)
        for private in (True, False):
            for name in list(names):
                if name.startswith("_") is private and not name.startswith("__"):
                    names[name] = None
        gc.collect()
