"""Step credit against GRPO at equal verifier calls, as equal_calls.md declares it.

    python studies/paper_a_credit_assignment/equal_calls.py tuning --processes 12    # SFT once per seed, then the runs
    python studies/paper_a_credit_assignment/equal_calls.py choose          # writes equal_calls_chosen.json: commit it
    python studies/paper_a_credit_assignment/equal_calls.py final --processes 12
    python studies/paper_a_credit_assignment/equal_calls.py report          # and equal_calls_results.json

`--design equal_calls_small` does the smaller comparison that equal_calls_small.md declares, `--design
equal_calls_smollm2` the one with SmolLM2-135M on a GPU, at equal calls and at equal tokens (equal_calls_smollm2.md).
There every start and run is a process of its own: `start SEED`, `run ARM SEED`. Lines that are there are not run again.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import signal
import sys
import time
from pathlib import Path

import numpy as np
from equal_calls_design import DESIGNS, Design
from equal_calls_report import report
from spending import MACHINE, WORK, examined, from_start, memory, pretrained, spending

from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import job_processes  # noqa: E402
from job_lines import Row, rows_of, run_missing  # noqa: E402

Job = tuple[Design, str, int, int, int]
"""Arm, candidate, seed and the most steps."""
MOST_STEPS = 1000
LIMITS = {"start": 300.0, "run": 450.0}
"""Seconds after which a process of its own is taken for one that hangs."""


def start(job: tuple[Design, int]) -> Row:
    """Make the policy that every arm of a seed begins with."""
    (design, seed), began = job, time.time()
    sft = design.recipe("grpo", 0, seed, ('phases=["sft"]',))
    step, accuracy = pretrained(sft, design.start_folder(seed), design.enough)
    return {"seed": seed, "accuracy": accuracy, "steps": step, "seconds": round(time.time() - began, 1)} | memory()


def start_accuracy(design: Design, seed: int) -> float:
    """What it solves of the held-out problems."""
    return next(row["accuracy"] for row in rows_of(design.starts) if row["seed"] == seed)


def run(job: Job) -> Row:
    """One run, up to the step in which its budgets are spent; one that fails is begun again, once."""
    try:
        return attempt(job)
    except Exception as error:
        first = repr(error)
    try:
        return attempt(job) | {"failed": first}
    except Exception as error:
        return failed_twice(job, f"{first}; {error!r}")


def attempt(job: Job) -> Row:
    """One run from its start."""
    design, arm, candidate, seed, most_steps = job
    words = tuple(from_start(design.start_folder(seed), most_steps))
    lab = build_lab(design.recipe(arm, candidate, seed, words))
    traced = tokens = 0.0
    lab.engine.freeze_reference()
    known = start_accuracy(design, seed)
    row: Row = {"arm": arm, "candidate": candidate, "seed": seed, "machine": MACHINE, "start": known}
    with spending(lab) as spent:
        for step, outcome in enumerate(bare_steps(lab, lab.resolved.phase("grpo"), WORK), start=1):
            written = float(sum(len(rollout.completion.tokens) for rollout in outcome.rollouts))
            tokens += outcome.metrics.get("tree/drawn_tokens", written)
            traced += outcome.metrics.get("credit/traced", 0.0)
            due = {
                at: step == design.cap or used >= design.budgets[at]
                for at, used in (("end", spent.calls), ("tokens_end", tokens))
                if at in design.budgets and at not in row
            }
            if any(due.values()) or step == most_steps:
                found = examined(lab, spent, step) | {"tokens": tokens, "traced": traced}
                row |= {at: found | {"whole": over} for at, over in due.items() if over or step == most_steps}
            if row.keys() >= design.budgets.keys():
                break
    return row | memory()


def failed_twice(job: Job, words: str) -> Row:
    """As declared: it is reported, and counts with the accuracy of its start."""
    design, arm, candidate, seed, _ = job
    known = start_accuracy(design, seed)
    end = {"step": 0, "tokens": 0.0, "calls": 0, "accuracy": known, "whole": True}
    facts = {"arm": arm, "candidate": candidate, "seed": seed, "machine": MACHINE}
    return facts | {"start": known, **dict.fromkeys(design.budgets, end), "failed": words}


def whole(rows: list[Row]) -> list[Row]:
    """The runs that came to their end, or to both of them."""
    return [row for row in rows if all(row[at]["whole"] for at in ("end", "tokens_end") if at in row)]


def chosen(rows: list[Row], design: Design) -> dict[str, int]:
    """The best candidate of each arm on the tuning seeds; the first of equal ones."""
    if design.candidates == 1:
        return dict.fromkeys(design.arms, 0)
    best = {}
    for arm in design.arms:
        means = []
        for number in range(design.candidates):
            own = [row for row in rows if (row["arm"], row["candidate"]) == (arm, number)]
            mine = {row["seed"]: row["end"]["accuracy"] for row in own}
            missing = [seed for seed in design.tuning if seed not in mine]
            if missing:
                raise SystemExit(f"{arm}, candidate {number}: no run of tuning seeds {missing}; run `tuning` first")
            means.append(float(np.mean([mine[seed] for seed in design.tuning])))
        best[arm] = int(np.argmax(means))
    return best


def jobs(design: Design, which: str, most_steps: int) -> dict[str, Job]:
    """The runs of the tuning or of the final seeds, by name, seed by seed."""
    if which == "tuning":
        triples = [(arm, k, seed) for seed in design.tuning for arm in design.arms for k in range(design.candidates)]
    else:
        settings = design.settings()
        triples = [(arm, settings[arm], seed) for seed in design.final for arm in design.arms]
    return {" ".join(map(str, one)): (design, *one, most_steps) for one in triples}


def name_of(row: Row) -> str:
    """A run's name among the jobs."""
    return f"{row['arm']} {row['candidate']} {row['seed']}"


def run_all(design: Design, named: dict[str, Job], processes: int, seconds: float) -> int:
    """What is missing: the starts of the seeds, then the runs; how many are left."""
    began, seeds = time.monotonic(), {str(seed): (design, seed) for *_, seed, _ in named.values()}
    left = run_missing(design.starts, seeds, start, lambda row: str(row["seed"]), processes, seconds)
    if not left:
        seconds -= time.monotonic() - began
        left = run_missing(design.runs, named, run, name_of, processes, seconds)
    return left


def run_apart(design: Design, named: dict[str, Job], processes: int, seconds: float) -> int:
    """The same, seed by seed, in processes of their own; whatever still runs when the time is over is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))  # the queue then ends what it has begun
    queue = job_processes.Queue(WORK / f"{design.name}_logs", processes, time.monotonic() + seconds)
    todo = dict[str, job_processes.Job]()
    for _, arm, candidate, seed, most_steps in named.values():
        for kind, names in (("start", [str(seed)]), ("run", [arm, str(seed)])):
            one = apart(design, kind, names, f"{arm} {candidate} {seed}", most_steps)
            todo.setdefault(one.name, one)
    return len(queue.run(list(todo.values())))


def apart(design: Design, kind: str, names: list[str], name: str, most_steps: int) -> job_processes.Job:
    """One start or run as a process; a run waits for its seed's start."""
    command = [sys.executable, __file__, kind, *names, "--design", design.name, "--steps", str(most_steps)]

    def started() -> bool:
        return any(str(row["seed"]) == names[-1] for row in rows_of(design.starts))

    def ended() -> bool:
        return any(name_of(row) == name for row in rows_of(design.runs))

    ready, done = (lambda: True, started) if kind == "start" else (started, ended)
    return job_processes.Job("_".join([kind, *names]), f"{kind} {names[0] if kind == 'run' else ''}",
                             command, ready, done, LIMITS[kind])  # fmt: skip


def note(path: Path, row: Row) -> None:
    """One more line; processes write side by side."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(row) + "\n")


def told(design: Design) -> str:
    """The tables, from the lines of this machine where there are any; they are then kept as results."""
    rows, results = whole(rows_of(design.runs)), design.file("results")
    if rows:
        results.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    if not results.exists():
        raise SystemExit(f"{design.name}: no run has come to its end; run `final` first")
    return report(json.loads(results.read_text()), design.settings(), design)


def main() -> None:
    """tuning, choose, final, report, or one start or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("tuning", "choose", "final", "report", *LIMITS))
    parser.add_argument("names", nargs="*", help="of start: the seed; of run: arm and seed")
    parser.add_argument("--design", choices=DESIGNS, default="equal_calls")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time; finished ones are not run again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    parser.add_argument("--steps", type=int, help="the most steps of a run, for trials")
    asked = parser.parse_args()
    design = DESIGNS[asked.design]
    most_steps = asked.steps or design.cap or MOST_STEPS
    if asked.verb == "choose":
        choice = chosen(whole(rows_of(design.runs)), design)
        design.file("chosen").write_text(json.dumps(choice, indent=1) + "\n")
        print(design.file("chosen").read_text(), end="")
    elif asked.verb == "report":
        print(told(design))
    elif asked.verb == "start":
        note(design.starts, start((design, int(asked.names[0]))))
    elif asked.verb == "run":
        arm, seed = asked.names[0], int(asked.names[1])
        note(design.runs, run((design, arm, design.settings()[arm], seed, most_steps)))
    else:
        named = jobs(design, asked.verb, most_steps)
        left = (run_apart if design.apart else run_all)(design, named, asked.processes, asked.seconds)
        print(f"{left} left; the same command goes on" if left else f"all {len(named)} runs are there")


if __name__ == "__main__":
    main()
