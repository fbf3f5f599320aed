"""A folder of somebody else names Python files; they run only where the user has named them, or says --accept-code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import errors, inside, rlvr, tiny

from rlvrlab import Run, own_code
from rlvrlab.errors import UserError

OWN = "def pay(problem, completion, verdict):\n    return float(bool(verdict.correct))\n"
MARK = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a reward in a file, whose memory is kept apart."""
    home = tmp_path_factory.mktemp("own")
    (home / "mine.py").write_text(OWN)
    made = rlvr(
        "train", str(tiny(home)), "reward.type=mine.py:pay", "record.rollouts=all", folder=home,
        XDG_STATE_HOME=str(home / "state"),
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return home


@pytest.fixture
def foreign(trained: Path, tmp_path: Path) -> Path:
    """A copy of it whose reward, environment and phase are in a file of its own."""
    folder = tmp_path / "got" / "run"
    shutil.copytree(next((trained / "experiments").iterdir()), folder)
    (folder / "evil.py").write_text(MARK + OWN)
    config = json.loads((folder / "config.json").read_text())
    config["recipe"]["reward"] = {"type": f"{folder}/evil.py:pay"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing was named in this process, and nothing is remembered."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(own_code.HANDED_ON, raising=False)
    monkeypatch.setattr(own_code, "_named", {})
    yield


VERBS = {
    "eval": ("eval", "--run", "RUN"),
    "probe": ("probe", "--run", "RUN"),
    "rescore": ("rescore", "RUN"),
    "resume": ("train", "--resume", "RUN"),
    "longer": ("train", "--resume", "RUN", "grpo.steps=+1"),
    "fork": ("train", "--resume", "RUN", "--fork"),
    "credit": ("credit", "RUN"),
    "interference": ("interference", "RUN"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_code_of_a_foreign_folder_is_refused(verb: str, foreign: Path, monkeypatch, capsys) -> None:
    words = [str(foreign) if word == "RUN" else word for word in VERBS[verb]]
    (line,) = errors(inside(monkeypatch, capsys, *words, folder=foreign.parent))
    assert "evil.py: is code that a folder names and you have never run" in line and "add --accept-code" in line
    assert not (foreign / "ran").exists()


@pytest.mark.parametrize("verb", ["show", "report", "runs", "compare"])
def test_what_only_reads_runs_no_code(verb: str, foreign: Path, monkeypatch, capsys) -> None:
    log = foreign / "logs" / "metrics.jsonl"
    row = json.loads(log.read_text().splitlines()[-1])
    log.write_text(log.read_text() + json.dumps({**row, "phase": f"{foreign}/evil.py:pay"}) + "\n")
    words = {"compare": [str(foreign)] * 2, "runs": [str(foreign.parent)]}.get(verb, [str(foreign)])
    done = inside(monkeypatch, capsys, verb, *words, folder=foreign.parent)
    assert done.returncode == (2 if verb == "compare" else 0), done.stderr  # it has no evaluation
    assert not (foreign / "ran").exists()


def test_scorers_of_foreign_evaluations_are_refused(foreign: Path, monkeypatch, capsys) -> None:
    made = inside(monkeypatch, capsys, "eval", "countdown", "--engine", "toy", "--size", "2", "-o", "ev",
                  "numbers=[2]", "style=bare", folder=foreign.parent)  # fmt: skip
    assert made.returncode == 0, made.stderr
    folder = foreign.parent / "ev"
    info, evil = json.loads((folder / "run_info.json").read_text()), f"{foreign}/evil.py:pay"
    assert inside(monkeypatch, capsys, "rescore", str(folder), folder=foreign.parent).returncode == 0
    assert inside(monkeypatch, capsys, "eval", "--resume", str(folder), folder=foreign.parent).returncode == 0
    asked = {**info["request"], "what": evil}
    for facts, words in ({"scorer_type": evil}, ["rescore"]), ({"request": asked}, ["eval", "--resume"]):
        (folder / "run_info.json").write_text(json.dumps({**info, **facts}))
        (line,) = errors(inside(monkeypatch, capsys, *words, str(folder), folder=foreign.parent))
        assert "evil.py: is code that a folder names" in line and not (foreign / "ran").exists()


def test_accepted_code_runs_and_is_remembered(foreign: Path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "rescore", str(foreign), "--accept-code", folder=foreign.parent)
    assert (done.returncode, (foreign / "ran").exists()) == (0, True), done.stderr
    monkeypatch.setattr(own_code, "_named", {})
    monkeypatch.delenv(own_code.HANDED_ON)
    assert rlvr("rescore", str(foreign), folder=foreign.parent).returncode == 0
    (foreign / "evil.py").write_text(MARK + OWN + "other = 1\n")
    (line,) = errors(rlvr("rescore", str(foreign), folder=foreign.parent))
    assert "evil.py: is not what it was when you ran it" in line


def test_python_opens_a_foreign_run_and_is_asked_before_its_code_runs(foreign: Path) -> None:
    with pytest.raises(UserError, match=r"accept_code=True"):
        _ = Run(foreign).recipe
    assert not (foreign / "ran").exists()
    assert Run(foreign, accept_code=True).recipe.recipe.reward["type"].endswith("evil.py:pay")


def test_ones_own_run_needs_no_flag(trained: Path) -> None:
    run = str(next((trained / "experiments").iterdir()))
    done = rlvr("rescore", run, folder=trained, XDG_STATE_HOME=str(trained / "state"))
    assert done.returncode == 0, done.stderr


def test_without_a_memory_code_is_accepted_each_time(trained: Path, tmp_path: Path) -> None:
    run, state = str(next((trained / "experiments").iterdir())), tmp_path / "file"
    state.write_text("no folder")
    (line,) = errors(rlvr("rescore", run, folder=trained, XDG_STATE_HOME=str(state)))
    assert f"nothing is remembered in {state}/rlvrlab/own_code: Not a directory" in line
    assert rlvr("rescore", run, "--accept-code", folder=trained, XDG_STATE_HOME=str(state)).returncode == 0
    recipe = str(tiny(tmp_path))
    (tmp_path / "mine.py").write_text(OWN)
    made = rlvr("train", recipe, "reward.type=mine.py:pay", folder=tmp_path, XDG_STATE_HOME=str(state))
    assert made.returncode == 0, made.stderr
