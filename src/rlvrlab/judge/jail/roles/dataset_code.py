"""The data set's own code, compiled and run as Python does it, and not as a part of the role that runs it."""

from __future__ import annotations

import sys
from types import CodeType, ModuleType

FILE = "tests"
"""Where the tests' own code says that it stands, and what their module is called where they have one."""


def compiled(text: str) -> CodeType:
    """Its code. What this file has imported from `__future__` does not hold there."""
    return compile(text, FILE, "exec", dont_inherit=True)


def fresh_module() -> ModuleType:
    """A module for tests that have one of their own, where dataclasses, pickle and unittest look for it."""
    module = sys.modules[FILE] = ModuleType(FILE)
    return module
