"""Tests here run answers in the real jail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlvrlab.envs.code import shared_judge
from rlvrlab.judge.isolation import probe


@pytest.fixture(scope="session", autouse=True)
def jail() -> Iterator[None]:
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    yield
    shared_judge.close()
