"""A baseline as one file: who answers, which data sets, under which protocols, judged where.

    output = "outputs"

    [model]
    servers = ["http://localhost:8000"]          # or serve = "PATH", started here; or run = "experiments/RUN@best"
    system_prompt = "You are an expert Python programmer."

    [protocol]
    names = ["@1", "@k"]
    n = 8
    tries = 2                                    # second tries: recovery_rate

    [[data]]
    name = "humaneval"                           # a member of `rlvr suite`, read from the data folder
    [[data]]
    name = "mine"
    file = "data/mine_test.jsonl"                # prepared rows, or raw ones with `role`
    env = "code"
    template = "Solve this.\\n\\n{prompt}"

`rlvr phase0 FILE` runs it. Everything that can be wrong is found before a server is started.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlvrlab.data.loading import load
from rlvrlab.data.prepare import from_rows
from rlvrlab.data.rows import is_problem_row
from rlvrlab.data.sources import file_rows
from rlvrlab.errors import RecipeError, UserError, cut, near, one_line, suggestion
from rlvrlab.evals.protocol import USUAL_N, Protocol
from rlvrlab.evals.suites.base import Member, Ready, Skipped, data_folder, most_problems, prepare, usual_size
from rlvrlab.evals.suites.catalogue import members_of
from rlvrlab.evals.suites.plan_check import refuse_unaskable, refuse_unused
from rlvrlab.evals.suites.plan_schema import PROMPT, TABLES, DataTable, Plan
from rlvrlab.randomness import shuffled
from rlvrlab.recipe.parse import line_of, parse_toml, read_toml
from rlvrlab.recipe.remedies import words_of
from rlvrlab.recipe.schema import instantiate
from rlvrlab.registry import name_own
from rlvrlab.types import Environment, Problem


@dataclass(frozen=True)
class PlanFile:
    """A plan as read, with the text it was read from and the folder its paths start at."""

    plan: Plan
    text: str
    folder: Path

    def ready(self) -> list[Ready]:
        """Every data set under every protocol; what is missing or cannot be asked is an error that names all of it."""
        found = [self._ready(table, name) for table in self.plan.data for name in self.plan.protocol.names]
        missing = dict.fromkeys(f"data.{one.name}: {one.why}" for one in found if isinstance(one, Skipped))
        if missing:
            raise RecipeError(list(missing))
        ready = [one for one in found if isinstance(one, Ready)]
        refuse_unaskable(self.plan, ready)
        return ready

    def _ready(self, table: DataTable, protocol: str) -> Ready | Skipped:
        settings, plan = self.plan.protocol.protocol(protocol, table.max_tokens), self.plan
        if table.file is not None or table.env is not None:
            one: Ready | Skipped = self._own(table, settings)
        else:
            members = {member.name: member for member in members_of("all")}
            if table.name not in members:
                known = suggestion(table.name, list(members))
                return Skipped(table.name, f"no member of a suite{known}; give `file` and `env` for one of your own")
            place = self.folder / plan.data_folder if plan.data_folder else data_folder()
            one = prepare(members[table.name], "full", place, table.keys, size=table.size)
        if isinstance(one, Skipped):
            return one
        env, settings = settings.applied(one.env, table.keys)
        asked = [replace(p, prompt=table.template.replace(PROMPT, p.prompt)) for p in one.problems]
        return replace(one, env=env, protocol=settings, problems=tuple(asked))

    def _own(self, table: DataTable, protocol: Protocol) -> Ready | Skipped:
        """Problems of a file, or, without one, those that the environment makes."""
        if table.env is None:
            return Skipped(table.name, "which environment judges the file? give `env`")
        path = self.folder / table.file if table.file is not None else None
        try:
            env: Environment = instantiate("env", {"type": table.env, **table.keys}, self.folder)
            if path is None:
                problems = most_problems(
                    env, table.role or "test", table.size or usual_size(table.keys), self.plan.seed
                )
            elif is_problem_row(next(file_rows(path), ("", {}))[1]):
                problems = [p for p in load(path, "evaluate", env).problems if table.role in (None, p.role)]
            else:
                parts = from_rows(table.name, file_rows(path), env, table.role).problems
                problems = [problem for part in parts.values() for problem in part]
        except UserError as error:
            return Skipped(table.name, one_line(error))
        except ValueError as error:  # pydantic's: a key that the environment does not take
            return Skipped(table.name, f"{table.env}: {one_line(error)}")
        if not problems:
            return Skipped(table.name, f"{path or table.env}: no {table.role or ''} problems")
        size = len(problems) if table.size is None else table.size
        chosen: list[Problem] = shuffled(problems, self.plan.seed, "phase0", table.name)[:size]
        member = Member(table.name, table.env, size, size, dict(table.keys), role=chosen[0].role)
        return Ready(member, env, tuple(chosen), protocol, str(path or ""))


def read_plan(path: Path) -> PlanFile:
    """Read and check a plan; all that is wrong with it is said at once."""
    tree, text = read_toml(path)
    name_own(tree, path.resolve().parent, Path())
    read = _checked(tree, text, path, path.resolve().parent)
    refuse_unused(read.plan, path.name)
    return read


def plan_from_text(text: str, where: Path, folder: Path) -> PlanFile:
    """The plan that a folder was begun with, whose paths start at `folder`."""
    return _checked(parse_toml(text, str(where)), text, where, folder)


def _checked(tree: dict[str, Any], text: str, path: Path, folder: Path) -> PlanFile:
    try:
        plan = Plan.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        raise RecipeError(
            [f"{near(str(path))}{_complaint(one, text)}" for one in error.errors(include_url=False)]
        ) from None
    named = [table.name for table in plan.data]
    problems = [f"data: two are named {name!r}" for name in dict.fromkeys(named) if named.count(name) > 1]
    asked, n = plan.protocol, plan.protocol.n or USUAL_N
    if len({*asked.names}) < len(asked.names):
        problems.append(f"protocol.names: {', '.join(asked.names)}: each protocol once")
    if "@k" in asked.names and max(asked.k, default=0) > n:
        problems.append(f"protocol.k: {max(asked.k)} of n = {n} answers; allowed: 1 to {n}; raise protocol.n")
    given = [key for key in ("serve", "servers", "run") if getattr(plan.model, key)]
    if len(given) != 1:
        told = f"{' and '.join(given)} are given" if given else "none is given"
        problems.append(f"model: one of serve, servers and run says who answers; {told}")
    if problems:
        raise RecipeError([f"{near(str(path))}: {problem}" for problem in problems])
    for name in plan.protocol.names:
        try:
            plan.protocol.protocol(name, None)
        except UserError as error:
            raise RecipeError([f"{near(str(path))}: protocol: {error}"]) from None
    return PlanFile(plan, text, folder)


def _complaint(item: Any, text: str) -> str:
    where = ".".join(str(part) for part in item["loc"])
    line = line_of(text, where) if not where.startswith("data.") else None
    place = f":{line}: {where}" if line else f": {where}"
    if item["type"] == "extra_forbidden":
        table = TABLES.get(str(item["loc"][0]), Plan) if len(item["loc"]) > 1 else Plan
        return f"{place}: unknown key{suggestion(str(item['loc'][-1]), list(table.model_fields))}"
    if item["type"] == "missing":
        return f"{place}: is missing"
    got = cut(json.dumps(item["input"], default=str), 80)
    return f"{place}: {words_of([item['type']], item['msg'])}, got {got}"
