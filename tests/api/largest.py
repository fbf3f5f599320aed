"""A task for these tests: name the larger of two numbers. The toy engine learns it in a second."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rlvrlab
from rlvrlab import registry

RECIPE: dict[str, Any] = {
    "name": "largest",
    "phases": ["sft", "grpo"],
    "engine": {"type": "toy", "max_number": 20, "buckets": 16},
    "rollout": {"n": 8, "max_tokens": 3},
    "sft": {"steps": 8, "batch_size": 16, "references": 16, "learning_rate": 0.1},
    "grpo": {"steps": 6, "batch_size": 8, "learning_rate": 0.1},
    "eval.every": 3,
    "checkpoint.every": 2,
}
ROWS = [
    {"prompt": f"{a} {b} max\n", "answer": str(max(a, b)), "skill": "far" if abs(a - b) > 4 else "near"}
    for a in range(1, 15)
    for b in range(1, 15)
    if a != b
]
COUNTDOWN = {
    "name": "tiny",
    "env": {"type": "countdown", "numbers": [2], "high": 12, "style": "bare"},
    "engine": {"type": "toy", "max_number": 150, "buckets": 4},
    "data": {"train_size": 30, "dev_size": 6},
    "rollout": {"n": 4, "max_tokens": 8},
    "grpo": {"steps": 6, "batch_size": 4},
    "checkpoint.every": 2,
}


def larger(name: str = "largest", rows: Any = ROWS) -> Any:
    """The environment, made anew."""
    return rlvrlab.environment(
        rows, verify=lambda problem, text: text.strip() == problem.reference, gold=lambda p: p.reference, name=name
    )


def stops_once(flag: Path, number: int = signal.SIGINT, version: int = 3) -> Callable[..., Any]:
    """A reward that presses Ctrl-C in the fourth step, or sends another signal, the first time only."""

    def bonus(problem: Any, completion: Any, verdict: Any) -> Any:
        if completion.policy_version >= version and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), number)
        return {"correct": float(verdict.correct), "short": 0.1 * (len(completion.tokens) < 3)}

    return bonus


def forget() -> None:
    """As if this were another process: nothing that only a running Python has is known."""
    for kind, name in [key for key in registry._known if key[1].startswith(registry.PYTHON)]:
        del registry._known[kind, name]


def steps(run: Any) -> list[dict[str, Any]]:
    """The metrics without what a clock says."""
    return [{k: v for k, v in row.items() if "time" not in k and "per_s" not in k} for row in run.metrics()]
