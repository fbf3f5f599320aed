"""Acquisition: rows become problems with a role, duplicates are dropped, files and manifests are written.

Equal content is kept once: test before dev before train, so that nothing held out can be trained on.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec

import numpy as np

import rlvrlab
from rlvrlab.data.files import write_lines
from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.manifest import manifest_of, path_of, write_manifest
from rlvrlab.data.near import near_prompts
from rlvrlab.data.presets import Preset
from rlvrlab.data.rows import from_row, is_problem_row, read_problems, to_row, write_problems
from rlvrlab.data.sources import local_copy, rows_of, saved_files
from rlvrlab.envs.base import BaseEnvironment, Read, style_of
from rlvrlab.envs.data_files import Place, Row, read_row, read_rows
from rlvrlab.envs.files_read import files_read, were_read
from rlvrlab.envs.split import ROLES, role_in_training_set
from rlvrlab.errors import LabError, UserError
from rlvrlab.notes import LEFT_OUT, hearing
from rlvrlab.plain_files import refuse_taken, sha256_of
from rlvrlab.registry import find, names
from rlvrlab.types import Environment, Problem, Role

Format = Literal["jsonl", "parquet", "trl"]
P = ParamSpec("P")
OURS = Path(rlvrlab.__file__).parent
"""Samples that come along are no data of anybody's."""
MOST_NAMED, MOST_REASONS = 40, 3
"""Rows, and reasons for leaving some out, that a summary names."""


class Item(NamedTuple):
    """A row that was read, and its role."""

    where: str
    read: Read
    role: Role


@dataclass
class Prepared:
    """Problems by role, and what was left behind."""

    name: str
    env: Environment
    problems: dict[Role, list[Problem]] = field(default_factory=lambda: {role: [] for role in ROLES})
    duplicates: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    """Rows that cannot be judged strictly."""
    bad_tasks: dict[str, str] = field(default_factory=dict)
    """Problems left out because their own code fails whatever is answered: id -> reason."""
    not_tried: str = ""
    """Why the problems' own code could not be tried here; empty when it was."""
    left_out_rows: list[str] = field(default_factory=list)
    """Where they stand, and why where the environment says it."""
    origin: str = ""
    raw: list[dict[str, Any]] = field(default_factory=list)
    """The files that were read: name, size and hash."""
    near: list[dict[str, Any]] = field(default_factory=list)
    """Near-duplicates that were left out, each with what it is like."""

    def read_from(self, paths: Iterable[Path]) -> None:
        """Note which files the rows came from, so that the same problems can be made again or doubted.

        They are named from the folder that holds all of them.
        """
        files = sorted(set(paths))
        home = os.path.commonpath([path.parent for path in files]) if files else ""
        for path in files:
            name = path.relative_to(home).as_posix()
            self.raw.append({"file": name, "bytes": path.stat().st_size, "sha256": sha256_of(path)})

    def leave_out_near(self, threshold: float, against: Sequence[Problem] = ()) -> None:
        """Drop training and dev problems whose prompt is nearly that of a test, dev or earlier training problem.

        Also those like a problem in `against`. Test problems stay: a published test set is reported whole.
        """
        groups: list[tuple[str, Sequence[Problem]]] = [("against", against)]
        groups += [(role, self.problems[role]) for role in ROLES]
        everyone = [(group, problem) for group, problems in groups for problem in problems]
        parts = np.repeat(np.arange(len(groups)), [len(problems) for _, problems in groups])
        gone: set[int] = set()
        for left, right, jaccard in near_prompts([problem.prompt for _, problem in everyone], parts, threshold):
            group, problem = everyone[right]  # the later of the two: test before dev before train
            if left not in gone and right not in gone and group in ("dev", "train"):
                gone.add(right)
                kept = {"kept": everyone[left][1].id, "kept_role": everyone[left][0]}
                self.near.append({"id": problem.id, "role": group, "jaccard": round(jaccard, 3), **kept})
        names = {row["id"] for row in self.near}
        for role in ROLES[1:]:
            self.problems[role] = [problem for problem in self.problems[role] if problem.id not in names]

    def summary(self) -> str:
        """How many rows of each role there are, and how many were left behind."""
        roles = ", ".join(f"{len(rows)} {role}" for role, rows in self.problems.items() if rows)
        tests = ", ".join(f"{count:,} {kind}" for kind, count in self.tests().items())
        named = f" ({', '.join(self.left_out_rows[:MOST_NAMED])}{', …' if self.left_out > MOST_NAMED else ''})"
        left_out = f"not judgeable: {self.left_out}{named if self.left_out else ''}"
        counted = f"; tests: {tests}" if tests else ""
        near = f", near-duplicates: {len(self.near)}" if self.near else ""
        others = sum(not twin["same_answer"] for twin in self.duplicates)
        twins = f"{len(self.duplicates)}{f' ({others} with another answer or other tests)' if others else ''}"
        text = f"{self.name}: {roles}{counted}; dropped as duplicates: {twins}{near}, {left_out}"
        if not self.bad_tasks:
            return f"{text}; their own code was not tried: {self.not_tried}" if self.not_tried else text
        return f"{text}, left out when tried: {len(self.bad_tasks)} ({self._why_bad()})"

    def _why_bad(self) -> str:
        """The reasons that were met most, each with its number and one problem that had it."""
        first = {reason: name for name, reason in reversed(self.bad_tasks.items())}
        often = Counter(self.bad_tasks.values()).most_common()
        told = [f"{count} × {reason}, as {first[reason]}" for reason, count in often[:MOST_REASONS]]
        return "; ".join(told) + ("; …" if len(often) > MOST_REASONS else "")

    def leave_out_bad_tasks(self) -> None:
        """Try every problem's own code and keep those whose code works."""
        problems = [problem for some in self.problems.values() for problem in some]
        try:
            self.bad_tasks = self.env.bad_tasks(problems) if isinstance(self.env, BaseEnvironment) else {}
        except LabError as error:  # a machine that cannot isolate code can still prepare data
            self.not_tried = str(error)
        for role, some in self.problems.items():
            self.problems[role] = [problem for problem in some if problem.id not in self.bad_tasks]

    def tests(self, role: Role | None = None) -> dict[str, int]:
        """How many tests of each kind the problems have, {"base": 7, "plus": 993}, where they say it."""
        counts: Counter[str] = Counter()
        for one in [role] if role else ROLES:
            for problem in self.problems[one]:
                counts.update(problem.meta.get("tests") or {})
        return dict(counts)


def naming_files(make: Callable[P, Prepared]) -> Callable[P, Prepared]:
    """What is prepared by this names every file that was read for it."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Prepared:
        with files_read() as files:
            prepared = make(*args, **kwargs)
        prepared.read_from(path for path in files if not path.is_relative_to(OURS))
        return prepared

    return made


@naming_files
def from_preset(name: str, preset: Preset, env: Environment, origin: Path | None) -> Prepared:
    """The rows of a known data set; with a folder_key, `env` already knows its folder and reads it itself."""
    copy = origin or local_copy(name, preset)
    prepared = Prepared(name, env, origin="local copy" if copy else preset.hub)
    were_read(saved_files(copy) if copy else ())
    if preset.folder_key:
        prepared.problems |= _reader(env).problems_in_folder()
        return prepared
    items = []
    lends_dev = "dev" not in preset.splits.values()
    for split, places in rows_of(name, preset, origin).items():
        for where, row in places:
            if (read := _counted(prepared, row, where)) is not None:
                role = read.role if preset.by_content else preset.splits[split]
                role = role_in_training_set(read.role) if role == "train" and lends_dev else role
                items.append(Item(where, read, role))
    _keep(prepared, items)
    return prepared


@naming_files
def from_rows(name: str, places: Iterable[Place], env: Environment, role: Role | Literal["split"] | None) -> Prepared:
    """Rows of the user's own; those that are problems already stay as they are."""
    prepared = Prepared(name, env, origin=name)
    items = []
    for where, row in places:
        if is_problem_row(row):
            problem = from_row(row, where)
            if role not in (None, problem.role):
                raise UserError(f"{where}: {problem.id} is {problem.role} already; a role is given once")
            items.append(Item(where, _whole(problem), problem.role))
        elif (read := _counted(prepared, row, where)) is not None:
            said: Any = read.role if role == "split" else row.get("split", role)
            if said not in ROLES:
                remedy = "give --role train, dev, test or split, or a column 'split' with one of them"
                raise UserError(f"{where}: no role; {remedy}")
            items.append(Item(where, read, said))
    _keep(prepared, items)
    return prepared


@naming_files
def from_environment(name: str, env: Environment, sizes: Mapping[Role, int], seed: int) -> Prepared:
    """Problems that the environment makes."""
    prepared = Prepared(name, env, origin=f"made by {env.name} {env.version}, seed {seed}")
    for role, size in sizes.items():
        prepared.problems[role] = env.problems(role, size, seed) if size else []
    return prepared


def row_readers() -> list[str]:
    """The built-in environments that read rows of published data, sorted."""
    built_in = {name: cls for name in names("env") if (cls := find("env", name)).__module__.startswith("rlvrlab.envs.")}
    return [name for name, cls in built_in.items() if cls.read_row is not BaseEnvironment.read_row]


def write(prepared: Prepared, folder: Path, to: Format) -> list[Path]:
    """A file and a manifest per role, and what was dropped; nothing is overwritten.

    Files that hold these very rows were left by a preparation that was broken off, and are completed."""
    ending = {"jsonl": ".jsonl", "parquet": ".parquet", "trl": "_trl.jsonl"}[to]
    there = {role: rows for role, rows in prepared.problems.items() if rows}
    if not there:
        reason = next((f" ({reason})" for reason in prepared.bad_tasks.values()), "")
        lost = prepared.left_out + len(prepared.bad_tasks)
        raise UserError(f"{prepared.name}: no problems; {lost} rows could not be judged{reason}")
    files = {role: folder / f"{prepared.name}_{role}{ending}" for role in there}
    for role, path in files.items():
        if not (path.exists() and _holds(path, there[role], to)):
            refuse_taken(path)
    facts: dict[str, Any] = {
        "environment": prepared.env.name,
        "version": prepared.env.version,
        "origin": prepared.origin,
    }
    facts |= {"style": style} if (style := style_of(prepared.env)) else {}
    facts |= {"raw": prepared.raw} if prepared.raw else {}
    for role, path in files.items():
        if to == "trl":
            write_lines(path, (json.dumps(trl_row(p), ensure_ascii=False) for p in there[role]))
            continue
        write_problems(path, there[role])
        counted = {"tests": tests} if (tests := prepared.tests(role)) else {}
        write_manifest(manifest_of(path, there[role], facts | counted), path_of(path))
    bad_tasks = [{"id": name, "reason": reason} for name, reason in prepared.bad_tasks.items()]
    left = {"duplicates_dropped": prepared.duplicates, "near_duplicates_dropped": prepared.near, "bad_tasks": bad_tasks}
    for what, rows in left.items():
        if rows:
            lines = (json.dumps(row, ensure_ascii=False) for row in rows)
            write_lines(folder / f"{prepared.name}_{what}.jsonl", lines)
    return list(files.values())


def _holds(path: Path, problems: Sequence[Problem], to: Format) -> bool:
    """Whether a file has exactly the rows that would be written to it."""
    try:
        if to == "trl":
            found, wanted = [row for _, row in read_rows(path)], [trl_row(problem) for problem in problems]
        else:
            found = [to_row(problem, number) for number, problem in enumerate(read_problems(path))]
            wanted = [to_row(problem, number) for number, problem in enumerate(problems)]
    except UserError:  # not what we write
        return False
    return json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def trl_row(problem: Problem) -> dict[str, Any]:
    """TRL's prompt-only shape: reward functions get the other columns by name."""
    row = to_row(problem, 0)
    return {
        "prompt": row["prompt"],
        "ground_truth": row["reward_model"]["ground_truth"],
        "data_source": problem.source,
        "id": problem.id,
        "split": problem.role,
    }


def _reader(env: Environment) -> BaseEnvironment:
    if isinstance(env, BaseEnvironment):
        return env
    raise UserError(f"environment {env.name!r} reads no rows: derive it from BaseEnvironment and give it `read_row`")


def _counted(prepared: Prepared, row: Row, where: str) -> Read | None:
    """What a row asks; None (counted) where it cannot be judged. An unreadable row is an error with its place."""
    told: dict[str, str] = {}
    with hearing(told.__setitem__):
        read = read_row(row, where, _reader(prepared.env).read_row)
    if read is None:
        prepared.left_out += 1
        prepared.left_out_rows.append(f"{where}: {told[LEFT_OUT]}" if LEFT_OUT in told else where)
        return None
    name, make = prepared.name, read.problems
    return replace(read, problems=lambda role: [replace(p, meta={**p.meta, "dataset": name}) for p in make(role)])


def _whole(problem: Problem) -> Read:
    """A problem as a Read that gives it back unchanged."""
    return Read(problem.key, lambda role: [problem], problem.role)


def _references(item: Item) -> list[Any]:
    """What answers to a row are held against."""
    return [problem.reference for problem in item.read.problems(item.role)]


def _keep(prepared: Prepared, items: Sequence[Item]) -> None:
    """Equal content once, by the first of ROLES that has it; an id names one problem, a question stands in one role."""
    seen: dict[str, Item] = {}
    ids: dict[str, str] = {}
    asked: dict[str, tuple[Item, Problem]] = {}
    for item in sorted(items, key=lambda item: ROLES.index(item.role)):
        first = seen.setdefault(item.read.content, item)
        if first is not item:
            prepared.duplicates.append(_twin(item, first, same=_references(first) == _references(item)))
            continue
        for problem in item.read.problems(item.role):
            if ids.setdefault(problem.id, item.where) != item.where:
                raise UserError(f"{item.where}: id {problem.id!r} is also that of {ids[problem.id]}; give it its own")
            # Rows of different content can ask the same: two tasks with one program are one task where it is rewritten.
            before, twin = asked.setdefault(prompt_sha256(problem.prompt), (item, problem))
            if before.role != item.role:
                same = twin.reference == problem.reference
                prepared.duplicates.append({"id": problem.id, **_twin(item, before, same=same)})
                continue
            prepared.problems[item.role].append(problem)


def _twin(item: Item, kept: Item, *, same: bool) -> dict[str, Any]:
    """What is told of a row, or of one problem of it, that is left out because another one asks the same."""
    told = {"row": item.where, "role": item.role, "kept": kept.where, "kept_role": kept.role}
    return told | {"same_answer": same}
