"""Files that a request to /run_code brings along: checked before anything runs, so that a broken one is the request's.

{"files": {"data/in.txt": "YWJj"}, "fetch_files": ["out.txt"]}
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.judge.jail.limits import MEGABYTE, Limits
from rlvrlab.judge.jail.scratch import INODES
from rlvrlab.judge.task_forms import shown

LONGEST_NAME, LONGEST_PATH = 255, 1000
SPARE = 64
"""Files that a program can still make where a request brings along as many as it may."""


def given_files(files: dict[str, Any], limits: Limits) -> dict[str, str]:
    """The files of a request, still in base64; UserError names the one that is wrong. None is a file left out.

    All of them together fit into the folder: a request is smaller than that.
    """
    kept = {name: content for name, content in files.items() if content is not None}
    folders: set[str] = set()
    for name, content in kept.items():
        _check_name(f"files[{shown(name)}]", name)
        folders |= {name[:at] for at, sign in enumerate(name) if sign == "/"}
        if (length := _length(name, content)) > limits.output_mb * MEGABYTE:
            raise UserError(f"files[{shown(name)}]: {length:,} bytes; at most {limits.output_mb} MB")
    if both := sorted(folders & kept.keys()):
        raise UserError(f"files[{shown(both[0])}]: a file and a folder of the same name")
    if len(kept) + len(folders) > INODES - SPARE:
        raise UserError(f"files: {len(kept):,} in {len(folders):,} folders; at most {INODES - SPARE:,} together")
    return kept


def fetched_names(names: list[Any]) -> list[str]:
    """The names of files that the answer shall hold, each a path inside the program's folder."""
    for at, name in enumerate(names):
        if not isinstance(name, str):
            raise UserError(f"fetch_files[{at}]: {shown(name)}; a string is needed")
        _check_name(f"fetch_files[{at}]: {shown(name)}", name)
    return names


def _check_name(place: str, name: str) -> None:
    parts = name.split("/")
    odd = any(part in ("", ".", "..") or "\0" in part for part in parts)
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raw, odd = b"", True
    if odd or len(raw) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in raw.split(b"/")):
        raise UserError(f"{place}: a path inside the program's folder is needed, as in data/in.txt")


def _length(name: str, content: Any) -> int:
    """Bytes of a file's content, which must be base64 from its first sign to its last."""
    if not isinstance(content, str):
        raise UserError(f"files[{shown(name)}]: {shown(content)}; a string is needed")
    try:
        return len(b64decode(content, validate=True))
    except (binascii.Error, ValueError) as error:
        raise UserError(f"files[{shown(name)}]: no base64 ({error})") from None
