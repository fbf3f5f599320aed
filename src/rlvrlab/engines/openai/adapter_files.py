"""What a LoRA adapter may be that comes over the network: a name, plain settings and well-formed safetensors.

Nothing of it is executed or unpickled. Settings that name code are refused, and so is a file whose header does not
describe every byte of it: loaders differ in what they make of those.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.http_messages import MOST_PARSED, parsed_size

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
"""PEFT's names of the two files."""
NAME = re.compile(r"policy-[0-9]{1,12}-[0-9a-f]{8}\Z")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
LARGEST = 4 << 30
LARGEST_CONFIG = 1 << 20
LARGEST_HEADER = 16 << 20
CODE = ("auto_map", "auto_mapping", "trust_remote_code", "custom_modules")
"""Settings by which a loader may be led to import something."""
BYTES_OF = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Kinds of numbers that adapters are made of."""


@dataclass(frozen=True)
class Announced:
    """An adapter that a trainer is about to send, already checked as far as that can be."""

    name: str
    """E.g. policy-12-0a1b2c3d; safe as the name of a folder."""
    config: dict[str, Any]
    size: int
    """Bytes of its tensors."""
    sha256: str
    """Of its tensors."""

    @classmethod
    def of(cls, form: dict[str, Any]) -> Announced:
        """As told in a request; a UserError says what cannot be taken."""
        name, size, digest = checked_name(form.get("name")), form.get("size"), form.get("sha256")
        if type(size) is not int or not 8 < size <= LARGEST:
            raise UserError(f"size: {str(size)[:40]}; bytes of {TENSORS}, from 9 to {LARGEST}")
        if not isinstance(digest, str) or not DIGEST.match(digest):
            raise UserError(f"sha256: 64 hexadecimal digits of {TENSORS} are needed")
        return cls(name, checked_config(form.get("config")), size, digest)


def checked_name(name: Any) -> str:
    """The name of an adapter; anything else, above all a path, is refused."""
    if not isinstance(name, str) or not NAME.match(name):
        raise UserError(f"name: {str(name)[:80]!r}; policy-VERSION-HASH is needed, e.g. policy-12-0a1b2c3d")
    return name


def checked_config(config: Any) -> dict[str, Any]:
    """PEFT's settings of a LoRA that name no code."""
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"config: the content of {CONFIG} with peft_type LORA is needed")
    try:
        length = len(json.dumps(config, allow_nan=False))
    except ValueError:
        raise UserError("config: a number in it is not finite") from None
    if length > LARGEST_CONFIG:
        raise UserError(f"config: {length} characters, at most {LARGEST_CONFIG}")
    waiting: list[Any] = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            named = [key for key in CODE if part.get(key)]
            if named:
                raise UserError(f"config: {named[0]} names code, which is never run here; remove it")
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return config


def check_tensors(path: Path) -> None:
    """Refuse a file whose header does not describe all of it, gap by gap and byte by byte."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(LARGEST_HEADER, size - 8):
            raise UserError(f"{TENSORS}: a header of {length} bytes in a file of {size}; at most {LARGEST_HEADER}")
        entries = _header(file.read(length))
    ends = 0
    for begin, end in sorted(_span(name, entry) for name, entry in entries.items() if name != "__metadata__"):
        if begin != ends:
            raise UserError(f"{TENSORS}: its tensors overlap or leave a gap at byte {ends}")
        ends = end
    if not ends or ends != size - 8 - length:
        raise UserError(f"{TENSORS}: its header tells of {ends} bytes of numbers, {size - 8 - length} follow")


def _header(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{") or parsed_size(text) > MOST_PARSED:
        raise UserError(f"{TENSORS}: its header is no JSON object, or has too many members")
    try:
        entries = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{TENSORS}: its header cannot be read ({error})") from None
    told = entries.get("__metadata__", {})
    if not isinstance(told, dict) or not all(isinstance(one, str) for one in told.values()):
        raise UserError(f"{TENSORS}: __metadata__ must be texts by name")
    return dict(entries)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known = dict(pairs)
    if len(known) != len(pairs):
        raise ValueError("a name comes twice")
    return known


def _span(name: str, entry: Any) -> tuple[int, int]:
    """Where a tensor begins and ends; its shape must need just that many bytes."""
    odd = UserError(f"{TENSORS}: {name[:80]!r} is not described by dtype, shape and data_offsets that fit each other")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise odd
    each, shape, offsets = BYTES_OF.get(str(entry["dtype"])), entry["shape"], entry["data_offsets"]
    numbers = [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) else [None]
    if each is None or len(offsets) != 2 or not all(type(n) is int and 0 <= n <= LARGEST for n in numbers):
        raise odd
    if len(shape) > 4 or not shape or offsets[1] - offsets[0] != each * math.prod(shape) or not math.prod(shape):
        raise odd
    return offsets[0], offsets[1]
