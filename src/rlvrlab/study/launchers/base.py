"""What the scheduler asks of a launcher; a job is a trial folder with its job.json, and all run the same worker."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

from rlvrlab import fate
from rlvrlab.judge.workers.pool import WORKERS, cores
from rlvrlab.study.schema import Resources
from rlvrlab.study.worker import DONE, OUT_OF_MEMORY, PARENT, STOPPED, read_failure

LAUNCHERS = {"local": "Local", "ray": "Ray", "slurm": "Slurm"}
"""Name of the file here -> class in it."""
LONGEST_WHY = 200
GRACE_S = 10.0
"""Between asking a trial to end and ending it."""


class Job(NamedTuple):
    """One attempt at a trial."""

    trial: str
    folder: Path
    """Absolute; every machine must see it under the same path."""


class Outcome(NamedTuple):
    """How an attempt ended."""

    trial: str
    status: str
    """done, oom, killed (the process or its machine died), timed_out, stopped, failed."""
    why: str = ""


class Launcher(Protocol):
    """Runs jobs; `start` is called only while `free` is true."""

    name: str

    @property
    def free(self) -> bool:
        """True while one more job may start."""

    def start(self, job: Job) -> None:
        """Begin it; returns at once."""

    def wait(self, timeout_s: float) -> list[Outcome]:
        """What ended since the last call; at most so long when nothing has."""

    def close(self) -> None:
        """Ask whatever still runs to stop, and let go."""


def launcher_of(name: str, resources: Resources) -> Launcher:
    """The launcher of this name; the package it needs is imported only now."""
    module = importlib.import_module(f"rlvrlab.study.launchers.{name}")
    return getattr(module, LAUNCHERS[name])(resources)


def worker_command(folder: Path) -> list[str]:
    """The command line of a trial's process."""
    return [sys.executable, "-m", "rlvrlab.study.worker", str(folder)]


def worker_env(resources: Resources, gpus: list[int] | None = None) -> dict[str, str]:
    """As many threads as the trial asked for, its share of the judge's workers, only the GPUs it was given."""
    threads = str(resources.cpus)
    env = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    env[WORKERS] = env.get(WORKERS) or str(cores_of_trial(resources) + 1)  # one more than cores, as default_size
    if gpus is not None:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    return env


def cores_of_trial(resources: Resources) -> int:
    """A trial's equal share of this machine; of one that a cluster chose at least what the trial asked for there."""
    equal = cores() // resources.at_once
    return max(1, equal if resources.here else max(equal, min(resources.cpus, cores())))


def too_many_threads(resources: Resources) -> list[str]:
    """Why trials would slow each other down, as `key: what; remedy`; empty where their threads fit this machine."""
    trials, cpus, there = resources.at_once, resources.cpus, cores()
    if not resources.here or trials * cpus <= there:
        return []
    remedies = [f"cpus = {there // trials}"] if trials <= there else []
    remedies += [f"processes = {there // cpus}"] if cpus <= there else []
    wanted = f"{trials} trials at once × {cpus} threads are {trials * cpus}, on {there} cores"
    remedy = " or ".join(remedies) or f"processes = 1 and cpus = {there}"
    return [f"resources.cpus: {wanted}, so they slow each other down; up to {there} threads fit: set {remedy}"]


def outcome_of(job: Job, code: int) -> Outcome:
    """From the worker's exit code and what it left behind."""
    why = read_failure(job.folder)
    if code == DONE:
        return Outcome(job.trial, "done")
    if code == OUT_OF_MEMORY:
        return Outcome(job.trial, "oom", why)
    if code in (STOPPED, -signal.SIGTERM, -signal.SIGINT):
        return Outcome(job.trial, "stopped", why or "asked to stop")
    if code < 0:
        name = signal.Signals(-code).name if -code in list(signal.Signals) else str(-code)
        words = "; the kernel does that when memory runs out" if name == "SIGKILL" else ""
        return Outcome(job.trial, "killed", f"its process was ended by {name}{words}")
    return Outcome(job.trial, "failed", why or f"exit code {code}; see log.txt in its folder")


def run_worker(folder: str, resources_json: str) -> Outcome:
    """One job from beginning to end, with its time limit: what Ray and Slurm call on the machine they chose."""
    resources = Resources.model_validate_json(resources_json)
    job = Job(Path(folder).name, Path(folder))
    env = worker_env(resources) | {PARENT: str(os.getpid())}
    with (job.folder / "log.txt").open("ab") as log:
        child = subprocess.Popen(worker_command(job.folder), stdout=log, stderr=log, env=env)  # noqa: S603
        try:
            code = child.wait(resources.time_limit_s)
        except subprocess.TimeoutExpired:
            fate.end([child], GRACE_S, group=False)
            return timed_out(job, resources)
        except BaseException:
            fate.end([child], GRACE_S, group=False)
            raise
    return outcome_of(job, code)


def timed_out(job: Job, resources: Resources) -> Outcome:
    """The outcome of an attempt that reached its time limit."""
    return Outcome(job.trial, "timed_out", f"not done after resources.time_limit_s = {resources.time_limit_s:g}")
