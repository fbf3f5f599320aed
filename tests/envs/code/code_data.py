"""Where real data lies, or the reason to skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_file(name: str) -> str:
    """A file of the data beside the repository."""
    shared = Path(os.environ.get("RLVRLAB_SHARED", Path(__file__).resolve().parents[4] / "shared"))
    path = Path(os.environ.get("RLVRLAB_DATA", shared / "data")) / name
    if not path.is_file():
        pytest.skip(f"needs {name} under RLVRLAB_DATA, or shared/ beside the repository")
    return str(path)
