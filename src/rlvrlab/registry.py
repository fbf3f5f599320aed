"""Names for everything that plugs in.

    @register("objective", "ppo_clip")
    @dataclass(frozen=True)
    class PpoClip: ...

A plug-in class is its own recipe table: its dataclass fields are the keys (at most MAX_KEYS), its defaults the vetted
setting. It is found in the sub-package of its kind, by entry point (group THIRD_PARTIES), or by
`type = "my_env.py:MyEnv"` for a file beside the recipe. Kinds with an adapter also take plain objects: a function
`type = "my_reward.py:bonus"`, or one that only a running Python has, under a name that begins with PYTHON.

Built-in names are read from the text of the files, so that a file is imported when its plug-in is used, and not when
somebody asks which names there are.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from rlvrlab.errors import UnknownName, UserError, suggestion

HOMES = {
    "env": "rlvrlab.envs",
    "reward": "rlvrlab.rewards",
    "engine": "rlvrlab.engines",
    "advantage": "rlvrlab.advantages",
    "credit": "rlvrlab.credit",
    "objective": "rlvrlab.objectives",
    "surgery": "rlvrlab.surgery",
    "guard": "rlvrlab.train.guards",
    "protocol": "rlvrlab.train.protocols",
    "phase": "rlvrlab.train.phases",
    "sink": "rlvrlab.record.sinks",
}
THIRD_PARTIES = "rlvrlab.plugins"
"""Group of entry points of other packages' plug-ins."""
MAX_KEYS = 12
LOCAL = "rlvrlab_local_"
"""Begins the module name of a user's own file."""
PYTHON = "python:"
"""Begins the name of a plug-in made of a function or object of a running Python that is in no file."""
_WRITTEN = re.compile(r'^@(?:register\("(\w+)", "(\w+)"\)|adapter\("(\w+)"\))$', re.MULTILINE)
"""How a built-in plug-in, or the adapter of a kind, is written: at the top of a file and with plain names."""
_ADAPTER = ""
"""Stands for the adapter among a kind's names."""

C = TypeVar("C", bound=type[Any])
Adapter = Callable[[str, Any], type[Any] | None]
"""(name, object) -> its plug-in class; None if it cannot be one. For None: a class that refuses and says why."""
_known: dict[tuple[str, str], type[Any]] = {}
_adapters: dict[str, Adapter] = {}
_written: dict[str, dict[str, str]] = {}
"""Kind -> built-in name -> the module it is written in."""
_invited: set[str] = set()
"""Groups of entry points that were loaded."""
_inviting = threading.RLock()
_files: dict[tuple[Path, int], ModuleType] = {}
"""User's files by path and time of change: each is run once."""


def register(kind: str, name: str) -> Callable[[C], C]:
    """Class decorator that gives a frozen dataclass its name."""
    if kind not in HOMES:
        raise UnknownName("plug-in kind", kind, HOMES)

    def add(cls: C) -> C:
        if not is_dataclass(cls):
            raise UserError(
                f"{kind} {name!r}: a plug-in is a frozen dataclass; put @dataclass(frozen=True) under @register"
            )
        if len(keys_of(cls)) > MAX_KEYS:
            raise UserError(f"{kind} {name!r}: {len(keys_of(cls))} recipe keys, at most {MAX_KEYS}")
        _refuse_second(kind, name, cls)
        _known[kind, name] = declare(cls, kind, name)
        return cls

    return add


def declare(cls: C, kind: str, name: str) -> C:
    """Make a frozen dataclass a plug-in without registering its name."""
    cls.name = name
    cls.plugin_kind = kind
    # pydantic reads this when the recipe table is checked; the plug-in itself needs no pydantic.
    cls.__pydantic_config__ = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
    return cls


def adapter(kind: str) -> Callable[[Adapter], Adapter]:
    """Decorator of the function that turns plain objects into plug-in classes; it lives in the kind's home."""

    def add(adapt: Adapter) -> Adapter:
        _adapters[kind] = adapt
        return adapt

    return add


def remember(kind: str, cls: type[Any], name: str) -> None:
    """Make a class known to this process, and to nobody else, under a name from `python_name`."""
    assert name.startswith(PYTHON)
    _known[kind, name] = cls


def python_name(name: str, *content: str) -> str:
    """`python:NAME:HASH`: equal names mean equal content, so that no two functions of a process share one."""
    return f"{PYTHON}{name}:{hashlib.sha256(repr(content).encode()).hexdigest()[:8]}"


def _refuse_second(kind: str, name: str, cls: type[Any]) -> None:
    """One name, one class; a reload and the user's own files, which are found by path, may replace their own kind."""
    if not cls.__module__.startswith("rlvrlab."):
        _import_built_in(kind, name)
    before = _known.get((kind, name))
    if before is None or (_file_of(before), before.__qualname__) == (_file_of(cls), cls.__qualname__):
        return
    if not (before.__module__.startswith(LOCAL) and cls.__module__.startswith(LOCAL)):
        taken = f"{before.__module__}.{before.__qualname__}"
        raise UserError(f"{kind} {name!r} is already the name of {taken}; register {cls.__qualname__} under another")


def _file_of(cls: type[Any]) -> str:
    """Where a class is defined; a file that the user has imported and one found by path may be the same."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return str(Path(file).resolve()) if file else cls.__module__


def kind_of(plugin: object) -> str | None:
    """The kind of a plug-in object; None for anything else."""
    return getattr(type(plugin), "plugin_kind", None)


def keys_of(cls: type[Any]) -> list[str]:
    """The recipe keys of a plug-in."""
    return [item.name for item in fields(cls) if item.init]


def names(kind: str) -> list[str]:
    """Every registered name of a kind, built-in and third-party; imports no built-in plug-in."""
    _invite_third_parties()
    known = {name for known_kind, name in _known if known_kind == kind and not name.startswith(PYTHON)}
    return sorted(known | (set(_built_in(kind)) - {_ADAPTER}))


def find(kind: str, name: str, folder: Path | None = None) -> type[Any]:
    """The class behind a name; `file.py:Class` is looked up beside the recipe."""
    if ".py:" in name:
        return _from_file(kind, name, folder or Path())
    if (kind, name) not in _known:
        _import_built_in(kind, name)
    if (kind, name) not in _known:
        _invite_third_parties()
    cls = _known.get((kind, name))
    if cls is None and name.startswith(PYTHON) and (adapt := _adapter_of(kind)):
        cls = adapt(name, None)
    if cls is None and name.endswith(".py"):
        raise UserError(f"{kind} {name!r}: say which one of the file, {name}:NAME")
    if cls is None:
        raise UnknownName(kind, name, names(kind))
    return cls


def _built_in(kind: str) -> dict[str, str]:
    """Names of a kind and the modules they are written in."""
    if kind not in _written:
        found, home = {}, find_spec(HOMES[kind])
        for folder in map(Path, (home and home.submodule_search_locations) or ()):
            for file in sorted(folder.rglob("*.py")):
                module = ".".join([HOMES[kind], *file.relative_to(folder).with_suffix("").parts])
                for written, name, adapted in _WRITTEN.findall(file.read_text("utf-8")):
                    if kind in (written, adapted):
                        found[name or _ADAPTER] = module
        _written[kind] = found
    return _written[kind]


def _import_built_in(kind: str, name: str) -> None:
    """Import the one file that a name is written in, if it is a built-in one."""
    home = HOMES[kind]
    if name.isidentifier() and find_spec(home) and find_spec(f"{home}.{name}"):
        # The file usually has the plug-in's name; then no other needs to be read.
        importlib.import_module(f"{home}.{name}")
    if (kind, name) not in _known and (module := _built_in(kind).get(name)):
        importlib.import_module(module)


def _adapter_of(kind: str) -> Adapter | None:
    """The function that makes plug-ins of plain objects, for kinds that have one."""
    _import_built_in(kind, _ADAPTER)
    return _adapters.get(kind)


def _invite_third_parties() -> None:
    """Load the plug-ins of other packages, once."""
    with _inviting:  # a second thread waits for the names instead of seeing half of them
        if THIRD_PARTIES in _invited:
            return
        _invited.add(THIRD_PARTIES)
        for point in entry_points(group=THIRD_PARTIES):
            try:
                point.load()
            except Exception as error:  # someone else's package must not take the laboratory down
                broken = f"{type(error).__name__}: {error}"
                warnings.warn(f"plug-in {point.name!r} ({point.value}) is left out: {broken}", stacklevel=2)


def is_own(name: object) -> bool:
    """Does this name the user's own code: `file.py:NAME`, or something of a running Python?"""
    return isinstance(name, str) and (".py:" in name or name.startswith(PYTHON))


def file_of(name: str, *folders: Path) -> Path:
    """The file of `file.py:NAME`, in the first of these folders that has it."""
    file = name.rpartition(":")[0]
    for folder in folders or (Path(),):
        try:
            return (folder / file).resolve(strict=True)
        except (OSError, ValueError):
            continue
    looked = list(dict.fromkeys(str((folder / file).absolute()) for folder in folders or (Path(),)))
    here = str(Path(file).absolute())
    first = "" if here in looked else f", and on a command line to the working directory first: {here}"
    raise UserError(f"{name!r}: no file {' nor '.join(looked)}; the path is relative to the recipe's folder{first}")


def adopt(module: ModuleType) -> None:
    """A file that the user has imported already is not run a second time when it is looked up by its path."""
    from rlvrlab.own_code import name_file

    assert module.__file__ is not None
    path = Path(module.__file__).resolve()
    name_file(path)
    _files[path, path.stat().st_mtime_ns] = module


def name_own(tables: Any, *folders: Path) -> None:
    """The user's word that every `file.py:NAME` in these names and tables may be imported, where such a file is."""
    if isinstance(tables, Mapping):
        tables = list(tables.values())
    if isinstance(tables, list | tuple):
        for one in tables:
            name_own(one, *folders)
    elif isinstance(tables, str) and ".py:" in tables:
        from rlvrlab.own_code import name_file

        for folder in folders or (Path(),):
            with suppress(UserError):
                name_file(file_of(tables, folder))


def own_object(path: Path, attribute: str) -> Any:
    """What a name in the user's own file stands for, None if it is not there; the file runs once, as their code."""
    return getattr(_module_of(path), attribute, None)


def _module_of(path: Path) -> ModuleType:
    changed = path.stat().st_mtime_ns
    if (path, changed) not in _files:
        from rlvrlab.own_code import refuse_foreign

        refuse_foreign(path)
        _files[path, changed] = _run(path)
    return _files[path, changed]


def _from_file(kind: str, name: str, folder: Path) -> type[Any]:
    """A plug-in in the user's own file; that file is the user's code and is imported as such."""
    attribute = name.rpartition(":")[2]
    try:
        path = file_of(name, folder)
    except UserError as error:
        raise UserError(f"{kind} {error}") from None
    found = own_object(path, attribute)
    if isinstance(found, type) and getattr(found, "plugin_kind", None) == kind:
        return found
    adapt = _adapter_of(kind)
    cls = adapt(attribute, found) if adapt and found is not None else None
    if cls is None:
        raise UserError(f"{kind} {name!r}: {_not_there(kind, path, attribute, found)}")
    return cls


def _not_there(kind: str, path: Path, attribute: str, found: object) -> str:
    """Why a name in the user's own file is no plug-in of this kind, with what the file does have."""
    if isinstance(found, type) or (found is not None and kind not in _adapters):
        return f"{attribute!r} in {path} is no {kind} plug-in; decorate the class with @register({kind!r}, NAME)"
    if found is not None:
        return f"{attribute!r} in {path} is {type(found).__name__}, which is no {kind}; name a function or a class"
    there = own_names(path)
    what, hint = "functions and classes" if kind in _adapters else "classes", suggestion(attribute, there)
    near = hint if "did you mean" in hint else ""
    return f"{path} has no {attribute!r}; its {what}: {', '.join(there) or 'none'}{near}"


def own_names(path: Path) -> list[str]:
    """Names of the functions and classes that are defined in the user's own file."""
    module = _module_of(path)
    return [name for name, one in vars(module).items() if callable(one) and one.__module__ == module.__name__]


class FromSource(importlib.machinery.SourceFileLoader):
    """Reads the file itself: a compiled copy also passes for that of an edit in the same second and of equal length."""

    def get_code(self, fullname: str) -> CodeType:
        """The source as it stands now."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _run(path: Path) -> ModuleType:
    """Import a file under a name of its own; dataclasses and pydantic look annotations up in sys.modules."""
    digest = hashlib.sha256(str(path).encode(errors="replace")).hexdigest()[:8]
    name = f"{LOCAL}{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path, loader=FromSource(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else 1
        raise UserError(f"{path}:{line}: {type(error).__name__}: {error}") from error
    return module
