"""Everything that is wrong with a recipe, each mistake with its place and with a remedy that was tried."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from rlvrlab.errors import RecipeError, UnknownName, UserError, cut, near, one_line, suggestion
from rlvrlab.recipe.parse import MORE, NULL, Tree, flatten, line_of
from rlvrlab.recipe.presets import Preset
from rlvrlab.recipe.schema import (
    PLUGIN_TABLES,
    PluginTable,
    Recipe,
    RolloutTable,
    checker,
    core_keys,
    instantiate,
    sections,
)
from rlvrlab.registry import find, keys_of, names

OF_UNIONS = ("str", "list[str]")
"""What pydantic adds to the place of a value that may be of several types: the type that it tried."""
EXAMPLES = {"engine.model": "nano"}
"""A value that is on hand everywhere, for keys that have no default."""
MOST_TRIALS = 40
IMPLIED = "by "
"""Begins the origin of a value that a plug-in has set."""


@dataclass
class Trials:
    """Whether a recipe would have less wrong with it if one value was another one."""

    tree: Tree
    attempt: Callable[[Tree], object]
    """Checks such a recipe, and looks for no remedies."""
    left: int = MOST_TRIALS

    def accepted(self, place_of: Sequence[str | int], value: Any) -> bool:
        """Try it; None takes the key out. A recipe with very many mistakes is not tried without end."""
        self.left -= 1
        if self.left < 0:
            return False
        tree = copy.deepcopy(self.tree)
        *above, last = place_of
        table: Any = tree
        for part in above:
            table = table[part]
        if value is None:
            table.pop(last)
        else:
            table[last] = value
        return self._wrong(tree) < self._before

    def value_at(self, place_of: Sequence[str | int]) -> Any:
        """What stands there now."""
        found: Any = self.tree
        for part in place_of:
            found = found[part]
        return found

    @cached_property
    def _before(self) -> frozenset[str]:
        return self._wrong(self.tree)

    def _wrong(self, tree: Tree) -> frozenset[str]:
        try:
            self.attempt(tree)
        except RecipeError as error:
            return frozenset(error.problems)
        except UserError as error:
            return frozenset([str(error), "more than one recipe has wrong"])
        return frozenset()


@dataclass
class Report:
    """The mistakes found so far, while the parts of a recipe are checked one after the other."""

    sources: Mapping[str, str]
    origins: Mapping[str, str]
    trials: Trials | None = None
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
            self._add(error, "", core_keys() + [f"{name}.{k}" for name in usual for k in keys_of(find("phase", name))])
            return None

    def plugin(self, kind: str, table: Any, folder: Path, prefix: str | None = None) -> Tree:
        """The table of a plug-in, filled; empty where something is wrong with it."""
        prefix = kind if prefix is None else prefix
        if not isinstance(table, dict):
            self._no_table(prefix, table, kind, [])
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
            self._add(error, f"{prefix}.", [f"{prefix}.{key}" for key in keys_of(cls)], cls)
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
            self._no_table(name, table, "phase", keys_of(find("phase", name)))
            return {}
        filled = self.plugin("phase", {"type": name, **table}, folder, prefix=name)
        filled.pop("type", None)
        return filled

    def _add(self, error: ValidationError, prefix: str, known: list[str], cls: type[Any] | None = None) -> None:
        from rlvrlab.recipe.meant import nearest_key

        for place_of, items in _by_place(error):
            item = items[0]
            key = (prefix + ".".join(str(part) for part in place_of if isinstance(part, str))).strip(".")
            if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                below = dict(flatten(item["input"], f"{key}.")) if isinstance(item["input"], dict) else {}
                for leaf in below or [key]:
                    self.problems.append(f"{self.where(leaf)}: unknown key{nearest_key(leaf, known)}")
            elif isinstance(more := item["input"], str) and MORE.fullmatch(more):
                remedy = f"`rlvr train --resume RUN {key}={more}`; for a new one write {key}={more.lstrip('+')}"
                self.problems.append(f"{self.where(key)}: {more} lengthens a run that there is, {remedy}")
            elif item["type"] == "missing":
                self._missing(key, prefix.rstrip("."), cls)
            elif prefix or key not in PLUGIN_TABLES:  # plug-ins in the core's place are told where they are built
                self._wrong(key, (*prefix.strip(".").split(".")[: bool(prefix)], *place_of), items)

    def _missing(self, key: str, table: str, cls: type[Any] | None) -> None:
        """A key without a default, with a value that would do if one is known."""
        from rlvrlab.recipe.meant import said_of

        leaf = key.rpartition(".")[2]
        usual = EXAMPLES.get(key)
        known = usual is not None and self.trials is not None and self.trials.accepted((table, leaf), usual)
        value = usual if known else leaf.upper()
        ways = f"write {key}={value} on a command line, {leaf} = {json.dumps(value)} below [{table}] of a file"
        self.problems.append(f"{self.where(key)}: has no default; {ways}{said_of(cls, key)}")

    def _wrong(self, key: str, place_of: Sequence[str | int], items: Sequence[Any]) -> None:
        """A value that is not of the type or not within the limits, with one that would be accepted."""
        kinds, value = [item["type"] for item in items], items[0]["input"]
        allowed = re.findall(r"'([^']*)'", str(items[0].get("ctx", {}).get("expected", "")))
        from rlvrlab.recipe.remedies import TYPES, allowed_for, keys_below, words_of

        if "model_type" in kinds:
            self._no_table(key, value, None, keys_below(key, sections()))
            return
        words, got = words_of(kinds, items[0]["msg"]), cut(json.dumps(value, default=str), 80)
        wanted = [TYPES[kind] for kind in kinds if kind in TYPES]
        remedy = next((self._written(key, one) for one in self._tried(key, place_of, value, wanted, allowed)), "")
        self.problems.append(f"{self.where(key)}: {words}, got {got}{remedy or allowed_for(key)}")

    def _tried(
        self, key: str, place_of: Sequence[str | int], value: Any, wanted: Sequence[str], allowed: Sequence[str]
    ) -> Iterator[Any]:
        """Values of the key that would be accepted; of a list with a wrong item, the whole list."""
        if self.trials is None:
            return
        from rlvrlab.recipe.remedies import guesses

        inside = next((at for at, part in enumerate(place_of) if isinstance(part, int)), None)
        if inside is None:
            yield from (one for one in guesses(key, value, wanted, allowed) if self.trials.accepted(place_of, one))
            return
        if inside != len(place_of) - 1:  # a table within a list
            return
        whole = self.trials.value_at(place_of[:inside])
        items = [next(guesses(key, one, wanted, allowed), one) for one in whole]
        if self.trials.accepted(place_of[:inside], items):
            yield items

    def _written(self, key: str, value: Any) -> str:
        """`; write …`, as it is written where the wrong value came from."""
        from rlvrlab.recipe.remedies import in_toml, on_command_line

        if self.where(key).startswith("override "):
            return f"; write {on_command_line(key, value)}"
        if value is None:
            return "; leave the line out"
        lines = [text.split("\n")[line - 1] for text in self.sources.values() if (line := line_of(text, key))]
        leaf = key.rpartition(".")[2]
        own = lines[0].partition("=")[0].strip() if lines else leaf
        return f"; write `{own if own.endswith(leaf) else leaf} = {in_toml(value)}`"

    def _no_table(self, key: str, value: Any, kind: str | None, keys: Sequence[str]) -> None:
        """A value in the place of a table: which of its keys was meant, else those it has."""
        from rlvrlab.recipe.remedies import in_toml, of_keys, of_table, on_command_line

        needed = {full.rpartition(".")[2]: one for full, one in EXAMPLES.items() if full.startswith(f"{key}.")}
        tables = [{leaf: guess} for leaf, guess in of_table(value, kind, keys)]
        tried = (table for table in (*tables, *({**one, **needed} for one in tables if needed)))
        table = next((one for one in tried if self.trials and self.trials.accepted((key,), one)), None)
        remedy = f"; write {of_keys(key, kind, keys)}"
        if table is not None and self.where(key).startswith("override "):
            remedy = f"; write {' '.join(on_command_line(f'{key}.{leaf}', one) for leaf, one in table.items())}"
        elif table is not None:
            remedy = f"; write {' and '.join(f'`{key}.{leaf} = {in_toml(one)}`' for leaf, one in table.items())}"
        self.problems.append(f"{self.where(key)}: is a table, got {cut(json.dumps(value, default=str), 80)}{remedy}")

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


def _by_place(error: ValidationError) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    """The mistakes by their key, each with its place in the tables: of several in one list, those of the first item.

    Where a key takes one of several types, it is wrong for each of them.
    """
    found: dict[tuple[str, ...], list[tuple[tuple[str | int, ...], Any]]] = {}
    for item in error.errors(include_url=False):
        place_of = tuple(part for part in item["loc"] if part not in OF_UNIONS)
        found.setdefault(tuple(part for part in place_of if isinstance(part, str)), []).append((place_of, item))
    for mistakes in found.values():
        deepest = max((place_of for place_of, _ in mistakes), key=len)
        yield deepest, [item for place_of, item in mistakes if place_of == deepest]


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
