"""From a file and overrides to a checked recipe: every error at once, each with its place and a remedy."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import to_jsonable_python

from rlvrlab import plain_files
from rlvrlab.errors import LabError, RecipeError, UnknownName, UserError, near, suggestion
from rlvrlab.recipe.checks import badly_grown, contradictions
from rlvrlab.recipe.parse import MAX_BYTES, MORE, NULL, Tree, flatten, line_of, parse_overrides, place, read_toml
from rlvrlab.recipe.presets import FAMILIES, PRESETS, Preset, Vetted
from rlvrlab.recipe.remedies import (
    TYPES,
    allowed_for,
    first_words,
    guesses,
    in_toml,
    keys_below,
    of_keys,
    of_table,
    on_command_line,
    words_of,
)
from rlvrlab.recipe.schema import PLUGIN_TABLES, PluginTable, Recipe, core_keys, sections
from rlvrlab.registry import find, keys_of, name_own, names

NO_PHASE_TABLES = "phase_tables: unknown key; each phase has a table of its own name"
OF_TREES = {"type": "tree"}
"""The credit of answers that grew on a tree, where the recipe names none."""
OF_UNIONS = ("str", "list[str]")
"""What pydantic adds to the place of a value that may be of several types: the type that it tried."""
EXAMPLES = {"engine.model": "nano"}
"""A value that is on hand everywhere, for keys that have no default."""
MOST_TRIALS = 40
IMPLIED = "by "
"""Begins the origin of a value that a plug-in has set."""


@dataclass(frozen=True)
class Resolved:
    """A recipe with everything filled in, and where each value came from."""

    recipe: Recipe
    origins: dict[str, str]
    """Dotted key -> default, override, or the file's name."""
    folder: Path
    """Where `file.py:Class` plug-ins are looked up."""

    def build(self, kind: str) -> Any:
        """The plug-in of a table; None when the recipe leaves it to the phase."""
        table = getattr(self.recipe, kind)
        return None if table is None else instantiate(kind, table, self.folder)

    def where(self, key: str) -> str:
        """`mine.toml:12: data.train_file`, or `override …`: where a value comes from, as far as the file is there."""
        origin = self.origins.get(key, "")
        if origin == "override":
            return f"override {key}"
        path = self.folder / origin
        with suppress(OSError, ValueError):
            line = line_of(plain_files.read_text(path), key) if path.suffix == ".toml" else None
            return f"{near(str(path))}:{line}: {key}" if line else key
        return key

    def phase(self, name: str) -> Any:
        """A phase with its table's values."""
        return instantiate("phase", {"type": name, **self.recipe.phase_tables.get(name, {})}, self.folder)

    def config(self) -> dict[str, Any]:
        """Plain data for config.json: recipe, origins, what differs from the defaults, folder."""
        return {
            "recipe": self.recipe.model_dump(),
            "origins": self.origins,
            "changed": self.changed(),
            "folder": str(self.folder),
        }

    def changed(self) -> dict[str, dict[str, Any]]:
        """Keys whose value is not the default, with both; the defaults are those of the plug-ins chosen."""
        usual = dict(flatten(Recipe().model_dump()))
        chosen = [(kind, kind, table["type"]) for kind in PLUGIN_TABLES if (table := getattr(self.recipe, kind))]
        chosen += [("phase", name, name) for name in self.recipe.phase_tables]
        for kind, prefix, name in chosen:
            usual |= {f"{prefix}.{key}": value for key, value in _defaults(find(kind, name, self.folder)).items()}
        mine = dict(flatten(self.plain()))
        return {k: {"value": v, "default": usual.get(k)} for k, v in mine.items() if v != usual.get(k)}

    def given(self) -> Tree:
        """Only the keys that somebody has set, as tables; loading these gives the same recipe."""
        tables = (*PLUGIN_TABLES, *self.recipe.phases, "pipeline", "rollout")
        unset = {"default", *(f"{IMPLIED}{table}" for table in tables)}
        unset |= {preset.origin for preset in PRESETS.values()}
        tree: Tree = {}
        for key, value in flatten(self.plain()):
            if self.origins.get(key, "default") not in unset:
                place(tree, key, value)
        return tree

    def plain(self) -> dict[str, Any]:
        """The recipe as tables, phases beside the others, as in the file."""
        tables = self.recipe.model_dump()
        return tables | tables.pop("phase_tables")


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Resolved:
    """Read a file, put it over the one it extends, put the overrides over both, and check; see `resolve`.

    A name that is no file is looked up among the recipes that come along; see `shipped.recipe_file`.
    """
    if not os.path.lexists(path):
        from rlvrlab.recipe.shipped import recipe_file

        path = recipe_file(path)
    tree, text = read_toml(path)
    changes = {key: _from_here(value, path.parent) for key, value in parse_overrides(overrides).items()}
    return load_tables(tree, changes, path.parent, path.name, text)


def _from_here(value: Any, folder: Path) -> Any:
    """`my.py:NAME` of a command line means the file in the working directory, else the one beside the recipe."""
    if not isinstance(value, str) or ".py:" not in value:
        return value
    file, _, name = value.rpartition(":")
    here = Path(file).absolute()
    return f"{here}:{name}" if here.is_file() and here != (folder / file).absolute() else value


class Tables(NamedTuple):
    """A recipe's tables before any check, with where each key came from and the texts of the files."""

    tree: Tree
    origins: dict[str, str]
    sources: Mapping[str, str] = {}
    """Path -> text."""


def load_tables(tree: Tree, changes: Mapping[str, Any], folder: Path, name: str, text: str = "") -> Resolved:
    """The same for tables that are read already, and changes by dotted key; `name` and `text` are their file's."""
    tables = extended(tree, folder, name, text)
    name_own([tables.tree, dict(changes)], folder, Path())
    return load_changed(tables, changes, folder)


def extended(tree: Tree, folder: Path, name: str, text: str = "") -> Tables:
    """The tables over those of the file that they extend, unchecked."""
    path, sources = folder / name, {str(folder / name): text}
    if "stages" in tree:
        raise UserError(f"{path}: is a study, not a recipe; run it with `rlvr study run {path}`")
    if "model" in tree and isinstance(tree.get("data"), list):
        raise UserError(f"{path}: is the plan of a baseline, not a recipe; run it with `rlvr phase0 {path}`")
    origins = {key: name for key, _ in flatten(tree)}
    base_name = tree.pop("extends", None)
    if base_name is not None:
        origins.pop("extends", None)
        if not isinstance(base_name, str):
            raise UserError(f"{path}: extends takes a file name, got {base_name!r}")
        base, base_text = read_toml(folder / base_name)
        if "extends" in base:
            raise UserError(f"{path}: extends {base_name}, which extends another; one level only, merge the two")
        sources.setdefault(str(folder / base_name), base_text)
        below = {key: Path(base_name).name for key, _ in flatten(base)}
        _change(base, below, dict(flatten(tree)), folder)
        tree, origins = base, below | origins
    if "phase_tables" in tree:
        raise UserError(f"{path}: {NO_PHASE_TABLES}")
    return Tables(tree, origins, sources)


def load_changed(tables: Tables, changes: Mapping[str, Any], folder: Path) -> Resolved:
    """Put overrides over unchecked tables, and check."""
    if "phase_tables" in {key.partition(".")[0] for key in changes}:
        raise UserError(NO_PHASE_TABLES)
    tree, origins = tables.tree, tables.origins
    _change(tree, origins, changes, folder)
    origins |= {key: "override" for key, value in changes.items() if value is not None}
    return resolve(tree, origins, folder, tables.sources)


def resolve(
    tree: Tree, origins: dict[str, str], folder: Path, sources: Mapping[str, str] | None = None, *, trial: bool = False
) -> Resolved:
    """Check plain tables; raises RecipeError with all problems. `sources` are the files' texts, to name lines.

    In a `trial` of what might be a remedy nobody looks for remedies.
    """
    report = _Report(sources or {}, origins, None if trial else Trials(tree, origins, folder))
    tree = copy.deepcopy(tree)
    phases = tree.pop("phase_tables", {})
    phases |= {name: tree.pop(name) for name in names("phase") if name in tree}
    listed = tree.get("phases", ["grpo"])
    used = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    recipe = report.core(tree, used)
    tables = {kind: tree.get(kind) for kind in PLUGIN_TABLES}
    if recipe is not None and recipe.rollout.grows and "type" not in (tables["credit"] or {}):
        tables["credit"] = {**OF_TREES, **(tables["credit"] or {})}
        origins = {**origins, "credit.type": f"{IMPLIED}rollout"}
    filled = {kind: report.plugin(kind, table, folder) for kind, table in tables.items() if table is not None}
    checked = {name: report.phase(name, phases.get(name, {}), folder) for name in dict.fromkeys([*used, *phases])}
    if recipe is not None:
        unset = [kind for kind in ("env", "reward", "engine") if kind not in filled]
        defaults = {kind: report.plugin(kind, getattr(recipe, kind), folder) for kind in unset}
        recipe = recipe.model_copy(
            update={**defaults, **filled, "phase_tables": {name: checked[name] for name in used}}
        )
        given = {key for key, _ in flatten({**tree, **phases})}
        wanted = {
            key: (one.value, preset.origin) for preset in report.presets for key, one in vetted(preset, recipe).items()
        }
        if recipe.pipeline.lag:  # an older policy drew the answers
            report.implied["correction.level"] = ("token", f"{IMPLIED}pipeline")
        credit = instantiate("credit", recipe.credit, folder) if recipe.credit else None
        if credit is not None and credit.grows:
            report.implied["rollout.type"] = ("tree", f"{IMPLIED}credit")
        recipe, origins = _with_implied(recipe, origins, wanted | report.implied, given)
        wrong = [*contradictions(recipe), *badly_grown(recipe.rollout, credit)]
        report.problems += [f"{report.where(key, text)}: {text}" for key, text in wrong]
    if recipe is None or report.problems:
        raise RecipeError(sorted(report.problems, key=_line))
    resolved = Resolved(recipe, origins, folder)
    every = {key: origins.get(key, "default") for key, _ in flatten(resolved.plain())}
    return replace(resolved, origins=every)


def instantiate(kind: str, table: dict[str, Any], folder: Path | None = None) -> Any:
    """The plug-in object of a table (own files: in `folder`); raises pydantic's ValidationError or UnknownName."""
    table = dict(table)
    cls = find(kind, table.pop("type"), folder)
    # Strict JSON mode takes TOML's arrays for tuples but no text for numbers.
    return _adapter(cls).validate_json(json.dumps(table, default=str))


def instantiate_part(kind: str, table: dict[str, Any], where: str, folder: Path | None = None) -> Any:
    """A plug-in within the table of another one; a mistake is told with its place."""
    if not isinstance(table.get("type"), str):
        raise UserError(f"{where} needs `type = NAME`")
    try:
        return instantiate(kind, table, folder)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except ValueError as error:  # pydantic's own, several lines long
        raise UserError(f"{where} ({table['type']}): {first_words(error)}") from None


_adapters: dict[type[Any], TypeAdapter[Any]] = {}
"""Building one takes ten times as long as using it, and a study checks thousands of tables of the same classes."""


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


@dataclass
class Trials:
    """Whether a recipe would have less wrong with it if one value was another one."""

    tree: Tree
    origins: Mapping[str, str]
    folder: Path
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
            resolve(tree, dict(self.origins), self.folder, trial=True)
        except RecipeError as error:
            return frozenset(error.problems)
        except UserError as error:
            return frozenset([str(error), "more than one recipe has wrong"])
        return frozenset()


@dataclass
class _Report:
    sources: Mapping[str, str]
    origins: Mapping[str, str]
    trials: Trials | None = None
    problems: list[str] = field(default_factory=list)
    implied: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Keys that a plug-in sets where the recipe does not, and the origin that is told for each."""
    presets: list[Preset] = field(default_factory=list)
    """Vetted values of the plug-ins; what they imply for other reasons comes first."""

    def core(self, tree: Tree, phases: Sequence[str]) -> Recipe | None:
        try:
            return Recipe.model_validate_json(json.dumps(tree, default=str))
        except ValidationError as error:
            usual = [name for name in phases if name in names("phase")]
            self._add(error, "", core_keys() + [f"{name}.{k}" for name in usual for k in keys_of(find("phase", name))])
            return None

    def plugin(self, kind: str, table: Any, folder: Path, prefix: str | None = None) -> Tree:
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
            text = " ".join(str(error).split())
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
        values = json.loads(_adapter(type(plugin)).dump_json(plugin))
        return {"type": table["type"], **values}

    def phase(self, name: str, table: Any, folder: Path) -> Tree:
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
            elif key not in PLUGIN_TABLES:  # those are told where they are built
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
        if "model_type" in kinds:
            self._no_table(key, value, None, keys_below(key, sections()))
            return
        words, got = words_of(kinds, items[0]["msg"]), json.dumps(value, default=str)[:80]
        wanted = [TYPES[kind] for kind in kinds if kind in TYPES]
        remedy = next((self._written(key, one) for one in self._tried(key, place_of, value, wanted, allowed)), "")
        self.problems.append(f"{self.where(key)}: {words}, got {got}{remedy or allowed_for(key)}")

    def _tried(
        self, key: str, place_of: Sequence[str | int], value: Any, wanted: Sequence[str], allowed: Sequence[str]
    ) -> Iterator[Any]:
        """Values of the key that would be accepted; of a list with a wrong item, the whole list."""
        if self.trials is None:
            return
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
        needed = {full.rpartition(".")[2]: one for full, one in EXAMPLES.items() if full.startswith(f"{key}.")}
        tables = [{leaf: guess} for leaf, guess in of_table(value, kind, keys)]
        tried = (table for table in (*tables, *({**one, **needed} for one in tables if needed)))
        table = next((one for one in tried if self.trials and self.trials.accepted((key,), one)), None)
        remedy = f"; write {of_keys(key, kind, keys)}"
        if table is not None and self.where(key).startswith("override "):
            remedy = f"; write {' '.join(on_command_line(f'{key}.{leaf}', one) for leaf, one in table.items())}"
        elif table is not None:
            remedy = f"; write {' and '.join(f'`{key}.{leaf} = {in_toml(one)}`' for leaf, one in table.items())}"
        self.problems.append(f"{self.where(key)}: is a table, got {json.dumps(value, default=str)[:80]}{remedy}")

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


def _change(tree: Tree, origins: dict[str, str], changes: Mapping[str, Any], folder: Path) -> None:
    """Put the changes into the tree. Where a plug-in's `type` changes, keys that the new one does not have go."""
    for kind in PLUGIN_TABLES:
        table, wanted = tree.get(kind), changes.get(f"{kind}.type")
        if isinstance(table, dict) and isinstance(wanted, str) and wanted != table.get("type"):
            for key in set(table) - _keys(kind, wanted, folder, table):
                del table[key]
                for full in [full for full in origins if f"{full}.".startswith(f"{kind}.{key}.")]:
                    del origins[full]
    for key, value in changes.items():
        for full in [full for full in origins if full.startswith(f"{key}.") or key.startswith(f"{full}.")]:
            del origins[full]  # a value in the place of a table, or a table in that of a value
        if value is None:
            from rlvrlab.recipe.unset import unset

            unset(tree, origins, key, folder)
        else:
            place(tree, key, value)


def _keys(kind: str, name: str, folder: Path, table: Tree) -> set[str]:
    """What the plug-in of that name takes; an unknown name is complained about later, with all its keys."""
    try:
        return {"type", *keys_of(find(kind, name, folder))}
    except LabError:
        return set(table)


def vetted(preset: Preset, recipe: Recipe) -> dict[str, Vetted]:
    """A preset's values by the keys of this recipe: those of a family of phases become each phase's own."""
    values: dict[str, Vetted] = {}
    for key, one in preset.values.items():
        family, _, leaf = key.partition(".")
        if family not in FAMILIES:
            values[key] = one
            continue
        if leaf == "batch_size":  # a small set of problems is no mistake of who left the batch to the preset
            one = one._replace(value=min(one.value, recipe.data.train_size))
        phases = [name for name, table in recipe.phase_tables.items() if leaf in table]
        values |= {f"{name}.{leaf}": one for name in phases if find("phase", name).family == family}
    return values


def _with_implied(
    recipe: Recipe, origins: dict[str, str], implied: Mapping[str, tuple[Any, str]], given: Set[str]
) -> tuple[Recipe, dict[str, str]]:
    """What plug-ins want of core tables and phases, where the recipe says nothing."""
    for key, (value, origin) in implied.items():
        section, _, leaf = key.partition(".")
        if key in given:
            continue
        if section in recipe.phase_tables:
            tables = {**recipe.phase_tables, section: {**recipe.phase_tables[section], leaf: value}}
            recipe = recipe.model_copy(update={"phase_tables": tables})
        else:
            changed = getattr(recipe, section).model_copy(update={leaf: value})
            recipe = recipe.model_copy(update={section: changed})
        origins = {**origins, key: origin}
    return recipe, origins


def _defaults(cls: type[Any]) -> Tree:
    """A plug-in's default values as plain data; a key that must be given has none."""
    usual = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(cls) if f.init}
    return {key: to_jsonable_python(value) for key, value in usual.items() if value is not MISSING}


def _line(problem: str) -> int:
    """Sorts problems by their line in the file; those without one come last, in the order found."""
    match = re.match(r".+?:(\d+): ", problem)
    return int(match[1]) if match else MAX_BYTES
