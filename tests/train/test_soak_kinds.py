"""Kill −9 at random changes of files, in every kind of work that leaves files behind: the end is always the same.

SOAK_KILLS says how many kills there are in all; each is a process that dies, and one that goes on to the end.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import faults
import pytest
import runs
from test_protocols import SKILLS

from rlvrlab.data.manifest import manifest_of, path_of, write_manifest
from rlvrlab.data.rows import write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import eval_at_k
from rlvrlab.train import session
from rlvrlab.train.lab import build_lab

KILLS = int(os.environ.get("SOAK_KILLS", "300"))
CREDIT = ["credit.type=counterfactual", "credit.segmentation=words", "credit.invalid=count"]
SAFE = ["guard.type=skill_safe", "guard.memory_per_skill=10"]
TRAINED = {
    "four phases": (runs.TINY, []),
    "guard": (SKILLS, ["protocol.type=sequential", *SAFE]),
    "guard with anchors": (SKILLS, ["protocol.type=sequential", "guard.type=ewc"]),
    "surgery": (SKILLS, ["protocol.type=mixed", "surgery.type=pcgrad"]),
    "credit": (runs.ONLINE, CREDIT),
    "cards": (runs.ONLINE, ["eval.test_size=6"]),
    "critic": (runs.TINY, ['phases=["sft","ppo"]']),
    "language model": (runs.ONLINE, ['engine={type = "hf", model = "nano", device = "cpu"}', "rollout.n=2"]),
}


def train(kind: str, folder: Path) -> None:
    """Begin, or go on where a killed process left off."""
    text, words = TRAINED[kind]
    found = runs.only_run(folder)
    resolved = None if found else runs.recipe(folder, *words, text=text)
    ended = session.start(resolved, runs.quiet) if resolved else session.resume(found, runs.quiet)
    assert ended.status == "finished"


def told_of_a_run(folder: Path) -> dict[str, Any]:
    run = runs.only_run(folder)
    assert run is not None
    last = runs.last_checkpoint(run)
    weights = {path.name: path.read_bytes() for path in (last / "actor").rglob("*.safetensors")}
    return {
        "metrics": hashlib.sha256(runs.without_times(run)).hexdigest(),
        "rollouts": {name: hashlib.sha256(data).hexdigest() for name, data in runs.rollouts(run).items()},
        "state": (last / "trainer.json").read_text(),
        "policy": {name: hashlib.sha256(data).hexdigest() for name, data in weights.items()}
        or {name: value.tobytes() for name, value in runs.arrays(last).items()},
    }


def examine(folder: Path) -> None:
    lab = build_lab(runs.recipe(folder, text=runs.ONLINE))
    answerer = EngineAnswerer(lab.engine, at_once=4)
    evaluate_into(folder / "kept", answerer, lab.env, list(lab.dev), eval_at_k(3, (1, 3), max_tokens=8))


def told_of_an_evaluation(folder: Path) -> dict[str, Any]:
    from rlvrlab.record.evaluation import read_evaluation

    rows = read_evaluation(folder / "kept").rows
    return {"answers": sorted((row["problem"], row["sample"], row["completion"], row["correct"]) for row in rows)}


def prepare(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    problems = Countdown(numbers=(2,)).problems("train", 40, seed=3)
    write_problems(folder / "rows.jsonl", problems)
    path_of(folder / "rows.jsonl").parent.mkdir(exist_ok=True)
    write_manifest(manifest_of(folder / "rows.jsonl", problems), path_of(folder / "rows.jsonl"))


def told_of_data(folder: Path) -> dict[str, Any]:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.jsonl"))
    return {name: (folder / name).read_text() for name in names}


Kind = tuple[Callable[[Path], None], Callable[[Path], dict[str, Any]]]
KINDS: dict[str, Kind] = {
    **{kind: ((lambda folder, kind=kind: train(kind, folder)), told_of_a_run) for kind in TRAINED},
    "evaluation": (examine, told_of_an_evaluation),
    "data": (prepare, told_of_data),
}


@cache
def undisturbed(kind: str) -> tuple[dict[str, Any], int]:
    """What comes out, and how many changes of files it takes."""
    work, told = KINDS[kind]
    home = Path(mkdtemp())

    def counted() -> None:
        faults.count_changes(home / "changes")
        work(home / "work")

    assert runs.in_child(counted, home / "stderr") == 0, (home / "stderr").read_text()
    return told(home / "work"), (home / "changes").stat().st_size


@pytest.mark.soak
@pytest.mark.parametrize("nth", range(KILLS // len(KINDS)))
@pytest.mark.parametrize("kind", KINDS)
def test_soak_killed_at_a_random_change_of_files(tmp_path: Path, kind: str, nth: int) -> None:
    work, told = KINDS[kind]
    want, changes = undisturbed(kind)
    point = random.Random(f"{kind} {nth}").randint(1, changes)

    def killed() -> None:
        faults.kill_at_change(point)
        work(tmp_path / "work")

    assert runs.in_child(killed, tmp_path / "stderr") == -signal.SIGKILL
    assert runs.in_child(lambda: work(tmp_path / "work"), tmp_path / "stderr") == 0, (tmp_path / "stderr").read_text()
    assert told(tmp_path / "work") == want
