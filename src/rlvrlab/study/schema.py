"""Every key of a study file, with its default and one line that explains it.

Overrides of recipe keys are written as in a recipe, dotted or in tables; `settings` turns both into dotted keys.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BeforeValidator, Field

from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import Section, names_folder
from rlvrlab.types import Count, CountOrZero, NonNegative, Positive, Temperature

Settings = dict[str, Any]
"""Dotted recipe key -> value."""
Seeds = Annotated[list[CountOrZero], MinLen(1)]
Share = Annotated[float, Gt(0), Lt(1)]
RuleName = Literal["weighted", "lexicographic", "pareto", "balanced"]
CostName = Literal["tokens", "answers", "seconds"]


def settings(tree: Any) -> Settings:
    """Nested tables to dotted keys; what is no table is left to the schema to complain about."""
    return dict(flatten(tree)) if isinstance(tree, dict) else tree


DOTTED = BeforeValidator(settings)
Dotted = Annotated[Settings, DOTTED]
"""Settings, which a file may also write as tables."""


class Suite(Section):
    """What a trial's policy is examined on: problems of one environment, or a named suite of `rlvr suite`."""

    env: dict[str, Any] | None = Field(None, description="environment table; None takes the trial's own")
    suite: str | None = Field(None, description="named suites of `rlvr suite`, e.g. graphs,math; instead of env")
    tier: Literal["fast", "full"] = Field("fast", description="of a named suite")
    only: list[str] = Field(default_factory=list, description="members of a named suite; empty takes all")
    data: str | None = Field(None, description="folder of a named suite's files, relative to the study file")
    size: Count | None = Field(None, description="problems; None takes 200, or what a named suite's tier has")
    role: Literal["dev", "test"] = Field(
        "dev", description="dev problems choose; those of a test suite are asked once, at the end, of the winner"
    )
    n: Annotated[int, Ge(1), Le(10_000)] = Field(1, description="answers per problem: 1 greedy, more for pass@n")
    temperature: Temperature = Field(1.0, description="where n > 1")
    max_tokens: Count | None = Field(None, description="longest answer; None takes the recipe's or the member's")
    policy: Literal["best", "last"] = Field("last", description="checkpoint that is examined; best on held-out dev")
    seed: CountOrZero = Field(0, description="draws problems and answers, the same for every trial")


class Select(Section):
    """How a stage's winner is chosen."""

    rule: RuleName = Field("weighted", description="weighted sum, one metric after the other, Pareto front, balanced")
    metrics: dict[str, float] = Field(
        default_factory=dict, description="metric -> weight; lexicographic takes them in this order"
    )
    alpha: Share = Field(0.05, description="chance of a wrong finding of the stage, shared by all its comparisons")
    margin: NonNegative = Field(
        0.0, description="arms within it are equivalent and the cheaper one is taken; 0: nothing is equivalent"
    )
    paired: bool = Field(
        False, description="compare the runs of two arms seed by seed: for arms that go on from the same start"
    )
    extend: Annotated[int, Ge(0), Le(9)] = Field(
        0, description="rounds with as many new seeds again while it is undecided; each is one more look"
    )
    cost: CostName = Field("tokens", description="what the cheaper of equivalent arms has less of")
    human: bool = Field(False, description="wait for `rlvr study select`")
    confirm: bool = Field(False, description="try the runner-up again under the settings of the chain's end")


class Round(Section):
    """One round of successive halving before a stage runs in full."""

    set: Dotted = Field(description="what makes it small, e.g. grpo.steps = 5")
    keep: Share = Field(0.5, description="share of the arms that goes on, at least one")


class Stage(Section):
    """One comparison of the chain."""

    name: Annotated[str, names_folder("a stage")]
    question: str = Field("", description="opens its section of the report")
    base: str | None = Field(None, description='best("STAGE"): start from all settings of that stage\'s winner')
    fixed: Dotted = Field(default_factory=dict, description="recipe keys for all arms")
    inputs: Annotated[dict[str, str], DOTTED] = Field(
        default_factory=dict, description='recipe key -> best("STAGE").key'
    )
    factors: Annotated[dict[str, Annotated[list[Any], MinLen(1)]], DOTTED] = Field(
        default_factory=dict, description="recipe key -> values; all combinations are arms"
    )
    arms: dict[str, Dotted] = Field(default_factory=dict, description="arm -> recipe keys; crossed with the factors")
    suites: list[str] = Field(default_factory=list, description="evaluations; empty takes all of the study")
    seeds: Seeds | None = Field(None, description="in place of the study's")
    parity: list[Literal["steps", "answers", "tokens"]] = Field(
        default_factory=list, description="what every arm must spend equally"
    )
    final: Literal["winner", "arms", "none"] | None = Field(
        None, description="who is asked test problems at the end; None: the winner of a stage that none starts from"
    )
    select: Select = Select()
    halving: list[Round] = Field(default_factory=list, description="small rounds that drop arms first")


class Resources(Section):
    """Where trials run, how many at once, and what each may take."""

    launcher: Literal["local", "ray", "slurm"] = Field("local", description="`--launcher` overrides it")
    processes: Count = Field(1, description="trials at once")
    cpus: Count = Field(1, description="threads of a trial")
    gpus: CountOrZero = Field(0, description="GPUs of a trial; local trials take them from gpu_ids")
    gpu_ids: list[CountOrZero] = Field(default_factory=list, description="GPUs the local launcher may use")
    time_limit_s: Positive | None = Field(None, description="longest time of one attempt; None never ends it")
    retries: CountOrZero = Field(1, description="new attempts after a trial's process or machine died")
    address: str | None = Field(None, description="of a Ray cluster; None starts one here")
    slurm: dict[str, Any] = Field(default_factory=dict, description="submitit parameters, e.g. slurm_partition")
    cluster: Literal["slurm", "local", "debug"] = Field("slurm", description="submitit's executor")

    @property
    def here(self) -> bool:
        """Do all trials run on this machine?"""
        elsewhere = {"local": False, "ray": self.address is not None, "slurm": self.cluster == "slurm"}
        return not elsewhere[self.launcher]

    @property
    def at_once(self) -> int:
        """Trials that may run at once; the local launcher has no more than its GPUs are enough for."""
        fitting = len(self.gpu_ids) // self.gpus if self.launcher == "local" and self.gpus else self.processes
        return max(1, min(self.processes, fitting))


class Study(Section):
    """A chain of comparisons: the whole study file."""

    name: Annotated[str, names_folder("a study folder")]
    question: str = Field("", description="what the chain is meant to find out")
    recipe: str = Field(description="base recipe: a file, relative to the study file, or a name of `rlvr recipes`")
    output: str = Field("experiments/studies", description="the study folder is made here under the study's name")
    seeds: Seeds = Field(default_factory=lambda: [0], description="every arm is trained once per seed")
    seed_spread: NonNegative = Field(
        0.05, description="standard deviation over seeds that the plan's power assumes; no decision uses it"
    )
    code: Literal["source", "version"] = Field(
        "version", description="what makes trials run again: another version of rlvrlab, or any changed source file"
    )
    fixed: Dotted = Field(default_factory=dict, description="recipe keys for every trial")
    suites: Annotated[dict[str, Suite], MinLen(1)]
    resources: Resources = Resources()
    ladder: list[Dotted] = Field(
        default_factory=list,
        description='settings to add, rung by rung, when memory runs out; "/2" halves a number, lists grow',
    )
    stages: Annotated[list[Stage], MinLen(1)]
