"""A quick version of benchmarks/seed_statistics.py: intervals hold the truth, tests rarely find what is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "seed_statistics.py"
REPEATS = 1500
CHANCE = 3 * (0.05 * 0.95 / REPEATS) ** 0.5


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    found = importlib.util.spec_from_file_location("seed_statistics", FILE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    ("seeds", "spread", "problems", "apart"),
    [(1, 0.0, 200, 0.1), (2, 0.1, 200, 0.0), (3, 0.06, 200, 0.1), (5, 0.1, 50, 0.0), (10, 0.0, 200, 0.1)],
)
def test_few_false_findings(
    bench: ModuleType, seeds: int, spread: float, problems: int, apart: float, paired: bool
) -> None:
    """(10, 0, 200, 0.1) fails with t over seeds alone, (3, 0.06, …) with a bootstrap over seeds."""
    found = bench.measured(np.random.default_rng(11), REPEATS, seeds, spread, problems, apart, paired and seeds > 1)
    assert found.rejected <= 0.05 + CHANCE and found.covered >= 0.95 - CHANCE, found
    assert found.covered <= 0.97 + CHANCE or seeds < 5, found


def test_the_fast_formula_is_the_library_s(bench: ModuleType) -> None:
    """The grid is computed for many experiments at once; every batch is held against `compare_seeds`."""
    for seeds, paired in ((1, False), (3, False), (4, True)):
        bench.checked(bench.draw(np.random.default_rng(seeds), 3, seeds, 0.05, 40, 0.1, 0.1), paired)


@pytest.mark.slow
def test_no_rule_with_the_floor_can_cover_less(bench: ModuleType) -> None:
    """The bound is below what is offered, at 94.5 % where there is hardly a floor, and the one of the documentation."""
    offered = bench.covered(lambda seen: np.maximum(bench.Z, 12.7062 * np.sqrt(seen)), 1)
    assert 0.98 < bench.least_covered(1, bench.Z) < offered.max()
    assert bench.least_covered(1, 0.31) == pytest.approx(0.945, abs=1e-3)
    page = (FILE.parents[1] / "docs" / "statistics.md").read_text(encoding="utf-8").splitlines()
    assert set(bench.narrower_table()) <= set(page)
