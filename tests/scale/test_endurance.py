"""The benchmark of busy servers asks real ones: what they say of themselves may change under it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["judge", "model"])
def test_every_request_is_answered_rightly(kind: str) -> None:
    if kind == "model":
        pytest.importorskip("torch")
    words = [sys.executable, "benchmarks/endurance.py", kind, "--requests", "12", "--seconds", "120", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    found = json.loads(done.stdout)
    assert found["answered"] == {"right": 12} and all(one > 20 for one in found["memory_mb"]), done.stderr
