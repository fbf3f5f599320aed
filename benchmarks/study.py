"""The study runner's figures: overhead per trial, planning 500 trials, two processes against one, a trial's start-up.

    python benchmarks/study.py [overhead] [planning] [start] [processes] [--json] [--trials 40]

The scheduler's overhead is measured with trials that take no time (a launcher that answers at once), so that nothing
but the runner's own work is left: surveys, decisions, logs, study.json. Real trials also start a Python process, which
is measured apart. One process and two take turns on the same trials. CPU time where it says so; load printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlvrlab.record.facts import machine, package_versions
from rlvrlab.study.folder import find_study
from rlvrlab.study.launchers import Job, Outcome, launcher_of
from rlvrlab.study.load import load_study
from rlvrlab.study.plan import plan_study
from rlvrlab.study.run import Runner

RECIPE = """phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
high = 20
style = "bare"
[data]
train_size = 100
dev_size = 20
[rollout]
n = 8
max_tokens = 8
[grpo]
steps = {steps}
batch_size = 16
[eval]
every = 0
[record]
rollouts = "none"
"""
STUDY = """name = "bench"
recipe = "recipe.toml"
output = "{output}"
seeds = {seeds}
[resources]
processes = {processes}
[suites.here]
size = 40
[[stages]]
name = "rate"
[stages.factors]
grpo.learning_rate = {rates}
"""


def written(folder: Path, arms: int, seeds: int, *, processes: int = 1, steps: int = 30) -> Path:
    (folder / "recipe.toml").write_text(RECIPE.format(steps=steps))
    rates = [round(0.001 * (i + 1), 6) for i in range(arms)]
    path = folder / "study.toml"
    output = (folder / f"out{processes}").as_posix()
    lines = "[\n" + ",\n".join(map(str, rates)) + "\n]"  # a line may not have more than 200 dots
    path.write_text(STUDY.format(output=output, seeds=list(range(seeds)), processes=processes, rates=lines))
    return path


class Instant:
    """Every trial is done at once, with the scores of 200 problems."""

    name, free = "instant", True

    def __init__(self) -> None:
        self._ended: list[Outcome] = []

    def start(self, job: Job) -> None:
        asked = json.loads((job.folder / "job.json").read_text())
        (job.folder / "scores").mkdir(exist_ok=True)
        outcomes = {str(i): float((i * 7919 + asked["seed"]) % 100 < 50) for i in range(200)}
        evaluated = {}
        for name, suite in asked["suites"].items():  # of a final stage the same on test problems, too
            scores = f"scores/{name}.json"
            (job.folder / scores).write_text(json.dumps({name: {"accepted": outcomes}}))
            evaluated[name] = {"hash": suite["hash"], "members": {name: "x"}, "scores": scores}
        result = {"run": "x", "rung": 0, "seconds": 0.0, "evaluated": evaluated}
        (job.folder / "result.json").write_text(json.dumps(result))
        self._ended.append(Outcome(job.trial, "done"))

    def wait(self, timeout_s: float) -> list[Outcome]:
        ended, self._ended = self._ended[:1], self._ended[1:]  # one at a time, as real trials end
        return ended

    def close(self) -> None:
        pass


def overhead(trials: int) -> dict[str, Any]:
    """CPU and wall milliseconds of the runner per trial, everything included."""
    with tempfile.TemporaryDirectory() as name:
        file = load_study(written(Path(name), trials // 10, 10))
        runner = Runner(file, Path(name) / "out", Instant(), lambda *_: None)
        cpu, wall = time.process_time(), time.perf_counter()
        ended = runner.run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        runner.close()
    assert ended.status == "finished"
    return {"what": f"scheduler overhead, {trials} trials", "cpu_ms_per_trial": 1000 * cpu / trials,
            "wall_ms_per_trial": 1000 * wall / trials, "asked": "≤ 50 ms per trial"}  # fmt: skip


def planning() -> list[dict[str, Any]]:
    """500 trials: 100 arms × 5 seeds, and 500 arms × 1 seed."""
    rows = []
    for arms, seeds in ((100, 5), (500, 1)):
        with tempfile.TemporaryDirectory() as name:
            path = written(Path(name), arms, seeds)
            cpu = time.process_time()
            found = plan_study(load_study(path), Path(name) / "none", cost=False)
            cpu = time.process_time() - cpu
        assert found.stages[0].new == 500
        rows.append({"what": f"plan of {arms} arms × {seeds} seeds", "cpu_s": cpu, "asked": "≤ 2 s"})
    return rows


def start_up() -> dict[str, Any]:
    """CPU of a trial's process that has nothing left to do, beside a bare interpreter."""
    with tempfile.TemporaryDirectory() as name:
        file, folder = find_study(written(Path(name), 1, 1, steps=1))
        runner = Runner(file, folder, launcher_of("local", file.study.resources), lambda *_: None)
        runner.run()
        runner.close()
        trial = next((folder / "trials").iterdir())
        worker, bare_python = ["-m", "rlvrlab.study.worker", str(trial)], ["-c", "pass"]
        pairs = [(_cpu([sys.executable, *worker]), _cpu([sys.executable, *bare_python])) for _ in range(5)]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"what": "start-up of a trial's process", "cpu_ms": 1000 * ours, "bare_python_cpu_ms": 1000 * bare,
            "asked": "apart from the scheduler"}  # fmt: skip


def _cpu(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def two_processes(trials: int) -> dict[str, Any]:
    """The same trials with one and with two processes, turn by turn: 1, 2, 2, 1."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    for processes in (1, 2, 2, 1):
        with tempfile.TemporaryDirectory() as name:
            file, folder = find_study(written(Path(name), trials, 1, processes=processes))
            runner = Runner(file, folder, launcher_of("local", file.study.resources), lambda *_: None)
            wall = time.perf_counter()
            ended = runner.run()
            walls[processes].append(time.perf_counter() - wall)
            runner.close()
            assert ended.status == "finished"
    one, two = sum(walls[1]), sum(walls[2])
    return {"what": f"two processes against one, {trials} trials", "ratio": one / two, "one_wall_s": one / 2,
            "two_wall_s": two / 2, "asked": "≥ 1.8 on two free cores"}  # fmt: skip


SECTIONS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "overhead": lambda _: [overhead(100), overhead(500)],
    "planning": lambda _: planning(),
    "start": lambda _: [start_up()],
    "processes": lambda trials: [two_processes(trials)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"which of: {', '.join(SECTIONS)} [all]")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--trials", type=int, default=8, help="of the comparison of one process with two")
    options = parser.parse_args()
    facts = {**machine(), **package_versions(), "load": round(os.getloadavg()[0], 1)}
    if unknown := set(options.sections) - set(SECTIONS):
        sys.exit(f"no section {min(unknown)!r}; there are: {', '.join(SECTIONS)}")
    rows = [row for name in options.sections or SECTIONS for row in SECTIONS[name](options.trials)]
    if options.json:
        print(json.dumps({"machine": facts, "figures": rows}, indent=2))
        return
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    for row in rows:
        figures = ", ".join(f"{k} {v:.2f}" for k, v in row.items() if isinstance(v, float))
        print(f"{row['what']:<42} {figures}   (asked: {row['asked']})")


if __name__ == "__main__":
    main()
