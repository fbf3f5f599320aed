"""Which worker runs which test files: a file is one piece, and the pieces that take long come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler.loadscope import LoadScopeScheduling

TOGETHER = ("tests/engines/test_hf_", "tests/test_idioms", "tests/test_layers", "tests/test_map", "tests/test_plugin_")
"""Files of one of these beginnings share what takes seconds and is needed once: Transformers, and all syntax trees."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """As `--dist loadfile`; without the slow tests, files that share an expensive preparation are one piece."""
    if config.getvalue("dist") != "loadfile" or "not slow" not in config.option.markexpr:
        return None
    from xdist.scheduler import LoadFileScheduling

    class SharedPreparations(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "together" if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    return SharedPreparations(config, log)
