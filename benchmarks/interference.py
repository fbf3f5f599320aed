"""What surgery and the skill-safe update cost beside the gradients themselves.

    python benchmarks/interference.py [--json] [--parts large small toy hf] [--rows 8] [--parameters 10000000]

large: Gramian, quadratic program and recombination for some skills on flat float32 gradients, by the hf engine's own
functions. small: every surgery and the projection alone, on the small Gramian. Both seconds of wall clock, the best of
five. toy: the toy engine's step with memory gradients against the same step without. hf: nano on minicode, CPU seconds
of an update with surgery over the same update pooled, of a skill-safe one over the plain one, with four skills and the
guard's default memory, on one policy, taking turns; three rounds, a figure each. large and hf need torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from credit import cpu_seconds

from rlvrlab import __version__
from rlvrlab.recipe import load_recipe
from rlvrlab.registry import find, names
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.projection import project
from rlvrlab.train import step
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.train.state import Memory

LIMIT_S = 0.25
RECIPE = Path(__file__).parent.parent / "studies" / "interference" / "toy.toml"
NANO = RECIPE.with_name("nano.toml")


def best(work: Callable[[], object], rounds: int = 5) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def large(count: int, size: int) -> dict[str, float]:
    """With the functions of the hf engine, for the memory gradients and the step that they correct."""
    import torch

    from rlvrlab.engines.hf.vectors import combine, gramian

    torch.set_num_threads(2)
    torch.manual_seed(0)
    common = torch.randn(size)
    rows = [torch.randn(size).add_(common, alpha=2 * float(torch.rand(())) - 1) for _ in range(count)]
    step = torch.randn(size).mul_(0.1).sub_(sum(rows) / count)
    theta = torch.zeros(size)
    G = gramian([*rows, step], [slice(None)])
    along, norm = G[:-1, -1], float(np.sqrt(G[-1, -1]))
    found = project(G[:-1, :-1], along, np.zeros(count), norm)
    parts = {
        "gramian_s": best(lambda: gramian([*rows, step], [slice(None)])),
        "projection_s": best(lambda: project(G[:-1, :-1], along, np.zeros(count), norm)),
        "recombination_s": best(lambda: theta.add_(combine(rows, found.multiplier_S.tolist()))),
    }
    before = time.process_time()
    multiplier_S = project(gramian([*rows, step], [slice(None)])[:-1, :-1], along, np.zeros(count), norm).multiplier_S
    theta.add_(combine(rows, multiplier_S.tolist()))
    parts |= {"together_s": sum(parts.values()), "together_cpu_s": time.process_time() - before}
    return {**parts, "active": float(found.active_S.sum()), "limit_s": LIMIT_S}


def small(count: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    J = rng.standard_normal((count, 50))
    scene = Scene(J @ J.T, np.full(count, 1 / count), np.full(count, 0.5), tuple(map(str, range(count))), (0,))
    methods = {name: find("surgery", name)() for name in names("surgery")}
    return {name: 1000 * best(lambda method=method: method(scene, {})) for name, method in methods.items()}


def toy() -> dict[str, float]:
    """CPU milliseconds of a training step with two skills protected, by refresh interval, against none."""
    found = {}
    for name, words in {
        "plain": [],
        "skill_safe": ["guard.type=skill_safe"],
        "skill_safe, refresh 5": ["guard.type=skill_safe", "guard.refresh=5"],
    }.items():
        lab = build_lab(load_recipe(RECIPE, [*words, "grpo.steps=120"]))
        steps = bare_steps(lab, lab.resolved.phase("grpo"), RECIPE.parent)
        deque(islice(steps, 80), maxlen=0)
        start = time.process_time()
        deque(steps, maxlen=0)
        found[name] = 1000 * (time.process_time() - start) / 40
    return found


PROTECTED = 'guard.protected=["gen", "fix", "out", "min"]'
FIRST = ["protocol.type=sequential", 'protocol.order=["gen", "fix"]', "grpo.steps=4000"]
MIXED = ["protocol.type=mixed", "surgery.group_strategy=task_type", "grpo.steps=4000"]
HF_ARMS = {
    "pooled": [*MIXED, "surgery.type=mean"],
    "pcgrad": [*MIXED, "surgery.type=pcgrad"],
    "upgrad": [*MIXED, "surgery.type=upgrad"],
    "plain": FIRST,
    "skill_safe, refresh 5": [*FIRST, "guard.type=skill_safe", "guard.refresh=5", PROTECTED],
}


def hf(steps: int, model: str, rounds: int = 3) -> dict[str, Any]:
    """Overheads of every round; an update is everything from the credited batch to the moved parameters."""
    words = ["data.train_size=1200", "data.dev_size=40", f"engine.model={model}", "sft.references=600"]
    words += ["sft.steps=300", "sft.learning_rate=0.003"] if model == "nano" else ['phases=["grpo"]']
    first = build_lab(load_recipe(NANO, words))
    if model == "nano":
        deque(bare_steps(first, first.resolved.phase("sft"), NANO.parent), maxlen=0)
        first.engine.publish()
    labs = {name: replace(first, resolved=load_recipe(NANO, [*words, *more])) for name, more in HF_ARMS.items()}
    memories = {name: _steps(labs[name], Memory(), 0, 1)[0] for name in labs}  # they are filled
    update_s, step_s = {name: np.zeros(rounds) for name in labs}, dict.fromkeys(labs, 0.0)
    turns = rounds * steps // 5
    for turn in range(turns):
        forwards = turn % 2 == 0
        for name in list(labs) if forwards else list(labs)[::-1]:
            memories[name], update, whole = _steps(labs[name], memories[name], 5 + 5 * turn, 5)
            update_s[name][turn * rounds // turns] += update / steps
            # Arms answer the same problems, and the judge remembers: only who comes first has judged them all.
            step_s[name] += whole / (5 * ((turns + 1) // 2)) if forwards else 0.0
    found = {}
    for name, base in {"pcgrad": "pooled", "upgrad": "pooled", "skill_safe, refresh 5": "plain"}.items():
        more_s = update_s[name] - update_s[base]
        of_update, of_step = np.round(more_s / update_s[base], 3), round(float(more_s.mean() / step_s[base]), 3)
        found[name] = {"overhead_of_step": of_step, "overhead_of_update": of_update.tolist()}
    return {**found, "update_cpu_s": {k: round(float(v.mean()), 4) for k, v in update_s.items()},
            "step_cpu_s": {name: round(float(step_s[name]), 4) for name in ("pooled", "plain")}}  # fmt: skip


def _steps(lab: Lab, memory: Memory, first: int, count: int) -> tuple[Memory, float, float]:
    """CPU seconds of some steps' updates, and of the whole steps with sampling and the judge's processes."""
    phase, update_s, inner, theta = lab.resolved.phase("grpo"), [0.0], step.update, lab.engine.snapshot()

    def timed(*given: Any) -> Any:
        started = time.process_time()
        found = inner(*given)
        update_s[0] += time.process_time() - started
        return found

    step.update, started = timed, cpu_seconds()
    for outcome in islice(bare_steps(lab, phase, NANO.parent, memory, first), count):
        memory = outcome.memory
    whole_s = cpu_seconds() - started
    step.update = inner
    lab.engine.shift([lab.engine.pull(theta)], [-1.0])  # all arms see the same policy
    lab.engine.publish()
    return memory, update_s[0], whole_s


PARTS = ("large", "small", "toy", "hf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:3])
    parser.add_argument("--steps", type=int, default=10, help="of hf per round, a multiple of 5")
    parser.add_argument("--model", default="nano", help="a model folder to begin with, instead of SFT here")
    args = parser.parse_args()
    work = {
        "large": lambda: large(args.rows, args.parameters),
        "small": lambda: small(args.rows),
        "toy": toy,
        "hf": lambda: hf(args.steps, args.model),
    }
    names = {"small": "small_ms", "toy": "toy_step_cpu_ms"}
    facts: dict[str, Any] = {"rlvrlab": __version__, "python": platform.python_version(), "cores": os.cpu_count()}
    facts |= {names.get(part, part): work[part]() for part in args.parts}
    if args.json:
        print(json.dumps(facts))
        return
    for title, numbers in ((key, value) for key, value in facts.items() if isinstance(value, dict)):
        print(title)
        for key, value in numbers.items():
            print(f"  {key:24} {value:10.4f}" if isinstance(value, float) else f"  {key:24} {value}")


if __name__ == "__main__":
    main()
