"""The trials of benchmarks/study.py that take no time answer all that a study asks of a trial, so that it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rlvrlab.study.launchers import Job
from rlvrlab.study.worker import JOB, read_result

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import study


def test_a_trial_that_takes_no_time_is_examined_on_every_suite_that_is_asked(tmp_path: Path) -> None:
    suites = {"here": {"hash": "a"}, "here@test": {"hash": "b"}}
    (tmp_path / JOB).write_text(json.dumps({"seed": 0, "suites": suites}))
    launcher = study.Instant()
    launcher.start(Job("trial", tmp_path))
    result = read_result(tmp_path)
    assert result is not None
    assert {name: one["hash"] for name, one in result["evaluated"].items()} == {"here": "a", "here@test": "b"}
    assert all((tmp_path / one["scores"]).is_file() for one in result["evaluated"].values())
    assert [outcome.status for outcome in launcher.wait(0)] == ["done"]
