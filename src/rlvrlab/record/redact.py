"""Keep secrets out of what is written: by the name of the key, and by what known tokens look like."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "[redacted]"
_KEY = re.compile(r"(^|[_\-.])(token|secret|password|passwd|api_?key|access_?key|credentials?|auth)$", re.IGNORECASE)
_VALUES = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END|$)"
)
_USERINFO = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")


def redact(value: Any) -> Any:
    """The same data without secrets."""
    if isinstance(value, dict):
        return {k: HIDDEN if isinstance(v, str) and v and _KEY.search(str(k)) else redact(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    if isinstance(value, str):
        return _USERINFO.sub(HIDDEN, _VALUES.sub(HIDDEN, value))
    return value
