"""Where real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def nlgraph_folder() -> Path:
    root = Path(os.environ.get("RLVRLAB_SHARED", Path(__file__).resolve().parents[4] / "shared"))
    folder = Path(os.environ.get("RLVRLAB_DATA", root / "data")) / "nlgraph"
    if not folder.is_dir():
        pytest.skip("needs NLGraph's files: set RLVRLAB_SHARED, or put shared/ beside the repository")
    return folder
