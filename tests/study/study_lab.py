"""A study on disk, and a launcher that answers without training: trials in no time, with the scores a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.record.files import write_json
from rlvrlab.record.final import note_look
from rlvrlab.study.folder import find_study
from rlvrlab.study.launchers import Job, Outcome
from rlvrlab.study.load import load_study
from rlvrlab.study.run import Ended, Runner
from rlvrlab.types import Problem

RECIPE = """
phases = ["sft", "grpo"]
[env]
type = "countdown"
numbers = [2, 3]
high = 9
style = "bare"
[data]
train_size = 40
dev_size = 4
[rollout]
n = 2
max_tokens = 8
[engine]
type = "toy"
buckets = 8
slots = 4
[sft]
steps = 2
batch_size = 4
[grpo]
steps = 4
batch_size = 2
[eval]
every = 0
"""
HEAD = """name = "tried"
recipe = "recipe.toml"
output = "out"
[suites.here]
size = 8
"""
PROBLEMS = 200
Scores = Callable[[dict[str, Any]], float | Outcome | str]
"""From a job to its share of right answers, or to the status of a failure."""


def write_study(folder: Path, text: str, recipe: str = RECIPE) -> Path:
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(text if text.lstrip().startswith("name") else HEAD + text, encoding="utf-8")
    return path


class Pretend:
    """Runs jobs by asking a function; problems are right from the first one on, so a higher share contains a lower."""

    name = "pretend"
    free = True

    def __init__(self, answer: Scores) -> None:
        self.answer, self.jobs = answer, list[dict[str, Any]]()
        self.finals = list[dict[str, Any]]()
        """Examinations on test problems at the end; `jobs` are the others."""
        self._ended: list[Outcome] = []

    def start(self, job: Job) -> None:
        asked = json.loads((job.folder / "job.json").read_text())
        last = any(name.endswith("@test") for name in asked["suites"])
        (self.finals if last else self.jobs).append(asked)
        found = self.answer(asked)
        if isinstance(found, str):
            self._ended.append(Outcome(job.trial, found, f"planted {found}"))
            return
        evaluated = {}
        for name, suite in asked["suites"].items():
            share = found[name] if isinstance(found, dict) else found
            outcomes = {str(i): float(i < round(share * PROBLEMS)) for i in range(PROBLEMS)}
            (job.folder / "scores").mkdir(exist_ok=True)
            write_json(job.folder / "scores" / f"{name}.json", {name: {"accepted": outcomes}})
            evaluated[name] = {"hash": suite["hash"], "members": {name: "runs/x/e"}, "scores": f"scores/{name}.json"}
            if suite["suite"]["role"] == "test":
                (job.folder / "runs/x").mkdir(parents=True, exist_ok=True)
                problems = [Problem(str(i), "", "", "", role="test") for i in range(PROBLEMS)]
                note_look(job.folder / "runs/x", name, problems, name)
        result = {"run": "runs/x", "rung": asked["rung"], "seconds": 1.0, "data": {}, "evaluated": evaluated}
        write_json(job.folder / "result.json", result)
        self._ended.append(Outcome(job.trial, "done"))

    def wait(self, timeout_s: float) -> list[Outcome]:
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        pass


def run_study(
    path: Path, answer: Scores, *, retry: bool = False, anyway: bool = False
) -> tuple[Ended, Pretend, dict[str, Any]]:
    """A session; returns how it ended, the launcher with its jobs, and study.json."""
    launcher = Pretend(answer)
    file = load_study(path)
    runner = Runner(file, path.parent / "out" / file.study.name, launcher, lambda *_: None)
    try:
        if retry:
            runner.retry()
        ended = runner.run(anyway=anyway)
    finally:
        runner.close()
    return ended, launcher, json.loads((ended.folder / "study.json").read_text())


def stage(made: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in made["stages"] if one["name"] == name)


def decision(made: dict[str, Any], name: str) -> dict[str, Any]:
    return [one for one in made["decisions"] if one["stage"] == name][-1]


def columns(rng: np.random.Generator, share: float, problems: int, seeds: int) -> list[dict[str, float]]:
    return [{str(i): float(hit) for i, hit in enumerate(rng.random(problems) < share)} for _ in range(seeds)]


__all__ = ["HEAD", "Pretend", "columns", "decision", "find_study", "run_study", "stage", "write_study"]
