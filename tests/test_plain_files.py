"""A pipe or a device in a folder that somebody else has made ends nothing and fills no memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlvrlab import plain_files

ENOUGH_S = 60
"""For a verb that would wait for ever."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_a_device_and_a_link_to_one_are_refused(pipe: Path, tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (pipe, tmp_path / "zero", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"not a file|directory"):
            plain_files.read_bytes(path)


def test_a_large_file_of_holes_is_refused_and_a_small_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "holes"
    path.touch()
    os.truncate(path, plain_files.LARGE)
    with plain_files.opened(path) as file:
        assert file.read(1) == b"\0"
    os.truncate(path, plain_files.LARGE + 1)
    with pytest.raises(OSError, match="holes"):
        plain_files.read_bytes(path)
    with plain_files.opened(path, holes=True) as file:
        assert file.read(3) == b"\0" * 3


def test_a_file_and_a_link_to_one_are_read_as_pathlib_reads_them(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes("a\r\nb\rc\nä".encode())
    link.symlink_to(path)
    assert plain_files.read_bytes(link) == path.read_bytes()
    assert plain_files.read_text(link) == path.read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        plain_files.read_bytes(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["run_info.json", "config.json", "tags", ".lock", "logs/metrics.jsonl", "looks.jsonl"])
@pytest.mark.parametrize("verb", ["show", "runs"])
def test_looking_at_a_run_with_a_pipe_in_it_ends(tmp_path: Path, name: str, verb: str) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    for file in ("run_info.json", "config.json"):
        (run / file).write_text("{}")
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    command = [sys.executable, "-m", "rlvrlab", verb, str(run if verb == "show" else tmp_path)]
    ended = subprocess.run(command, capture_output=True, timeout=ENOUGH_S, stdin=subprocess.DEVNULL, check=False)
    assert b"Traceback" not in ended.stderr


def test_below_is_below_whatever_the_links_say(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "kept").mkdir(parents=True)
    (home / "inner").symlink_to("kept")
    (home / "out").symlink_to("..")
    (home / "loop").symlink_to("loop")
    (tmp_path / "latest").symlink_to("home")
    assert plain_files.below(tmp_path / "latest", "inner/new") == home / "kept" / "new"
    for name in ("out", "..", "/etc", "kept/../../home2", "loop/x", "a\0b", None):
        assert plain_files.below(home, name) is None, name  # type: ignore[arg-type]


def test_names_that_are_on_disks_are_found_again() -> None:
    assert plain_files.file_name("org/Model-7B@best.v2") == "org_Model-7B@best.v2"
    assert plain_files.file_name("a" * 70 + "_z") == "a" * 58 + "_z" and plain_files.file_name("…") == "unnamed"
    assert plain_files.file_stem("exam.accepted", "metric") == "exam_accepted"
    assert plain_files.file_stem("../..", "metric") == "metric"
