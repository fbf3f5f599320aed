"""A disk that is full or read-only: one line with the path, nothing lost, and the run goes on once there is room."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import runs
from click.testing import CliRunner
from slow_cases import some_slow

from rlvrlab.cli.report import command as report_command
from rlvrlab.errors import LabError, StorageError, UserError
from rlvrlab.record import run as record_run
from rlvrlab.record.files import Lines, read_lines, write_json
from rlvrlab.train import checkpoint, loop, run_folder, session

MEGABYTES = 48


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of our own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(place)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> None:
    """Take the last byte."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def full_before(disk: Path, owner: Any, name: str, nth: int) -> Callable[[], None]:
    """From the n-th call of owner.name on, there is no room."""
    real, left = getattr(owner, name), [nth]

    def wrapped(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            fill(disk)
        return real(*args, **named)

    return lambda: setattr(owner, name, wrapped)


PLACES = {
    "metrics": (record_run.Run, "metrics", 5, "logs/metrics.jsonl|rollouts/|checkpoints/|EXPERIMENT.md"),
    "rollouts": (record_run.Run, "rollouts", 2, "rollouts/step_7.jsonl"),
    "checkpoint": (checkpoint, "save", 2, "checkpoints/"),
    "manifest": (checkpoint, "write_json", 3, "checkpoints/"),
    "EXPERIMENT.md": (loop, "write_experiment", 2, "EXPERIMENT.md"),
    "start": (run_folder, "write_experiment", 1, "EXPERIMENT.md"),
}


@pytest.mark.parametrize("name", some_slow(PLACES, {"rollouts", "manifest"}))
def test_full_at(whole: Path, disk: Path, name: str) -> None:
    owner, function, nth, expected = PLACES[name]
    resolved = runs.recipe(disk, text=runs.ONLINE)

    def work() -> session.Ended:
        full_before(disk, owner, function, nth)()
        return session.start(resolved, runs.quiet)

    errors = disk.parent / "stderr"
    assert runs.in_child(work, errors) == 1
    said = errors.read_text()
    last = said.splitlines()[-1]
    assert "Traceback" not in said and last.startswith("error: ") and "No space left" in last
    assert any(part in last for part in expected.split("|"))
    folder = runs.only_run(disk)
    assert runs.without_times(whole).startswith(runs.without_times(folder))
    saved = (folder / "checkpoints").glob("*")
    assert all(checkpoint.defect(path) is None for path in saved), "no half checkpoint takes up the room"
    (disk / "filler").unlink()
    assert runs.in_child(lambda: session.resume(folder, runs.quiet), errors) == 0, errors.read_text()
    runs.assert_same(folder, whole)


def test_no_room_for_the_folder(disk: Path) -> None:
    resolved = runs.recipe(disk, text=runs.ONLINE)
    (disk / "out").mkdir()
    fill(disk)
    with pytest.raises(LabError, match="No space left"):
        session.start(resolved, runs.quiet)
    assert not list((disk / "out").iterdir()), "no half-made folder is left"


def test_no_room_to_resume(whole: Path, disk: Path) -> None:
    resolved = runs.recipe(disk, text=runs.ONLINE)
    folder = session.start(resolved, runs.quiet).folder
    path = folder / "logs" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    (folder / ".lock").unlink()
    fill(disk)
    with pytest.raises(StorageError, match="No space left"):
        session.resume(folder, runs.quiet)
    (disk / "filler").unlink()
    session.resume(folder, runs.quiet)
    runs.assert_same(folder, whole)


def test_no_room_for_a_report(whole: Path, disk: Path) -> None:
    """One line with the path; the folder is as it was, and the page is written once there is room."""
    folder = disk / whole.name
    shutil.copytree(whole, folder)
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    fill(disk)
    said = CliRunner().invoke(report_command, [str(folder)])
    assert isinstance(said.exception, LabError) and "No space left" in str(said.exception)
    assert "\n" not in str(said.exception) and str(folder) in str(said.exception)
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    (disk / "filler").unlink()
    assert CliRunner().invoke(report_command, [str(folder)]).exit_code == 0


def test_lines_stay_whole_however_often_the_disk_refuses(disk: Path) -> None:
    path = disk / "log.jsonl"
    rows = []
    with Lines(path) as lines:
        (disk / "filler").write_bytes(b"x" * ((MEGABYTES << 20) - (64 << 10)))
        for refused in range(5):
            with pytest.raises(StorageError, match=r"log\.jsonl: No space left"):
                while True:
                    row = {"step": len(rows), "text": "y" * (5001 >> refused)}
                    lines.append(row)
                    rows.append(row)
        assert read_lines(path) == rows and b"\x00" not in path.read_bytes()
        (disk / "filler").unlink()
        lines.append({"step": -1})
    assert read_lines(path) == [*rows, {"step": -1}]


def test_an_atomic_file_stays_as_it_was(disk: Path) -> None:
    path = disk / "facts.json"
    write_json(path, {"old": True})
    before = path.read_bytes()
    fill(disk)
    with pytest.raises(StorageError, match=r"facts\.json"):
        write_json(path, {"text": "x" * 10**6})
    assert path.read_bytes() == before and sorted(p.name for p in disk.iterdir()) == ["facts.json", "filler"]


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, capture_output=True)


@pytest.mark.slow
def test_read_only(whole: Path, disk: Path) -> None:
    resolved = runs.recipe(disk, text=runs.ONLINE)
    folder = session.start(resolved, runs.quiet).folder
    remount(disk, "ro")
    with pytest.raises(UserError, match=r"cannot be made \(Read-only file system\)"):
        session.start(resolved, runs.quiet)
    with pytest.raises(UserError, match="read-only"):
        session.resume(folder, runs.quiet)
    words = [str(Path(sys.executable).with_name("rlvr")), "train", "--resume", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    remount(disk, "rw")
    session.resume(folder, runs.quiet)
    runs.assert_same(folder, whole)
