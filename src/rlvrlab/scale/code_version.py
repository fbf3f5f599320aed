"""Which code this process runs, so that machines of one cluster can be compared."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from rlvrlab import __version__

ROOT = Path(__file__).parents[1]
ONE_CODE = "here it is {}: install the same code on all machines (after the + is a hash of the sources)"
"""The remedy where they differ."""


@cache
def code_version() -> str:
    """The version and a hash of all source files: an edited copy has the same version, and other rewards."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:12]}"
