"""Interference between skills of nano: one skill after the other, under every guard.

    python studies/interference/nano_runs.py start minicode 0 1 2        # SFT on all skills, once per seed
    python studies/interference/nano_runs.py list minicode 0 1 2 | xargs -P 2 -L 1 \\
        python studies/interference/nano_runs.py run                     # every arm from the same start
    python studies/interference/nano_runs.py report                      # results/nano.jsonl, results/nano.md

`minicode` trains gen, fix, out in turn, and nobody trains min; `tasks` trains gen, Countdown's numbers and SQL in turn.
Success is greedy, on held-out problems, before and after every stage. `alone` trains a later skill from the start, for
intransigence. Intervals resample seeds and, within them, problems; differences are paired by both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tables import interval, table

from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.randomness import generator
from rlvrlab.recipe import load_recipe
from rlvrlab.skills.metrics import retention
from rlvrlab.train.lab import Lab, build_lab

HERE = Path(__file__).parent
WORK = HERE.parents[1] / ".cache" / "interference"
START = (
    "sft.steps=500",
    "sft.batch_size=48",
    "sft.learning_rate=3e-3",
    "optimizer.beta2=0.95",
    "optimizer.warmup_steps=20",
)
"""Four skills at once need more SFT than one."""
STAGE = 70
"""GRPO steps per skill."""
MEMORY = ["guard.memory_per_skill=96", "guard.memory_total=384"]


class World(NamedTuple):
    """Skills, and the order in which some of them are trained."""

    skills: tuple[str, ...]
    order: tuple[str, ...]
    words: tuple[str, ...]


SHORT_SQL = f'{{type = "{HERE / "short_sql.py"}:ShortSql", label = "sql", levels = [1]}}'
NUMBERS = '{type = "countdown", label = "numbers", style = "bare", numbers = [3], high = 20, target_high = 99}'
GEN = '{type = "minicode", skills = ["gen"], levels = [1, 2]}'
WORLDS = {
    "minicode": World(("gen", "fix", "out", "min"), ("gen", "fix", "out"), ()),
    "tasks": World(
        ("gen", "numbers", "sql"),
        ("gen", "numbers", "sql"),
        ("env.type=mixture", f"env.members=[{GEN}, {NUMBERS}, {SHORT_SQL}]", "rollout.max_tokens=96"),
    ),
}
HELD_OUT = 150
"""Per skill."""
SHOWN = (
    "average",
    "worst",
    "forgetting",
    "untrained",
    "backward_transfer",
    "forward_transfer",
    "learning",
    "intransigence",
)


def arms(world: World) -> dict[str, list[str]]:
    """Overrides of the recipe."""
    names = ", ".join(f'"{skill}"' for skill in world.skills)
    all_skills = f"guard.protected=[{names}]"
    order = f"protocol.order=[{', '.join(repr(skill) for skill in world.order)}]".replace("'", '"')
    ratios = f"protocol.ratios={{{', '.join(f'{skill} = 1.0' for skill in world.order)}}}"
    sequential = ["protocol.type=sequential", order]
    guarded = [*sequential, all_skills]
    return {
        "sequential": sequential,
        "skill_safe": [*guarded, "guard.type=skill_safe", "guard.refresh=5", *MEMORY],
        "ewc": [*guarded, "guard.type=ewc", "guard.coef=100", *MEMORY],
        "l2": [*guarded, "guard.type=l2", "guard.coef=0.01"],
        "replay": [*guarded, "guard.type=replay", "guard.share=0.25", *MEMORY],
        "mixed": ["protocol.type=mixed", ratios],
        **{f"alone:{skill}": ["protocol.type=single", f"protocol.skill={skill}"] for skill in world.order[1:]},
    }


def recipe(name: str, seed: int, words: list[str]) -> Any:
    """nano.toml in this world, with data and training of this seed."""
    world = WORLDS[name]
    sizes = [f"data.train_size={len(world.skills) * 500}", f"data.dev_size={len(world.skills) * HELD_OUT}"]
    return load_recipe(HERE / "nano.toml", [f"seed={seed}", f"data.seed={seed}", *sizes, *world.words, *words])


def start(name: str, seed: int) -> None:
    """The policy that every arm of a seed begins with."""
    from rlvrlab.engines.hf.store import export

    lab = build_lab(recipe(name, seed, ['phases=["sft"]', *START, f"sft.references={len(WORLDS[name].skills) * 350}"]))
    phase = lab.resolved.phase("sft")
    phase.prepare(lab, WORK)
    for step in range(phase.steps):
        phase.step(lab, step)
    lab.engine.publish()
    export(lab.engine, WORK / f"{name}_{seed}")
    print(name, seed, {skill: round(np.mean([b == "1" for b in right]), 3) for skill, right in rights(lab).items()})


def rights(lab: Lab) -> dict[str, str]:
    """Per skill the outcome of each held-out problem, greedy."""
    protocol = replace(eval_at_1(lab.recipe.rollout.max_tokens), run_timeout_s=None, memory_mb=None)
    found = evaluate(EngineAnswerer(lab.engine), lab.env, lab.dev, protocol)
    ordered = sorted(found.judged, key=lambda one: one.problem.id)
    skills = dict.fromkeys(problem.skill for problem in lab.dev)
    return {
        skill: "".join("01"[one.verdict.correct is True] for one in ordered if one.problem.skill == skill)
        for skill in skills
    }


def run(name: str, arm: str, seed: int, output: Path, stage: int = STAGE) -> None:
    """One arm; written after every stage, so that a run cut short has its results."""
    import torch

    torch.set_num_threads(1)
    world, started = WORLDS[name], time.time()
    count = 1 if arm.startswith("alone") else len(world.order)
    model = f"engine.model={WORK / f'{name}_{seed}'}"
    words = ['phases=["grpo"]', model, f"grpo.steps={count * stage}", *arms(world)[arm]]
    lab = build_lab(recipe(name, seed, words))
    phase = lab.resolved.phase("grpo")
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    row: dict[str, Any] = {"world": name, "arm": arm, "seed": seed, "rights": [rights(lab)], "watched": {}}
    row["machine"] = f"{os.sysconf('SC_NPROCESSORS_ONLN')} × {platform.machine()}"
    watched: dict[str, list[float]] = {}
    path = output / f"{name}_{arm.replace(':', '_')}_{seed}.json"
    for step in range(phase.steps):
        lab.rules.step = step
        metrics = phase.step(lab, step).metrics
        for key in (
            "train/acc",
            "guard/violation",
            "guard/correction",
            *(f"guard/{s}/self_cosine" for s in world.skills),
        ):
            if key in metrics:
                watched.setdefault(key, []).append(metrics[key])
        if (step + 1) % stage == 0:
            row["rights"].append(rights(lab))
            row["watched"] = {key: round(float(np.mean(values)), 5) for key, values in watched.items()}
            row["seconds"] = round(time.time() - started, 1)
            write(path, row)


def write(path: Path, row: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".draft").write_text(json.dumps(row))
    path.with_suffix(".draft").replace(path)


def success(row: dict[str, Any]) -> np.ndarray:
    """Before and after every stage, by skill in the world's order."""
    skills = WORLDS[row["world"]].skills
    return np.array([[at[skill].count("1") / len(at[skill]) for skill in skills] for at in row["rights"]])


def retained(row: dict[str, Any], by: dict[tuple[str, int], dict[str, Any]]) -> dict[str, float]:
    """The metrics of skills/metrics.py; of a mixture only those that need no stages."""
    world, seed, table = WORLDS[row["world"]], row["seed"], success(row)
    order = [world.skills.index(skill) for skill in world.order]
    alone = np.full(len(world.skills), np.nan)
    alone[order[0]] = success(by["sequential", seed])[1, order[0]]
    for skill in world.order[1:]:
        alone[world.skills.index(skill)] = success(by[f"alone:{skill}", seed])[-1, world.skills.index(skill)]
    found = retention(table, order, alone)._asdict()
    if row["arm"] == "mixed":
        found |= dict.fromkeys(("forgetting", "backward_transfer", "forward_transfer"), float("nan"))
        found["learning"] = float(table[-1, order].mean())
        found["intransigence"] = float((alone - table[-1])[order].mean())
    found["untrained"] = float(
        np.mean([table[-1, i] - table[0, i] for i in range(len(alone)) if i not in order] or [np.nan])
    )
    return found


def bits(row: dict[str, Any]) -> np.ndarray:
    """Every held-out problem of every skill at the end; skills weigh alike because they have as many."""
    return np.array([int(bit) for right in row["rights"][-1].values() for bit in right], dtype=np.float64)


def nested(gap_RP: np.ndarray, *key: object) -> str:
    """Mean and 95 % interval in points; seeds are drawn again, and within each its problems."""
    rng, (runs, problems) = generator("nano_runs", *key), gap_RP.shape
    means = []
    for _ in range(4000):
        chosen = gap_RP[rng.integers(0, runs, runs)]
        means.append(np.mean([row[rng.integers(0, problems, problems)].mean() for row in chosen]))
    low, high = 100 * np.percentile(means, [2.5, 97.5])
    return f"{100 * gap_RP.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


def report(rows: list[dict[str, Any]]) -> str:
    """Each arm of each world, and its end minus plain sequential training's."""
    texts = []
    for name, world in WORLDS.items():
        by = {(row["arm"], row["seed"]): row for row in rows if row["world"] == name}
        seeds = sorted({seed for _, seed in by})
        lines = []
        for arm in [arm for arm in arms(world) if not arm.startswith("alone") and (arm, seeds[0]) in by]:
            own = [retained(by[arm, seed], by) for seed in seeds]
            ends = np.mean([success(by[arm, seed])[-1] for seed in seeds], axis=0)
            gap = np.stack([bits(by[arm, seed]) - bits(by["sequential", seed]) for seed in seeds])
            numbers = [_points([one[key] for one in own]) for key in SHOWN]
            took = np.mean([by[arm, seed]["seconds"] for seed in seeds])
            versus = "" if arm == "sequential" else nested(gap, name, arm)
            lines.append([arm, " / ".join(f"{100 * x:.0f}" for x in ends), *numbers, versus, f"{took:.0f}"])
        base = np.mean([success(by["sequential", seed])[0] for seed in seeds], axis=0)
        head = f"### {name}: {' → '.join(world.order)}, {len(seeds)} seeds"
        start_line = f"Start, {' / '.join(world.skills)}: {' / '.join(f'{100 * x:.0f}' for x in base)}."
        heads = ["arm", f"end: {' / '.join(world.skills)}", *SHOWN, "end, mean of skills, minus sequential", "seconds"]
        texts += [head, start_line, table(heads, lines)]
    return "\n\n".join(texts)


def _points(values: list[float]) -> str:
    """In points, with the half-width of a t interval over seeds."""
    if np.isnan(values).all():
        return "–"
    mean, half = interval([100 * value for value in values]).split(" ± ")
    return f"{float(mean):+.1f} ± {float(half):.1f}"


def main() -> None:
    """start, list, run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("start", "list", "run", "report"))
    parser.add_argument("names", nargs="*", help="world and seeds; of run: world, arm and seed")
    parser.add_argument("--output", type=Path, default=WORK / "runs")
    parser.add_argument("--stage", type=int, default=STAGE)
    asked = parser.parse_args()
    if asked.verb == "start":
        for seed in asked.names[1:]:
            start(asked.names[0], int(seed))
    elif asked.verb == "list":
        print(
            "\n".join(
                f"{asked.names[0]} {arm} {seed}" for seed in asked.names[1:] for arm in arms(WORLDS[asked.names[0]])
            )
        )
    elif asked.verb == "run":
        run(asked.names[0], asked.names[1], int(asked.names[2]), asked.output, asked.stage)
    else:
        kept, rows = HERE / "results" / "nano.jsonl", [path.read_text() for path in sorted(asked.output.glob("*.json"))]
        if rows:
            kept.write_text("\n".join(rows) + "\n")
        text = report([json.loads(line) for line in kept.read_text().splitlines()])
        kept.with_suffix(".md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
