"""`rlvr judge` and `rlvr serve judge` as a person uses them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlvrlab.cli.judge import command
from rlvrlab.errors import UserError
from rlvrlab.types import Verdict, bad_task, unjudged

ADD_TASK = {"kind": "calls", "entry_point": "add", "calls": [{"arguments": [1, 2], "expected": 3}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.json").write_text(json.dumps(ADD_TASK))
    (tmp_path / "good.py").write_text("def add(a, b): return a + b")
    (tmp_path / "bad.py").write_text("def add(a, b): return a - b")
    (tmp_path / "answer.md").write_text("Sure:\n```python\ndef add(a, b): return a + b\n```\n")
    (tmp_path / "prose.md").write_text("I would add them.")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "1.in").write_text("1 2\n")
    (tmp_path / "tests" / "1.out").write_text("3\n")
    (tmp_path / "sum.py").write_text("print(sum(map(int, input().split())))")
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)


def test_verdicts_for_a_reader(folder: Path) -> None:
    result = run(folder / "good.py", folder / "answer.md", "-p", folder / "task.json")
    assert result.return_value == 0
    assert result.output.count("✓") == 2 and "1/1 tests" in result.output
    result = run(folder / "bad.py", folder / "prose.md", "-p", folder / "task.json")
    assert result.return_value == 1
    assert "wrong_answer: call 1 of 1: returned '-1'" in result.output and "only prose" in result.output


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(unjudged("no memory"), 3), (bad_task("no tests"), 2), (Verdict(False), 1), (Verdict(True), 0)],
)
def test_the_exit_code_says_whose_failure_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int
) -> None:
    monkeypatch.setattr("rlvrlab.judge.judge.Judge.verify", lambda *_: verdict)
    assert run(folder / "good.py", "-p", folder / "task.json").return_value == code


def test_json_and_folders(folder: Path) -> None:
    result = run(folder / "sum.py", "-p", folder / "tests", "--json", "--cpu", 2, "--memory", 128)
    verdict = json.loads(result.output)[str(folder / "sum.py")]
    assert (verdict["correct"], verdict["isolation"], verdict["passed"]) == (True, "landlock", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "an object with a kind"),
        ('{"kind": "x"}', "allowed: stdio"),
        ('{"kind": "calls"}', "entry_point: missing"),
    ],
)
def test_bad_problems_are_named(folder: Path, content: str, message: str) -> None:
    (folder / "task.json").write_text(content)
    result = run(folder / "good.py", "-p", folder / "task.json")
    assert isinstance(result.exception, UserError) and message in str(result.exception)


@pytest.mark.parametrize("words", [("--cpu", "nan"), ("--cpu", "-1")])
def test_impossible_limits_are_refused_in_one_line(folder: Path, words: tuple[str, str]) -> None:
    error = run(folder / "good.py", "-p", folder / "task.json", *words).exception
    assert isinstance(error, UserError) and str(error).startswith("--cpu, --memory: limits must be positive")


def test_missing_files_are_named(folder: Path) -> None:
    assert f"no such file in {folder}" in str(run(folder / "none.py", "-p", folder / "task.json").exception)
    (folder / "empty").mkdir()
    assert "no *.in files" in str(run(folder / "good.py", "-p", folder / "empty").exception)
    assert isinstance(run(folder / "good.py", "-p", folder / "task.json", "--isolation", "weak").exception, UserError)


def test_serve_answers_and_leaves_nothing(tmp_path: Path) -> None:
    code = "from rlvrlab.cli.serve import command; command(['judge', '--port', '0', '--workers', '1'])"
    server = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found
        with urllib.request.urlopen(f"{found.group()}/v1/ping", timeout=60) as answer:
            assert json.loads(answer.read()) == "pong"
        below = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    finally:
        os.kill(server.pid, signal.SIGINT)
        try:
            server.communicate(timeout=60)
        finally:
            server.kill()  # what is left running fails another test, later
            server.communicate()
    assert len(below) == 1
    assert not Path(f"/proc/{below[0]}").exists()
