"""Run folders as a training would leave them, made in a moment."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

RECIPE: dict[str, Any] = {
    "name": "made", "question": "does it learn?", "seed": 3, "phases": ["sft", "grpo"], "rollout": {"n": 4},
    "env": {"type": "countdown"}, "engine": {"type": "toy"}, "reward": {"type": "binary"},
    "phase_tables": {"sft": {"steps": 2}, "grpo": {"steps": 8}},
}  # fmt: skip


def metrics_row(step: int, accuracy: float | None = None, **more: Any) -> dict[str, Any]:
    phase = "sft" if step <= 2 else "grpo"
    row = {"step": step, "phase": phase, "phase_step": step if step <= 2 else step - 2, "time/step_s": 0.1}
    if phase == "grpo":
        row |= {"response_length/mean": 5.0, "groups/collected": 2.0, "actor/entropy": 0.5, "train/acc": step / 10,
                "groups/zero_variance": 0.5}  # fmt: skip
    if accuracy is not None:
        key = "val-core/countdown/acc"
        row |= {key: accuracy, f"{key}_low": max(0.0, accuracy - 0.1), f"{key}_high": min(1.0, accuracy + 0.1)}
    return row | more


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def made_run(
    root: Path, name: str, steps: int = 10, status: str = "finished", ago_s: float = 60.0, **config: Any
) -> Path:
    folder = root / name
    (folder / "logs").mkdir(parents=True)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago_s))
    (folder / "config.json").write_text(json.dumps({"schema": 1, "recipe": {**RECIPE, **config}, "changed": {}}))
    (folder / "run_info.json").write_text(json.dumps({"status": status, "started": started}))
    rows = [metrics_row(step, step / (2 * steps) if step % 5 == 0 else None) for step in range(steps + 1)]
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    (folder / "logs/events.jsonl").write_text(lines([{"time": started, "kind": "start", "text": f"run {name} starts"}]))
    return folder


def made_evaluation(folder: Path, accuracy: float = 0.25) -> Path:
    folder.mkdir(parents=True)
    examined = {"data": "countdown", "protocol": {"name": "EVAL@k"}}
    (folder / "run_info.json").write_text(json.dumps({"schema": 1, "status": "finished", "examined": examined}))
    (folder / "problems.jsonl").write_text("")
    found = {"samples": 8, "problems": 4, "accepted_at_1": accuracy, "accepted_at_1_low": 0.1,
             "accepted_at_1_high": 0.5, "avg_gen_tokens": 6.0, "unjudged": 0.0}  # fmt: skip
    found |= {f"pass@{k}{side}": accuracy + k / 100 + d for k in (1, 2, 4) for side, d in
              (("", 0.0), ("_low", -0.1), ("_high", 0.1))}  # fmt: skip
    (folder / "metrics.json").write_text(json.dumps({"countdown": {**found, **{f"pass^{k}": 0.1 for k in (1, 2, 4)}}}))
    return folder
