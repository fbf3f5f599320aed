"""Two tools trained together: the cosine between their gradients is in the metrics, and the run's record tells it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import files
from rlvrlab.scale.session import start

WORDS = [
    'phases=["grpo"]', 'env.tools=["python", "sql"]', "surgery.type=pcgrad", "surgery.group_strategy=tool",
    "surgery.noise_every=1", "reward.type=random", "data.train_size=24", "data.dev_size=4", "rollout.n=4",
    "rollout.max_tokens=12", "eval.every=0", "eval.test_size=0", "grpo.steps=2", "grpo.batch_size=12",
]  # fmt: skip
"""An untrained model calls no tool and answers nothing right, so the reward is one that teaches something anyway."""


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "analysis" / "tables" / f"{name}.csv").read_text().splitlines()))


@pytest.mark.slow
@pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
def test_cosines_between_tools_are_measured_recorded_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="nano needs torch")
    resolved = load_recipe(files()["nano_agent"], [*WORDS, f"output_dir={tmp_path}"])
    ended = start(resolved, lambda *_: None, ["rlvr"])
    assert ended.status == "finished"
    rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    found = [row["surgery/cosine/python/sql"] for row in rows if "surgery/cosine/python/sql" in row]
    assert len(found) == 2 and all(0 < abs(cosine) < 1 for cosine in found), "both tools had a gradient in each step"
    assert all("surgery/conflict_rate" in row and "surgery/noise_floor" in row for row in rows[1:])
    assert not any("difficulty" in key for row in rows for key in row if key.startswith("surgery/"))
    [pair] = table(ended.folder, "conflict_matrix")
    assert {pair["group"], pair["other"]} == {"python", "sql"}
    assert float(pair["mean_cosine"]) == pytest.approx(found[-1], abs=1e-3), "of the later half of the steps"
    assert [float(row["cosine"]) for row in table(ended.folder, "conflict_cosines")] == pytest.approx(found, abs=1e-3)
    assert (ended.folder / "analysis" / "figures" / "conflict_matrix.svg").is_file()
    told = (ended.folder / "EXPERIMENT.md").read_text() + (ended.folder / "analysis" / "findings.md").read_text()
    assert "python" in told and "sql" in told
