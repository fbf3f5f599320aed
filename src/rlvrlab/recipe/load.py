"""From a file and overrides to a checked recipe: every error at once, each with its place and a remedy."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rlvrlab.errors import RecipeError, UserError, suggestion
from rlvrlab.recipe.checks import contradictions
from rlvrlab.recipe.parse import Tree, flatten, line_of, parse_overrides, place, read_toml
from rlvrlab.recipe.schema import PLUGIN_TABLES, Recipe, core_keys
from rlvrlab.registry import find, keys_of, names


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
        chosen = {kind: {"type": table["type"]} for kind in PLUGIN_TABLES if (table := getattr(self.recipe, kind))}
        plain = resolve({"phases": self.recipe.phases, **chosen}, {}, self.folder).plain()
        usual = dict(flatten(plain)) | {
            "phases": ["grpo"],
            "env.type": "",
            "engine.type": "toy",
            "reward.type": "binary",
        }
        mine = dict(flatten(self.plain()))
        return {k: {"value": v, "default": usual.get(k)} for k, v in mine.items() if v != usual.get(k)}

    def plain(self) -> dict[str, Any]:
        """The recipe as tables, phases beside the others, as in the file."""
        tables = self.recipe.model_dump()
        return tables | tables.pop("phase_tables")


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Resolved:
    """Read, extend, override, check."""
    tree, text = read_toml(path)
    origins = {key: path.name for key, _ in flatten(tree)}
    base_name = tree.pop("extends", None)
    if base_name is not None:
        origins.pop("extends")
        tree, origins = _extend(path, base_name, tree, origins)
    for key, value in parse_overrides(overrides).items():
        place(tree, key, value)
        origins[key] = "override"
    return resolve(tree, origins, path.parent, path, text)


def resolve(tree: Tree, origins: dict[str, str], folder: Path, path: Path | None = None, text: str = "") -> Resolved:
    """Check plain tables; raises RecipeError with all problems."""
    tree = copy.deepcopy(tree)
    report = _Report(path, text)
    phases = tree.pop("phase_tables", {})
    phases |= {name: tree.pop(name) for name in names("phase") if name in tree}
    recipe = report.core(tree)
    tables = {kind: tree.get(kind) for kind in PLUGIN_TABLES}
    filled = {kind: report.plugin(kind, table, folder) for kind, table in tables.items() if table is not None}
    for name in tree.get("phases", ["grpo"]) if isinstance(tree.get("phases", []), list) else []:
        phases[name] = report.phase(name, phases.get(name, {}), folder)
    if recipe is not None and not report.problems:
        defaults = {kind: report.plugin(kind, getattr(recipe, kind), folder) for kind in ("env", "reward", "engine")}
        recipe = recipe.model_copy(update={**defaults, **filled, "phase_tables": phases})
        report.problems += contradictions(recipe)
    if recipe is None or report.problems:
        raise RecipeError(report.problems)
    return Resolved(recipe, _with_defaults(recipe, origins), folder)


def instantiate(kind: str, table: dict[str, Any], folder: Path) -> Any:
    """The plug-in object of a table; raises pydantic's ValidationError or UnknownName."""
    table = dict(table)
    cls = find(kind, table.pop("type"), folder)
    # Strict JSON mode takes TOML's arrays for tuples but no text for numbers.
    return TypeAdapter(cls).validate_json(json.dumps(table))


@dataclass
class _Report:
    path: Path | None
    text: str
    problems: list[str] = field(default_factory=list)

    def core(self, tree: Tree) -> Recipe | None:
        try:
            return Recipe.model_validate_json(json.dumps(tree, default=str))
        except ValidationError as error:
            self._add(error, "", core_keys())
            return None

    def plugin(self, kind: str, table: Any, folder: Path, prefix: str | None = None) -> Tree:
        prefix = kind if prefix is None else prefix
        if not isinstance(table, dict) or not isinstance(table.get("type"), str):
            hint = f"one of: {', '.join(names(kind))}"
            self.problems.append(f"{self._where(prefix)}: needs `type = NAME`, {hint}")
            return {}
        try:
            plugin = instantiate(kind, table, folder)
        except UserError as error:
            self.problems.append(f"{self._where(prefix + '.type')}: {error}")
            return {}
        except ValidationError as error:
            self._add(error, f"{prefix}.", [f"{prefix}.{key}" for key in keys_of(find(kind, table["type"], folder))])
            return {}
        values = json.loads(TypeAdapter(type(plugin)).dump_json(plugin))
        return {"type": table["type"], **values}

    def phase(self, name: Any, table: Any, folder: Path) -> Tree:
        if not isinstance(name, str) or not isinstance(table, dict):
            return {}
        if name not in names("phase"):
            self.problems.append(f"{self._where('phases')}: unknown phase {name!r}{suggestion(name, names('phase'))}")
            return {}
        filled = self.plugin("phase", {"type": name, **table}, folder, prefix=name)
        filled.pop("type", None)
        return filled

    def _add(self, error: ValidationError, prefix: str, known: list[str]) -> None:
        for item in error.errors(include_url=False):
            key = prefix + ".".join(str(part) for part in item["loc"] if isinstance(part, str))
            if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                self.problems.append(f"{self._where(key)}: unknown key{_nearest_key(key, known)}")
            else:
                got = json.dumps(item["input"], default=str)
                self.problems.append(f"{self._where(key)}: {item['msg'].lower()}, got {got[:80]}")

    def _where(self, key: str) -> str:
        line = line_of(self.text, key)
        place = f"{self.path.name}:{line}: " if self.path and line else ""
        return f"{place}{key}"


def _nearest_key(key: str, known: list[str]) -> str:
    """Full dotted name first; then a core key whose leaf or joined name matches, as in kl_coef -> kl.coef."""
    everything = [*known, *core_keys()]
    leaf = key.rpartition(".")[2]
    for candidate in everything:
        if leaf in (candidate.replace(".", "_"), candidate.rpartition(".")[2]):
            return f"; did you mean {candidate!r}?"
    near = difflib.get_close_matches(key, everything, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(known)}"


def _extend(path: Path, base_name: Any, tree: Tree, origins: dict[str, str]) -> tuple[Tree, dict[str, str]]:
    if not isinstance(base_name, str):
        raise UserError(f"{path}: extends takes a file name, got {base_name!r}")
    base, _ = read_toml(path.parent / base_name)
    if "extends" in base:
        raise UserError(f"{path}: extends {base_name}, which extends another; one level only, merge the two")
    base_origins = {key: Path(base_name).name for key, _ in flatten(base)}
    for key, value in flatten(tree):
        place(base, key, value)
    return base, base_origins | origins


def _with_defaults(recipe: Recipe, origins: dict[str, str]) -> dict[str, str]:
    tables = recipe.model_dump()
    tables |= tables.pop("phase_tables")
    return {key: origins.get(key, "default") for key, _ in flatten(tables)}
