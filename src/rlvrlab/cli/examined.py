"""Who is examined on what: from the words of a command to a policy, an environment and problems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvrlab.cli.check import built
from rlvrlab.cli.names import LATEST, find_run, refuse_unknown
from rlvrlab.cli.printing import printable
from rlvrlab.errors import UserError
from rlvrlab.evals.answering import AT_ONCE
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.recipe.parse import parse_overrides
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.recipe.shipped import named_file
from rlvrlab.record.final import split_run
from rlvrlab.record.run import read_info
from rlvrlab.registry import names
from rlvrlab.types import Environment, Problem, RewardFunction, Role

if TYPE_CHECKING:
    from rlvrlab.evals.answering import Answerer

WHO = f"give --run {LATEST} (or another run of `rlvr runs`)"


@dataclass(frozen=True)
class Subject:
    """The environment that asks, and the recipe it came from."""

    env: Environment
    chosen: frozenset[str]
    """Keys of the environment that the user has set."""
    resolved: Resolved | None
    type: str
    """The environment as a recipe names it, so that the answers can be judged again."""
    engine_keys: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What a record keeps to find the scorer again."""
        folder = self.resolved.folder if self.resolved and ".py:" in self.type else Path()
        return {"scorer_type": self.type, "scorer_folder": str(folder.resolve())}

    @property
    def reward(self) -> RewardFunction | None:
        """The reward of the recipe that this environment belongs to, as far as it can still be had."""
        if self.resolved is None or self.resolved.recipe.env["type"] != self.type:
            return None
        try:
            reward: RewardFunction = self.resolved.build("reward")
        except UserError:  # a function whose file is gone; a run can be evaluated without it
            return None
        return reward

    @property
    def max_tokens(self) -> int | None:
        """The longest answer that the recipe allows; None without a recipe."""
        return self.resolved.recipe.rollout.max_tokens if self.resolved else None


def subject_of(what: str | None, words: Sequence[str], run: str | None, engine: str | None = None) -> Subject:
    """A recipe's environment, an environment by name, or that of the run.

    Where an `engine` is named, keys such as engine.model are that engine's and not the recipe's.
    """
    from rlvrlab.train.session import resolved_of

    if what is None:
        if run is None:
            raise UserError(f"whose policy? {WHO}, or name a recipe, e.g. `rlvr eval toy_countdown`")
        if words:
            raise UserError(f"{words[0]!r}: with --run alone the environment is the run's; name one to set its keys")
        subject = subject_of_recipe(resolved_of(split_run(run)[0]))
        trained = (read_info(split_run(run)[0]).get("data") or {}).get("version", subject.env.version)
        if trained != subject.env.version:  # trained on problems, or by a scoring, that are perhaps not those of today
            was = f"{split_run(run)[0].name} was trained with {subject.env.name} version {trained}"
            now = f"this is version {subject.env.version}, with other problems or another scoring"
            click.echo(printable(f"note: {was}, {now}"), err=True)
        return subject
    if is_recipe(what):
        own = tuple(word for word in words if engine and word.removeprefix("--").startswith("engine."))
        resolved = load_recipe(Path(what), [word for word in words if word not in own])
        return replace(subject_of_recipe(resolved), engine_keys=own)
    if Path(what).is_dir():
        raise UserError(f"{what}: a folder, not an environment; --run takes one run, e.g. `--run {what}`")
    if what not in names("env") and not Path(what).suffix and find_run(what) is not None:
        raise UserError(f"{what}: a run, not an environment; say `--run {what}`")
    refuse_unknown(what, recipes=True)
    of_engine = tuple(word for word in words if word.removeprefix("--").startswith("engine."))
    keys = tuple(word for word in words if word not in of_engine)
    resolved_run = resolved_of(split_run(run)[0]) if run else None
    return Subject(built("env", what, keys), frozenset(parse_overrides(keys)), resolved_run, what, of_engine)


def is_recipe(what: str) -> bool:
    """A recipe's file, or the name of one that comes along; an environment of the same name wins."""
    return what.endswith(".toml") or (what not in names("env") and named_file(Path(what)) is not None)


def subject_of_recipe(resolved: Resolved) -> Subject:
    """A recipe's own environment."""
    chosen = {key.removeprefix("env.") for key, origin in resolved.origins.items() if origin != "default"}
    return Subject(resolved.build("env"), frozenset(chosen), resolved, resolved.recipe.env["type"])


def problems_of(
    subject: Subject, role: Role, size: int | None, data: Path | None
) -> tuple[list[Problem], str, dict[str, Any]]:
    """Which problems, the data set's name, and facts about the file they came from."""
    from rlvrlab.evals.suites.base import EVERY, most_problems, usual_size

    seed = subject.resolved.recipe.data.seed if subject.resolved else 0
    if data is None:
        usual = subject.resolved.recipe.data.dev_size if subject.resolved else usual_size(subject.chosen)
        wanted = size or usual
        problems = most_problems(subject.env, role, wanted, seed)
        facts = {} if wanted == EVERY else _fewer(f"{role} problems", len(problems), wanted, said=bool(size))
        if not facts and wanted < usual and (whole := len(most_problems(subject.env, role, usual, seed))) > wanted:
            facts["part_of"] = whole
        return problems, subject.env.name, facts
    from rlvrlab.data.loading import load

    loaded = load(data, "evaluate", subject.env, size, seed, fewer=True)
    facts = _fewer("problems", len(loaded.problems), size or 0, said=True)
    return list(loaded.problems), data.name.partition(".")[0], {"data_file": loaded.facts, **facts}


def _fewer(what: str, found: int, wanted: int, *, said: bool) -> dict[str, Any]:
    """What is told and recorded where there are fewer problems than were wanted, and those that there are are asked."""
    if found >= wanted:
        return {}
    asked = f"{wanted} were asked for" if said else f"{wanted} are the usual number"
    words = f"all {found} {what} there are; {asked}"
    if said:
        click.echo(words, err=True)
    return {"fewer_problems": words}


@contextmanager
def answerer_of(subject: Subject, request: dict[str, Any]) -> Iterator[Answerer]:
    """The policy: exactly one of a run's checkpoint, an engine, servers; or else the recipe's own, untrained.

    `request` holds the options of `options.examination`.
    """
    from rlvrlab.evals.answering import EngineAnswerer

    run, engine, servers = request["run"], request["engine"], request["servers"]
    if sum((run is not None, engine is not None, bool(servers))) > 1:
        raise UserError("--run, --engine and --server each name a policy; give one of them")
    if request["model"] and not servers:
        raise UserError("--model names what a server serves; give --server too")
    if servers:
        with served(request, request["logprobs"]) as answerer:
            yield answerer
        return
    if run is not None:
        from rlvrlab.train.policy import policy_of

        policy = policy_of(*split_run(run))
        answers, facts = policy.engine, policy.facts
    elif engine is not None:
        keys = tuple(word.removeprefix("--").removeprefix("engine.") for word in subject.engine_keys)
        answers, facts = built("engine", engine, keys).read(Optimizer()), {"keys": sorted(keys), "weights": "fresh"}
    elif subject.resolved is not None:
        recipe = subject.resolved.recipe
        answers = subject.resolved.build("engine").read(recipe.optimizer)
        facts = {"keys": recipe.engine, "weights": "fresh"}
    else:
        raise UserError(f"who answers? {WHO}, --server URL, or --engine NAME such as --engine toy")
    yield EngineAnswerer(answers, facts, AT_ONCE, entropy=True, system=request.get("system_prompt") or "")


@contextmanager
def served(request: dict[str, Any], logprobs: int = 0) -> Iterator[Answerer]:
    """The model behind --server; `request` holds the options of `options.SERVERS`."""
    from rlvrlab.engines.openai import Servers
    from rlvrlab.evals.answering import ServerAnswerer

    with Servers(
        request["servers"],
        request["model"],
        os.environ.get(request["key_env"]),
        concurrency=request["concurrency"],
        deadline_s=request["timeout"],
        chat=not request["completions"],
    ) as opened:
        yield ServerAnswerer(opened, logprobs, request.get("system_prompt") or "")


def name_of(identity: dict[str, Any]) -> str:
    """A short name of who answered, for titles and folder names."""
    if "run" in identity:
        return f"{identity['run']}@{identity['step']}"
    return Path(str(identity.get("model") or f"{identity.get('engine')}_fresh")).name
