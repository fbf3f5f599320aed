"""Places that refuse: no locks, no permission, no such folder. One line on stderr, never a traceback."""

from __future__ import annotations

import errno
import fcntl
import sys
from pathlib import Path

import pytest

from rlvrlab.cli import doctor, main
from rlvrlab.cli.verbs import rlvr
from rlvrlab.errors import RunError
from rlvrlab.record.files import Lock


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["rlvr", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0), capsys.readouterr().err


@pytest.mark.usefixtures("no_locks")
def test_a_file_system_without_locks_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"files cannot be locked here \(No locks available\); put output_dir"):
        Lock(tmp_path)


@pytest.mark.usefixtures("no_locks")
def test_the_doctor_says_that_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "No locks available" in doctor._locks(tmp_path)


def test_the_doctor_finds_working_locks(tmp_path: Path) -> None:
    assert doctor._locks(tmp_path) == doctor.KEPT_OUT


@pytest.mark.parametrize(
    "words",
    [
        ("probe", "countdown", "--engine", "toy", "--n", "2", "--size", "2", "--max-tokens", "4", "-o", "{file}/below"),
        ("data", "make", "countdown", "--size", "2", "-o", "{file}/below/rows.jsonl"),
    ],
)
def test_an_unwritable_place_is_one_line(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    code, said = called(monkeypatch, capsys, *(word.format(file=tmp_path / "file") for word in words))
    assert code in (1, 2) and said.startswith("error: ") and said.count("\n") == 1
    assert str(tmp_path / "file") in said, "it is the place that is refused, not the words"


def test_an_error_of_the_system_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/x/probe.json")

    monkeypatch.setattr(rlvr, "main", refused)
    code, said = called(monkeypatch, capsys, "doctor")
    assert code == 1 and said == "error: /x/probe.json: Permission denied; choose another place, or free this one\n"


def test_a_plugin_that_leaves_is_never_exit_code_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_machine", lambda: sys.exit(0))
    code, said = called(monkeypatch, capsys, "doctor")
    assert code == 1 and "sys.exit(0)" in said
