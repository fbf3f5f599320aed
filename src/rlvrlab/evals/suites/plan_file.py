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
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rlvrlab.data.loading import load
from rlvrlab.data.prepare import from_rows
from rlvrlab.data.rows import is_problem_row
from rlvrlab.data.sources import file_rows
from rlvrlab.errors import RecipeError, UserError, suggestion
from rlvrlab.evals.protocol import MAX_NEW_TOKENS, USUAL_N, Protocol, named_protocol
from rlvrlab.evals.suites.base import Member, Ready, Skipped, data_folder, most_problems, prepare, usual_size
from rlvrlab.evals.suites.catalogue import members_of
from rlvrlab.evals.suites.plan_check import refuse_unaskable, refuse_unused
from rlvrlab.randomness import shuffled
from rlvrlab.recipe.load import instantiate
from rlvrlab.recipe.parse import line_of, parse_toml, read_toml
from rlvrlab.recipe.schema import NAME
from rlvrlab.registry import name_own
from rlvrlab.types import Count, CountOrZero, Environment, Positive, Problem, Role

PROMPT = "{prompt}"
"""Where a template has the problem's own prompt."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class ModelTable(_Section):
    """Who answers: exactly one of serve, servers, run."""

    serve: str | None = Field(None, description="model to start servers of: a name, a folder or a hub id")
    servers: list[str] = Field(default_factory=list, description="OpenAI-compatible servers that are running")
    run: str | None = Field(None, description="a run's policy in this process: RUN@best, @last, @STEP, @base")
    name: str | None = Field(None, description="model that `servers` must serve; None: the only one they list")
    replicas: Count = Field(1, description="servers to start, GPUs in turn")
    backend: Literal["auto", "vllm", "transformers", "embedded"] = Field("auto", description="of what is started")
    arguments: list[str] = Field(default_factory=list, description="further words for the servers that are started")
    wait_s: Positive = Field(600.0, description="seconds until all servers that are started must answer")
    system_prompt: str = Field("", description="system message before every prompt; needs a chat template")
    completions: bool = Field(False, description="continue plain text, for models without a chat template")
    concurrency: Count = Field(64, description="requests at once, in turn over all servers")
    timeout_s: Positive = Field(600.0, description="seconds for one request")
    key_env: str = Field("RLVR_API_KEY", description="environment variable with the servers' key")


class ProtocolTable(_Section):
    """How every data set is asked; see evals/protocol.py."""

    names: Annotated[list[Literal["@1", "@k", "@budget"]], MinLen(1)] = Field(
        ["@1"], description="each of them is asked of every data set, the headline first"
    )
    n: Count | None = Field(None, description="@k: answers per problem, 8 where nothing is said; @budget: at most")
    k: list[Count] = Field(default_factory=list, description="@k: pass@k for these; empty: 1 and n")
    budget: str = Field("", description="@budget: tokens=N or judge_s=S per problem, wall_s=S in all")
    temperature: Positive | None = Field(None, description="@k and @budget; None: 1")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="@k and @budget")
    max_tokens: Count = Field(MAX_NEW_TOKENS, description="longest answer")
    tries: Literal[1, 2] = Field(1, description="2: failed first answers get a second try after feedback (not @budget)")

    def protocol(self, name: str, max_tokens: int | None) -> Protocol:
        """One of the named protocols; settings that belong to another one of them do not concern it."""
        longest, sampled = max_tokens or self.max_tokens, name != "@1"
        return named_protocol(
            name,
            max_tokens=longest,
            n=self.n if sampled else None,
            ks=self.k if name == "@k" else (),
            budget=self.budget if name == "@budget" else "",
            temperature=self.temperature if sampled else None,
            top_p=self.top_p if sampled else 1.0,
            tries=1 if name == "@budget" else self.tries,
        )


class JudgeTable(_Section):
    """Where programs are judged."""

    servers: list[str] = Field(default_factory=list, description="judges to ask; empty: this machine, in the jail")
    plain_sandbox: bool = Field(False, description="trust a plain SandboxFusion with assert code, which can be forged")


class DataTable(_Section):
    """One data set: a member of `rlvr suite` by its name, a file of your own, or what an environment makes."""

    name: str
    file: str | None = Field(None, description="prepared rows, or raw ones; relative to this file")
    env: str | None = Field(None, description="environment that judges the file, or makes problems; None: a member's")
    keys: dict[str, Any] = Field(default_factory=dict, description="the environment's own keys")
    role: Role | None = Field(None, description="rows of this role; needed where raw rows do not say theirs")
    size: Count | None = Field(None, description="problems, a fixed selection; None: all")
    template: str = Field(PROMPT, description="words around the problem's own prompt, which stands at {prompt}")
    max_tokens: Count | None = Field(None, description="longest answer of this data set")

    @field_validator("name")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError("cannot name files; allowed: letters, digits, . _ -")
        return name

    @field_validator("template")
    @classmethod
    def _has_prompt(cls, template: str) -> str:
        if template.count(PROMPT) != 1:
            raise ValueError(f"must hold {PROMPT} once")
        return template


class Plan(_Section):
    """Every key of the file."""

    name: str = Field("phase0", description="names the folder")
    output: str = Field("outputs", description="where the folder is made")
    data_folder: str | None = Field(None, description="of the members' files; None: $RLVRLAB_DATA, else ./data")
    seed: CountOrZero = Field(0, description="draws problems and answers")
    sinks: list[str] = Field(default_factory=list, description="trackers that get the numbers: wandb, trackio, …")
    model: ModelTable
    protocol: ProtocolTable = ProtocolTable()
    judge: JudgeTable = JudgeTable()
    data: Annotated[list[DataTable], MinLen(1)]


TABLES: dict[str, type[BaseModel]] = {
    "model": ModelTable, "protocol": ProtocolTable, "judge": JudgeTable, "data": DataTable,
}  # fmt: skip


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
            return Skipped(table.name, " ".join(str(error).split()))
        except ValueError as error:  # pydantic's: a key that the environment does not take
            return Skipped(table.name, f"{table.env}: {' '.join(str(error).split())[:200]}")
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
        raise RecipeError([f"{path.name}{_complaint(one, text)}" for one in error.errors(include_url=False)]) from None
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
        raise RecipeError([f"{path.name}: {problem}" for problem in problems])
    for name in plan.protocol.names:
        try:
            plan.protocol.protocol(name, None)
        except UserError as error:
            raise RecipeError([f"{path.name}: protocol: {error}"]) from None
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
    words = item["msg"].removeprefix("Value error, ")
    return f"{place}: {words[:1].lower()}{words[1:]}, got {json.dumps(item['input'], default=str)[:80]}"
