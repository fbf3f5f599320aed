"""A run folder that somebody else has made may hold links: nothing is written through them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import inside, tiny

from rlvrlab.errors import RunError, UserError
from rlvrlab.record.files import Lines, Lock, append_rows, mend_tail, place_in, write_atomically
from rlvrlab.report.tags import change_tag

VERBS = {
    "credit": ("credit", "RUN", "--step", "3"),
    "interference": ("interference", "RUN"),
    "report": ("report", "RUN"),
    "eval": ("eval", "countdown", "--run", "RUN", "--size", "2"),
    "train": ("train", "--resume", "RUN", "grpo.steps=+1"),
}
"""Verbs that write into a run that is there already."""
SAID = "a link that leads out of"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of two phases, copied for each case."""
    from rlvrlab.cli.verbs import rlvr

    home = tmp_path_factory.mktemp("finished")
    rlvr.main(["train", str(tiny(home)), f"output_dir={home / 'runs'}", "eval.every=0"], standalone_mode=False)
    return next((home / "runs").iterdir())


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_writes_through_a_folder_that_is_a_link(
    monkeypatch, capsys, tmp_path: Path, finished: Path, verb: str
) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(finished, run)
    for name in ("analysis", "evaluations"):
        shutil.rmtree(run / name, ignore_errors=True)
        (elsewhere / name / "tables").mkdir(parents=True)
        (run / name).symlink_to(elsewhere / name)
    (elsewhere / "analysis" / "report.html").write_text("theirs")
    before = snapshot(elsewhere)
    done = inside(monkeypatch, capsys, *(str(run) if w == "RUN" else w for w in VERBS[verb]), folder=tmp_path)
    assert snapshot(elsewhere) == before
    assert done.returncode == 2 and SAID in done.stderr and "remove it" in done.stderr, (done.stdout, done.stderr)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: append_rows(path, [{"a": 1}]),
        lambda path: Lines(path).append({"a": 1}),
        mend_tail,
        lambda path: Lock(path.parent),
    ],
    ids=["rows", "lines", "mend", "lock"],
)
def test_nothing_is_appended_through_a_link(tmp_path: Path, write: Callable[[Path], object]) -> None:
    (tmp_path / "theirs").write_text("half a line")
    for name in ("looks.jsonl", ".lock"):
        (tmp_path / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(RunError, match="a link, and nothing is appended through one"):
        write(tmp_path / "looks.jsonl")
    assert (tmp_path / "theirs").read_text() == "half a line"


def test_a_whole_file_takes_the_place_of_a_link(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "theirs").write_text("theirs\n")
    (tmp_path / "tags").symlink_to(tmp_path / "theirs")
    change_tag(tmp_path, "mine", True)
    assert not (tmp_path / "tags").is_symlink() and (tmp_path / "tags").read_text() == "theirs\nmine\n"
    monkeypatch.setattr("os.getpid", lambda: 7)
    monkeypatch.setattr("threading.get_ident", lambda: 1)
    (tmp_path / ".tags.7_1.tmp").symlink_to(tmp_path / "theirs")  # a name that can be guessed
    write_atomically(tmp_path / "tags", "mine\n")
    assert (tmp_path / "theirs").read_text() == "theirs\n" and (tmp_path / "tags").read_text() == "mine\n"


def test_a_link_within_the_folder_and_a_home_that_is_one_are_fine(tmp_path: Path) -> None:
    (tmp_path / "run" / "kept").mkdir(parents=True)
    (tmp_path / "run" / "analysis").symlink_to("kept")
    (tmp_path / "latest").symlink_to("run")
    assert place_in(tmp_path / "latest", "analysis/tables") == tmp_path / "latest" / "analysis" / "tables"
    (tmp_path / "run" / "logs").symlink_to("logs")
    with pytest.raises(UserError, match=r"leads out of .*, or nowhere"):
        place_in(tmp_path / "run", "logs")
