"""What a resume finds after damage: half-written checkpoints, broken files, folders that are no runs, other data."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import runs
from slow_cases import some_slow

from rlvrlab.errors import RunError, UserError
from rlvrlab.notes import noting
from rlvrlab.record.files import read_lines
from rlvrlab.record.run import Run
from rlvrlab.train import checkpoint, session
from rlvrlab.train.run_folder import recorded
from rlvrlab.train.state import State


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / whole.name))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda c: (c / "actor" / "toy.npz").unlink(), "toy.npz is missing"),
    "truncated npz": (lambda c: truncate(c / "actor" / "toy.npz"), "actor/toy.npz does not match"),
    "one bit": (lambda c: flip(c / "actor" / "toy.npz"), "actor/toy.npz does not match"),
    "other state": (lambda c: (c / "trainer.json").write_text("{}"), "trainer.json does not match"),
    "no manifest": (lambda c: (c / "manifest.json").unlink(), "manifest.json is missing"),
    "half a manifest": (lambda c: truncate(c / "manifest.json"), "the manifest cannot be read"),
    "manifest of another kind": (lambda c: (c / "manifest.json").write_text('{"files": []}'), "cannot be read"),
    "empty folder": (lambda c: [shutil.rmtree(c), c.mkdir()], "manifest.json is missing"),
    "folder for a file": (lambda c: [(c / "trainer.json").unlink(), (c / "trainer.json").mkdir()], "cannot be read"),
}


@pytest.mark.parametrize("name", some_slow(DAMAGES, DAMAGES.keys() - {"one bit", "half a manifest", "other state"}))
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_taken(whole: Path, copy: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    last = runs.last_checkpoint(copy)
    damage(last)
    session.resume(copy, runs.quiet)
    assert any(last.name in text and words in text for text in runs.events(copy, "recovered"))
    assert (copy / "checkpoints" / f"incomplete_{last.name}").exists()
    runs.assert_same(copy, whole)
    again = read_lines(copy / "logs" / "superseded.jsonl")
    assert again, "the lines made again are kept"
    [resumed] = [event["text"] for event in runs.read_events(copy) if event["kind"] == "resume"]
    assert f"; {len(again)} line" in resumed and "made again" in resumed


def test_all_checkpoints_gone(whole: Path, copy: Path) -> None:
    shutil.rmtree(copy / "checkpoints")
    runs.was_killed(copy)
    rows = runs.read_metrics(copy)
    session.resume(copy, runs.quiet)
    runs.assert_same(copy, whole)
    assert read_lines(copy / "logs" / "superseded.jsonl") == rows


def test_empty_folders_may_have_been_dropped_by_a_copy(whole: Path, copy: Path) -> None:
    for name in ("logs", "rollouts", "checkpoints", "artifacts", "analysis"):
        shutil.rmtree(copy / name)
    runs.was_killed(copy)
    session.resume(copy, runs.quiet)
    runs.assert_same(copy, whole)


def test_drafts_and_leftovers_are_cleared(whole: Path, copy: Path) -> None:
    draft = copy / "checkpoints" / ".draft_7_123"
    shutil.copytree(runs.last_checkpoint(copy), draft)
    leftovers = [copy / ".run_info.json.99.tmp", copy / "rollouts" / ".step_3.jsonl.99.tmp"]
    for leftover in leftovers:
        leftover.write_text("half")
    session.resume(copy, runs.quiet)
    assert not draft.exists() and not any(leftover.exists() for leftover in leftovers)
    assert any("step 7 was cut off" in text for text in runs.events(copy, "recovered"))
    runs.assert_same(copy, whole)


def test_what_the_user_put_beside_is_left_alone(whole: Path, copy: Path) -> None:
    mine = [copy / "checkpoints" / "global_step_5.bak", copy / "rollouts" / "step_mine.jsonl"]
    mine[0].mkdir()
    mine[1].write_text("{}\n")
    session.resume(copy, runs.quiet)
    checkpoint.prune(copy / "checkpoints", 1, set())
    assert all(path.exists() for path in mine)


@pytest.mark.parametrize("tail", [b'{"step": 99, "pha', b"\x00" * 64])
def test_a_torn_last_line_of_metrics(whole: Path, copy: Path, tail: bytes) -> None:
    path = copy / "logs" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + tail)
    assert runs.read_metrics(copy) == runs.read_metrics(whole)
    session.resume(copy, runs.quiet)
    runs.assert_same(copy, whole)
    assert any("metrics.jsonl.torn" in text for text in runs.events(copy, "torn_line"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "not a run's configuration"),
        ('{"schema": 999}', "schema 999, this version reads 1"),
        ('{"schema": 0}', "schema 0"),
        ('{"schema": 1}', "damaged"),
        ('{"schema": 1, "recipe": [], "origins": {}, "folder": "."}', "damaged"),
    ],
)
def test_a_broken_config_is_refused_on_one_line(copy: Path, text: str, words: str) -> None:
    (copy / "config.json").write_text(text)
    with pytest.raises(RunError, match=words) as caught:
        session.resume(copy, runs.quiet)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_run_info_is_refused_on_one_line(copy: Path, text: str) -> None:
    (copy / "run_info.json").write_text(text)
    with pytest.raises(RunError, match=r"run_info\.json"):
        session.resume(copy, runs.quiet)


@pytest.mark.parametrize("name", ["nowhere", "empty", "file"])
def test_a_folder_that_is_no_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises((UserError, RunError)):
        session.resume(tmp_path / name, runs.quiet)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["empty", "file"]


def test_changed_data_is_refused_and_nothing_is_touched(copy: Path) -> None:
    info = runs.read_info(copy)
    info["data"]["train"]["sha256"] = "of other problems"
    (copy / "run_info.json").write_text(json.dumps(info))
    before = runs.without_times(copy)
    with pytest.raises(UserError, match="the data is not what this run started with") as refused:
        session.resume(copy, runs.quiet)
    size = info["data"]["train"]["size"]
    assert f": train: {size} other problems; restore it as it was, or train anew" in str(refused.value)
    assert runs.without_times(copy) == before


def test_a_run_that_is_finished_says_so_without_loading_its_policy(copy: Path, monkeypatch) -> None:
    assert session.resume(copy, runs.quiet).status == "finished"
    monkeypatch.setattr("rlvrlab.train.checks.with_policy", lambda has: pytest.fail("the policy was loaded"))
    assert session.resume(copy, runs.quiet).status == "finished"


def test_a_run_of_an_earlier_version_of_its_environment_is_refused_with_both(copy: Path) -> None:
    info = runs.read_info(copy)
    info["data"]["version"] = "0"
    (copy / "run_info.json").write_text(json.dumps(info))
    before = runs.without_times(copy)
    with pytest.raises(UserError, match=r"was version 0 and is \d+ now, with other problems .*a new run") as caught:
        session.resume(copy, runs.quiet)
    assert "\n" not in str(caught.value) and runs.without_times(copy) == before


def test_resuming_elsewhere_says_what_differs(whole: Path, copy: Path) -> None:
    info = runs.read_info(copy)
    info["packages"]["numpy"] = "0.0.1"
    (copy / "run_info.json").write_text(json.dumps(info))
    shutil.rmtree(runs.last_checkpoint(copy))
    session.resume(copy, runs.quiet)
    assert any("numpy 0.0.1 → " in text for text in runs.events(copy, "environment"))


def test_resuming_a_finished_run_writes_nothing(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert session.resume(copy, runs.quiet).status == "finished"
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_local_plugin_is_found_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text(
        "from dataclasses import dataclass\nfrom rlvrlab.registry import register\n"
        "from rlvrlab.rewards.binary import Binary\n"
        "@register('reward', 'own')\n@dataclass(frozen=True)\nclass Own(Binary):\n    pass\n"
    )
    (tmp_path / "tiny.toml").write_text(runs.ONLINE + '[reward]\ntype = "own.py:Own"\n')
    monkeypatch.chdir(tmp_path)
    folder = session.start(runs.load_recipe(Path("tiny.toml"), ["sft.steps=1"]), runs.quiet).folder.resolve()
    monkeypatch.chdir("/")
    assert session.resume(folder, runs.quiet).status == "finished"


def test_state_survives_json() -> None:
    state = State(step=3, phase=1, kept=(2,)).evaluated(0.5)
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state
    assert State.from_json(json.loads(json.dumps(State().to_json()))) == State()


def test_a_finished_run_without_checkpoints_is_not_trained_again_in_silence(copy: Path) -> None:
    shutil.rmtree(copy / "checkpoints")
    before = (copy / "logs" / "metrics.jsonl").read_bytes()
    with pytest.raises(RunError, match=r"finished, and no complete checkpoint is left to go on from"):
        session.resume(copy, runs.quiet)
    assert (copy / "logs" / "metrics.jsonl").read_bytes() == before


def test_a_resume_says_from_where(copy: Path) -> None:
    shutil.rmtree(runs.last_checkpoint(copy))
    said: list[tuple[str, str]] = []
    with noting(lambda kind, words: said.append((kind, words))):
        session.resume(copy, runs.quiet)
    [words] = [words for kind, words in said if kind == "resume"]
    assert re.match(r"resumes after step \d+; \d+ lines? of the log beyond it moved to .*made again", words)


@pytest.mark.parametrize("left", [BrokenPipeError(), SystemExit(1)])
def test_a_run_whose_reader_has_left_was_stopped_and_has_not_failed(copy: Path, left: BaseException) -> None:
    left.__context__ = BrokenPipeError()
    with closing(Run.open(copy)) as run, pytest.raises(type(left)), recorded(run):
        raise left
    assert runs.read_info(copy)["status"] == "killed"
    assert any("the pipe or terminal that it wrote to was closed" in text for text in runs.events(copy, "end"))
