"""The folder of github.com/jkoppel/QuixBugs, a row per program.

python_programs/NAME.py           the program with a bug, and behind it a string that says what it should do
correct_python_programs/NAME.py   the same without the bug
json_testcases/NAME.json          a line [arguments, result] per case
python_testcases/test_NAME.py     how a case is compared; for programs on graphs and lists the cases themselves
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvrlab.envs.files_read import was_read
from rlvrlab.errors import UserError

PROGRAMS, CORRECT, CASES, TESTS = "python_programs", "correct_python_programs", "json_testcases", "python_testcases"


def is_folder(path: Path) -> bool:
    """Is this a copy of QuixBugs?"""
    return (path / PROGRAMS).is_dir() and (path / CORRECT).is_dir()


def files_in(folder: Path) -> list[Path]:
    """Every file that is read."""
    return sorted(file for part in (PROGRAMS, CORRECT, CASES, TESTS) for file in (folder / part).glob("*.*"))


def folder_rows(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """A row per program of the folder, numbered, in the order of their names."""
    if not is_folder(folder):
        raise UserError(f"{folder}: a folder; give a file, or QuixBugs' own folder with {PROGRAMS}/ and {CORRECT}/")
    names = sorted(path.stem for path in (folder / PROGRAMS).glob("*.py"))
    programs = [name for name in names if name != "node" and not name.endswith("_test") and not name.startswith("__")]
    for number, name in enumerate(programs, 1):
        cases, tests = folder / CASES / f"{name}.json", folder / TESTS / f"test_{name}.py"
        row = {"name": name, "buggy_program": _text(folder / PROGRAMS / f"{name}.py")}
        row["solution"] = _text(folder / CORRECT / f"{name}.py")
        row |= {"cases": _text(cases)} if cases.is_file() else {}
        row |= {"test_file": _text(tests)} if tests.is_file() else {}
        node = folder / TESTS / "node.py"
        row |= {"node": _text(node)} if node.is_file() and "from node import" in row.get("test_file", "") else {}
        yield number, row


def _text(path: Path) -> str:
    was_read(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); take a whole copy of QuixBugs") from None
