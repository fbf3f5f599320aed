"""Everything that is wrong with a recipe, each mistake with its place; wording.py says what is wrong with one key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from rlvrlab.errors import UnknownName, UserError, near, one_line, suggestion
from rlvrlab.recipe.parse import NULL, Tree, line_of
from rlvrlab.recipe.presets import Preset
from rlvrlab.recipe.schema import PluginTable, Recipe, RolloutTable, checker, core_keys, instantiate
from rlvrlab.registry import find, keys_of, names

if TYPE_CHECKING:
    from rlvrlab.recipe.wording import Wording

IMPLIED = "by "
"""Begins the origin of a value that a plug-in has set."""


class Idle(NamedTuple):
    """The table of a phase that does not run."""

    phase: str
    place: str
    """`mine.toml:12`, `override`, or nothing where no file is known."""
    keys: tuple[str, ...]


@dataclass
class Report:
    """The mistakes found so far, while the parts of a recipe are checked one after the other."""

    sources: Mapping[str, str]
    origins: Mapping[str, str]
    tree: Tree
    """The recipe as it was written."""
    attempt: Callable[[Tree], object] | None
    """Checks another such recipe, to try a remedy; None in such a trial."""
    problems: list[str] = field(default_factory=list)
    implied: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Keys that a plug-in sets where the recipe does not, and the origin that is told for each."""
    presets: list[Preset] = field(default_factory=list)
    """Vetted values of the plug-ins; what they imply for other reasons comes first."""

    def core(self, tree: Tree, phases: Sequence[str]) -> Recipe | None:
        """The core's tables; None where something is wrong with them."""
        try:
            return Recipe.model_validate_json(json.dumps(tree, default=str))
        except ValidationError as error:
            usual = [name for name in phases if name in names("phase")]
            known = core_keys() + [f"{name}.{key}" for name in usual for key in keys_of(find("phase", name))]
            self.problems += self._wording.of_tables(error, "", known)
            return None

    def plugin(self, kind: str, table: Any, folder: Path, prefix: str | None = None) -> Tree:
        """The table of a plug-in, filled; empty where something is wrong with it."""
        prefix = kind if prefix is None else prefix
        if not isinstance(table, dict):
            self.problems.append(self._wording.of_no_table(prefix, table, kind, []))
            return {}
        if not isinstance(table.get("type"), str):
            hint = f"one of: {', '.join(names(kind))}"
            given = set(table)
            fitting = [name for name in names(kind) if given and given <= set(keys_of(find(kind, name, folder)))]
            hint += f"; `{prefix}.type={fitting[0]}` has {', '.join(sorted(given))}" if fitting else ""
            self.problems.append(f"{self.where(prefix)}: needs `type = NAME`, {hint}")
            return {}
        try:
            plugin = instantiate(kind, table, folder)
        except UnknownName as error:
            meant = (
                f"unknown {kind} 'none'; write `{prefix}.type={NULL}` to unset it" if table["type"] == "none" else error
            )
            self.problems.append(f"{self.where(prefix + '.type')}: {meant}")
            return {}
        except (UserError, PydanticUserError, PydanticUndefinedAnnotation) as error:
            text = one_line(error)
            self.problems.append(f"{self.where(prefix, text)}: {text}")
            return {}
        except ValidationError as error:
            cls = find(kind, table["type"], folder)
            known = [f"{prefix}.{key}" for key in keys_of(cls)]
            self.problems += self._wording.of_tables(error, f"{prefix}.", known, cls)
            return {}
        if isinstance(plugin, PluginTable):
            plugin = plugin.beside(folder)
            self.implied |= {key: (value, f"{IMPLIED}{prefix}") for key, value in plugin.implies().items()}
            self.presets += [preset] if (preset := plugin.preset()) else []
        values = json.loads(checker(type(plugin)).dump_json(plugin))
        return {"type": table["type"], **values}

    def phase(self, name: str, table: Any, folder: Path) -> Tree:
        """The same for a phase."""
        if name not in names("phase"):
            self.problems.append(f"{self.where('phases')}: unknown phase {name!r}{suggestion(name, names('phase'))}")
            return {}
        if not isinstance(table, dict):
            self.problems.append(self._wording.of_no_table(name, table, "phase", keys_of(find("phase", name))))
            return {}
        filled = self.plugin("phase", {"type": name, **table}, folder, prefix=name)
        filled.pop("type", None)
        return filled

    @cached_property
    def _wording(self) -> Wording:
        """Imported for the first mistake: a valid recipe has none."""
        from rlvrlab.recipe.wording import Trials, Wording

        return Wording(self.where, self.sources, Trials(self.tree, self.attempt) if self.attempt else None)

    def idle(self, phases: Sequence[str]) -> tuple[Idle, ...]:
        """Those of these phases, which do not run, that somebody has set keys of here.

        A file that is only built on may hold tables for others, and so may one whose phases are overridden.
        """
        here = {"override"}
        if self.origins.get("phases") != "override":
            here |= {Path(name).name for name in list(self.sources)[:1]}
        found = []
        for name in phases:
            keys = tuple(key for key, by in self.origins.items() if key.startswith(f"{name}.") and by in here)
            if keys:
                found.append(Idle(name, self.where(keys[0]).removesuffix(keys[0]).rstrip(": "), keys))
        return tuple(found)

    def where(self, key: str, text: str = "") -> str:
        """`recipes/mine.toml:12: rollout.n`, or the bare key when it is neither in a file nor an override.

        No line of a file is to blame where the problem's text names a value that an override has set.
        """
        overridden = [one for one, origin in self.origins.items() if origin == "override"]
        own = [one for one in self.origins if f"{one}.".startswith(f"{key}.")]
        if own and all(one in overridden for one in own):
            return f"override {key}"
        named = [one for one in overridden if re.search(rf"(?<![\w.]){_within(one, key)}(?![\w.]\w)", text)]
        lines = ((near(name), line_of(text, key)) for name, text in self.sources.items())
        place = f"override {', '.join(named)}" if named else next((f"{n}:{line}" for n, line in lines if line), "")
        return f"{place}: {key}" if place else key


def _within(one: str, table: str) -> str:
    """A key as a text about its table names it, as a pattern."""
    return f"({re.escape(one)}|{re.escape(one.removeprefix(f'{table}.'))})"


def contradictions(recipe: Recipe) -> list[tuple[str, str]]:
    """Pairs of a key and what is wrong with it, remedy included."""
    problems = []
    if len(set(recipe.phases)) < len(recipe.phases):
        problems.append(("phases", f"{recipe.phases} names a phase twice; each has one table"))
    if recipe.phases[0] in names("phase") and find("phase", recipe.phases[0]).control:
        problems.append(
            ("phases", f"{recipe.phases[0]!r} is a control arm and cannot be the first; put its origin before it")
        )
    for name in dict.fromkeys(recipe.phases):
        size = recipe.phase_tables.get(name, {}).get("batch_size", 0)
        if size > recipe.data.train_size:
            words = f"{size} problems per step but data.train_size is {recipe.data.train_size}"
            problems.append((f"{name}.batch_size", words))
        rate, decay = recipe.phase_tables.get(name, {}).get("learning_rate", 0.0), recipe.optimizer.weight_decay
        if rate * decay >= 1:
            why = f"{decay:g} × {name}.learning_rate = {rate:g} takes all of a parameter away in one step, or more"
            problems.append(("optimizer.weight_decay", f"{why}; allowed here: below {1 / rate:g}"))
    for key in ("top_p", "temperature"):
        value = getattr(recipe.rollout, key)
        if value != 1 and recipe.correction.level == "none":
            remedy = "set correction.level = 'token'"
            problems.append((f"rollout.{key}", f"at {value} the sampler is not the trained policy; {remedy}"))
    if recipe.engine.get("sampler", "embedded") != "embedded" and recipe.correction.level == "none":
        remedy = "remove the key or set 'token'"
        problems.append(("correction.level", f"servers never compute exactly as the trainer does; {remedy}"))
    for name in dict.fromkeys(name for name in recipe.phases if recipe.rollout.n == 1 and name in names("phase")):
        advantage = (recipe.advantage or {}).get("type") or find("phase", name).default_advantage
        if advantage in names("advantage") and find("advantage", advantage).needs_groups:
            why = f"{name} compares answers to one problem ({advantage}) and needs n ≥ 2"
            problems.append(("rollout.n", f'{why}; raise it or set advantage.type = "reinforce_pp"'))
    if recipe.kl.coef > 0 and recipe.kl.estimator == "k1" and recipe.kl.place == "loss":
        why = '"k1" in the loss has expected gradient 0 and does not pull to the reference; allowed there: k2, k3'
        problems.append(("kl.estimator", f'{why}; use one of them, or set kl.place = "reward"'))
    if recipe.entropy.floor > 0 and not recipe.entropy.coef:
        why = f"{recipe.entropy.floor:g} has no effect without a bonus"
        problems.append(("entropy.floor", f"{why}; set entropy.coef, e.g. 0.05, or leave the floor out"))
    if recipe.pipeline.lag:
        if recipe.correction.level == "none":
            why = "with pipeline.lag = 1 an older policy drew the answers"
            problems.append(("correction.level", f"{why}; remove the key or set 'token'"))
        if recipe.filter.dead_groups == "refill":
            why = "refills are drawn after the verdicts, which a pipeline does not wait for"
            problems.append(("filter.dead_groups", f'{why}; use "drop" or "keep", or pipeline.lag = 0'))
        for name in (name for name in recipe.phases if name in names("phase")):
            if find("phase", name).online and find("phase", name).tries > 1:
                why = f"{name} asks again after the verdicts, which a pipeline does not wait for"
                problems.append(("pipeline.lag", f"{why}; use grpo, or set it to 0"))
    for name in recipe.record.sinks:
        if ".py:" not in name and name not in names("sink"):
            problems.append(("record.sinks", f"unknown sink {name!r}{suggestion(name, names('sink'))}"))
    return problems


def badly_grown(rollout: RolloutTable, credit: Any) -> list[tuple[str, str]]:
    """What keeps answers from growing on the tree that rollout.type and the credit plug-in ask for."""
    wants = credit is not None and credit.grows
    if rollout.grows and not wants:
        why = "answers that share a beginning are no fair comparison for it, so the tree brings its own credit"
        return [("credit.type", f'with rollout.type = "tree" {why}; leave [credit] out, or set rollout.type = "apart"')]
    if wants and not rollout.grows:
        return [("rollout.type", f'"{rollout.type}": credit.type = "{credit.name}" needs a tree; leave the key out')]
    if wants:
        try:
            credit.shape(rollout.n)
        except UserError as error:
            return [("credit.branches", str(error).removeprefix("credit: "))]
    return []
