"""SmolLM2-135M on Countdown, minicode and SQL in turn, under every guard: as SMOLLM2_DECLARATION.md declares it.

    python studies/interference/smollm2_skills.py all --processes 5 --seconds 1300     # all that has no line yet
    python studies/interference/smollm2_skills.py keep        # lines of the work folder -> results/smollm2_skills.jsonl
    python studies/interference/smollm2_report.py             # the tables

`all` makes the starts, runs the pilot of the rate, chooses it (`rate`), and works through arms and seeds, every run a
process of its own: `start SEED`, `pilot RATE`, `first SEED`, `run ARM SEED`. Lines that are there are not run again; a
seed that was cut in an earlier session, whose weights are gone, is begun anew. `--round 2` runs the declaration's
second comparison, at the rate that the first one's pilot chose. `--work` is where weights, logs and lines go, `--words`
are further words of the recipe, for trials on another model.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from nano_runs import rights
from smollm2_arms import KEPT, PILOT, RATES, ROUNDS, SKILLS, STAGE, WORK, Round, Study, chosen_rate, complete

from rlvrlab.train.lab import Lab
from rlvrlab.train.loop import bare_steps, stage_ended

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of  # noqa: E402
from job_processes import Job, Queue  # noqa: E402

SFT = ("env.ratios=[6, 3, 1]", "optimizer.warmup_steps=10", "optimizer.beta2=0.95")
LIMITS = {"start": 240.0, "pilot": 360.0, "first": 240.0, "run": 420.0}
"""Seconds after which a run is taken for one that hangs."""
WATCHED = ("train/acc", "actor/entropy", "guard/violation", "guard/correction", "guard/distance")


def start(study: Study, seed: int) -> None:
    """SFT on all skills: the policy before the first stage."""
    began = time.time()
    lab = study.lab(seed, 'phases=["sft"]', *SFT)
    deque(bare_steps(lab, lab.resolved.phase("sft"), study.work), maxlen=0)
    lab.engine.publish()
    whole = study.recipe(seed)  # the SFT shows the skills in other proportions than they are examined in
    dev = whole.build("env").problems("dev", whole.recipe.data.dev_size, whole.recipe.data.seed)
    found = rights(replace(lab, dev=tuple(dev)))
    keep(study, lab, "start", seed, [found])
    study.note({"kind": "start", "seed": seed, "rights": [found], **cost(began)})


def keep(study: Study, lab: Lab, name: str, seed: int, found: list[dict[str, str]]) -> None:
    """Weights and what is known of them; the facts come last, so whoever finds them finds the weights too."""
    folder = study.policy(name, seed)
    lab.engine.save(folder)
    (folder / "engine.safetensors").unlink()  # the optimiser's state: nobody goes on with it
    (folder / "facts.json").write_text(json.dumps({"rights": found, "born": f"{time.time():.3f}"}))


def facts_of(study: Study, name: str, seed: int) -> dict[str, Any]:
    """What was known when it was kept."""
    return json.loads((study.policy(name, seed) / "facts.json").read_text())


def trained(study: Study, seed: int, begin: str, order: Sequence[str], rate: float, words: Sequence[str] = ()) -> Any:
    """GRPO from a kept policy on these skills in turn: the laboratory, and a line with all skills after each stage."""
    began, known = time.time(), facts_of(study, begin, seed)
    model = f"engine.model={study.policy(begin, seed) / 'huggingface'}"
    stages = [f"protocol.order={json.dumps(list(order))}", f"grpo.steps={len(order) * study.stage}"]
    lab = study.lab(seed, 'phases=["grpo"]', model, *stages, f"grpo.learning_rate={rate}", *words)
    phase = lab.resolved.phase("grpo")
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    found, seconds, notes, watched = list(known["rights"]), [0.0], list[str](), dict[str, list[float]]()
    since = time.time()
    for step, outcome in enumerate(bare_steps(lab, phase, study.work)):
        seconds[-1] += time.time() - since
        notes += [words for kind, words in outcome.events if kind == "guard"]
        for key in (key for key in outcome.metrics if key in WATCHED or key.endswith("/self_cosine")):
            watched.setdefault(key, []).append(outcome.metrics[key])
        if stage_ended(lab, phase, step + 1):
            found.append(rights(lab))
            seconds.append(0.0)
        since = time.time()
    means = {key: round(float(np.mean(values)), 5) for key, values in watched.items()}
    facts = {"seed": seed, "born": known["born"], "rate": rate, "rights": found, "watched": means, "notes": notes[:20]}
    return lab, {**facts, "stage_seconds": [round(one, 2) for one in seconds[:-1]], **cost(began)}


def cost(began: float) -> Row:
    """Seconds of the whole run, memory and machine."""
    import torch

    facts: Row = {"seconds": round(time.time() - began, 1), "torch": torch.__version__}
    if torch.cuda.is_available():
        reserved = round(torch.cuda.max_memory_reserved() / 1e9, 2)
        return {**facts, "reserved_gb": reserved, "machine": torch.cuda.get_device_name()}
    return {**facts, "machine": platform.machine()}


def pilot(study: Study, rate: float) -> None:
    """Plain training on all three skills at one of the rates."""
    study.note({"kind": "pilot", **trained(study, PILOT, "start", SKILLS, rate)[1]})


def first(study: Study, seed: int) -> None:
    """The first stage, which all arms of a seed share."""
    rate = study.rate()
    assert rate is not None, "the pilot comes before"
    lab, row = trained(study, seed, "start", SKILLS[:1], rate)
    keep(study, lab, "first", seed, row["rights"])
    study.note({"kind": "first", **row})


def run(study: Study, arm: str, seed: int) -> None:
    """Second and third stage under a guard."""
    asked = next(one for one in ROUNDS.values() if seed in one.seeds)
    rate, words = study.rate(), list(asked.arms[arm])
    assert rate is not None, "the pilot comes before"
    if words:
        words.append(f"guard.protected={json.dumps(list(SKILLS[:2]))}")
    study.note({"kind": "run", "arm": arm, **trained(study, seed, "first", SKILLS[1:], rate, words)[1]})


def run_all(study: Study, processes: int, seconds: float, asked: Round = ROUNDS[1]) -> None:
    """Starts, pilot, choice, then seed by seed what is missing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))  # the queue then ends what it has begun
    queue = Queue(study.work / "logs", processes, time.monotonic() + seconds)
    if study.rate() is None:
        queue.run([job(study, "start", seed) for seed in (PILOT, *asked.seeds)[:processes]])
        queue.run([job(study, "pilot", rate) for rate in RATES])
        if time.monotonic() < queue.deadline:
            study.note({"kind": "rate", "rate": chosen_rate(study.rows("pilot"))})
    if study.rate() is not None:
        ended = complete(study.rows("run"), asked)
        missing = [seed for seed in asked.seeds if seed not in ended]
        left = queue.run([one for seed in missing for one in seed_jobs(study, seed, asked)])
        print(f"{len(left)} left; the same command goes on" if left else "all runs are there")


def seed_jobs(study: Study, seed: int, asked: Round) -> list[Job]:
    """Start, first stage and arms of one seed."""
    return [job(study, "start", seed), job(study, "first", seed), *(job(study, "run", arm, seed) for arm in asked.arms)]


def job(study: Study, kind: str, *names: Any) -> Job:
    """One run as a process of its own, with what it waits for and what it leaves."""
    words = [sys.executable, __file__, kind, *map(str, names), "--work", str(study.work), "--stage", str(study.stage)]
    before = {"pilot": ("start", PILOT), "first": ("start", names[-1]), "run": ("first", names[-1])}.get(kind)

    def there(name: str, seed: int) -> bool:
        return (study.policy(name, seed) / "facts.json").exists()

    def done() -> bool:
        if kind in ("start", "first"):
            return there(kind, names[0])
        if kind == "pilot":
            return any(row["rate"] == names[0] for row in study.rows("pilot"))
        born = facts_of(study, *before)["born"] if before and there(*before) else None
        return any((row["arm"], row["seed"], row["born"]) == (*names, born) for row in study.rows("run"))

    return Job("_".join(map(str, (kind, *names))), kind, [*words, "--words", *study.words],
               lambda: before is None or there(*before), done, LIMITS[kind])  # fmt: skip


def keep_lines(study: Study) -> None:
    """Add the lines of this work folder to the kept ones, each once."""
    texts = [json.dumps(row) for path in (KEPT, study.lines) for row in rows_of(path)]
    KEPT.write_text("".join(f"{text}\n" for text in dict.fromkeys(texts)))
    ended = sorted(seed for one in ROUNDS.values() for seed in complete(study.rows("run"), one))
    print(f"{len(dict.fromkeys(texts))} lines, complete seeds: {ended}")


def main() -> None:
    """all, keep, or one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("all", "keep", "rate", *LIMITS))
    parser.add_argument("names", nargs="*", help="seed; of pilot: the rate; of run: arm and seed")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--processes", type=int, default=5, help="runs at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="everything that still runs then is ended")
    parser.add_argument("--stage", type=int, default=STAGE, help="GRPO steps of each skill, for trials")
    parser.add_argument("--round", type=int, choices=ROUNDS, default=1, help="which of the declared comparisons")
    parser.add_argument("--words", nargs="*", default=[], help="further words of the recipe, for trials")
    asked = parser.parse_args()
    study, names = Study(asked.work, asked.stage, asked.words), asked.names
    if asked.verb == "all":
        run_all(study, asked.processes, asked.seconds, ROUNDS[asked.round])
    elif asked.verb == "keep":
        keep_lines(study)
    elif asked.verb == "rate":
        print(chosen_rate(study.rows("pilot")))
    elif asked.verb == "pilot":
        pilot(study, float(names[0]))
    elif asked.verb == "run":
        run(study, names[0], int(names[1]))
    else:
        {"start": start, "first": first}[asked.verb](study, int(names[0]))


if __name__ == "__main__":
    main()
