"""What every Ray process must know of the recipe: one JSON file in the export's folder, found by the variable PLAN."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.data.rows import from_row
from rlvrlab.envs.data_files import read_rows
from rlvrlab.errors import UserError
from rlvrlab.objectives.base import PolicyObjective
from rlvrlab.plain_files import parsed
from rlvrlab.recipe import Resolved, resolve
from rlvrlab.record.files import refuse_schema, write_json
from rlvrlab.record.redact import redact
from rlvrlab.registry import find, name_own
from rlvrlab.scale.verl import PLAN
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.types import Environment, Problem, RewardFunction

FILE = "plan.json"
TRAIN, DEV = "train.parquet", "dev.parquet"
SCHEMA = 1


@dataclass(frozen=True)
class Job:
    """A recipe on its way through verl."""

    folder: Path
    resolved: Resolved
    judges: tuple[str, ...] = ()
    """Addresses of judge servers; empty judges in the reward workers themselves."""
    memory: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Prompts and verified answers of protected skills."""

    def write(self) -> None:
        """plan.json."""
        if redact(self.resolved.config()) != self.resolved.config():
            why = "verl's processes read the recipe from a file, and a secret in it would be stored"
            raise UserError(f'engine.type = "verl": {why}; let the plug-in read it from the environment')
        config = {**self.resolved.config(), "folder": str(self.resolved.folder.resolve())}
        content = {"schema": SCHEMA, "judges": list(self.judges), "memory": self.memory, "config": config}
        write_json(self.folder / FILE, content)

    @classmethod
    def read(cls, folder: Path, *, launched: bool = False) -> Job:
        """Back from plan.json; what it names may be imported where a launch of the user's reads it (`launched`)."""
        try:
            content = parsed((folder / FILE).read_text(encoding="utf-8"))
            refuse_schema(content, SCHEMA, folder / FILE)
            config = content["config"]
            given = {key: value for key, value in config["recipe"].items() if value is not None}
            if launched:
                name_own(given, Path(config["folder"]), Path())
            again = resolve(given, {}, Path(config["folder"]))
            judges, origins = tuple(map(str, content["judges"])), dict(config["origins"])
            memory = {skill: [(str(p), str(a)) for p, a in rows] for skill, rows in content["memory"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{folder / FILE}: not a job of ours ({error}); export the recipe again") from None
        return cls(folder, Resolved(again.recipe, origins, again.folder), judges, memory)

    @cached_property
    def phase(self) -> OnlinePhase:
        """The one that verl trains."""
        return self.resolved.phase(self.resolved.recipe.phases[0])

    @cached_property
    def env(self) -> Environment:
        """The recipe's environment."""
        return self.resolved.build("env")

    @cached_property
    def reward(self) -> RewardFunction:
        """The recipe's reward."""
        return self.resolved.build("reward")

    @cached_property
    def advantage(self) -> AdvantageEstimator:
        """The recipe's estimator, or the phase's own."""
        return self.phase.advantage(self.resolved)

    @cached_property
    def objective(self) -> PolicyObjective:
        """The recipe's objective, or the phase's own; KL and entropy are added by verl."""
        return self.phase.objective(self.resolved)

    def plugin(self, kind: str, name: str) -> Any:
        """The job's own estimator or objective where it has that name, and one with default settings otherwise."""
        own = self.advantage if kind == "advantage" else self.objective
        return own if own.name == name else find(kind, name)()

    @cached_property
    def problems(self) -> dict[str, Problem]:
        """Training and held-out problems, by id."""
        paths = [self.folder / TRAIN, self.folder / DEV]
        rows = ((from_row(row, f"{path}:{number}")) for path in paths for number, row in read_rows(path))
        return {problem.id: problem for problem in rows}

    @cached_property
    def train(self) -> list[Problem]:
        """Training problems, each once."""
        return [problem for problem in self.problems.values() if problem.role == "train"]


@cache
def current() -> Job:
    """The job of this process."""
    folder = os.environ.get(PLAN)
    if not folder:
        raise UserError(f"the environment variable {PLAN} is not set: verl was not started by a launch script of ours")
    return Job.read(Path(folder), launched=True)


def has_job() -> bool:
    """Does this process belong to a run of ours?"""
    return bool(os.environ.get(PLAN))
