"""A disk that refuses is told with the remedy of the command that wrote: only a training is told to resume."""

from __future__ import annotations

import ast
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runs
from click.testing import CliRunner
from sources import SOURCE, files, nodes

from rlvrlab import plain_files
from rlvrlab.api.run import Run
from rlvrlab.cli.verbs import rlvr
from rlvrlab.data.files import write_lines
from rlvrlab.errors import LabError, StorageError, UserError, remedied, writing_to
from rlvrlab.record.files import write_atomically, write_json
from rlvrlab.train import loop, session

WRITERS = {"write_json", "write_atomically", "write_rows"}
PROBE = ["probe", "countdown", "--engine", "toy", "--n", "2", "--size", "2", "--max-tokens", "4", "-o", "probe"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return session.start(runs.recipe(tmp_path_factory.mktemp("run"), text=runs.ONLINE), runs.quiet).folder


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be written whole; lines still can."""
    monkeypatch.setattr(Path, "replace", refuse)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["report", "RUN"], "choose another place with -o FILE"),
        (PROBE, "choose another --output"),
        (["data", "make", "countdown", "--size", "2", "-o", "rows.jsonl"], "choose another place"),
    ],
)
def test_no_command_but_a_training_is_told_to_resume(
    words: list[str], remedy: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(rlvr, [str(trained) if word == "RUN" else word for word in words])
    said = str(done.exception)
    assert isinstance(done.exception, LabError) and "No space left" in said and "\n" not in said
    assert said.endswith(remedy) and "--resume" not in said and "output_dir" not in said


@pytest.mark.usefixtures("full")
def test_the_page_of_python_names_another_file(trained: Path) -> None:
    with pytest.raises(UserError, match=r"report\.html: cannot be written \(No space left on device\); name another"):
        Run(trained).report()


def test_a_training_is_told_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stored(*_: object) -> Iterator[None]:
        raise StorageError(tmp_path, OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as refused:
        refused.setattr(loop, "_checkpoint", stored)
        with pytest.raises(StorageError, match="No space left on device; free space, then --resume"):
            session.start(runs.recipe(tmp_path, text=runs.ONLINE), runs.quiet)
    (folder,) = (tmp_path / "out").iterdir()
    assert "free space, then --resume" in (folder / "logs" / "events.jsonl").read_text()
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match="free space, then --resume"):
        session.resume(folder, runs.quiet)


def test_the_innermost_remedy_stands(tmp_path: Path) -> None:
    refused = OSError(errno.ENOSPC, "full")
    with pytest.raises(StorageError, match=r"full; inner$"), remedied("outer"), remedied("inner"):
        raise StorageError(tmp_path, refused)
    with pytest.raises(UserError, match=r"\(full\); theirs$"), writing_to(tmp_path, "theirs"), remedied("inner"):
        raise StorageError(tmp_path, refused)


def unguarded(tree: ast.Module) -> list[int]:
    """Lines that write a file outside `with writing_to(…)`."""
    found: list[int] = []

    def visit(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.With):
            guarded |= any("writing_to(" in ast.unparse(item) for item in node.items)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS and not guarded:
            found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, guarded)

    visit(tree, False)
    return found


def test_every_command_says_what_to_do_about_a_place_that_refuses() -> None:
    commands = [(file, tree) for file, tree in files(SOURCE) if file.startswith(("cli/", "api/"))]
    assert [f"{file}:{line}" for file, tree in commands for line in unguarded(tree)] == []
    assert unguarded(ast.parse("def f():\n    write_json(a, b)\n")) == [2]


def test_nothing_else_writes_under_another_name_and_renames() -> None:
    """A second atomic writer would forget the links, the other threads or the power cut."""
    temporary = [
        file
        for file, tree in files(SOURCE)
        for call in nodes(tree, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "with_name" and ".tmp" in ast.unparse(call)
    ]
    assert temporary == ["plain_files.py"]


@pytest.mark.parametrize("write", [
    lambda path: write_json(path, 1), lambda path: write_atomically(path, "1\n"), lambda path: write_lines(path, ["1"]),
    lambda path: plain_files.write_whole(path, b"1\n", durable=False),
])  # fmt: skip
def test_every_writer_replaces_a_link_and_follows_none(write: Callable[[Path], None], tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    other.write_text("theirs")
    path.symlink_to(other)
    planted = path.with_name(f".{path.name}.{os.getpid()}_{threading.get_ident()}.tmp")
    planted.symlink_to(other)
    write(path)
    assert other.read_text() == "theirs" and not path.is_symlink() and path.read_text() == "1\n"
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_data_files_outlive_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    write_lines(tmp_path / "rows.jsonl", ["{}"])
    assert len(synced) == 2 and synced[1] == str(tmp_path), "the file, then the folder that has its name"


def test_a_hash_is_of_the_whole_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert plain_files.sha256_of(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        plain_files.sha256_of(tmp_path / "pipe")


def test_a_place_is_taken_by_anything_but_an_empty_folder(tmp_path: Path) -> None:
    plain_files.refuse_taken(tmp_path, empty_is_free=True)
    plain_files.refuse_taken(tmp_path / "new")
    (tmp_path / "link").symlink_to("nowhere")
    for place in (tmp_path, tmp_path / "link"):
        with pytest.raises(UserError, match="is already there; choose another --output or move it away"):
            plain_files.refuse_taken(place)
