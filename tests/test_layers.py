"""Imports only go down: the rooms of the package in their order, read from the source with `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx
import pytest
from sources import SOURCE, files, nodes

LAYERS = (
    {
        *("__init__", "types", "errors", "registry", "batch", "randomness", "student", "shares", "replicas"),
        *("http_client", "http_server", "http_messages", "http_access", "http_door", "http_json"),
        *("notes", "fate", "fingerprint", "extras", "matching", "plain_files", "own_code"),
    },
    {"recipe"},
    {"judge"},
    {"envs", "rewards"},
    {"advantages", "credit", "objectives", "surgery", "skills"},
    {"rollout"},
    {"data"},  # also makes training data of a run's stored rollouts
    {"models"},  # models on hand, from names to folders; engines load what they find there
    {"engines"},
    {"record"},
    {"evals"},
    {"train"},
    {"report"},
    {"scale"},
    {"study"},
    {"cli", "__main__"},
    {"api"},  # the public names of `rlvrlab`, which its __init__ fetches when they are used
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
HEAVY = {"torch", "transformers", "ray", "verl", "datasets", "peft", "trl", "vllm"}
MAY_BE_HEAVY = "engines/hf/"
"""The only folder whose files may import one of HEAVY at module level; its __init__ and table may not, nor may anyone
else import the other files at module level."""
PURE = {"advantages", "credit", "objectives", "surgery", "skills"}
IMPURE = {"os", "pathlib", "time", "socket", "subprocess", "random"}
UNSAFE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
TYPING_ONLY = "TYPE_CHECKING"
MAY_EXECUTE = "judge/jail/"
"""The only place that runs foreign code, inside the jail."""
MAY_MARSHAL = {"judge/workers/worker.py", *(f"judge/jail/{name}.py" for name in ("zygote", "template", "child"))}
"""The judge hands jobs into the jail this way; nothing that comes out of the jail is ever unmarshalled."""


class Import(NamedTuple):
    file: str
    room: str
    target: str
    """Full dotted name, e.g. rlvrlab.engines.base or numpy.random."""
    line: int
    eager: bool
    """Executed when the file is imported."""
    typing_only: bool


def imports(root: Path, package: str = "rlvrlab") -> list[Import]:
    found = []
    for file, tree in files(root):
        parts = file.removesuffix(".py").split("/")
        for node, eager, typing_only in _visit(tree, True, False):
            for target in _targets(node, [package, *parts]):
                found.append(Import(file, parts[0], target, node.lineno, eager, typing_only))
    return found


@cache
def own_imports() -> list[Import]:
    return imports(SOURCE)


def imports_below(root: Path) -> list[Import]:
    """Those of the package are looked for once; a planted file may change."""
    return own_imports() if root == SOURCE else imports(root)


def _visit(tree: ast.AST, eager: bool, typing_only: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, eager and not typing_only, typing_only
            continue
        if isinstance(node, ast.expr):  # no statement, and so no import, inside
            continue
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        guard = isinstance(node, ast.If) and TYPING_ONLY in (vars(node.test).get("id"), vars(node.test).get("attr"))
        yield from _visit(node, eager and not inside, typing_only or guard)


def _targets(node: ast.Import | ast.ImportFrom, here: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = [*here[: len(here) - node.level], node.module or ""] if node.level else [node.module or ""]
    return [".".join([*filter(None, base), alias.name]) for alias in node.names]


def room_of(target: str) -> str | None:
    """The room of a name inside the package; `import rlvrlab` and `from rlvrlab import __version__` mean itself."""
    package, _, below = target.partition(".")
    if package != "rlvrlab":
        return None
    room = below.partition(".")[0]
    return "__init__" if not room or room.startswith("_") else room


def upward(found: list[Import]) -> list[str]:
    wrong = []
    for one in found:
        target = room_of(one.target)
        if target is None or target == one.room:
            continue
        unknown = {one.room, target} - set(LEVEL)
        if unknown:
            wrong.append(f"{one.file}:{one.line}: room {unknown} has no place in LAYERS")
        elif LEVEL[target] > LEVEL[one.room]:
            wrong.append(f"{one.file}:{one.line}: {one.room} imports {target}")
    return wrong


def cycles(found: list[Import]) -> list[str]:
    """Rooms that reach each other, also within one layer; imports for annotations only are not executed."""
    edges: dict[str, set[str]] = {}
    for one in found:
        target = room_of(one.target)
        if target is not None and target != one.room and not one.typing_only:
            edges.setdefault(one.room, set()).add(target)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for room in edges.get(waiting.pop(), ()):
                if room not in seen:
                    seen.add(room)
                    waiting.append(room)
        return seen

    return sorted(room for room in edges if room in reached(room))


def heavy(found: list[Import]) -> list[str]:
    light = [
        one
        for one in found
        if not one.file.startswith(MAY_BE_HEAVY) or one.file.endswith(("__init__.py", "/table.py", "/config.py"))
    ]
    inside, table = (
        f"rlvrlab.{MAY_BE_HEAVY.replace('/', '.')}",
        ("Hf", "table.Hf", *(f"config.{name}" for name in ("HfConfig", "EMBEDDED", "ALL_LINEAR", "alpha_of"))),
    )
    return [
        f"{one.file}:{one.line}: {one.target} at module level"
        for one in light
        if one.eager
        and (
            one.target.partition(".")[0] in HEAVY
            or (one.target.startswith(inside) and one.target.removeprefix(inside) not in table)
        )
    ]


def impure(found: list[Import]) -> list[str]:
    return [
        f"{one.file}:{one.line}: pure room imports {one.target}"
        for one in found
        if one.room in PURE and (one.target.partition(".")[0] in IMPURE or room_of(one.target) == "engines")
    ]


def unsafe(root: Path) -> list[str]:
    wrong = [
        f"{one.file}:{one.line}: imports {one.target}"
        for one in imports_below(root)
        if one.target.partition(".")[0] in UNSAFE_MODULES and not (one.target == "marshal" and one.file in MAY_MARSHAL)
    ]
    for file, tree in files(root):
        for node in nodes(tree, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called in UNSAFE_CALLS and not (file.startswith(MAY_EXECUTE) and called in ("exec", "compile")):
                wrong.append(f"{file}:{node.lineno}: calls {called}")
            for word in node.keywords:
                on = not (isinstance(word.value, ast.Constant) and not word.value.value)
                if word.arg in ("shell", "trust_remote_code", "allow_pickle") and on:
                    wrong.append(f"{file}:{node.lineno}: {word.arg}={ast.unparse(word.value)}")
    return wrong


def test_imports_only_go_down() -> None:
    assert upward(own_imports()) == []


def test_rooms_form_no_cycle() -> None:
    assert cycles(own_imports()) == []


def file_cycles(root: Path) -> list[list[str]]:
    """Files that reach each other by any import: at the top, inside functions, or for annotations alone."""
    modules = {
        ".".join(["rlvrlab", *file.removesuffix(".py").removesuffix("/__init__").split("/")]): file
        for file, _ in files(root)
    }
    graph = networkx.DiGraph()
    for one in imports_below(root):
        whole, module = one.target, one.target.rpartition(".")[0]
        target = modules.get(whole) or modules.get(module)
        if target is not None and target != one.file:
            graph.add_edge(one.file, target)
    return [sorted(part) for part in networkx.strongly_connected_components(graph) if len(part) > 1]


def test_files_form_no_cycle_not_even_for_annotations() -> None:
    assert file_cycles(SOURCE) == []


def test_a_planted_cycle_of_annotations_is_found(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    for name, other in (("a", "b"), ("b", "a")):
        text = f"if TYPE_CHECKING:\n    from rlvrlab.train.{other} import thing\n"
        (tmp_path / "train" / f"{name}.py").write_text("from typing import TYPE_CHECKING\n" + text)
    assert file_cycles(tmp_path) == [["train/a.py", "train/b.py"]]


def test_heavy_packages_are_imported_inside_functions() -> None:
    assert heavy(own_imports()) == []


def test_pure_rooms_know_no_path_clock_process_or_engine() -> None:
    assert impure(own_imports()) == []


def test_nothing_evaluates_or_unpickles() -> None:
    assert unsafe(SOURCE) == []


def test_the_trusted_side_of_the_judge_only_writes_marshal() -> None:
    assert "marshal.load" not in (SOURCE / "judge/workers/worker.py").read_text(encoding="utf-8")


def test_the_walk_sees_the_package() -> None:
    found = own_imports()
    assert {"cli", "train", "engines", "recipe", "objectives"} <= {one.room for one in found}
    assert any(not one.eager and room_of(one.target) for one in found), "function-level imports are seen too"


@pytest.mark.parametrize(
    ("file", "text", "walker"),
    [
        ("recipe/a.py", "from rlvrlab.train.loop import train", upward),
        ("engines/a.py", "def f():\n    from rlvrlab import cli", upward),
        ("recipe/a.py", "from ..engines import base", upward),
        ("recipe/a.py", "class A:\n    def f(self):\n        import rlvrlab.cli", upward),
        ("kitchen/a.py", "import rlvrlab.types", upward),
        ("engines/a.py", "import torch", heavy),
        ("engines/a.py", "try:\n    from torch.nn import Linear\nexcept ImportError:\n    pass", heavy),
        ("engines/a.py", "class A:\n    import vllm", heavy),
        ("credit/a.py", "def f():\n    import time", impure),
        ("objectives/a.py", "from pathlib import Path", impure),
        ("skills/a.py", "from rlvrlab.engines.base import Engine", impure),
    ],
)
def test_planted_violation_is_found(tmp_path, file: str, text: str, walker) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(text)
    assert len(walker(imports(tmp_path))) == 1


def test_planted_cycle_is_found_but_annotations_make_none(tmp_path) -> None:
    for room, other in (("envs", "rewards"), ("rewards", "envs")):
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text(f"def f():\n    import rlvrlab.{other}.a")
    assert cycles(imports(tmp_path)) == ["envs", "rewards"]
    (tmp_path / "envs" / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rlvrlab.rewards.a"
    )
    assert cycles(imports(tmp_path)) == []


@pytest.mark.parametrize(
    "text",
    ["eval('1')", "exec('1')", "import pickle", "from marshal import loads", "f(shell=True)", "f(shell=wanted)",
     "f(trust_remote_code=True)", "f(allow_pickle=True)", "__import__('os')"],
)  # fmt: skip
def test_planted_danger_is_found(tmp_path, text: str) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "a.py").write_text(f"{text}\nf(shell=False, allow_pickle=False)")
    assert len(unsafe(tmp_path)) == 1


def test_only_the_jail_may_execute(tmp_path) -> None:
    (tmp_path / "judge" / "jail").mkdir(parents=True)
    (tmp_path / "judge" / "jail" / "a.py").write_text("exec(compile('1', 'x', 'exec'))")
    assert unsafe(tmp_path) == []
    (tmp_path / "judge" / "a.py").write_text("exec('1')")
    assert len(unsafe(tmp_path)) == 1
