"""Loading a candidate's program: compile bytes in the jail, run it as a module, find what was asked for."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from os import getcwd
from time import process_time
from typing import Any

from rlvrlab.judge.jail.child import Report

FILE_NAME = "solution.py"


class NotLoaded(SystemExit):
    """The program could not be loaded; the report already says why."""


def compiled(text: str, report: Report) -> types.CodeType:
    """The program's code; a refusal is reported. Bytes, not text, so that coding cookies count."""
    try:
        return compile(text.encode("utf-8", "surrogatepass"), FILE_NAME, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        report("compile", type(error).__name__, str(error)[:300], getattr(error, "lineno", None))
        raise NotLoaded(1) from None


class Source:
    """The loader of a program: it knows the text, which `inspect` and tracebacks ask for."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, _: str) -> str:
        """The text of the program, whatever the name of its module."""
        return self._text


def fresh_module(name: str, text: str) -> types.ModuleType:
    """An empty module under this name, as `python solution.py` or `import solution` would make it.

    Its folder, in which the child stands, comes first where modules are looked for: programs bring and write some.
    """
    module = types.ModuleType(name)
    module.__file__ = FILE_NAME
    module.__loader__ = Source(text)  # type: ignore[assignment]
    sys.modules[name] = module
    sys.argv = [FILE_NAME]
    sys.path.insert(0, getcwd())  # noqa: PTH109 - pathlib is not for the jail
    return module


def execute(code: types.CodeType, module: types.ModuleType) -> None:
    """Run the candidate's top level."""
    exec(code, module.__dict__)  # noqa: S102 - this is the jail


def load(text: str, report: Report, cpu_s: float) -> types.ModuleType:
    """Compile and import; `if __name__ == "__main__"` does not fire, and an exit at the top level is not the end.

    Its budget is that of one test.
    """
    code = compiled(text, report)
    module = fresh_module("solution", text)
    try:
        execute(code, module)
    except SystemExit:
        report("early_exit")
    spend(cpu_s)
    return module


def code_of(function: Callable[..., Any]) -> types.CodeType | None:
    """The code of a function or method written in Python; None for anything else that can be called."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def entry(module: types.ModuleType, name: str, report: Report) -> Callable[..., Any]:
    """`solve`, or `Solution.solve` for a method of a class that is made without arguments."""
    owner, _, method = name.rpartition(".")
    found = getattr(module, owner or method, None)
    if owner:
        found = getattr(found() if isinstance(found, type) else found, method, None)
    if not callable(found):
        report("no_entry_point", name)
        raise NotLoaded(1)
    return found


def spend(until: float) -> None:
    """Go on until the supervisor ends this process, if it has used more CPU time than it may.

    What used too much is never reported: whether somebody looked while it ran would be a matter of luck.
    """
    if process_time() > until:
        while True:
            pass
