"""Everything a run needs, built once from its recipe. Nothing in it changes but the engine's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlvrlab.engines.base import Engine, EngineTable
from rlvrlab.envs.split import Use, require
from rlvrlab.errors import UserError, near
from rlvrlab.notes import counted, timed
from rlvrlab.randomness import drawn, shuffled
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.rewards.total import AbsentReward
from rlvrlab.rollout.collect import collect
from rlvrlab.train.state import Moment, Stage
from rlvrlab.types import Environment, Problem, RewardFunction, Role, Rollout, Sampling, content_hash, skills_of

if TYPE_CHECKING:
    from rlvrlab.credit.base import Shape, StepCredit
    from rlvrlab.surgery.base import Surgery
    from rlvrlab.train.guards.base import Guard
    from rlvrlab.train.protocols.base import TrainingProtocol
    from rlvrlab.train.surgery import Grouping


SOME = 64
"""Training problems whose right answers are measured."""


@dataclass(frozen=True)
class Supplies:
    """Recipe, environment, reward, problems and the plug-ins that shape updates: all but the policy.

    A policy may take long to load, so whatever can be refused without one is refused by this.
    """

    resolved: Resolved
    env: Environment
    reward: RewardFunction
    train: tuple[Problem, ...]
    dev: tuple[Problem, ...]
    tests: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    """Sets of test problems by name, for the cards between phases; nothing is chosen by them."""
    files: Mapping[str, Any] = field(default_factory=dict)
    """By role: the data file used in place of the environment's own problems, with its hashes."""

    @property
    def test(self) -> tuple[Problem, ...]:
        """The test problems of all sets."""
        return tuple(problem for problems in self.tests.values() for problem in problems)

    @property
    def recipe(self) -> Recipe:
        """The settings."""
        return self.resolved.recipe

    def data_facts(self) -> dict[str, Any]:
        """What was trained and evaluated on, by content."""
        facts: dict[str, Any] = {"environment": self.env.name, "version": self.env.version}
        facts |= {"train": _by_content(self.train), "dev": _by_content(self.dev)}
        facts |= {"test": _by_content(self.test)} if self.test else {}
        return facts | {"files": dict(self.files)} if self.files else facts

    @cached_property
    def table(self) -> EngineTable:
        """What the recipe says of the engine."""
        return cast(EngineTable, self.resolved.build("engine"))

    @cached_property
    def protocol(self) -> TrainingProtocol | None:
        """How on-line phases are cut into stages."""
        return cast("TrainingProtocol | None", self.resolved.build("protocol"))

    @cached_property
    def surgery(self) -> Surgery | None:
        """How gradients of different groups are combined."""
        return cast("Surgery | None", self.resolved.build("surgery"))

    @cached_property
    def guard(self) -> Guard | None:
        """What protects skills that are not being trained."""
        return cast("Guard | None", self.resolved.build("guard"))

    @cached_property
    def credit(self) -> StepCredit | None:
        """How the steps of an answer share its reward."""
        return cast("StepCredit | None", self.resolved.build("credit"))

    @property
    def shape(self) -> Shape | None:
        """Of the trees on which the answers of on-line steps grow; None where each is drawn by itself."""
        return self.credit.shape(self.recipe.rollout.n) if self.credit is not None and self.credit.grows else None

    @cached_property
    def grouping(self) -> Grouping:
        """Which problems belong together, for surgery."""
        from rlvrlab.train.surgery import Grouping

        return Grouping(self.surgery, self.train, self.recipe.seed)

    @cached_property
    def _stages(self) -> dict[int, list[Stage]]:
        """By the number of steps of a phase: what has been worked out so far."""
        return {}

    def stages(self, steps: int) -> list[Stage]:
        """The stages of an on-line phase of so many steps; worked out once, since that reads all training problems."""
        if steps not in self._stages:
            self._stages[steps] = stages_of(self.protocol, self.train, steps)
        return self._stages[steps]

    @property
    def remembers(self) -> bool:
        """Does anything have a memory that checkpoints must hold?"""
        plugged = (self.protocol, self.surgery, self.guard)
        learns = self.credit is not None and self.credit.remembers
        return bool(self.recipe.pipeline.lag) or learns or any(one is not None for one in plugged)


@dataclass(frozen=True)
class Lab(Supplies):
    """All that a run needs: its supplies and the policy."""

    engine: Engine = field(kw_only=True)

    @property
    def sampling(self) -> Sampling:
        """How training answers are drawn."""
        r = self.recipe.rollout
        return Sampling(max_tokens=r.max_tokens, temperature=r.temperature, top_p=r.top_p)

    def sampling_in(self, stage: Stage) -> Sampling:
        """How every answer of a stage is drawn: first and second tries, replays, and what a guard asks for."""
        return replace(self.sampling, max_tokens=stage.max_tokens or self.sampling.max_tokens)

    @cached_property
    def answer_length(self) -> int | None:
        """The tokens of a right answer, where all that are known have the same number; else None."""
        golds = (gold for problem in self.train[:SOME] if (gold := self.env.gold(problem)) is not None)
        lengths = (len(self.engine.tokenizer.encode(gold)) for gold in golds)
        first = next(lengths, None)
        return first if all(length == first for length in lengths) else None

    def ask(
        self,
        problems: Sequence[Problem],
        key: tuple[object, ...],
        sampling: Sampling | None = None,
        n: int | None = None,
        shape: Shape | None = None,
    ) -> list[Rollout]:
        """Judged answers of the policy to each problem: `n` of them, rollout.n where nothing else is said."""
        n, sampling = n or self.recipe.rollout.n, sampling or self.sampling
        return collect(self.engine, self.env, self.reward, problems, n=n, sampling=sampling, key=key, shape=shape)

    def problems_at(self, stream: str, step: int, size: int) -> list[Problem]:
        """The `step`-th slice of an endless stream that visits every training problem once per epoch, reshuffled."""
        return drawn(self.train, (self.recipe.seed, stream), step * size, (step + 1) * size)

    def problems_in(self, now: Moment, stream: str, size: int) -> list[Problem]:
        """What an on-line step asks: the protocol's choice, or the next of all, and what a guard mixes in."""
        with timed("problems"):
            if self.protocol is None:
                problems = self.problems_at(stream, now.phase_step, size)
            else:
                at = now.phase_step - now.stage.first
                problems = self.protocol.problems(self.train, self.recipe.seed, now.stage, stream, at, size)
            return list(self.guard.mixed_in(now, problems, stream)) if self.guard else list(problems)


def _by_content(problems: Sequence[Problem]) -> dict[str, Any]:
    return {"size": len(problems), "sha256": content_hash(problems)}


def shows_answers(resolved: Resolved, before: int | None = None) -> bool:
    """Does one of the first so many phases, or of all, teach by right answers?"""
    return any(resolved.phase(name).family == "imitation" for name in resolved.recipe.phases[:before])


def engine_alone(resolved: Resolved) -> Engine:
    """A recipe's engine with its embedded sampler: a policy is examined without the servers that helped train it."""
    return cast(Engine, resolved.build("engine").alone().build(resolved.recipe.optimizer))


def build_lab(resolved: Resolved) -> Lab:
    """Build the plug-ins, draw the problems and load the policy."""
    return with_policy(build_supplies(resolved))


def with_policy(has: Supplies) -> Lab:
    """Supplies, and the policy loaded."""
    engine = has.resolved.build("engine").build(has.recipe.optimizer)
    return Lab(has.resolved, has.env, has.reward, has.train, has.dev, has.tests, has.files, engine=engine)


def build_supplies(resolved: Resolved) -> Supplies:
    """Build environment and reward, and draw the problems."""
    env: Environment = resolved.build("env")
    files: dict[str, Any] = {}
    train = _problems(resolved, env, "train", "train", files)
    dev = _problems(resolved, env, "dev", "tune", files)
    _check_roles(train, dev)
    reward: RewardFunction = resolved.build("reward")
    if isinstance(reward, AbsentReward):
        reward.refuse()
    return Supplies(resolved, env, reward, tuple(train), tuple(dev), _test_sets(resolved, env, files), files)


def build_problems(resolved: Resolved) -> dict[Role, list[Problem]]:
    """The training and held-out problems alone, without an engine."""
    env: Environment = resolved.build("env")
    train, dev = (_problems(resolved, env, "train", "train", {}), _problems(resolved, env, "dev", "tune", {}))
    _check_roles(train, dev)
    return {"train": train, "dev": dev}


def _problems(resolved: Resolved, env: Environment, role: Role, use: Use, files: dict[str, Any]) -> list[Problem]:
    """Problems from the recipe's file for this role, or the environment's own; a file's facts are added to `files`."""
    data = resolved.recipe.data
    file, size = getattr(data, f"{role}_file"), getattr(data, f"{role}_size")
    if file is None:
        with counted(f"{role} problems", size):
            return env.problems(role, size, data.seed)
    from rlvrlab.data.loading import load_all

    _refuse_missing(resolved, f"data.{role}_file", file)
    whole = resolved.origins.get(f"data.{role}_size") == "default"
    loaded = load_all(places_of(resolved, file), use, env, None if whole else size, data.seed)
    files[role] = loaded.facts
    return list(loaded.problems)


def _refuse_missing(resolved: Resolved, key: str, given: str | list[str]) -> None:
    """Say where a file that is not there is named, and what would make it."""
    from rlvrlab.data.presets import how_to_make
    from rlvrlab.envs.data_files import near_files

    for path in places_of(resolved, given):
        if not path.exists():
            remedy = f"make it with {how_to_make([path])}, or name another"
            raise UserError(f"{resolved.where(key)}: {near(str(path))}: no such file{near_files(path)}; {remedy}")


def places_of(resolved: Resolved, given: str | list[str]) -> list[Path]:
    """One file or several, looked up beside the recipe."""
    return [resolved.folder / name for name in ([given] if isinstance(given, str) else given)]


def _test_sets(resolved: Resolved, env: Environment, files: dict[str, Any]) -> dict[str, tuple[Problem, ...]]:
    """By the name of their file, or one set of the environment's own; empty where no card is asked for."""
    recipe = resolved.recipe
    size, given = recipe.eval.test_size, recipe.data.test_file
    if given is None:
        with counted("test problems", size):
            return {env.name: tuple(env.problems("test", size, recipe.data.seed))} if size else {}
    from rlvrlab.data.loading import load
    from rlvrlab.envs.data_files import bare_name

    sets: dict[str, tuple[Problem, ...]] = {}
    _refuse_missing(resolved, "data.test_file", given)
    for path in places_of(resolved, given):
        loaded = load(path, "evaluate", env, None, recipe.data.seed)
        problems = shuffled(loaded.problems, recipe.data.seed, "test", path.name)[: size or None]
        sets[bare_name(path)] = tuple(problems)
        files.setdefault("test", {})[bare_name(path)] = loaded.facts
    names = [problem.id for problems in sets.values() for problem in problems]
    if len(set(names)) < len(names):
        raise UserError(f"data.test_file: {', '.join(sets)} share problems; name each set once")
    return sets


def _check_roles(train: list[Problem], dev: list[Problem]) -> None:
    if not train or not dev:
        raise UserError("data: the environment gave no problems; widen its keys or lower data.train_size")
    require(train, "train", "data")
    require(dev, "tune", "data")
    shared = {p.key for p in train} & {p.key for p in dev}
    if shared:
        raise UserError(f"data: {len(shared)} held-out problems are also in training, e.g. {sorted(shared)[:3]}")


def stages_of(protocol: TrainingProtocol | None, train: Sequence[Problem], steps: int) -> list[Stage]:
    """The stages of a phase; without a protocol, one that trains everything."""
    if protocol is None:
        return [Stage(0, "all", tuple(skills_of(train)), 0, steps)]
    return protocol.stages(train, steps)
