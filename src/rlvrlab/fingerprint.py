"""What a plain Python function does, as a short text that can be recorded and compared.

    fingerprint(reward)  ->  "3.11-9f2c41d0a7b3"

It covers the compiled code, default arguments, what a closure holds, and of the globals that the code reads the plain
values and the functions of the same file. Comments, names of files and line numbers do not count. Compiled code differs
between versions of Python, so two fingerprints say something only when both come from the same version.
"""

from __future__ import annotations

import dis
import hashlib
import re
import sys
from collections.abc import Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

CHANGED = (
    "restore it, or go on with what is there now: `rlvr train --resume RUN --accept-code`, in Python "
    "`Run(FOLDER).resume(accept_code=True)`, records the change"
)
"""What to do where a run's function is no longer the recorded one."""
RECORDED = re.compile(r"\d+\.\d+-[0-9a-f]{12}")
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def fingerprint(*parts: object) -> str:
    """The version of Python and a hash of what the functions and values do and hold."""
    digest = hashlib.sha256(repr([_content(part, ()) for part in parts]).encode()).hexdigest()[:12]
    return f"{sys.version_info.major}.{sys.version_info.minor}-{digest}"


def same_code(recorded: str, now: str) -> bool:
    """False only where both come from the same version of Python and differ."""
    return recorded == now or recorded.partition("-")[0] != now.partition("-")[0]


def without_fingerprints(table: Any) -> Any:
    """Plain tables without the fingerprints on record (key `code`), so that the functions of now are taken."""
    if isinstance(table, Mapping):
        kept = {key: value for key, value in table.items() if not (key == "code" and RECORDED.fullmatch(str(value)))}
        return {key: without_fingerprints(value) for key, value in kept.items()}
    return [without_fingerprints(one) for one in table] if isinstance(table, list) else table


def _content(value: Any, above: tuple[object, ...]) -> object:
    """Plain data that is equal for equal behaviour; `above` ends functions that call each other."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, CodeType):
        return [value.co_code.hex(), value.co_names, value.co_varnames, _content(value.co_consts, above)]
    if isinstance(value, tuple | list):
        return [_content(one, above) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_content(one, above)) for one in value)
    if isinstance(value, Mapping):
        return [[_content(key, above), _content(one, above)] for key, one in value.items()]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    if isinstance(value, partial):
        return _content([value.func, value.args, value.keywords], above)
    if isinstance(value, MethodType):
        return _content([value.__func__, value.__self__], above)
    if any(value is one for one in above):
        return "recursion"
    if isinstance(value, FunctionType):
        return _function(value, (*above, value))
    kind = value if isinstance(value, type) else type(value)
    called = vars(kind).get("__call__")
    if isinstance(called, FunctionType) and not isinstance(value, type):  # an object that is used as a function
        return [kind.__qualname__, _function(called, (*above, value)), _content(vars(value), (*above, value))]
    return [kind.__qualname__]


def _function(function: FunctionType, above: tuple[object, ...]) -> object:
    reads = [name for name in _globals(function.__code__) if name in function.__globals__]
    outside = {name: function.__globals__[name] for name in reads}
    near = {
        name: _content(value, above)
        for name, value in outside.items()
        if not isinstance(value, FunctionType) or value.__module__ == function.__module__
    }
    held = [_content(cell.cell_contents, above) for cell in function.__closure__ or ()]
    usual = _content([function.__defaults__, function.__kwdefaults__], above)
    return [_content(function.__code__, above), usual, held, sorted(near.items(), key=lambda item: item[0])]


def _globals(code: CodeType) -> set[str]:
    """Names of globals that the code reads, those of functions inside it included."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
