"""Where models on hand live, and how they come there whole or not at all.

$XDG_CACHE_HOME/rlvrlab/ (by default ~/.cache/rlvrlab/)
    models/NAME/     complete Hugging Face folders
    downloads/       archives on their way; removed once converted
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError
from rlvrlab.plain_files import refuse_taken

STALE_DRAFT_S = 24 * 3600


def root() -> Path:
    """The cache; a relative XDG_CACHE_HOME counts as unset, as the standard says."""
    wanted = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (wanted if wanted.is_absolute() else Path.home() / ".cache") / "rlvrlab"


def models() -> Path:
    """Where complete models are, one folder each."""
    return root() / "models"


def downloads() -> Path:
    """Where archives are kept until they are converted."""
    return root() / "downloads"


def make(target: Path, build: Callable[[Path], None]) -> Path:
    """Let `build` fill a folder beside the target and rename it when it is done; a target that is there is kept."""
    draft = target.with_name(f".draft_{target.name}_{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for left_behind in target.parent.glob(".draft_*"):  # by a process that was killed
            if time.time() - left_behind.lstat().st_mtime > STALE_DRAFT_S:
                shutil.rmtree(left_behind, ignore_errors=True)
        draft.mkdir()
        build(draft)
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    except OSError as error:
        where = error.filename or target
        raise InfrastructureError(f"{where}: {error.strerror or error}; free space or choose another folder") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def make_new(target: Path, build: Callable[[Path], None]) -> Path:
    """The same where the user named the folder: what is there is not touched."""
    refuse_taken(target, empty_is_free=True)
    if target.is_dir():
        target.rmdir()
    return make(target.absolute(), build)


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """The files beside a model's weights: texts as they are, everything else as JSON."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        (folder / name).write_text(text, encoding="utf-8")


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
