"""Skips are told with their reasons, and one that is not listed fails the run where that is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import listed_skips
import pytest


@pytest.mark.parametrize(
    ("reason", "known"),
    [
        ("needs svamp/SVAMP.json.gz under RLVRLAB_DATA or RLVRLAB_SHARED/data", True),
        ("needs judge_corpus/ beside the repository or RLVRLAB_SHARED", True),
        ("needs a GPU", True),
        ("could not import 'ortools': No module named 'ortools'", True),
        ("math-verify is there", True),
        ("this machine cannot isolate code", False),
        ("the hf engine needs torch", False),
        ("could not import 'pyarrow': No module named 'pyarrow'", False),
        ("", False),
    ],
)
def test_what_may_be_skipped(reason: str, known: bool) -> None:
    assert (listed_skips.unlisted([reason], listed_skips.listed()) == []) is known


@pytest.mark.slow
@pytest.mark.parametrize(("reason", "strict", "code"), [("needs a GPU", "1", 0), ("odd", "1", 1), ("odd", "", 0)])
def test_a_skip_that_is_not_listed_fails_the_run(tmp_path: Path, reason: str, strict: str, code: int) -> None:
    names = "pytest_sessionfinish, pytest_terminal_summary"
    (tmp_path / "conftest.py").write_text(f"from listed_skips import {names}\n")
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_one(): pass\ndef test_two(): pytest.skip({reason!r})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), listed_skips.STRICT: strict}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == code, done.stdout
    assert "1 skipped" in done.stdout and reason in done.stdout and ("NOT LISTED" in done.stdout) is (reason == "odd")
