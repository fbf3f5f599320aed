"""The benchmark of refilling: both sides draw the same answers, and more of them than there are places."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
from tiny_models import tiny

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import sampling
import sampling_refill

pytestmark = pytest.mark.slow


def measured(monkeypatch: pytest.MonkeyPatch, file: Path, *words: str) -> dict[str, Any]:
    sizes = ["--places", "4", "--n", "2", "--tokens", "12", "--rounds", "2", "--threads", "1", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["sampling.py", "--refill", *sizes, *words])
    sampling.main()
    return dict(json.loads(file.read_text()))


@pytest.mark.parametrize("model", ["random", "folder"])
def test_both_ways_draw_the_same_answers(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, list[Any]]] = []

    class Kept(sampling_refill.HfSampler):
        def sample(self, requests: Any, *more: Any) -> Any:
            drawn = super().sample(requests, *more)
            calls.append((len(requests), sorted((len(group[0].tokens), group[0].tokens) for group in drawn)))
            return drawn

    monkeypatch.setattr(sampling_refill, "HfSampler", Kept)
    words = ["--model", tiny("qwen2")] if model == "folder" else ["--sizes", "nano"]
    found = measured(monkeypatch, tmp_path / "found.json", *words, "--batches", "10", "14")
    assert [(row["answers"], row["places"], row["waves"]) for row in found["rows"]] == [(10, 4, 3), (14, 4, 4)]
    assert all(min(row["tokens_per_s"].values()) > 0 and 0 < row["tokens_per_answer"] <= 12 for row in found["rows"])
    whole = [drawn for size, drawn in calls if size == 5]
    pieces = [drawn for size, drawn in calls if size in (1, 2)][:3]
    assert len(whole) == 1 + 2 and sorted(one for piece in pieces for one in piece) == whole[0] == whole[1]


def test_there_must_be_more_answers_than_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="larger than --places"):
        measured(monkeypatch, tmp_path / "found.json", "--sizes", "nano", "--batches", "4")
