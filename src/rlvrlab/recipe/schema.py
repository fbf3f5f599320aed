"""Every core key of a recipe, with its default, its limits and one line that explains it.

The tables of PLUGIN_TABLES (`env`, `reward`, `engine`, …) hold `type = NAME` plus the plug-in's own keys; each
phase in `phases` has a table of its own name. Those keys live with their plug-in (see registry.py); the rest is here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from rlvrlab.recipe.presets import Preset
from rlvrlab.registry import find
from rlvrlab.types import Count, CountOrZero, Fraction01, Memory01, NonNegative, Positive, Temperature

Table = dict[str, Any]
Files = str | list[str] | None
"""One file or several, relative to the recipe's folder."""
Size = Annotated[int, Ge(1), Le(10**8)]
"""How many of something must fit into memory."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
RESERVED = {"con", "prn", "aux", "nul"}
"""Names that are devices on one system or another."""


def names_folder(what: str) -> AfterValidator:
    """Refuses what cannot be the name of a folder."""

    def checked(name: str) -> str:
        if not NAME.fullmatch(name) or name.lower() in RESERVED:
            rule = "1–80 letters, digits, . _ - beginning with a letter or digit"
            raise ValueError(f"cannot name {what}; allowed: {rule}")
        return name

    return AfterValidator(checked)


class PluginTable:
    """Base of plug-in classes that want more of a recipe than their own keys."""

    def beside(self, folder: Path) -> Self:
        """The same table with its relative paths looked up in the recipe's folder."""
        return self

    def implies(self) -> dict[str, Any]:
        """Core keys that this table sets where the recipe leaves them out, e.g. {"correction.level": "token"}."""
        return {}

    def preset(self) -> Preset | None:
        """Vetted values of core keys and phases that fit this table, also for where the recipe leaves them out."""
        return None


class Section(BaseModel):
    """A table of a file that people write: a key that nobody knows, or a value of another type, is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Data(Section):
    """Which problems are trained on and held out."""

    train_size: Size = Field(2000, description="distinct training problems; of a file, all unless this is set")
    dev_size: Size = Field(200, description="dev problems, which choose the best checkpoint; of a file likewise")
    train_file: Files = Field(None, description="prepared problems of role train beside the recipe; a list mixes files")
    dev_file: Files = Field(None, description="prepared problems of role dev; a list mixes files")
    test_file: Files = Field(
        None, description="prepared problems for the cards; each file of a list is a set of its own"
    )
    seed: CountOrZero = Field(0, description="draws the problems; apart from `seed`, so runs share their held-out set")


class RolloutTable(Section):
    """How answers are drawn in training."""

    type: Literal["apart", "tree"] = Field("apart", description="each by itself, or on a tree that shares beginnings")
    n: Size = Field(8, description="answers per problem: the group")
    max_tokens: Size = Field(64, description="longest answer")
    temperature: Temperature = Field(1.0, description="1 samples the policy that is trained")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="nucleus; below 1 wants correction.level")

    @property
    def grows(self) -> bool:
        """Do the answers to a problem share their beginnings?"""
        return self.type == "tree"


class Optimizer(Section):
    """How an engine turns gradients into steps; the learning rate itself belongs to the phase."""

    type: Literal["adam", "sgd"] = Field("adam", description="adam is AdamW")
    beta1: Memory01 = Field(0.9, description="momentum")
    beta2: Memory01 = Field(0.99, description="decay of squared gradients")
    epsilon: Annotated[float, Gt(0), Le(1)] = Field(1e-8, description="floor under the root of the squared gradient")
    weight_decay: NonNegative = Field(0.0, description="decoupled")
    max_grad_norm: NonNegative = Field(1.0, description="clip the gradient to this norm; 0 never clips")
    warmup_steps: CountOrZero = Field(0, description="linear rise of the learning rate in each phase")
    decay: Literal["constant", "linear", "cosine"] = Field("constant", description="fall of the learning rate after it")
    final_ratio: Fraction01 = Field(0.1, description="share of the learning rate left at the end of a decay")


class Kl(Section):
    """Stay near the reference policy: the one each online phase starts from."""

    coef: NonNegative = Field(0.0, description="0 switches it off")
    estimator: Literal["k1", "k2", "k3"] = Field(
        "k3", description="k1 unbiased, k2 low variance, k3 both; in the loss k2 or k3"
    )
    place: Literal["loss", "reward"] = Field("loss", description="add it to the loss or subtract it from the reward")


class Entropy(Section):
    """Bonus for staying undecided."""

    coef: NonNegative = Field(0.0, description="subtracts coef × mean entropy from the loss")
    floor: NonNegative = Field(
        0.0, description="the bonus counts only in steps whose answers were drawn with less entropy; 0: in all steps"
    )


class Correction(Section):
    """For a sampler that differs from the trainer (other precision, temperature, nucleus, stale weights)."""

    level: Literal["none", "token", "sequence"] = Field("none", description="truncated importance weights per …")
    cap: Positive = Field(2.0, description="weights are cut here")


class Filter(Section):
    """Groups whose answers all earned the same teach nothing."""

    dead_groups: Literal["keep", "count", "drop", "refill"] = Field(
        "drop",
        description="keep them in the loss's mean, count them there without computing them, drop them, or sample "
        "other problems instead",
    )
    max_refills: CountOrZero = Field(3, description="extra collections per step at most")


class Pipeline(Section):
    """What a step of an on-line phase waits for."""

    lag: Literal[0, 1] = Field(0, description="1 judges a step while the next is sampled, by a policy one update older")
    limits: Literal["fixed", "learnt"] = Field(
        "fixed", description="learnt: 10 × the slowest right answer to a problem, 0.5 s at least, timeout_s at most"
    )


class Eval(Section):
    """Held-out evaluation during training, greedy."""

    every: CountOrZero = Field(10, description="steps between evaluations; 0 evaluates at the start and end of a phase")
    test_size: CountOrZero = Field(0, description="test problems for a card before and after each phase; 0: none, or "
                                   "all of data.test_file")  # fmt: skip
    test_n: CountOrZero = Field(0, description="answers per test problem for pass@k on the card; 0 none")


class Stop(Section):
    """When to end a phase early."""

    patience: CountOrZero = Field(0, description="evaluations without a new best; 0 never stops")
    target: Fraction01 | None = Field(None, description="accepted@1 on dev problems that is enough")
    no_signal_steps: CountOrZero = Field(0, description="steps in a row in which no group had signal; 0 only warns")
    deadline_s: NonNegative = Field(3600.0, description="seconds a step or an evaluation may take; 0 waits for ever")


class Checkpoint(Section):
    """How often the state of training is saved, and how many of these are kept."""

    every: Count = Field(10, description="steps between checkpoints")
    keep: Count = Field(2, description="latest ones to keep; the best one is always kept")


class Record(Section):
    """What is written into the run folder and elsewhere."""

    rollouts: Literal["all", "none"] = Field("all", description="store every judged answer under rollouts/")
    log_interval: CountOrZero = Field(0, description="steps between lines without a terminal; 0: a line per evaluation")
    sinks: list[str] = Field(default_factory=list, description="copies of the metrics: wandb, trackio, tensorboard")


def _plugin(kind: str, default: str) -> Any:
    return Field(default_factory=lambda: {"type": default}, description=f"{kind} plug-in")


class Recipe(Section):
    """One experiment: every key of a recipe file, and the phases' tables by name."""

    name: Annotated[str, names_folder("a run folder")] = Field("run", description="names the run folder")
    question: str = Field("", description="what this run is meant to find out; opens EXPERIMENT.md")
    seed: CountOrZero = Field(0, description="all randomness of training")
    output_dir: str = Field("experiments", description="where run folders are made")
    phases: Annotated[list[str], MinLen(1)] = Field(default_factory=lambda: ["grpo"], description="in this order")
    env: Table = _plugin("environment", "countdown")
    reward: Table = _plugin("reward", "binary")
    engine: Table = _plugin("engine", "toy")
    advantage: Table | None = Field(None, description="advantage plug-in; None takes the phase's own")
    objective: Table | None = Field(None, description="objective plug-in; None takes the phase's own")
    credit: Table | None = Field(None, description="step credit plug-in of online phases; None: the answer as a whole")
    surgery: Table | None = Field(None, description="how the gradients of groups are combined; None pools them")
    guard: Table | None = Field(None, description="what protects skills that are not being trained; None nothing")
    protocol: Table | None = Field(None, description="which skills are trained when; None all of them, all the time")
    data: Data = Data()
    rollout: RolloutTable = RolloutTable()
    optimizer: Optimizer = Optimizer()
    kl: Kl = Kl()
    entropy: Entropy = Entropy()
    correction: Correction = Correction()
    filter: Filter = Filter()
    pipeline: Pipeline = Pipeline()
    eval: Eval = Eval()
    stop: Stop = Stop()
    checkpoint: Checkpoint = Checkpoint()
    record: Record = Record()
    phase_tables: dict[str, Table] = Field(default_factory=dict, description="one table per phase, by its name")

    @field_validator("output_dir")
    @classmethod
    def _is_a_path(cls, folder: str) -> str:
        if "\0" in folder:
            raise ValueError("a path has no NUL character")
        return folder


PLUGIN_TABLES = ("env", "reward", "engine", "advantage", "objective", "credit", "surgery", "guard", "protocol")


def sections() -> dict[str, type[BaseModel]]:
    """The core tables by name."""
    return {
        name: info.annotation
        for name, info in Recipe.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
    }


def core_keys() -> list[str]:
    """Every dotted core key; tests/recipe keeps their number at 60 or less."""
    keys = [name for name in Recipe.model_fields if name not in {*sections(), *PLUGIN_TABLES, "phase_tables"}]
    keys += [f"{name}.type" for name in PLUGIN_TABLES]
    return keys + [f"{section}.{key}" for section, model in sections().items() for key in model.model_fields]


def instantiate(kind: str, table: dict[str, Any], folder: Path | None = None) -> Any:
    """The plug-in object of a table (own files: in `folder`); raises pydantic's ValidationError or UnknownName."""
    table = dict(table)
    cls = find(kind, table.pop("type"), folder)
    # Strict JSON mode takes TOML's arrays for tuples but no text for numbers.
    return checker(cls).validate_json(json.dumps(table, default=str))


_checkers: dict[type[Any], TypeAdapter[Any]] = {}
"""Building one takes ten times as long as using it, and a study checks thousands of tables of the same classes."""


def checker(cls: type[Any]) -> TypeAdapter[Any]:
    """What checks tables of this class, and writes its objects as tables."""
    if cls not in _checkers:
        _checkers[cls] = TypeAdapter(cls)
    return _checkers[cls]
