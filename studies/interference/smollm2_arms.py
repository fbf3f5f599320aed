"""What smollm2_skills.py runs: skills, arms and seeds as SMOLLM2_DECLARATION.md has them, and its lines."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.skills.metrics import retention
from rlvrlab.train.lab import Lab, build_lab

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of  # noqa: E402

KEPT = HERE / "results" / "smollm2_skills.jsonl"
WORK = HERE.parents[1] / ".cache" / "smollm2_skills"
SKILLS = ("countdown", "minicode", "sql")
SEEDS, PILOT = tuple(range(6)), 100
RATES = (2e-5, 4e-5, 8e-5, 1.6e-4)
FALLBACK, ENOUGH = 4e-5, 0.08
"""The rate if the pilot decides nothing; what plain training must at least forget."""
STAGE = 20
"""GRPO steps for each skill."""
MEMORY = "guard.memory_per_skill=64"
ARMS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "l2": ("guard.type=l2", "guard.coef=0.1"),
    "penalty": ("guard.type=penalty", "guard.coef=1.0", MEMORY),
    "kl_full": ("guard.type=penalty", "guard.loss=kl_full", "guard.coef=1.0", "guard.rows=128", MEMORY),
    "safe": ("guard.type=skill_safe", "guard.epsilon=-0.1", "guard.refresh=5", MEMORY),
    "safe_proximal": ("guard.type=proximal", "guard.kappa=0.01", "guard.epsilon=-0.1", "guard.refresh=5", MEMORY),
    "average": ("guard.type=average",),
    "replay": ("guard.type=replay", "guard.share=0.25", MEMORY),
}


@dataclass(frozen=True)
class Round:
    """A declared comparison: all arms of its seeds, and which of ours are held against which free ones in area."""

    arms: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    own: tuple[str, ...]
    free: tuple[str, ...]


def kl_rows(count: int) -> tuple[str, ...]:
    """The exact KL of the first round on fewer remembered answers per step."""
    return (*(word for word in ARMS["kl_full"] if not word.startswith("guard.rows=")), f"guard.rows={count}")


ROUNDS = {
    1: Round(ARMS, SEEDS, ("safe", "safe_proximal"), ("l2", "penalty", "average")),
    2: Round(
        {
            **{arm: ARMS[arm] for arm in ("plain", "average", "l2")},
            "kl_full_8": kl_rows(8),
            "kl_full_16": kl_rows(16),
        },
        tuple(range(6, 12)),
        ("kl_full_8", "kl_full_16"),
        ("l2", "average"),
    ),
}
"""Each has seeds of its own, so their lines lie in one file; the rate is the one that the first round's pilot chose."""


class Study:
    """Where the study lies, and the words that a trial adds to its recipe."""

    def __init__(self, work: Path, stage: int = STAGE, words: Sequence[str] = ()) -> None:
        self.work, self.stage, self.words = work.absolute(), stage, tuple(words)
        self.lines = self.work / "lines.jsonl"

    def recipe(self, seed: int, *words: str) -> Resolved:
        """With data and training of this seed."""
        given = [f"seed={seed}", f"data.seed={seed}", *self.words, *words]
        return load_recipe(HERE / "smollm2_skills.toml", given)

    def lab(self, seed: int, *words: str) -> Lab:
        """All that a run needs."""
        return build_lab(self.recipe(seed, *words))

    def policy(self, name: str, seed: int) -> Path:
        """Where a policy lies that others begin with."""
        return self.work / f"{name}_{seed}"

    def rate(self) -> float | None:
        """What the pilot has chosen, here or in an earlier session."""
        return next((row["rate"] for row in self.rows("rate")), None)

    def rows(self, kind: str) -> list[Row]:
        """Lines of one kind, the kept ones of earlier sessions first."""
        return [row for path in (KEPT, self.lines) for row in rows_of(path) if row["kind"] == kind]

    def note(self, row: Row) -> None:
        """One more line; runs write side by side."""
        self.work.mkdir(parents=True, exist_ok=True)
        with self.lines.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(row) + "\n")


def success(row: Row) -> np.ndarray:
    """Stages × skills."""
    return np.array([[stage[skill].count("1") / len(stage[skill]) for skill in SKILLS] for stage in row["rights"]])


def chosen_rate(rows: Sequence[Row]) -> float:
    """As declared: the lowest at which enough is forgotten; else the one that forgets most; else the fallback."""
    found = {row["rate"]: row for row in rows}
    if any(rate not in found for rate in RATES):
        return FALLBACK
    table = {rate: success(found[rate]) for rate in RATES}
    kept = {rate: retention(one, [0, 1, 2]) for rate, one in table.items()}
    learns = [rate for rate in RATES if kept[rate].learning >= table[rate][0].mean()]
    forgets = [rate for rate in learns if kept[rate].forgetting >= ENOUGH]
    if forgets:
        return min(forgets)
    return max(learns, key=lambda rate: kept[rate].forgetting) if learns else FALLBACK


def complete(rows: Sequence[Row], asked: Round = ROUNDS[1]) -> dict[int, dict[str, Row]]:
    """Seed -> its runs, for the seeds of a round of which every arm has ended, all from one start."""
    by: dict[tuple[int, str], dict[str, Row]] = {}
    for row in (row for row in rows if row["seed"] in asked.seeds):
        by.setdefault((row["seed"], row["born"]), {}).setdefault(row["arm"], row)
    return {seed: runs for (seed, _), runs in sorted(by.items(), reverse=True) if runs.keys() >= asked.arms.keys()}
