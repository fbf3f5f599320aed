"""What no file of the package may do: reach into another's privacy, ask a plug-in what it did not declare, know one by
its name, or change what is frozen."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sources import SOURCE, files, nodes

from rlvrlab.registry import HOMES, names

OF_NAMEDTUPLES = {"_replace", "_asdict", "_fields", "_make"}
FOREIGN_PRIVATE = {
    "cli/__init__.py": "sys._current_frames, which is documented: where the main thread is",
    "engines/hf/": "Transformers and torch keep some of what an engine must know behind an underscore",
    "engines/template": "Jinja's sandbox is extended where it keeps its names behind an underscore",
    "judge/hacks/battery.py": "os._exit",
    "judge/jail/": "os._exit, and the ends of threading and atexit",
    "train/stopping.py": "os._exit, to leave a main thread that never comes back",
    "scale/verl/": "hooks that override verl's own methods and registries",
}
"""Where names with an underscore belong to other people's packages."""
FOREIGN_ASKED = {
    "engines/hf/": "models of any architecture",
    "engines/template": "values that foreign chat templates make",
    "scale/verl/": "objects of verl and torch",
    "data/sources.py": "data sets of the hub",
    "evals/hacks/patterns.py": "nodes of Python's syntax tree",
    "rollout/python_steps.py": "nodes of Python's syntax tree",
    "judge/jail/roles/solution.py": "whatever exception a candidate raised",
    "record/facts.py": "the operating system",
    "study/launchers/local.py": "the operating system",
    "registry.py": "modules and classes of users' own files",
    "rollout/prompts.py": "tokenizers, which are no plug-ins",
    "api/": "modules and functions of users",
    "envs/own_rows.py": "data frames of users",
    "rewards/function.py": "functions of users",
}
"""Where getattr and hasattr with a literal name ask something that is no plug-in of ours; causes of errors aside."""
ERRORS = {"error", "cause"}


Rule = Callable[[ast.Module], Iterator[tuple[int, str]]]


def problems(rule: Rule, root: Path = SOURCE) -> list[str]:
    return [f"{file}:{line}: {text}" for file, tree in files(root) for line, text in rule(tree)]


def without(found: list[str], excused: dict[str, str]) -> list[str]:
    return [one for one in found if not one.startswith(tuple(excused))]


def private_of_others(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """`_names` that are imported, or read from anything but self; a class may know its own instances."""
    private = [node for node in nodes(tree, ast.Attribute) if re.match(r"_[^_]", node.attr)]
    known = {node.attr for node in private if _is_self(node.value)} | OF_NAMEDTUPLES
    for imported in nodes(tree, ast.ImportFrom):
        if (imported.module or "").startswith("rlvrlab"):
            yield from ((imported.lineno, f"import {a.name}") for a in imported.names if re.match(r"_[^_]", a.name))
    for node in private:
        if node.attr not in known and not _is_self(node.value):
            yield node.lineno, ast.unparse(node)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def asked_by_name(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """getattr(x, "name") and hasattr(x, "name")."""
    for node in nodes(tree, ast.Call):
        if not (isinstance(node.func, ast.Name) and len(node.args) > 1):
            continue
        literal = isinstance(node.args[1], ast.Constant) and node.func.id in ("getattr", "hasattr")
        if literal and not (isinstance(node.args[0], ast.Name) and node.args[0].id in ERRORS):
            yield node.lineno, ast.unparse(node)


def frozen_changed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """object.__setattr__ on frozen objects, and cast(X, None), which lies to the type checker."""
    for node in nodes(tree, ast.Call):
        named = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        thawed = named == "__setattr__" and ast.unparse(node.func) == "object.__setattr__"
        if thawed or (named == "cast" and ast.unparse(node.args[-1]) == "None"):
            yield node.lineno, ast.unparse(node)


PLUGIN_NAMES = {name for kind in HOMES for name in names(kind)}
ABOUT_PLUGINS = re.compile(r"(\.name|\[.type.\]|\.get\(.type.\)|\bphases?\b|\.type)$|phases\b")


def known_by_name(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Comparisons of a plug-in's name or type with a registered name."""
    for node in nodes(tree, ast.Compare):
        sides = [node.left, *node.comparators]
        constants = [c.value for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant)]
        asked = [
            ast.unparse(side) for side in sides if not isinstance(side, ast.Constant | ast.Tuple | ast.Set | ast.List)
        ]
        known = [c for c in constants if isinstance(c, str) and c in PLUGIN_NAMES]
        if known and any(ABOUT_PLUGINS.search(text) for text in asked):
            yield node.lineno, ast.unparse(node)


def test_no_private_name_of_another_module() -> None:
    assert without(problems(private_of_others), FOREIGN_PRIVATE) == []


def test_plug_ins_are_asked_only_what_they_declare() -> None:
    assert without(problems(asked_by_name), FOREIGN_ASKED) == []


def test_nothing_frozen_is_changed() -> None:
    assert problems(frozen_changed) == []


MAY_KNOW = {
    "recipe/schema.py": "the recipe's own defaults",
    "scale/session.py": "verl owns its loop: the one engine that is no engine",
    "scale/exports/trl.py": "a dictionary between our names and TRL's",
    "scale/verl/convert.py": "from one engine's table to another's",
    "envs/holdout.py": "its own name",
}


def test_no_plug_in_is_known_by_its_name() -> None:
    assert without(problems(known_by_name), MAY_KNOW) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (private_of_others, "from rlvrlab.judge.judge import _hidden\n"),
        (private_of_others, "def f(phase):\n    return phase._objective\n"),
        (asked_by_name, "def f(phase):\n    return getattr(phase, 'control', False)\n"),
        (asked_by_name, "def f(env):\n    return hasattr(env, 'second_turns')\n"),
        (frozen_changed, "def f(x):\n    object.__setattr__(x, 'a', 1)\n"),
        (frozen_changed, "from typing import cast\nx = cast(int, None)\n"),
        (known_by_name, "def f(phase):\n    return phase.name == 'sft'\n"),
        (known_by_name, "def f(recipe):\n    return recipe.guard['type'] in ('ewc', 'l2')\n"),
        (known_by_name, "def f(recipe):\n    return recipe.phases == ['ppo']\n"),
    ],
)
def test_the_rules_notice(tmp_path: Path, rule: Rule, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert problems(rule, tmp_path)
