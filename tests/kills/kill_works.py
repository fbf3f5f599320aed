"""Kinds of work that leave files behind: how each is begun or gone on with, and what is told of its end.

What is told holds every byte that a reader could rely on: metrics without their clocks, rollouts, state, weights,
answers and verdicts, rows and manifests, decisions.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import runs
from study_lab import HEAD, write_study
from test_protocols import SKILLS
from test_repair import FEEDBACK_ENV, TURNS

from rlvrlab.cli import main
from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import eval_at_k
from rlvrlab.record.evaluation import read_evaluation
from rlvrlab.train import session
from rlvrlab.train.lab import build_lab


class Work(NamedTuple):
    """Something that a killed process left, and another one ends."""

    go: Callable[[Path], None]
    """Begins in an empty folder, or goes on with what is there."""
    told: Callable[[Path], dict[str, Any]]
    """What came out."""
    parts: str
    """For the table: what is exercised."""


CREDIT = ["credit.type=counterfactual", "credit.segmentation=words", "credit.invalid=count"]
SAFE = ["guard.type=skill_safe", "guard.memory_per_skill=10"]
NANO = ['engine={type = "hf", model = "nano", device = "cpu"}', "rollout.n=2", "sft.steps=2", "grpo.steps=2"]
TRAINED = {
    "phases": (runs.TINY, [], "toy engine: SFT, DPO, GRPO, PPO with its critic"),
    "second tries": (TURNS, [], "toy engine: SFT, repair, GRPO over turns"),
    "guard": (SKILLS, ["protocol.type=sequential", *SAFE], "two skills in turn, the skill-safe update and its memory"),
    "anchored guard": (SKILLS, ["protocol.type=sequential", "guard.type=ewc"], "two skills in turn, EWC"),
    "surgery": (SKILLS, ["protocol.type=mixed", "surgery.type=pcgrad"], "two skills at once, PCGrad"),
    "credit": (runs.ONLINE, CREDIT, "counterfactual step credit"),
    "lag 1": (runs.ONLINE, ["pipeline.lag=1"], "answers in flight, drawn by an older policy"),
    "cards": (runs.ONLINE, ["eval.test_size=6"], "cards after each phase"),
    "language model": (runs.ONLINE, NANO, "Transformers engine with nano on a CPU"),
}


def train(kind: str, folder: Path) -> None:
    text, words, _ = TRAINED[kind]
    folder.mkdir(exist_ok=True)
    (folder / "again.py").write_text(FEEDBACK_ENV)
    found = runs.only_run(folder)
    resolved = None if found else runs.recipe(folder, *words, text=text)
    ended = session.start(resolved, runs.quiet) if resolved else session.resume(found, runs.quiet)
    assert ended.status == "finished"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def told_of_a_run(folder: Path) -> dict[str, Any]:
    run = runs.only_run(folder)
    assert run is not None
    last = runs.last_checkpoint(run)
    weights = {path.name: digest(path.read_bytes()) for path in sorted((last / "actor").rglob("*.safetensors"))}
    arrays = {} if weights else {name: digest(value.tobytes()) for name, value in runs.arrays(last).items()}
    return {
        "metrics": digest(runs.without_times(run)),
        "rollouts": {name: digest(data) for name, data in runs.rollouts(run).items()},
        "artifacts": {path.name: digest(path.read_bytes()) for path in sorted(run.glob("artifacts/*.jsonl"))},
        "state": (last / "trainer.json").read_text(),
        "policy": weights or arrays,
    }


def examine(folder: Path) -> None:
    lab = build_lab(runs.recipe(folder, text=runs.ONLINE))
    answerer = EngineAnswerer(lab.engine, at_once=4)
    evaluate_into(folder / "kept", answerer, lab.env, list(lab.dev), eval_at_k(3, (1, 3), max_tokens=8))


def told_of_an_evaluation(folder: Path) -> dict[str, Any]:
    found = read_evaluation(folder / "kept")
    keys = ("problem", "sample", "completion", "correct", "score", "error", "finish")
    return {
        "answers": sorted(json.dumps([row.get(key) for key in keys]) for row in found.rows),
        "metrics": untimed(json.loads((folder / "kept" / "metrics.json").read_text())),
    }


def rlvr(*words: str) -> None:
    """The command in this process, which is a fork."""
    sys.argv = ["rlvr", *words]
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            main()
    except SystemExit as left:
        assert not left.code, words


def prepare(folder: Path) -> None:
    rlvr("data", "prepare", "countdown", "numbers=[2,3]", "--size", "60", "-o", str(folder), "--json")


def told_of_data(folder: Path) -> dict[str, Any]:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*") if path.is_file())
    return {name: (folder / name).read_text() for name in names}


STUDY = HEAD.replace("[suites", "seeds = [0, 1]\n[suites").replace("size = 8", "size = 4")
STUDY += '[[stages]]\nname = "a"\nfactors = { "grpo.learning_rate" = [0.1, 0.2] }\n'
BY_THE_CLOCK = {
    "started", "updated", "time", "seconds", "attempts", "run", "where", "evaluations", "avg_judge_time",
    "p50_judge_time", "p95_judge_time", "throughput",
}  # fmt: skip
"""Fields that hold times, names of folders made of times, or how often a trial was begun."""


def compare(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / "study.toml"
    if not path.exists():
        write_study(folder, STUDY)
    rlvr("study", "run", str(path), "-o", str(folder / "out"), "--json")


def told_of_a_study(folder: Path) -> dict[str, Any]:
    home = folder / "out"
    scores = {path.relative_to(home).as_posix(): path.read_text() for path in sorted(home.glob("trials/*/scores/*"))}
    metrics = {path.parents[3].name: digest(runs.without_times(path.parents[1]))
               for path in sorted(home.glob("trials/*/runs/**/logs/metrics.jsonl"))}  # fmt: skip
    return {"study": untimed(json.loads((home / "study.json").read_text())), "scores": scores, "metrics": metrics}


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: untimed(item) for key, item in value.items() if key not in BY_THE_CLOCK}
    return [untimed(item) for item in value] if isinstance(value, list) else value


WORKS: dict[str, Work] = {
    **{
        kind: Work((lambda folder, kind=kind: train(kind, folder)), told_of_a_run, parts)
        for kind, (_, _, parts) in TRAINED.items()
    },
    "evaluation": Work(examine, told_of_an_evaluation, "three answers to each problem, judged and kept"),
    "data": Work(prepare, told_of_data, "`rlvr data prepare`: rows, roles and manifests"),
    "study": Work(compare, told_of_a_study, "`rlvr study run`: four trials in processes of their own"),
}
