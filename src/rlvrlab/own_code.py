"""Which Python files may be imported as plug-ins: those that the user has named, as they were then.

A recipe on the command line is the user's word that the files it names may run. Their paths and hashes are remembered
in $XDG_STATE_HOME/rlvrlab/own_code (by default ~/.local/state/…). A run folder is somebody's record and no such word:
what it names is imported only if it was remembered, or with --accept-code. `registry` asks here before it imports.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from rlvrlab import plain_files
from rlvrlab.errors import ForeignCode

HANDED_ON = "RLVR_OWN_CODE"
"""Variable by which processes that this one starts know what was named here, also where nothing can be remembered."""
MOST_HANDED_ON = 64
_named: dict[str, None] = {}
"""What this process was told, as lines of HANDED_ON."""
_accepting: ContextVar[bool] = ContextVar("accepting", default=False)
_from_folder: ContextVar[bool] = ContextVar("from_folder", default=False)


def name_file(path: Path) -> None:
    """The user's word that this file, as it is now, may run; nothing where the word is a folder's."""
    if _from_folder.get() and not _accepting.get():
        return
    with suppress(OSError):  # a file that is not there is complained about where it is looked up
        for line in _lines(path):
            if line not in _named:
                _named[line] = None
                os.environ[HANDED_ON] = "\n".join(list(_named)[-MOST_HANDED_ON:])
                _remember(path, line.partition(" ")[0])


def refuse_foreign(path: Path) -> None:
    """Say so where nobody but a folder has named this file as it is now."""
    if _accepting.get():
        name_file(path)
    lines = _lines(path)
    if not lines.isdisjoint({*_named, *os.environ.get(HANDED_ON, "").split("\n")}):
        return
    place = _place(path)
    try:
        if place is not None and any((place / line.partition(" ")[0]).is_file() for line in lines):
            return
        known = place is not None and place.is_dir()
    except OSError:
        known = False
    what = "is not what it was when you ran it" if known else "is code that a folder names and you have never run"
    allowed = f"only files that a recipe of yours has named, with the same content, are imported{_forgetful()}"
    remedy = "read it, then add --accept-code (in Python: Run(FOLDER, accept_code=True))"
    raise ForeignCode(f"{path}: {what}; {allowed}; {remedy}")


@contextmanager
def accepting() -> Iterator[None]:
    """--accept-code: whatever is imported within is the user's word."""
    token = _accepting.set(True)
    try:
        yield
    finally:
        _accepting.reset(token)


@contextmanager
def named_by_folder() -> Iterator[None]:
    """Recipes and names that are read within stand in somebody's folder and are no word of the user's."""
    token = _from_folder.set(True)
    try:
        yield
    finally:
        _from_folder.reset(token)


def _lines(path: Path) -> set[str]:
    """What stands for a file: the hash of its bytes, and that of its program, which comments are no part of."""
    data = plain_files.read_bytes(path)
    contents = [data]
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        contents.append(b"program " + ast.dump(ast.parse(data)).encode(errors="backslashreplace"))
    return {f"{hashlib.sha256(content).hexdigest()} {path.resolve()}" for content in contents}


def _home() -> Path | None:
    """Where files are remembered; a relative XDG_STATE_HOME counts as unset, as the standard says."""
    wanted = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        return (wanted if wanted.is_absolute() else Path.home() / ".local" / "state") / "rlvrlab" / "own_code"
    except RuntimeError:  # a user without a home
        return None


def _place(path: Path) -> Path | None:
    """The folder of a file, which has an empty file for each content that was named."""
    home = _home()
    name = os.fsencode(path.resolve())
    return None if home is None else home / hashlib.sha256(name).hexdigest()[:32]


def _remember(path: Path, digest: str) -> None:
    """Best effort: whether it can be written is said when the file is refused."""
    with suppress(OSError):
        if (place := _place(path)) is not None:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            (place / digest).touch()


def _forgetful() -> str:
    """Why nothing is remembered here; empty where it is."""
    home = _home()
    if home is None:
        return " (nothing is remembered: no home folder; set XDG_STATE_HOME)"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        why = "" if os.access(home, os.W_OK) else "it cannot be written"
    except OSError as error:
        why = error.strerror or str(error)
    return f" (nothing is remembered in {home}: {why})" if why else ""
