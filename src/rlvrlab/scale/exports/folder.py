"""What an exported folder holds besides the trainer's own files: the recipe, the problems, and how to score an answer.

recipe.json   the recipe, resolved, with the folder its own plug-ins are found in
train.jsonl   problems as rows: `prompt` as the trainer wants it, and `rlvr_problem`, the problem itself as JSON text
dev.jsonl     the held-out ones
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rlvrlab.data.files import write_lines
from rlvrlab.data.rows import from_row, to_row
from rlvrlab.errors import InfrastructureError, UserError, cut
from rlvrlab.plain_files import parsed
from rlvrlab.recipe import Recipe, Resolved, resolve
from rlvrlab.record.files import refuse_schema, write_json
from rlvrlab.registry import name_own
from rlvrlab.rewards.total import paid
from rlvrlab.train.lab import build_problems
from rlvrlab.types import Completion, Environment, Problem, Reward, RewardFunction, Verdict

RECIPE = "recipe.json"
SCHEMA = 1
COLUMN = "rlvr_problem"
SHOWN = 200


class Scored(NamedTuple):
    """What an answer is worth."""

    reward: Reward | None
    """None where it could not be judged."""
    verdict: Verdict


class Scorer:
    """The environment, judge and reward of an exported recipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def resolved(self) -> Resolved:
        """The exported recipe, read from recipe.json."""
        path = self._folder / RECIPE
        try:
            config = parsed(path.read_text(encoding="utf-8"))
            refuse_schema(config, SCHEMA, path)
            given = {key: value for key, value in config["recipe"].items() if value is not None}
            name_own(given, Path(config["folder"]), Path())  # whoever runs the export's own scripts trusts it
            return resolve(given, {}, Path(config["folder"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: not an exported recipe ({error}); export it again") from None

    @cached_property
    def _judges(self) -> tuple[Environment, RewardFunction]:
        return self.resolved.build("env"), self.resolved.build("reward")

    def problem_of(self, row: str) -> Problem:
        """The problem in the column of ours, which the trainer hands back as text."""
        try:
            known = parsed(row, answers=True)
        except (ValueError, TypeError) as error:
            raise UserError(f"{COLUMN}: not a problem of ours ({error}); export the recipe again") from None
        if not isinstance(known, dict):
            raise UserError(f"{COLUMN}: not a problem of ours ({known!r:.40}); export the recipe again")
        return from_row(known, COLUMN)

    def score(self, rows: Sequence[str], completions: Sequence[Completion]) -> list[Scored]:
        """Judge answers to the problems of those rows in one call; it is an error if none of them could be judged."""
        env, reward_of = self._judges
        problems = [self.problem_of(row) for row in rows]
        texts = [completion.text for completion in completions]
        verdicts = env.verify_many(list(zip(problems, texts, strict=True)))
        if verdicts and all(verdict.correct is None for verdict in verdicts):
            why = verdicts[0].detail[:SHOWN]
            raise InfrastructureError(f"not one of {len(verdicts)} answers could be judged ({why}); mend the judge")
        scored = []
        for problem, completion, verdict in zip(problems, completions, verdicts, strict=True):
            reward = None if verdict.correct is None else paid(reward_of, problem, completion, verdict)
            scored.append(Scored(reward, verdict))
        return scored


def new_folder(folder: Path) -> None:
    """Make the folder of an export, or refuse one that holds anything."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except FileExistsError:
        taken = True
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
    if taken:
        raise UserError(f"{folder}: is there already; name another folder")


def with_model(resolved: Resolved) -> Resolved:
    """The model as any process finds it: a folder by its full path, a hub id as it stands."""
    from rlvrlab.models import resolve as model_of

    model = model_of(resolved.build("engine").model)
    engine = {**resolved.recipe.engine, "model": str(model.resolve() if model.is_dir() else model)}
    return replace(resolved, recipe=resolved.recipe.model_copy(update={"engine": engine}))


def filled(text: str, words: Mapping[str, str]) -> str:
    """A text with its marks, `@NAME@`, replaced; what is put in is not looked at again."""
    return re.sub("|".join(map(re.escape, words)), lambda mark: words[mark[0]], text)


def write_common(folder: Path, resolved: Resolved, *, chat: bool) -> dict[str, int]:
    """Write recipe.json and the problems; returns how many of each role. `chat`: prompts are a user's messages."""
    counts = {}
    for name, problems in build_problems(resolved).items():
        lines = []
        for index, problem in enumerate(problems):
            prompt = [{"role": "user", "content": problem.prompt}] if chat else problem.prompt
            row = {"prompt": prompt, "skill": problem.skill}
            row[COLUMN] = json.dumps(to_row(problem, index), ensure_ascii=False)
            lines.append(json.dumps(row, ensure_ascii=False))
        write_lines(folder / f"{name}.jsonl", lines)
        counts[str(name)] = len(lines)
    facts = {"recipe": resolved.recipe.model_dump(), "folder": str(resolved.folder.resolve())}
    write_json(folder / RECIPE, {"schema": SCHEMA, **facts})
    return counts


def unusual(resolved: Resolved, reasons: dict[str, str]) -> list[str]:
    """Keys among `reasons` whose value is not the default, each as `key: why; how to leave it out`."""
    mine, usual = resolved.recipe.model_dump(), Recipe().model_dump()
    lines = []
    for key, why in reasons.items():
        section, _, name = key.partition(".")
        value, default = (tables[section][name] if name else tables[section] for tables in (mine, usual))
        if value != default:
            remedy = "leave it out" if default is None else f"export with {key}={json.dumps(default)}"
            lines.append(f"{key} = {cut(json.dumps(value, default=str), 60)}: {why}; {remedy}")
    return lines
