"""From a file and overrides to a checked recipe: every error at once, each with its place and a remedy."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from rlvrlab import plain_files
from rlvrlab.errors import LabError, RecipeError, UserError, near
from rlvrlab.recipe.mistakes import IMPLIED, Idle, Report, badly_grown, contradictions
from rlvrlab.recipe.parse import MAX_BYTES, Tree, flatten, line_of, parse_overrides, place, read_toml
from rlvrlab.recipe.presets import FAMILIES, PRESETS, Preset, Vetted
from rlvrlab.recipe.schema import PLUGIN_TABLES, Recipe, instantiate
from rlvrlab.registry import find, keys_of, name_own, names

NO_PHASE_TABLES = "phase_tables: unknown key; each phase has a table of its own name"
OF_TREES = {"type": "tree"}
"""The credit of answers that grew on a tree, where the recipe names none."""


@dataclass(frozen=True)
class Resolved:
    """A recipe with everything filled in, and where each value came from."""

    recipe: Recipe
    origins: dict[str, str]
    """Dotted key -> default, override, or the file's name."""
    folder: Path
    """Where `file.py:Class` plug-ins are looked up."""
    idle: tuple[Idle, ...] = ()
    """Tables of phases that do not run."""

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

    def attempt(tried: Tree) -> Resolved:
        return resolve(tried, dict(origins), folder, trial=True)

    report = Report(sources or {}, origins, tree, None if trial else attempt)
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
    resolved = Resolved(recipe, origins, folder, report.idle(sorted(set(phases) - set(used))))
    every = {key: origins.get(key, "default") for key, _ in flatten(resolved.plain())}
    return replace(resolved, origins=every)


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
