"""What an exported folder holds besides the trainer's own files: the recipe, the problems, and how to score an answer.

recipe.json   the recipe, resolved, with the folder its own plug-ins are found in
train.jsonl   problems as rows: `prompt` as the trainer wants it, and `rlvr_problem`, the problem itself as JSON text
dev.jsonl     the held-out ones
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.data.files import write_lines
from rlvrlab.data.rows import from_row, to_row
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.recipe import Recipe, Resolved, resolve
from rlvrlab.record.files import write_json
from rlvrlab.train.lab import build_problems
from rlvrlab.types import Completion, Environment, Problem, Reward, RewardFunction, Verdict

RECIPE = "recipe.json"
COLUMN = "rlvr_problem"
SHOWN = 200


class Scored(NamedTuple):
    """One answer."""

    reward: Reward | None
    """None where it could not be judged."""
    verdict: Verdict


class Scorer:
    """The environment, judge and reward of an exported recipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def resolved(self) -> Resolved:
        """The recipe."""
        path = self._folder / RECIPE
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            given = {key: value for key, value in config["recipe"].items() if value is not None}
            return resolve(given, {}, Path(config["folder"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: not an exported recipe ({error}); export it again") from None

    @cached_property
    def _env(self) -> Environment:
        env: Environment = self.resolved.build("env")
        return env

    @cached_property
    def _reward(self) -> RewardFunction:
        reward: RewardFunction = self.resolved.build("reward")
        return reward

    def score(self, rows: Sequence[str], completions: Sequence[Completion]) -> list[Scored]:
        """Judge answers to the problems of those rows in one call. Not one verdict among all of them is an error."""
        problems = [from_row(json.loads(row), COLUMN) for row in rows]
        texts = [completion.text for completion in completions]
        verdicts = self._env.verify_many(list(zip(problems, texts, strict=True)))
        if verdicts and all(verdict.correct is None for verdict in verdicts):
            why = verdicts[0].detail[:SHOWN]
            raise InfrastructureError(f"not one of {len(verdicts)} answers could be judged ({why}); mend the judge")
        return [
            Scored(self._rewarded(problem, completion, verdict), verdict)
            for problem, completion, verdict in zip(problems, completions, verdicts, strict=True)
        ]

    def _rewarded(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward | None:
        if verdict.correct is None:
            return None
        given = self._reward(problem, completion, verdict)
        if not math.isfinite(given.value):
            raise InfrastructureError(f"reward of {problem.id} is {given.value}; a reward must be a finite number")
        return given


def new_folder(folder: Path) -> None:
    """An export writes into a folder of its own."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except FileExistsError:
        taken = True
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
    if taken:
        raise UserError(f"{folder}: is there already; name another folder")


def filled(text: str, words: Mapping[str, str]) -> str:
    """A text with its marks, `@NAME@`, replaced; what is put in is not looked at again."""
    return re.sub("|".join(map(re.escape, words)), lambda mark: words[mark[0]], text)


def write_common(folder: Path, resolved: Resolved, prompt: Callable[[Problem], Any]) -> dict[str, int]:
    """recipe.json and the problems; how many of each."""
    problems = build_problems(resolved)
    for name, some in problems.items():
        write_lines(folder / f"{name}.jsonl", _rows(some, prompt))
    write_json(folder / RECIPE, {"recipe": resolved.recipe.model_dump(), "folder": str(resolved.folder.resolve())})
    return {str(name): len(some) for name, some in problems.items()}


def _rows(problems: Iterable[Problem], prompt: Callable[[Problem], Any]) -> Iterable[str]:
    for index, problem in enumerate(problems):
        row = {
            "prompt": prompt(problem),
            "skill": problem.skill,
            COLUMN: json.dumps(to_row(problem, index), ensure_ascii=False),
        }
        yield json.dumps(row, ensure_ascii=False)


def unusual(resolved: Resolved, reasons: dict[str, str]) -> list[str]:
    """Keys among `reasons` whose value is not the default, each as `key: why; how to leave it out`."""
    mine, usual = resolved.recipe.model_dump(), Recipe().model_dump()
    found = []
    for key, why in reasons.items():
        section, _, name = key.partition(".")
        value, default = (tables[section][name] if name else tables[section] for tables in (mine, usual))
        if value != default:
            remedy = "leave it out" if default is None else f"export with {key}={json.dumps(default)}"
            found.append(f"{key} = {json.dumps(value, default=str)[:60]}: {why}; {remedy}")
    return found
