"""Guards of nano on two skills that contradict each other: as OPPOSITES_DECLARATION.md declares it.

    python studies/interference/nano_opposites.py tune --processes 8    four settings of each guard on tuning seeds
    python studies/interference/nano_opposites.py test --processes 8    the best of each, on the fresh seeds
    python studies/interference/nano_opposites.py report                tables -> results/nano_opposites.md

Lines already there are not run again. Ascending order is trained once per seed; every arm goes on from there with
descending order.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nano_runs import rights
from opposites import SKILLS
from second_guards import Candidates, crossed, p_value, settings, whole
from smollm2_report import mean_interval, t_test, told
from tables import SHOWN, table

from rlvrlab.evals.statistics import holm
from rlvrlab.recipe import load_recipe
from rlvrlab.skills.metrics import Retention, retention
from rlvrlab.skills.pareto import area, compare_areas, hypervolume
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of, run_missing  # noqa: E402

RESULTS = HERE / "results"
LINES = RESULTS / "nano_opposites.jsonl"
WORK = HERE.parents[1] / ".cache" / "nano_opposites"
TUNING, FRESH = (101, 102), tuple(range(10))
STAGE = 60
"""GRPO steps of each skill."""
MEMORY = "guard.memory_per_skill=96"
COEFFICIENTS = (0.1, 0.3, 1.0, 3.0)
EPSILONS = (-0.2, -0.1, 0.0, 0.1)
SAFE = ("guard.refresh=5", MEMORY)
MECHANISMS: dict[str, Candidates] = {
    "l2": settings("l2", "coef", (0.01, 0.03, 0.1, 0.3)),
    "ewc": settings("ewc", "coef", (10.0, 100.0, 1000.0, 10000.0), MEMORY),
    "average": {
        **settings("average", "weight", (0.2, 0.5, 0.8)),
        **settings("average", "weight", (0.02,), "guard.every=1"),
    },
    "replay": settings("replay", "share", (0.125, 0.25, 0.5, 0.75), MEMORY),
    "penalty": settings("penalty", "coef", COEFFICIENTS, MEMORY),
    "exact KL": settings("penalty", "coef", COEFFICIENTS, "guard.loss=kl_full", MEMORY),
    "gem": crossed("gem", "margin", (0.0, 0.3), "loss", ("likelihood", "kl"), MEMORY),
    "safe": settings("skill_safe", "epsilon", EPSILONS, *SAFE),
    "safe, exact KL": settings("skill_safe", "epsilon", (-0.1, 0.0, 0.01, 0.1), "guard.gradient=kl_full", *SAFE),
    "proximal": crossed(
        "proximal", "kappa", (0.003, 0.03), "gradient", ("likelihood", "kl_full"), "guard.epsilon=-0.1", *SAFE
    ),
}  # fmt: skip
"""Four settings of each."""
OWN, FREE = ("exact KL", "safe", "safe, exact KL", "proximal"), ("l2", "penalty", "average")
REFERENCE = (0.0, 0.0)
MACHINE = f"{os.sysconf('SC_NPROCESSORS_ONLN')} × {platform.machine()}"
Job = tuple[str, str, int]
"""Mechanism, setting and seed; plain training has neither."""


def recipe(seed: int, *words: str) -> Any:
    """With data and training of this seed."""
    return load_recipe(HERE / "nano_opposites.toml", [f"seed={seed}", f"data.seed={seed}", *words])


def train(lab: Lab, phase: str) -> tuple[float, dict[str, float]]:
    """All steps of a phase: their CPU seconds, and the means of what the guard says."""
    began, seen = time.process_time(), dict[str, list[float]]()
    for outcome in bare_steps(lab, lab.resolved.phase(phase), WORK):
        for key in (key for key in outcome.metrics if key.startswith("guard/") or key == "train/acc"):
            seen.setdefault(key, []).append(outcome.metrics[key])
    lab.engine.publish()
    return time.process_time() - began, {key: round(float(np.mean(values)), 5) for key, values in seen.items()}


def start(seed: int) -> Row:
    """SFT on both skills, then the first of them; what every arm of the seed begins with."""
    one_thread()
    lab = build_lab(recipe(seed, 'protocol.order=["up"]', f"grpo.steps={STAGE}"))
    train(lab, "sft")
    found = [rights(lab)]
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    train(lab, "grpo")
    lab.engine.save(WORK / f"start_{seed}")
    return {"name": "start", "seed": seed, "rights": [*found, rights(lab)], "machine": MACHINE}


def one_thread() -> None:
    """Many runs share the machine."""
    import torch

    torch.set_num_threads(1)


def run(job: Job) -> Row:
    """The second skill under a guard of the first comparison."""
    mechanism, name, seed = job
    return second_stage(label(mechanism, name), MECHANISMS[mechanism][name] if mechanism != "plain" else [], seed)


def second_stage(name: str, words: Sequence[str], seed: int) -> Row:
    """The second skill under the guard that these words of a recipe ask for, from the start of a seed."""
    one_thread()
    guard = [*words, 'guard.protected=["up"]'] if words else []
    model = f"engine.model={WORK / f'start_{seed}' / 'huggingface'}"
    stage = ['phases=["grpo"]', model, 'protocol.order=["down"]', f"grpo.steps={STAGE}"]
    lab = build_lab(recipe(seed, *stage, *guard))
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    cpu_s, watched = train(lab, "grpo")
    facts = {"cpu_s": round(cpu_s, 2), "watched": watched, "machine": MACHINE}
    return {"name": name, "seed": seed, "rights": rights(lab), **facts}


def label(mechanism: str, name: str) -> str:
    """What an arm is called in the lines."""
    return f"{mechanism}: {name}" if name else mechanism


def jobs(chosen: dict[str, list[str]], seeds: Sequence[int]) -> dict[str, Job]:
    """Plain training and the chosen settings of every mechanism, seed by seed."""
    arms = [("plain", ""), *((mechanism, name) for mechanism, names in chosen.items() for name in names)]
    return {f"{label(*arm)} {seed}": (*arm, seed) for seed in seeds for arm in arms}


def kept(rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, dict[int, Retention]]:
    """Arm -> seed -> its learning and forgetting, from before, after the first and after the second skill."""
    begun = {row["seed"]: row["rights"] for row in rows if row["name"] == "start"}
    found: dict[str, dict[int, Retention]] = {}
    for row in rows:
        if row["name"] != "start" and row["seed"] in seeds:
            stages = [*begun[row["seed"]], row["rights"]]
            success_TS = [[stage[skill].count("1") / len(stage[skill]) for skill in SKILLS] for stage in stages]
            found.setdefault(row["name"], {})[row["seed"]] = retention(np.array(success_TS), [0, 1])
    return found


def choose(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Of every mechanism the setting with the largest area on the tuning seeds; the first of equal ones."""
    found = kept(rows, TUNING)

    def size(arm: str) -> float:
        points = [(found[arm][seed].learning, 1 - found[arm][seed].forgetting) for seed in TUNING]
        return hypervolume(np.mean(points, axis=0), REFERENCE)

    return {m: [max(names, key=lambda name, m=m: size(label(m, name)))] for m, names in MECHANISMS.items()}


def points(found: dict[str, dict[int, Retention]], arm: str) -> np.ndarray:
    """Seeds × (plain, arm) × (learning, 1 − forgetting)."""
    both = [[found[name][seed] for name in ("plain", arm)] for seed in sorted(found["plain"])]
    return np.array([[(one.learning, 1 - one.forgetting) for one in pair] for pair in both])


def arms_table(found: dict[str, dict[int, Retention]], cost: dict[str, float]) -> str:
    """What each arm learnt and forgot, against plain training of the same seeds."""
    seeds = sorted(found["plain"])
    lines, plain = [], [found["plain"][seed] for seed in seeds]
    whole = {key: float(np.mean([getattr(one, key) for one in plain])) for key in ("forgetting", "learning")}
    tests = []
    for arm, by_seed in found.items():
        own = [by_seed[seed] for seed in seeds]
        gaps = {
            key: [getattr(a, key) - getattr(b, key) for a, b in zip(own, plain, strict=True)]
            for key in ("forgetting", "learning")
        }
        tests.append(t_test(gaps["forgetting"]))
        lines.append(
            [
                arm,
                *(told(mean_interval([getattr(one, key) for one in own])) for key in SHOWN),
                told(mean_interval(gaps["forgetting"]), "+"),
                f"{-100 * np.mean(gaps['forgetting']) / whole['forgetting']:.0f} %",
                f"{-100 * np.mean(gaps['learning']) / whole['learning']:.1f} %",
                told(area(points(found, arm), REFERENCE), "", 1.0, 3),
                f"{100 * (cost[arm] / cost['plain'] - 1):+.0f} %",
            ]
        )
    adjusted = ["", *(f"{p:.3f}" for p in holm(tests[1:]))]
    heads = ["arm", *SHOWN, "forgetting − plain's", "cut by", "learning lost", "area", "CPU", "p (Holm)"]
    return table(heads, [[*line, p] for line, p in zip(lines, adjusted, strict=True)])


def report(rows: Sequence[Row]) -> str:
    """The arms, and the declared differences of areas."""
    found = kept(rows, FRESH)
    found = {arm: found[arm] for arm in sorted(found, key=lambda arm: arm != "plain")}
    cost = {arm: float(np.mean([row["cpu_s"] for row in rows if row["name"] == arm])) for arm in found}
    name = {mechanism: next(arm for arm in found if arm.startswith(f"{mechanism}: ")) for mechanism in MECHANISMS}
    pairs = [(one, other) for one in OWN for other in FREE]
    gaps = [compare_areas(points(found, name[a]), points(found, name[b]), REFERENCE) for a, b in pairs]
    adjusted = holm([p_value(gap, len(FRESH)) for gap in gaps])
    lines = [
        [f"{a} − {b}", told(gap, "+", 1.0, 3), f"{p:.3f}"] for (a, b), gap, p in zip(pairs, gaps, adjusted, strict=True)
    ]
    shown = table(["areas", "difference [95 %]", "p (Holm)"], lines)
    return f"### {len(FRESH)} fresh seeds, in %\n\n{arms_table(found, cost)}\n### Declared comparisons\n\n{shown}"


def run_all(named: dict[str, Job], processes: int, seconds: float, lines: Path = LINES, work: Any = run) -> None:
    """What is missing: the starts of the seeds, then the arms."""
    began = time.monotonic()
    starts = {f"start {seed}": seed for *_, seed in named.values()}
    left = run_missing(lines, starts, start, lambda row: f"{row['name']} {row['seed']}", processes, seconds)
    if not left:
        seconds -= time.monotonic() - began
        left = run_missing(lines, named, work, lambda row: f"{row['name']} {row['seed']}", processes, seconds)
    print(f"{left} left; the same command goes on" if left else f"all {len(named)} runs are there")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tune", "test", "report"])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    asked = parser.parse_args()
    if asked.what == "tune":
        run_all(jobs({m: list(names) for m, names in MECHANISMS.items()}, TUNING), asked.processes, asked.seconds)
    elif asked.what == "test":
        chosen = choose(rows_of(LINES))
        print("chosen on the tuning seeds:", json.dumps(chosen, indent=1))
        run_all(jobs(chosen, FRESH), asked.processes, asked.seconds)
    else:
        text = report(whole(rows_of(LINES), FRESH))
        (RESULTS / "nano_opposites.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
