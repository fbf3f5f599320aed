"""One judge for all tests of this room, and where real data lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from judge_server import Running

from rlvrlab.judge.isolation import probe
from rlvrlab.judge.judge import Judge


def shared_folder(name: str) -> Path:
    """A folder of the material beside the repository, or skip."""
    root = Path(os.environ.get("RLVRLAB_SHARED", Path(__file__).resolve().parents[3] / "shared"))
    if name == "data" and "RLVRLAB_DATA" in os.environ:
        return Path(os.environ["RLVRLAB_DATA"])
    if not (root / name).is_dir():
        pytest.skip(f"needs {name}/ beside the repository or RLVRLAB_SHARED")
    return root / name


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    os.environ["JUDGE_CANARY"] = "secret"
    with Judge(workers=2) as one:
        yield one


@pytest.fixture(scope="session")
def numpy_judge(judge: Judge) -> Iterator[Judge]:
    """A judge all of whose programs may import numpy."""
    with Judge(workers=1, packages=("numpy",)) as one:
        yield one


@pytest.fixture
def data() -> Path:
    return shared_folder("data")


@pytest.fixture
def corpus() -> Path:
    return shared_folder("judge_corpus")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    one = Running()
    yield one
    one.close()
