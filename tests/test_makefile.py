"""The Makefile sets up what is missing, and nothing twice."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_an_environment_that_is_ready_is_not_installed_again(tmp_path: Path) -> None:
    """pip rewrites `bin/rlvr` with every extra; that must not make the earlier installations look old."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests/oracles").mkdir(parents=True)
    shutil.copy(ROOT / "tests/oracles/requirements.txt", tmp_path / "tests/oracles")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    now = (tmp_path / "constraints.txt").stat().st_mtime + 10
    for age, name in enumerate((".core", ".hf", ".dev", ".oracles", "bin/rlvr")):
        (tmp_path / ".venv" / name).touch()
        os.utime(tmp_path / ".venv" / name, (now + age, now + age))

    plan = subprocess.run(
        ["make", "-n", "quick", "demo", "test", "oracles", "fuzz", "lint"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "pytest" in plan
    assert "pip install" not in plan


def test_ci_leaves_out_of_the_tests_only_what_it_does_besides() -> None:
    left_out = re.search(r'^twice="(.*)"$', CI, re.MULTILINE)
    assert left_out is not None
    besides = {
        "tests/test_claims.py::test_claims_follow_from_committed_files": "make claims",
        "tests/fuzz/test_fuzz.py::test_a_few_seconds_find_nothing": "make fuzz",
    }
    assert left_out[1].split() == list(besides)
    assert all(re.search(f"\\b{command}\\b", CI[left_out.end() :]) for command in besides.values())
    for name in besides:
        path, _, function = name.partition("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text(encoding="utf-8")
