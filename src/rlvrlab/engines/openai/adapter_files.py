"""What a LoRA adapter may be that comes over the network: a name, plain settings and well-formed safetensors.

Nothing of it is executed or unpickled. Settings that name code are refused, and so is a file whose header does not
describe every byte of it: loaders differ in what they make of those.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError, cut, quoted
from rlvrlab.models.tensors import ADAPTER_CONFIG, ADAPTER_TENSORS, read_header

NAME = re.compile(r"policy-[0-9]{1,12}-[0-9a-f]{8}\Z")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
LARGEST = 4 << 30
LARGEST_CONFIG = 1 << 20
DEEPEST_CONFIG = 16
"""Lists and objects inside one another."""
LARGEST_HEADER = 16 << 20
CODE = ("auto_map", "auto_mapping", "trust_remote_code", "custom_modules")
"""Settings by which a loader may be led to import something."""
FLOATS = ("F64", "F32", "F16", "BF16")
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

    def config_text(self) -> str:
        """What is written to its file."""
        return _text(self.config)

    @classmethod
    def of(cls, form: dict[str, Any]) -> Announced:
        """As told in a request; a UserError says what cannot be taken."""
        name, size, digest = checked_name(form.get("name")), form.get("size"), form.get("sha256")
        if type(size) is not int or not 8 < size <= LARGEST:
            raise UserError(f"size: {cut(str(size), 40)}; bytes of {ADAPTER_TENSORS}, from 9 to {LARGEST}")
        if not isinstance(digest, str) or not DIGEST.match(digest):
            raise UserError(f"sha256: 64 hexadecimal digits of {ADAPTER_TENSORS} are needed")
        return cls(name, checked_config(form.get("config")), size, digest)


def checked_name(name: Any) -> str:
    """The name of an adapter; anything else, above all a path, is refused."""
    if not isinstance(name, str) or not NAME.match(name):
        raise UserError(f"name: {quoted(name, 80)}; policy-VERSION-HASH is needed, e.g. policy-12-0a1b2c3d")
    return name


def checked_config(config: Any) -> dict[str, Any]:
    """PEFT's settings of a LoRA that name no code."""
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"config: the content of {ADAPTER_CONFIG} with peft_type LORA is needed")
    _refuse_code_and_depth(config)
    try:
        length = len(_text(config))
    except ValueError:
        raise UserError("config: a number in it is not finite") from None
    if length > LARGEST_CONFIG:
        raise UserError(f"config: {length} characters, at most {LARGEST_CONFIG}")
    return config


def _refuse_code_and_depth(config: dict[str, Any]) -> None:
    """Level by level, and no further than what is allowed."""
    level: list[Any] = [config]
    for _ in range(DEEPEST_CONFIG):
        below: list[Any] = []
        for part in level:
            named = [key for key in CODE if part.get(key)] if isinstance(part, dict) else ()
            if named:
                raise UserError(f"config: {named[0]} names code, which is never run here; remove it")
            below += part.values() if isinstance(part, dict) else part
        if len(below) > LARGEST_CONFIG:
            raise UserError(f"config: {len(below)} values, in at most {LARGEST_CONFIG} characters")
        level = [part for part in below if isinstance(part, dict | list)]
        if not level:
            return
    raise UserError(f"config: lists and objects inside one another more than {DEEPEST_CONFIG} deep")


def _text(config: dict[str, Any]) -> str:
    """As short as JSON can be: lines and blanks for a reader would make much of little."""
    return json.dumps(config, allow_nan=False, separators=(",", ":"))


def check_tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> (dtype, shape) by its header; a file that is not well-formed safetensors of plain numbers is refused."""
    tensors = read_header(path, LARGEST_HEADER)
    odd = [name for name, (dtype, shape) in tensors.items() if dtype not in FLOATS or 0 in shape]
    if odd or not tensors:
        what = f"{quoted(odd[0], 80)} in it has other numbers, or none" if odd else "no tensors are in it"
        raise UserError(f"{ADAPTER_TENSORS}: {what}; tensors of {', '.join(FLOATS)} are needed")
    return tensors
