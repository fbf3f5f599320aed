"""One uninterrupted run for all files that hold another against it."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SFT and GRPO to their end. Read only."""
    return runs.run(tmp_path_factory.mktemp("whole"), text=runs.ONLINE).folder
