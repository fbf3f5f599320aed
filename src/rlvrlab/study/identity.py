"""What makes two trials the same: the recipe as resolved, the data, the code, the seed."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import rlvrlab
from rlvrlab.plain_files import sha256_of
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.registry import find

WITHOUT = ("name", "question", "output_dir", "record", "seed")
"""Recipe keys that change no result, and the seed, which is a part of its own."""
OUTSIDE = ("cli", "report", "scale", "study")
"""Rooms of the package that no trial's result depends on."""
ID_LENGTH = 12


def digest(value: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def identity_of(resolved: Resolved, seed: int, code: Literal["source", "version"]) -> dict[str, Any]:
    """The four parts, each short enough to read; a trial's name is the beginning of their digest."""
    plain = {key: value for key, value in resolved.plain().items() if key not in WITHOUT}
    # A procedural environment is its own manifest: name, version and (in the recipe's part) its keys.
    kind = resolved.recipe.env["type"]
    environment = [kind, str(find("env", kind, resolved.folder).version)]
    tables = [getattr(resolved.recipe, name) for name in PLUGIN_TABLES]
    own = [table["type"].rpartition(":")[0] for table in tables if table and ".py:" in table["type"]]
    own_files = sorted((path.name, file_hash(path)) for name in own if (path := resolved.folder / name).is_file())
    # Every file that a key of the environment or of the data table names, by content.
    named = {"env": resolved.recipe.env, "data": resolved.recipe.data.model_dump()}
    texts = [(key, value) for key, value in flatten(named) if isinstance(value, str) and 0 < len(value) < 4096]
    paths = [(key, resolved.folder / value if key.startswith("data.") else Path(value)) for key, value in texts]
    data_files = sorted((key, file_hash(path)) for key, path in paths if path.is_file())
    # The weights training starts from, where they lie in a folder; a built-in or hub name stands for itself.
    model = resolved.recipe.engine.get("model")
    folder = Path(str(model))
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")]) if model and folder.is_dir() else []
    model_files = [(path.name, file_hash(path)) for path in weights]
    return {
        "recipe": digest(plain)[:16],
        "data": digest([environment, data_files, model_files])[:16],
        "code": digest([rlvrlab.__version__, source_hash() if code == "source" else "", own_files])[:16],
        "seed": seed,
    }


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content; it is read again only when its size or time changed."""
    stat = path.stat()
    return _file_hash(path, stat.st_size, stat.st_mtime_ns)


@cache
def _file_hash(path: Path, size: int, changed_ns: int) -> str:
    return sha256_of(path)


@cache
def source_hash() -> str:
    """SHA-256 of the package's source files that a result can depend on."""
    home = Path(rlvrlab.__file__).parent
    sha = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).as_posix()
        if name.partition("/")[0] not in OUTSIDE:
            sha.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return sha.hexdigest()
