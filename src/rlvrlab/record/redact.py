"""Keep secrets out of what is written: by the name of the key, by what known tokens look like, and by what the
environment holds under such a name."""

from __future__ import annotations

import os
import re
from typing import Any

HIDDEN = "[redacted]"
_NAMES = r"token|secret|password|passwd|api_?key|access_?key|private_?key|credentials?|auth|authorization"
_KEY = re.compile(rf"(^|[_\-.])({_NAMES})$", re.IGNORECASE)
_VOCABULARY = re.compile(r"(eos|bos|pad|unk|sep|cls|mask|end|stop|start)_?token$", re.IGNORECASE)
_VALUES = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END|$)"
    r"|(?<=\bBearer )[A-Za-z0-9._~+/\-]{8,}"
)
_MARKS = ("hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKIA", "xox", "PRIVATE KEY-----", "Bearer ")
"""Without one of these a text holds nothing that _VALUES finds; to look for them first is thirty times as fast."""
_USERINFO = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_ASSIGNED = re.compile(rf"((?<![^\W_])(?:{_NAMES})=)[^\s&]+", re.IGNORECASE)
_WORD = re.compile(r"('?(?:--)?([\w.\-]+)=).+", re.DOTALL)
SHORTEST = 8
"""An environment variable's value below this length is as likely a word as a secret."""


def redact(value: Any) -> Any:
    """The same data without secrets."""
    held = [text for name, text in os.environ.items() if _secret(name) and len(text) >= SHORTEST]
    return _redact(value, sorted(held, key=len, reverse=True))


def _secret(key: str) -> bool:
    return bool(_KEY.search(key)) and not _VOCABULARY.search(key)


def _redact(value: Any, held: list[str]) -> Any:
    if isinstance(value, dict):
        return {k: _hide(v) if _secret(str(k)) else _redact(v, held) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_word(value[i - 1] if i else None, item, held) for i, item in enumerate(value)]
    if isinstance(value, str):
        for text in held:
            value = value.replace(text, HIDDEN)
        if any(mark in value for mark in _MARKS):
            value = _VALUES.sub(HIDDEN, value)
        if "://" in value:
            value = _USERINFO.sub(HIDDEN, value)
        return _ASSIGNED.sub(rf"\1{HIDDEN}", value) if "=" in value else value
    return value


def _hide(value: Any) -> Any:
    """Hide every text under a secret's name; numbers and booleans are settings (`per_token = 0.1`), never secrets."""
    if isinstance(value, dict):
        return {k: _hide(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_hide(item) for item in value]
    return HIDDEN if isinstance(value, str) and value else value


def _word(before: Any, item: Any, held: list[str]) -> Any:
    """A word of a command line: `engine.api_key=…`, or what follows `--engine.api_key`."""
    if isinstance(before, str) and before.startswith("--") and _secret(before):
        return _hide(item)
    named = _WORD.fullmatch(item) if isinstance(item, str) else None
    return named[1] + HIDDEN if named and _secret(named[2]) else _redact(item, held)
