"""A damaged or hostile study folder costs no study and no page, and nothing is written outside of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from study_lab import run_study, write_study

from rlvrlab.cli.verbs import rlvr
from rlvrlab.errors import RunError
from rlvrlab.record.experiment import REPORT_PAGE
from rlvrlab.report.gather import gather
from rlvrlab.study.folder import DECISIONS, EVENTS

ONE = """
[[stages]]
name = "steps"
factors = { "grpo.steps" = [2, 4] }
"""
NOWHERE = ["a\0b", "a/" * 3000, "loop", "../../..", {"a": 1}]


def by_steps(job: dict) -> float:
    return 0.8 if job["settings"]["grpo.steps"] == 4 else 0.3


@pytest.mark.parametrize("run", NOWHERE, ids=["nul", "long", "loop", "outside", "no text"])
def test_a_run_that_cannot_be_resolved_costs_neither_page_nor_study(tmp_path: Path, run: object) -> None:
    path = write_study(tmp_path, ONE)
    ended, _, made = run_study(path, by_steps)
    for name in made["trials"]:
        trial = ended.folder / "trials" / name
        (trial / "loop").symlink_to("loop")
        result = json.loads((trial / "result.json").read_text())
        (trial / "result.json").write_text(json.dumps({**result, "run": run}))
        made["trials"][name]["run"] = f"trials/{name}/loop" if run == "loop" else run
    (ended.folder / "study.json").write_text(json.dumps(made))
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    assert asked.exit_code == 0, asked.output
    told = CliRunner().invoke(rlvr, ["study", "report", str(ended.folder)])
    if isinstance(run, str):  # another type is no result, and the trial is to be made again
        assert told.exit_code == 0 and "could not be made" not in told.output, told.output
        again, launcher, _ = run_study(path, by_steps)
        assert (again.status, launcher.jobs) == ("finished", [])


def test_a_run_of_another_version_is_named_and_left_out(tmp_path: Path) -> None:
    ended, _, made = run_study(write_study(tmp_path, ONE), by_steps)
    run = ended.folder / "trials" / next(iter(made["trials"])) / "runs/x"
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.json").write_text('{"schema": 99}')
    assert any("schema 99" in one["why"] for one in gather(ended.folder)["missing"])


def test_no_page_is_written_through_a_link_out_of_the_folder(tmp_path: Path) -> None:
    ended, _, _ = run_study(write_study(tmp_path, ONE), by_steps)
    (tmp_path / "elsewhere").mkdir()
    analysis = ended.folder / REPORT_PAGE.parent
    for entry in analysis.iterdir():
        entry.unlink()
    analysis.rmdir()
    analysis.symlink_to(tmp_path / "elsewhere")
    told = CliRunner().invoke(rlvr, ["study", "report", str(ended.folder)])
    assert told.exit_code == 0 and "leads out of" in " ".join(told.output.split())
    refused = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    assert refused.exit_code == 1 and "leads out of" in str(refused.exception)
    assert not list((tmp_path / "elsewhere").iterdir())
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder), "-o", str(tmp_path / "page.html")])
    assert asked.exit_code == 0 and (tmp_path / "page.html").is_file()


def test_no_table_is_written_through_a_link(tmp_path: Path) -> None:
    ended, _, _ = run_study(write_study(tmp_path, ONE), by_steps)
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    tables = ended.folder / "analysis" / "tables"
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    for table in list(tables.iterdir()):
        table.unlink()
        table.symlink_to(victim)
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    assert asked.exit_code == 0 and victim.read_text() == "mine"
    for table in list(tables.iterdir()):
        table.unlink()
    tables.rmdir()
    (tmp_path / "elsewhere").mkdir()
    tables.symlink_to(tmp_path / "elsewhere")
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    assert asked.exit_code == 0 and "leads out of" in asked.output and not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", [EVENTS, DECISIONS])
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_a_log_that_is_no_file_is_damage(tmp_path: Path, name: str, kind: str) -> None:
    path = write_study(tmp_path, ONE)
    ended, _, _ = run_study(path, by_steps)
    log = ended.folder / name
    log.unlink()
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    else:
        log.symlink_to(log.name)
    for words in (["report"], ["status"]):
        told = CliRunner().invoke(rlvr, ["study", *words, str(ended.folder)])
        assert isinstance(told.exception, RunError) and "the study is damaged" in str(told.exception)
        assert told.exception.exit_code == 2 and name in str(told.exception)
    for _ in range(2):  # the second one finds the folder free
        with pytest.raises(RunError, match="the study is damaged"):
            run_study(path, by_steps)
