"""The benchmark of an update's ways: all of them are tried, and on a CPU none of them changes a gradient."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import needs_torch  # noqa: F401
import pytest
from tiny_models import tiny

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import update_ways


def test_every_way_is_tried_beside_the_plain_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    sizes = ["--lora", "4", "--groups", "2", "--answers", "2", "--prompt", "30", "--tokens", "12", "--times", "1"]
    monkeypatch.setattr(
        sys, "argv", ["update_ways.py", "--model", tiny("qwen2"), *sizes, "--device", "cpu", "--json", str(file)]
    )
    update_ways.main()
    told = json.loads(file.read_text())["ways"]
    assert list(told) == ["plain", "plain, again", "flash", "adapters", "head", "layers", "blocks", "all"]
    assert told["adapters"]["taken"]["adapters"] > 0 and told["plain"]["taken"]["adapters"] == 0
    assert all(one["apart"] < 1e-4 and one["cosine"] > 0.9999 and len(one["seconds"]) == 1 for one in told.values())
    assert told["plain, again"]["apart"] == 0.0
