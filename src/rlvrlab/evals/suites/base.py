"""What a suite is made of, and how a member becomes an environment with problems."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlvrlab.data.loading import load
from rlvrlab.data.prepare import from_preset
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.rows import is_problem_row
from rlvrlab.data.sources import file_rows
from rlvrlab.envs.data_files import DATA, ENDINGS, whatever_capitals
from rlvrlab.errors import UserError, first_few, one_line
from rlvrlab.evals.protocol import USUAL_SIZE, Protocol, eval_at_1, eval_at_k
from rlvrlab.randomness import shuffled
from rlvrlab.recipe.schema import instantiate
from rlvrlab.types import Environment, Problem, Role

Tier = Literal["fast", "full"]
TEMPERATURE = 0.6
"""Sampling temperature of pass@k members; the others are greedy."""
EVERY = 1_000_000
"""More problems than a file has."""
MOST_REASONS = 5
"""What was skipped, as far as one line tells of it."""


@dataclass(frozen=True)
class Member:
    """One data set under fixed settings."""

    name: str
    env: str
    """Environment that asks and judges."""
    full: int
    """Problems of the full tier, at most."""
    fast: int
    """Problems of the fast tier, at most: the first ones of the same order."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""
    """The published data set it is (data/presets.py); empty: the environment makes the problems, or reads a folder."""
    files: tuple[str, ...] = ()
    """Places of its file under the data folder, of which the first that exists is taken; empty where it needs none."""
    folder_key: str = ""
    """The environment's key for a folder that it reads itself."""
    role: Role = "test"
    n: int = 1
    """Answers per problem in both tiers: 1 is EVAL@1 greedy, more is pass@n."""
    max_tokens: int = 2048
    seed: int = 0
    """Order in which problems are taken: a fixed selection where there are more than asked for."""
    group: str = ""
    """The heading in the table under which it stands."""
    source: str = ""
    """Where to get its file."""

    def file_in(self, data: Path) -> Path | None:
        """Its file under a data folder; None where it needs none, or none is there."""
        return next((found for name in self.files if (found := whatever_capitals(data / name))), None)

    def size(self, tier: Tier) -> int:
        """Number of problems that a tier asks for."""
        return self.fast if tier == "fast" else self.full

    def protocol(self, max_tokens: int | None = None) -> Protocol:
        """EVAL@1, or EVAL@k where several answers are drawn."""
        n, longest = self.n, max_tokens or self.max_tokens
        return eval_at_1(longest) if n == 1 else eval_at_k(n, (1, n), TEMPERATURE, max_tokens=longest)


@dataclass(frozen=True)
class Suite:
    """Members that are reported together."""

    name: str
    title: str
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Ready:
    """A member with its problems."""

    member: Member
    env: Environment
    problems: tuple[Problem, ...]
    protocol: Protocol
    file: str
    """What was read; empty when nothing had to be."""


@dataclass(frozen=True)
class Skipped:
    """A member that cannot be examined here, and why."""

    name: str
    why: str


def test_file(name: str, *more: str) -> tuple[str, ...]:
    """Usual places of a test set: NAME/test.jsonl, NAME_test.jsonl, math_suites/NAME_test.jsonl, or another ending."""
    stems = (f"{name}/test", f"{name}_test", f"math_suites/{name}_test")
    return (*(f"{stem}{ending}" for stem in stems for ending in ENDINGS), *more)


def data_folder(given: Path | None = None) -> Path:
    """The folder of data files: as given, else $RLVRLAB_DATA, else ./data."""
    return given or Path(os.environ.get(DATA) or "data")


def published(name: str, full: int, fast: int, source: str = "", **fields: Any) -> Member:
    """A member whose rows are a published data set's, judged as its preset says."""
    preset = PRESETS[fields.setdefault("preset", name)]
    fields.setdefault("files", test_file(name))
    fields["source"] = f"`rlvr data prepare {fields['preset']}`" if preset.hub else source
    keys = {**preset.keys, **fields.pop("keys", {})}
    return Member(name, preset.env, full, fast, keys, **fields)


def prepare(
    member: Member, tier: Tier, data: Path, overrides: Mapping[str, Any] | None = None, *,
    max_tokens: int | None = None, size: int | None = None,
) -> Ready | Skipped:  # fmt: skip
    """The member's problems, or the reason there are none; never a silent absence."""
    keys = {**member.keys, **(overrides or {})}
    file = member.file_in(data)
    if member.files and file is None:
        return Skipped(member.name, f"no {member.files[0]} under {data}; get it: {_source(member, data)}")
    if member.folder_key:
        keys[member.folder_key] = str(file)
    wanted = size or member.size(tier)
    try:
        env: Environment = instantiate("env", {"type": member.env, **keys}, Path())
        env, protocol = member.protocol(max_tokens).applied(env, overrides or ())
        if member.preset and file:
            if is_problem_row(next(file_rows(file), ("", {}))[1]):  # made by `rlvr data prepare`
                problems = [problem for problem in load(file, "evaluate", env).problems if problem.role == member.role]
            else:  # the publisher's own rows
                problems = from_preset(member.preset, PRESETS[member.preset], env, file).problems[member.role]
            problems = shuffled(problems, member.seed, "suite", member.name)[:wanted]
        else:
            problems = most_problems(env, member.role, wanted, member.seed)
    except UserError as error:
        return Skipped(member.name, one_line(error))
    except ValueError as error:  # pydantic's: a key that the environment does not take
        return Skipped(member.name, f"{member.env}: {one_line(error)}")
    if not problems:
        return Skipped(member.name, f"{file} has no {member.role} problems")
    return Ready(member, env, tuple(problems), protocol, str(file or ""))


def _source(member: Member, data: Path) -> str:
    """Where to get its file; a command that makes it writes it where it was looked for."""
    command = member.source.startswith("`rlvr data prepare ") and member.source.endswith("`")
    if not command or data == Path("data"):
        return member.source
    return f"{member.source[:-1]} -o {shlex.quote(str(data))}`"


def refuse_nothing(subject: str, given: Iterable[Ready | Skipped], found: Collection[object], what: str) -> None:
    """UserError where nothing was found to examine, with what was skipped of `what` is given, and why."""
    if found:
        return
    reasons = [f"{one.name}: {one.why}" for one in given if isinstance(one, Skipped)]
    told = first_few(reasons, MOST_REASONS, " | ")
    raise UserError(f"{subject}: no {what} is left to examine; skipped {told}")


def usual_size(keys: Container[str]) -> int:
    """How many problems are asked of an environment with these keys where nobody says: of a file that is named, all."""
    return EVERY if "path" in keys else USUAL_SIZE


def most_problems(env: Environment, role: Role, wanted: int, seed: int) -> list[Problem]:
    """`wanted` problems, or as many as the environment can give; where it can give none, its own error is raised."""
    try:
        return env.problems(role, wanted, seed)
    except UserError as error:
        reason = error
    low, high = 0, wanted
    problems: list[Problem] = []
    while high - low > 1:
        middle = (low + high) // 2
        try:
            problems, low = env.problems(role, middle, seed), middle
        except UserError:
            high = middle
    if not problems:
        raise reason
    return problems
