"""A run folder that somebody edited: named with file and line, refused, or forked into a run of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs

from rlvrlab.errors import CheckpointError, InfrastructureError, LabError, RunError, RunTouched, UserError
from rlvrlab.record.run import Run
from rlvrlab.train import checkpoint, session
from rlvrlab.train.extension import extend


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole"), "eval.every=0", text=runs.ONLINE).folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """Its last checkpoint is gone, so that there is something left to train."""
    folder = Path(shutil.copytree(whole, tmp_path / "out" / whole.name))
    shutil.rmtree(runs.last_checkpoint(folder))
    return folder


def edit_config(folder: Path, *place: str, value: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    table = config["recipe"]
    for key in place[:-1]:
        table = table[key]
    table[place[-1]] = value
    (folder / "config.json").write_text(json.dumps(config))


def edit_lines(folder: Path, name: str, change: Callable[[list[str]], object]) -> None:
    path = folder / "logs" / f"{name}.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))


EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "rate": (lambda f: edit_config(f, "phase_tables", "grpo", "learning_rate", value=0.5), r"learning_rate .* → 0\.5"),
    "n": (lambda f: edit_config(f, "rollout", "n", value=8), r"rollout\.n 4 → 8"),
    "seed": (lambda f: edit_config(f, "seed", value=9), r"seed 0 → 9"),
    "reward": (lambda f: edit_config(f, "reward", "type", value="constant"), r'reward\.type "binary" → "constant"'),
    "phases": (lambda f: edit_config(f, "phases", value=["grpo"]), r'phases \["sft", "grpo"\] → \["grpo"\]'),
    "cut": (
        lambda f: edit_lines(f, "metrics", lambda lines: lines.__delitem__(slice(4, None))),
        r"metrics\.jsonl:4: .*ends",
    ),
    "value": (
        lambda f: edit_lines(f, "metrics", lambda lines: lines.__setitem__(1, lines[1].replace("{", '{"x": 1, '))),
        r"metrics\.jsonl:1-\d+: edited after the checkpoint of step \d+",
    ),
    "foreign table": (
        lambda f: edit_lines(f, "metrics", lambda ls: ls.insert(2, '{"mine": 1}\n')),
        r"metrics\.jsonl:3: a foreign",
    ),
    "foreign number": (
        lambda f: edit_lines(f, "metrics", lambda ls: ls.append("5\n")),
        r"metrics\.jsonl:\d+: a foreign line",
    ),
    "no JSON": (
        lambda f: edit_lines(f, "metrics", lambda ls: ls.insert(2, "hello\n")),
        r"metrics\.jsonl:3: not JSON",
    ),
    "step again": (
        lambda f: edit_lines(f, "metrics", lambda ls: ls.append(ls[1])),
        r"metrics\.jsonl:\d+: step 1 follows step",
    ),
    "foreign event": (
        lambda f: edit_lines(f, "events", lambda ls: ls.insert(1, '{"a": 1}\n')),
        r"events\.jsonl:2: a foreign",
    ),
    "no seal": (lambda f: (runs.last_checkpoint(f) / "seal.json").unlink(), r"seal\.json is missing"),
    "half a seal": (lambda f: (runs.last_checkpoint(f) / "seal.json").write_text("{}"), r"seal\.json .* damaged"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_folder_is_refused_on_one_line(copy: Path, name: str) -> None:
    change, words = EDITS[name]
    change(copy)
    before = (copy / "logs" / "metrics.jsonl").read_bytes()
    with pytest.raises((RunError, InfrastructureError), match=words) as caught:
        session.resume(copy, runs.quiet)
    assert "\n" not in str(caught.value)
    assert (copy / "logs" / "metrics.jsonl").read_bytes() == before


def test_a_recipe_edited_before_the_first_checkpoint_is_refused(copy: Path) -> None:
    shutil.rmtree(copy / "checkpoints")
    edit_config(copy, "seed", value=9)
    with pytest.raises(RunTouched, match=r"config\.json is not what this run was started with"):
        session.resume(copy, runs.quiet)


def test_an_untouched_folder_is_not_refused(whole: Path, copy: Path) -> None:
    session.resume(copy, runs.quiet)
    runs.assert_same(copy, whole)
    assert not runs.events(copy, "unsealed") and not runs.events(copy, "touched")


def test_an_edited_event_is_noted_and_changes_nothing(whole: Path, copy: Path) -> None:
    edit_lines(copy, "events", lambda lines: lines.__setitem__(1, lines[1].replace("sft", "SFT")))
    session.resume(copy, runs.quiet)
    assert any("events.jsonl:1-" in text for text in runs.events(copy, "touched"))
    runs.assert_same(copy, whole)


def test_a_run_of_an_older_version_goes_on_with_a_note(whole: Path, copy: Path) -> None:
    info = runs.read_info(copy)
    del info["config_sha256"]
    (copy / "run_info.json").write_text(json.dumps(info))
    for path in (copy / "checkpoints").glob("*/seal.json"):
        path.unlink()
    session.resume(copy, runs.quiet)
    assert any("older version" in text for text in runs.events(copy, "unsealed"))
    runs.assert_same(copy, whole)


def test_edited_phases_of_an_older_run_are_refused_by_line(copy: Path) -> None:
    info = runs.read_info(copy)
    del info["config_sha256"]
    (copy / "run_info.json").write_text(json.dumps(info))
    for path in (copy / "checkpoints").glob("*/seal.json"):
        path.unlink()
    edit_config(copy, "phases", value=["grpo"])
    with pytest.raises(RunTouched, match=r"metrics\.jsonl:1: phase 'sft' is not in the recipe"):
        session.resume(copy, runs.quiet)


def test_a_fork_is_a_run_of_its_own_with_a_parent(copy: Path) -> None:
    edit_config(copy, "phase_tables", "grpo", "learning_rate", value=0.5)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    step = int(runs.last_checkpoint(copy).name.rpartition("_")[2])
    copied = runs.without_times(copy).splitlines()[: step + 2]
    config = json.loads((copy / "config.json").read_text())
    config["recipe"]["output_dir"] = str(copy.parent)
    (copy / "config.json").write_text(json.dumps(config))
    before[copy / "config.json"] = (copy / "config.json").read_bytes()
    forked = session.fork(copy, runs.quiet, ["rlvr"]).folder
    assert forked != copy and {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    parent = runs.read_info(forked)["parent"]
    assert parent["folder"] == str(copy.resolve()) and parent["step"] == step
    assert "learning_rate" in parent["differs"][0] and runs.events(forked, "fork")
    assert runs.without_times(forked).splitlines()[: step + 2] == copied
    last = runs.read_metrics(forked)[-1]
    assert last["step"] == 11 and last["actor/lr"] == 0.5
    shutil.rmtree(runs.last_checkpoint(forked))  # and it can be resumed like any other
    ended = runs.without_times(forked)
    session.resume(forked, runs.quiet)
    assert runs.without_times(forked) == ended


def test_a_fork_may_drop_finished_phases_and_lines(copy: Path) -> None:
    edit_config(copy, "phases", value=["sft", "ppo"])
    edit_config(copy, "phase_tables", "ppo", value={"steps": 5, "batch_size": 4})
    edit_config(copy, "output_dir", value=str(copy.parent))
    edit_lines(copy, "metrics", lambda lines: lines.__delitem__(slice(3, None)))
    forked = session.fork(copy, runs.quiet).folder
    assert len(runs.read_info(forked)["parent"]["differs"]) == 2
    assert session.resume(forked, runs.quiet).status == "finished"


def test_a_fork_into_a_phase_that_is_over_is_refused(copy: Path) -> None:
    edit_config(copy, "phase_tables", "grpo", "steps", value=2)
    with pytest.raises(UserError, match=r"raise grpo\.steps"):
        session.fork(copy, runs.quiet)


def test_a_change_on_purpose_goes_on_record(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    config["recipe"]["phase_tables"]["grpo"]["learning_rate"] = 0.5
    run = Run.open(copy)
    run.reconfigure(config, "another rate")
    run.close()
    session.resume(copy, runs.quiet)
    assert runs.events(copy, "reconfigured") == ["another rate"]
    assert runs.read_metrics(copy)[-1]["actor/lr"] == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"step": 9, "files": {}}', "does not list"),
        ('{"step": 3, "files": {}}', "does not list"),
        ("{}", "cannot be read"),
    ],
)
def test_an_empty_manifest_is_no_complete_checkpoint(whole: Path, copy: Path, text: str, words: str) -> None:
    last = runs.last_checkpoint(copy)
    (last / "manifest.json").write_text(text)
    assert last not in checkpoint.complete(copy / "checkpoints")
    session.resume(copy, runs.quiet)
    assert any(words in text for text in runs.events(copy, "recovered"))
    runs.assert_same(copy, whole)


def test_a_state_without_content_is_named(copy: Path) -> None:
    """Also where the manifest was made to fit."""
    last = runs.last_checkpoint(copy)
    (last / "trainer.json").write_text("{}")
    manifest = json.loads((last / "manifest.json").read_text())
    manifest["files"]["trainer.json"] = checkpoint._facts(last / "trainer.json")
    (last / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"trainer\.json: not the state of a run"):
        session.resume(copy, runs.quiet)


def test_the_policy_of_a_control_arm_is_in_its_checkpoint(tmp_path: Path) -> None:
    text = runs.TINY.replace('"sft", "dpo", "grpo", "ppo"', '"sft", "more_sft", "grpo"')
    text += "[more_sft]\nsteps = 3\nbatch_size = 16\nreferences = 24\nlearning_rate = 0.2\n"
    from rlvrlab.train.policy import checkpoint_of

    whole = runs.run(tmp_path / "whole", text=text).folder
    saved = {step: runs.arrays(whole / "checkpoints" / f"global_step_{step}") for step in (5, 8)}
    same = [bool((saved[5][name] == saved[8][name]).all()) for name in saved[5] if saved[5][name].dtype.kind == "f"]
    assert not all(same), "the control arm's last policy is not that of its origin"
    grpo = next(row for row in runs.read_metrics(whole) if row["phase"] == "grpo")
    sft = [row for row in runs.read_metrics(whole) if row["phase"] == "sft"][-1]
    key = next(key for key in sft if key.startswith("val-core/") and key.endswith("/acc"))
    assert grpo[key] == sft[key], "the next phase starts from the origin"
    other = Path(shutil.copytree(whole, tmp_path / "other"))
    for path in (other / "checkpoints").glob("global_step_*"):
        if int(path.name.rpartition("_")[2]) > 8:
            shutil.rmtree(path)
    assert checkpoint_of(other, "last") == other / "checkpoints" / "global_step_5"
    assert checkpoint_of(other, "8") == other / "checkpoints" / "global_step_8"
    session.resume(other, runs.quiet)
    runs.assert_same(other, whole)


def test_every_reader_refuses_another_schema(copy: Path) -> None:
    from rlvrlab.api.run import Run as ApiRun
    from rlvrlab.train.policy import policy_of

    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"schema": 99}))
    for read in (ApiRun, policy_of, lambda f: session.resume(f, runs.quiet), lambda f: session.fork(f, runs.quiet)):
        with pytest.raises(LabError, match="schema 99"):
            read(copy)


def test_an_edited_recipe_is_not_made_longer(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / whole.name))
    edit_config(folder, "phase_tables", "grpo", "learning_rate", value=0.5)
    with pytest.raises(RunTouched, match="learning_rate"):
        extend(folder, ["grpo.steps=+2"])
