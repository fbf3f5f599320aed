"""A study ends with its page: from its folder alone, made anew by every session, and never the reason for a failure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from study_lab import Pretend, run_study, write_study

from rlvrlab.cli.verbs import rlvr
from rlvrlab.record.experiment import REPORT_PAGE
from rlvrlab.study import page
from rlvrlab.study.load import load_study
from rlvrlab.study.run import Runner

MADE = re.compile(r'"made": ?"[^"]*"')
ONE = """
[[stages]]
name = "steps"
factors = { "grpo.steps" = [2, 4] }
"""


def by_steps(job: dict) -> float:
    return 0.8 if job["settings"]["grpo.steps"] == 4 else 0.3


def test_the_page_is_there_when_a_study_ends_and_tells_its_decision(tmp_path: Path) -> None:
    ended, _, made = run_study(write_study(tmp_path, ONE), by_steps)
    text = (ended.folder / REPORT_PAGE).read_text(encoding="utf-8")
    assert ended.status == "finished" and len(text) < 2_000_000
    assert made["name"] in text and "steps=4" in text
    asked = CliRunner().invoke(rlvr, ["report", str(ended.folder)])
    assert asked.exit_code == 0, asked.output
    again = (ended.folder / REPORT_PAGE).read_text(encoding="utf-8")
    assert MADE.sub("", again) == MADE.sub("", text) != text, "what `rlvr report` makes of the same folder"


def test_a_study_that_goes_on_has_a_new_page_and_the_same_record(tmp_path: Path) -> None:
    """The first session loses a trial; the second ends as an uninterrupted study would."""
    path = write_study(tmp_path, ONE)

    def lost(job: dict) -> float | str:
        return "failed" if job["settings"]["grpo.steps"] == 4 else 0.3

    ended, _, _ = run_study(path, lost)
    first = (ended.folder / REPORT_PAGE).read_text(encoding="utf-8")
    _, again, made = run_study(path, by_steps, retry=True)
    assert len(again.jobs) == 1, "the finished trial is kept"
    assert (ended.folder / REPORT_PAGE).read_text(encoding="utf-8") != first
    (tmp_path / "whole").mkdir()
    _, _, whole = run_study(write_study(tmp_path / "whole", ONE), by_steps)
    assert [one["metrics"] for one in made["stages"][0]["arms"]] == [
        one["metrics"] for one in whole["stages"][0]["arms"]
    ]


def test_a_page_that_cannot_be_drawn_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> Path:
        raise ValueError("no pencil")

    monkeypatch.setattr(page, "write_page", broken)
    file, told = load_study(write_study(tmp_path, ONE)), list[str]()
    runner = Runner(file, tmp_path / "out" / "tried", Pretend(by_steps), lambda words, *_: told.append(words))
    try:
        ended = runner.run()
    finally:
        runner.close()
    assert (ended.status, ended.exit_code) == ("finished", 0) and (ended.folder / "REPORT.md").is_file()
    assert "no pencil" in told[-1] and "rlvr report" in told[-1]
