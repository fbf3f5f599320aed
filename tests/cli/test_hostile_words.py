"""Pipes, links and endless words where the command line expects a file or a name: one line, at once, and no harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import errors, inside

from rlvrlab.cli.printing import LONGEST_QUOTED, LONGEST_WORD, print_error


def test_a_pipe_is_no_recipe(tmp_path: Path, monkeypatch, capsys) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("pipe.toml", "pipe"):
        [told] = errors(inside(monkeypatch, capsys, "train", name, folder=tmp_path))
        assert "pipe.toml: cannot be read (not a file but a pipe or a device)" in told and "did you mean" not in told
    [told] = errors(inside(monkeypatch, capsys, "study", "plan", "pipe.toml", folder=tmp_path))
    assert "pipe.toml" in told


def test_a_pipe_is_no_program(tmp_path: Path, monkeypatch, capsys) -> None:
    os.mkfifo(tmp_path / "program.py")
    (tmp_path / "task.json").write_text('{"kind": "stdio", "tests": [["1", "1"]]}')
    done = inside(monkeypatch, capsys, "judge", "program.py", "--problem", "task.json", folder=tmp_path)
    assert done.returncode == 2 and "pipe" in done.stderr, done.stderr


def test_the_same_name_is_never_suggested(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "mine.toml").symlink_to("gone.toml")
    [told] = errors(inside(monkeypatch, capsys, "train", "mine", folder=tmp_path))
    assert "mine.toml: no such recipe" in told and "did you mean" not in told


def test_a_copy_is_never_written_through_a_link(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "toy_countdown.toml").symlink_to(tmp_path / "elsewhere.toml")
    [told] = errors(inside(monkeypatch, capsys, "recipes", "copy", "toy_countdown", folder=tmp_path))
    assert "is already there" in told and not (tmp_path / "elsewhere.toml").exists()


@pytest.mark.parametrize("words", ["recipes", "train", "show", "recipes copy", "train toy_countdown"])
def test_an_error_line_does_not_echo_a_file_given_for_a_name(tmp_path: Path, monkeypatch, capsys, words: str) -> None:
    told = errors(inside(monkeypatch, capsys, *words.split(), "A" * 100_000, folder=tmp_path))
    assert all(line.count("A") <= LONGEST_WORD and "free this one" not in line for line in told)


def test_what_is_quoted_is_cut_and_remedies_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    remedy = "the run's folder is gone; `pip install 'rlvrlab[figures]'` and 'x' " + "word " * 100 + "isn't it"
    long_path = "/" + "folder/" * 100 + "recipe.toml: no such recipe"
    for message in (remedy, long_path):
        print_error(message)
        assert capsys.readouterr().err == f"error: {message}\n"
    print_error(f"no name {'b c' * 1000!r}; {remedy}")
    told = capsys.readouterr().err
    assert told.endswith(f"; {remedy}\n") and len(told) < len(remedy) + LONGEST_QUOTED + 30
