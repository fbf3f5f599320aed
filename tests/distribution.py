"""Which worker runs which test files: a file is one piece, and the pieces that take longest come first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler.loadscope import LoadScopeScheduling

LONGEST = (
    "recipe/test_shipped_runs", "engines/test_hf_", "study/test_study_processes", "judge/test_", "scale/test_fan_out",
    "models/test_", "test_readme_commands", "cli/test_own_task", "recipe/test_", "envs/", "test_wheel", "mutants/",
    "scale/", "train/test_exact_resume", "engines/", "fuzz/", "test_idioms",
)  # fmt: skip
"""How the paths of long files begin, the longest first; one of them begun last would keep one worker waiting."""
TOGETHER = {
    "Transformers": ("tests/engines/test_hf_", "tests/scale/test_verl_keys"),
    "all syntax trees": ("tests/test_idioms", "tests/test_layers", "tests/test_map", "tests/test_plugin_"),
    "scipy": (
        "tests/evals/test_statistics", "tests/evals/test_comparisons", "tests/skills/test_skill_metrics",
        "tests/surgery/", "tests/train/test_memory_guards",
    ),
    "records of every kind": (
        "tests/report/test_gather", "tests/report/test_page", "tests/report/test_terminal_verbs",
        "tests/report/test_views",
    ),
}  # fmt: skip
"""What takes a second or more and is needed once -> how the paths of the files begin that share it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a worker, long files first; tests of one file stay in their order."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: _rank(item.nodeid.removeprefix("tests/")))


def _rank(path: str) -> int:
    return next((place for place, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """As `--dist loadfile`, in our order; without the slow tests, files that share a preparation are one piece."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # by the number of tests, which says little about their time
    together = TOGETHER if "not slow" in config.option.markexpr else {}

    class SharedPreparations(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = (what for what, files in together.items() if nodeid.startswith(files))
            return next(shared, None) or super()._split_scope(nodeid)

    return SharedPreparations(config, log)
