"""The toy study: sequential training of three skills under every guard, and mixtures under every surgery.

    python studies/interference/run.py guards      every guard at several strengths -> results/guards.jsonl
    python studies/interference/run.py surgery     imbalanced and conflicting mixtures -> results/surgery.jsonl
    python studies/interference/run.py matrix      first-order and measured interference -> results/matrix.jsonl
    python studies/interference/run.py report      tables from these -> results/tables.md, tables.json

Lines already there are not run again; `--processes 8` runs as many at a time. Each run draws its own world of skills
(env.world = seed).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tables import REFERENCE, ROUND_4, best_curves, report

from rlvrlab.batch import batch_of
from rlvrlab.evals.evaluate import evaluate_skills
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.rollout.collect import collect
from rlvrlab.skills.metrics import diversity
from rlvrlab.train.interference import interference
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps, stage_ended

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, run_missing  # noqa: E402

RESULTS = HERE / "results"
TUNING, TEST, FRESH = (100, 101), (0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11)
ANCHORED = "sequential, kl 0.1 throughout"
"""A second round on fresh seeds, with the KL that made plain training learn most on the tuning seeds."""
HALF = "guard.memory_per_skill=40"
"""Half of a skill's 80 training problems."""
GUARDS: dict[str, list[str]] = {
    "plain": [],
    **{f"safe ε={e}": ["guard.type=skill_safe", f"guard.epsilon={e}", HALF] for e in (0.0, 0.1, 0.4)},
    **{f"replay {s}": ["guard.type=replay", f"guard.share={s}", HALF] for s in (0.125, 0.25, 0.5)},
    **{f"ewc {c}": ["guard.type=ewc", f"guard.coef={c}", HALF] for c in (3.0, 10.0, 30.0, 100.0, 300.0)},
    **{f"l2 {c}": ["guard.type=l2", f"guard.coef={c}"] for c in (0.03, 0.1, 0.3)},
    **{f"kl {c}": [f"kl.coef={c}"] for c in (0.1, 0.3, 1.0)},
}
AGAIN = [
    *("plain", "safe ε=0.0", "safe ε=0.4", "replay 0.25", "replay 0.5", "ewc 30.0", "ewc 100.0"),
    *("l2 0.1", "l2 0.3", "kl 0.3", "kl 1.0"),
]
ROUND_3 = "sequential, kl 0.1 throughout, four strengths each"
"""Twenty-four fresh seeds; strengths, as many for each guard, spread by a look at eight tuning seeds."""
MANY, TUNING_3 = tuple(range(12, 36)), tuple(range(100, 108))
STRENGTHS: dict[str, list[str]] = {
    "plain": [],
    **{f"safe ε={e}": ["guard.type=skill_safe", f"guard.epsilon={e}", HALF] for e in (-0.2, -0.1, 0.0, 0.4)},
    **{
        f"safe_kl ε={e}": ["guard.type=skill_safe", "guard.gradient=kl", f"guard.epsilon={e}", HALF]
        for e in (-0.2, -0.1, 0.0, 0.4)
    },
    **{f"replay {s}": ["guard.type=replay", f"guard.share={s}", HALF] for s in (0.125, 0.25, 0.5, 0.75)},
    **{f"ewc {c}": ["guard.type=ewc", f"guard.coef={c}", HALF] for c in (10.0, 30.0, 100.0, 300.0)},
    **{f"l2 {c}": ["guard.type=l2", f"guard.coef={c}"] for c in (0.03, 0.1, 0.3, 1.0)},
    **{f"kl {c}": [f"kl.coef={c}"] for c in (0.2, 0.3, 0.5, 1.0)},
}
AFRESH = tuple(range(36, 84))
"""The fourth round's seeds."""
CANDIDATES: dict[str, list[str]] = {
    **{f"replay {s}": ["guard.type=replay", f"guard.share={s}", HALF] for s in (0.0625, 0.375, 0.625, 0.875)},
    **{f"ewc {c}": ["guard.type=ewc", f"guard.coef={c}", HALF] for c in (3.0, 20.0, 60.0, 1000.0)},
    **{f"l2 {c}": ["guard.type=l2", f"guard.coef={c}"] for c in (0.01, 0.06, 0.2, 0.6)},
    **{f"kl {c}": [f"kl.coef={c}"] for c in (0.15, 0.4, 0.7, 1.5)},
}
METHODS = [
    *("mean", "equal", "norm_balance", "pcgrad", "gradvac", "mgda"),
    *("cagrad", "imtl_g", "upgrad", "aligned_mtl", "nash", "worst_skill"),
]
IMBALANCED = ["mean", "equal", "pcgrad", "upgrad", "cagrad", "worst_skill"]
MIXTURES = {
    "imbalanced": ["protocol.ratios={s0 = 32, s1 = 6, s2 = 2}"],
    "conflicting": ["protocol.ratios={s0 = 32, s1 = 6, s2 = 2}", "env.shown=false", "env.agreement=0.3"],
}
WATCHED = {"conflict": "surgery/conflict_rate", "violation": "guard/violation", "correction": "guard/correction"}
MIXED = ["protocol.type=mixed", "grpo.steps=90", "grpo.batch_size=20", "env.accepted=2"]


def overrides(seed: int, words: list[str]) -> list[str]:
    """A world, a data draw and a training seed of its own."""
    return [f"seed={seed}", f"env.world={seed}", f"data.seed={seed}", *words]


def stages(resolved: Resolved) -> Iterator[tuple[Lab, int, dict[str, float]]]:
    """Train without a run folder; yields the laboratory before training and after every stage."""
    lab, answers, sums = build_lab(resolved), 0, {key: [] for key in WATCHED}
    for name in resolved.recipe.phases:
        phase = resolved.phase(name)
        lab.engine.fresh_optimizer()
        lab.engine.freeze_reference()
        if phase.online:
            yield lab, answers, {}
        for step, outcome in enumerate(bare_steps(lab, phase, HERE)):
            answers += len(outcome.rollouts)
            for key, metric in WATCHED.items():
                sums[key] += [outcome.metrics[metric]] if metric in outcome.metrics else []
            if stage_ended(lab, phase, step + 1):
                yield lab, answers, {key: float(np.mean(found)) for key, found in sums.items() if found}


def one(resolved: Resolved) -> dict[str, Any]:
    """One run: success on every skill before training and after each stage, KL to the base, spread, cost."""
    started = time.process_time()
    table, kl, facts, base = [], [], {}, None
    for lab, answers, means in stages(resolved):
        if base is None:
            base = base_answers(lab)
        else:
            logp, _ = lab.engine.logprobs(base[0])
            kl.append(float((base[1] - logp).sum(axis=1).mean()))
        found = evaluate_skills(lab.engine, lab.env, lab.dev, lab.recipe.rollout.max_tokens)
        table.append([accuracy.value for accuracy in found.skills.values()])
        facts = {"answers": answers, **means}
    return {"table": table, "kl_base": kl, **facts, **spread(lab), "cpu_s": round(time.process_time() - started, 2)}


def base_answers(lab: Lab) -> tuple[Any, Any]:
    """Answers of the policy before training to held-out problems: with them KL(base ‖ now) is a mean difference."""
    found = collect(lab.engine, lab.env, lab.reward, lab.dev, n=1, sampling=lab.sampling, key=("kl to base",))
    batch = batch_of([r.prompt_tokens for r in found], [r.completion.tokens for r in found])
    return batch, lab.engine.logprobs(batch)[0]


def spread(lab: Lab) -> dict[str, Any]:
    """How many ways are left: eight samples per held-out problem."""
    some = lab.dev[:90]
    found = collect(lab.engine, lab.env, lab.reward, some, n=8, sampling=lab.sampling, key=("spread",))
    groups = [found[i : i + 8] for i in range(0, len(found), 8)]
    right = [[r.verdict.correct is True for r in group] for group in groups]
    return {"diversity": diversity(right, [[r.completion.text for r in group] for group in groups])}


Job = tuple[str, str, int, list[str]]


def measured(job: Job) -> Row:
    """One run, as a line of the results."""
    variant, name, seed, words = job
    return {
        "variant": variant,
        "name": name,
        "seed": seed,
        **one(load_recipe(HERE / "toy.toml", overrides(seed, words))),
    }


def name_of(row: Row) -> str:
    """What tells a run from all others."""
    return f"{row['variant']} | {row['name']} | {row['seed']}"


def run_all(path: Path, jobs: list[Job], processes: int, seconds: float = math.inf) -> None:
    """Run what is missing; a line is written as soon as its run is over."""
    named = {name_of({"variant": job[0], "name": job[1], "seed": job[2]}): job for job in jobs}
    if left := run_missing(path, named, measured, name_of, processes, seconds):
        print(f"{left} of {len(named)} runs left; the same command goes on")


def fourth_round(path: Path) -> list[Job]:
    """Four strengths of every guard, chosen by the tuning seeds alone; the safe update's may differ in gradient."""
    strengths = STRENGTHS | CANDIDATES
    rows = [row for row in map(json.loads, path.read_text().splitlines()) if row["variant"] == ROUND_3]
    names = best_curves([row for row in rows if row["seed"] in TUNING_3], list(strengths), REFERENCE)
    print("chosen on the tuning seeds:", ", ".join(names))
    shown = {name: name.replace("safe_kl", "safe kl") for name in ("plain", *names)}
    return [(ROUND_4, shown[n], s, ["kl.coef=0.1", *strengths[n]]) for s in AFRESH for n in shown]


def matrices(path: Path) -> None:
    """Before training and after the first stage."""
    rows = []
    for seed in TEST:
        resolved = load_recipe(HERE / "toy.toml", overrides(seed, []))
        phase = resolved.phase("grpo")
        for at, (lab, _, _) in enumerate(stages(resolved)):
            found = interference(lab, phase, 0.3)
            arrays = {k: getattr(found, k).tolist() for k in ("cosine_SS", "predicted_SS", "measured_SS")}
            facts = {"seed": seed, "after_stage": at, "skills": list(found.skills)}
            rows.append({**facts, **arrays, **found.agreement._asdict()})
            if at == 1:
                break
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["guards", "surgery", "matrix", "report"])
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    what, processes = asked.what, asked.processes
    if what == "guards":
        first = [("sequential", n, s, w) for s in (*TEST, *TUNING) for n, w in GUARDS.items()]
        second = [(ANCHORED, n, s, ["kl.coef=0.1", *GUARDS[n]]) for s in FRESH for n in AGAIN]
        third = [(ROUND_3, n, s, ["kl.coef=0.1", *w]) for s in (*MANY, *TUNING_3) for n, w in STRENGTHS.items()]
        more = [(ROUND_3, n, s, ["kl.coef=0.1", *w]) for s in TUNING_3 for n, w in CANDIDATES.items()]
        run_all(RESULTS / "guards.jsonl", first + second + third + more, processes)
        run_all(RESULTS / "guards.jsonl", fourth_round(RESULTS / "guards.jsonl"), processes)
    elif what == "surgery":
        jobs = [
            (variant, method, seed, [*MIXED, *words, f"surgery.type={method}", "surgery.noise_every=0"])
            for seed in TEST
            for variant, words in MIXTURES.items()
            for method in (METHODS if variant == "conflicting" else IMBALANCED)
        ]
        run_all(RESULTS / "surgery.jsonl", jobs, processes)
    elif what == "matrix":
        matrices(RESULTS / "matrix.jsonl")
    else:
        report(RESULTS)


if __name__ == "__main__":
    main()
