"""Names for everything that plugs in."""

from __future__ import annotations

import importlib
import os
import pkgutil
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from rlvrlab import registry
from rlvrlab.errors import UnknownName, UserError
from rlvrlab.own_code import accepting
from rlvrlab.registry import HOMES, MAX_KEYS, FromSource, find, keys_of, names, register


@pytest.fixture(autouse=True)
def own_files() -> Iterator[None]:
    """Files that a test has written are looked up as the user's own."""
    with accepting():
        yield


PLUGIN = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from rlvrlab.registry import register
from rlvrlab.types import Count

@register("reward", "mine")
@dataclass(frozen=True)
class Mine:
    size: Count = 3
    flag: ClassVar[bool] = True
"""


@pytest.fixture(autouse=True)
def untouched_registry(monkeypatch):
    """What a test registers is forgotten after it; built-ins are imported first, so they are not."""
    for kind in HOMES:
        for name in names(kind):
            find(kind, name)
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    monkeypatch.setattr(registry, "_invited", set(registry._invited))
    monkeypatch.setattr(registry, "_files", {})


def plain(keys: int) -> type:
    return make_dataclass("Plain", [(f"key{i}", int, i) for i in range(keys)], frozen=True)


def test_every_home_has_its_plugins() -> None:
    assert names("phase") == ["dpo", "grpo", "grpo_turns", "more_sft", "ppo", "reinforce", "repair", "rft", "sft"]
    assert {"grpo", "rloo", "gae"} <= set(names("advantage"))
    assert {"ppo_clip", "gspo", "cispo", "dpo"} <= set(names("objective"))
    assert "countdown" in names("env") and "toy" in names("engine") and "binary" in names("reward")


@pytest.mark.parametrize("kind", HOMES)
def test_every_plugin_is_a_frozen_dataclass_with_few_keys_and_its_name(kind: str) -> None:
    for name in names(kind):
        found = find(kind, name)
        assert len(keys_of(found)) <= MAX_KEYS, name
        assert found.name == name
        assert found.__dataclass_params__.frozen, name


def test_too_many_keys_are_refused() -> None:
    register("reward", "twelve")(plain(MAX_KEYS))
    with pytest.raises(UserError, match=r"13 recipe keys, at most 12"):
        register("reward", "thirteen")(plain(MAX_KEYS + 1))


def test_a_plain_class_is_refused_with_the_remedy() -> None:
    with pytest.raises(UserError, match="@dataclass"):
        register("reward", "bare")(type("Bare", (), {}))


def test_unknown_names_answer_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'countdown'"):
        find("env", "cuontdown")
    with pytest.raises(UnknownName, match="did you mean 'reward'"):
        register("rewart", "x")


@pytest.mark.parametrize("name", ["", "base", "os", "../x", "__init__", "a.b", "x" * 300, "-", "é", "a\nb"])
def test_hostile_names_are_unknown(name: str) -> None:
    with pytest.raises(UnknownName):
        find("env", name)


def test_a_taken_name_is_refused_whatever_came_first() -> None:
    @dataclass(frozen=True)
    class Binary:
        """Another one."""

    with pytest.raises(UserError, match=r"already the name of rlvrlab\.rewards\.binary"):
        register("reward", "binary")(Binary)
    assert find("reward", "binary") is not Binary


def test_a_reload_may_replace_itself() -> None:
    first, second = plain(1), plain(2)
    register("reward", "again")(first)
    register("reward", "again")(second)
    assert find("reward", "again") is second


class Point:
    def __init__(self, name: str, load) -> None:
        self.name, self.value, self.load = name, f"package:{name}", load


def test_entry_points_are_loaded(monkeypatch) -> None:
    monkeypatch.setattr(registry, "_invited", set())
    points = [Point("theirs", lambda: register("reward", "theirs")(plain(1)))]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "rlvrlab.plugins" else [])
    assert "theirs" in names("reward")


def test_a_broken_entry_point_is_left_out_with_a_warning(monkeypatch) -> None:
    def broken() -> None:
        raise ImportError("no module torch")

    monkeypatch.setattr(registry, "_invited", set())
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("theirs", broken)])
    with pytest.warns(UserWarning, match=r"'theirs' \(package:theirs\) is left out: ImportError: no module torch"):
        assert "binary" in names("reward")


def test_a_file_beside_the_recipe(tmp_path: Path) -> None:
    """String annotations work: dataclasses and pydantic find the module."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    found = find("reward", "mine.py:Mine", tmp_path)
    assert found(size=4).size == 4 and keys_of(found) == ["size"]
    assert find("reward", "mine.py:Mine", tmp_path) is found, "a file is run once"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    find("reward", "mine.py:Mine", tmp_path)
    path.write_text(PLUGIN.replace("= 3", "= 9"))
    os.utime(path, ns=(1, 1))
    assert find("reward", "mine.py:Mine", tmp_path)().size == 9


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    for folder, size in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(PLUGIN.replace("= 3", f"= {size}"))
    found = [find("reward", "mine.py:Mine", tmp_path / folder)().size for folder in ("a", "b", "a")]
    assert found == [1, 2, 1]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (PLUGIN, "other.py:Mine", "no file .*other.py"),
        (PLUGIN, "mine.py:Yours", "has no 'Yours'; its functions and classes: Mine"),
        (PLUGIN, "mine.py:", "has no ''; its functions and classes: Mine"),
        (PLUGIN, "a\0.py:Mine", "no file"),
        (PLUGIN, f"{'x' * 300}.py:Mine", "no file"),
        (PLUGIN.replace('@register("reward", "mine")', ""), "mine.py:Mine", "decorate the class with @register"),
        (PLUGIN.replace('"reward"', '"env"'), "mine.py:Mine", "'Mine' in .*mine.py is no reward plug-in; decorate"),
        (PLUGIN.replace('"mine"', '"binary"'), "mine.py:Mine", "already the name of"),
        ("x = = 1", "mine.py:Mine", r"mine.py:1: SyntaxError"),
        ("\nimport nowhere", "mine.py:Mine", r"mine.py:2: ModuleNotFoundError"),
        ("\n\n1 / 0", "mine.py:Mine", r"mine.py:3: ZeroDivisionError"),
        ("def reward(p, c, v): return 1.0", "mine.py:rewrd", "has no 'rewrd'; .*: reward; did you mean 'reward'"),
        ("reward = 3", "mine.py:reward", "'reward' in .*mine.py is int, which is no reward; name a function"),
    ],
)
def test_bad_files_are_user_errors(tmp_path: Path, text: str, name: str, expected: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=expected):
        find("reward", name, tmp_path)


def test_an_edit_of_equal_length_in_the_same_second_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("VALUE = 1\n")
    py_compile.compile(str(path))
    before = path.stat()
    path.write_text("VALUE = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert SourceFileLoader("mine", str(path)).get_code("mine").co_consts[0] == 1, "Python's own loader does not see it"
    assert FromSource("mine", str(path)).get_code("mine").co_consts[0] == 2


def test_a_plug_in_is_found_in_a_file_of_another_name() -> None:
    """In a process that has looked at no other plug-in before."""
    code = "from rlvrlab.registry import find; print(find('reward', 'binary_format_repeat').__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "rlvrlab.rewards.binary", done.stderr


@pytest.mark.parametrize("kind", HOMES)
def test_names_in_the_text_of_the_files_are_those_that_are_registered(kind: str) -> None:
    """A plug-in that is written in another way than `@register("kind", "name")` would not be found."""
    home = importlib.import_module(HOMES[kind])
    for module in pkgutil.iter_modules(home.__path__, f"{HOMES[kind]}."):
        importlib.import_module(module.name)
    known = [cls for (its_kind, _), cls in registry._known.items() if its_kind == kind]
    own = {cls.name for cls in known if cls.__module__.startswith("rlvrlab.")}
    assert own == set(registry._built_in(kind)) - {registry._ADAPTER}


def test_a_name_of_a_built_in_is_refused_though_nobody_has_imported_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace('"mine"', '"binary_format"'))
    code = "from rlvrlab.registry import find, name_own; name_own('mine.py:Mine'); find('reward', 'mine.py:Mine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert "'binary_format' is already the name of rlvrlab.rewards.binary.BinaryFormat" in done.stderr
