"""What the comparisons of step credit on minicode share: starts, the count of what an arm spends, examinations."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import evaluate, evaluate_skills
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.recipe import Resolved
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.types import Problem, Verdict

WORK = Path(__file__).parents[2] / ".cache" / "paper_a"
LOOK_EVERY = 4
"""Steps of SFT between two looks at what is solved."""
MACHINE = f"{os.sysconf('SC_NPROCESSORS_ONLN')} × {platform.machine()}"


def pretrained(resolved: Resolved, folder: Path, enough: float = math.inf) -> tuple[int, float]:
    """Train the SFT phase and save the policy that every arm of a seed begins with: its steps, and its accuracy.

    It ends early once `enough` of the held-out problems are solved, looked at every LOOK_EVERY steps.
    """
    lab = build_lab(resolved)

    def accuracy() -> float:
        lab.engine.publish()
        return evaluate_skills(lab.engine, lab.env, lab.dev, lab.recipe.rollout.max_tokens).value

    step, solved = 0, None
    for step, _ in enumerate(bare_steps(lab, lab.resolved.phase("sft"), WORK), start=1):
        solved = accuracy() if enough < math.inf and step % LOOK_EVERY == 0 else None
        if solved is not None and solved >= enough:
            break
    solved = accuracy() if solved is None else solved
    lab.engine.save(folder)
    (folder / "engine.safetensors").unlink(missing_ok=True)  # the optimiser's state: nobody goes on with it
    return step, solved


def from_start(folder: Path, steps: int, phases: Sequence[str] = ("grpo",)) -> list[str]:
    """The words of a recipe that go on with the last of the phases from a saved start, at a constant rate."""
    model, constant = f"engine.model={folder / 'huggingface'}", ["optimizer.warmup_steps=0", "optimizer.decay=constant"]
    return [f"phases={json.dumps(list(phases))}", model, *constant, f"{phases[-1]}.steps={steps}"]


@dataclass
class Spent:
    """What an arm has asked for, and since when it trains."""

    tokens: int = 0
    calls: int = 0
    counting: bool = True
    began: float = field(default_factory=time.time)


@contextmanager
def spending(lab: Lab) -> Iterator[Spent]:
    """Counts from outside what is sampled and verified in this laboratory, until the block is left."""
    spent, sample, verify_many = Spent(), lab.engine.sample, type(lab.env).verify_many

    def sampled(requests: Any) -> Any:
        found = sample(requests)
        spent.tokens += spent.counting * sum(len(answer.tokens) for group in found for answer in group)
        return found

    def verified(env: Any, items: list[tuple[Problem, str]]) -> list[Verdict]:
        spent.calls += spent.counting * len(items)
        return verify_many(env, items)

    lab.engine.sample = sampled
    type(lab.env).verify_many = verified
    try:
        yield spent
    finally:
        type(lab.env).verify_many = verify_many


def memory() -> dict[str, Any]:
    """GPU and the most memory that this process has reserved on it; nothing without one."""
    import torch

    if not torch.cuda.is_available():
        return {}
    return {"gpu": torch.cuda.get_device_name(), "reserved_gb": round(torch.cuda.max_memory_reserved() / 1e9, 2)}


def examined(lab: Lab, spent: Spent, step: int) -> dict[str, Any]:
    """Greedy answers to the held-out problems; not counted."""
    spent.counting = False
    protocol = replace(eval_at_1(lab.recipe.rollout.max_tokens), run_timeout_s=None, memory_mb=None)
    found = evaluate(EngineAnswerer(lab.engine), lab.env, lab.dev, protocol)
    spent.counting = True
    right = "".join("01"[one.verdict.correct is True] for one in sorted(found.judged, key=lambda one: one.problem.id))
    seconds = round(time.time() - spent.began, 1)
    facts = {"step": step, "tokens": spent.tokens, "calls": spent.calls, "seconds": seconds}
    return {**facts, "accuracy": right.count("1") / len(right), "right": right}
