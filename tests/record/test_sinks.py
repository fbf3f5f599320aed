"""Sinks are copies: one that fails is dropped with an event, and training goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from rlvrlab.errors import UserError

ODD = Path(runs.__file__).with_name("odd_plugins.py")


def test_a_sink_that_fails_is_dropped(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, f"record.sinks=['{ODD}:Flaky']", text=runs.ONLINE).folder
    assert runs.read_info(folder)["status"] == "finished"
    assert [text for text in runs.events(folder, "sink_lost") if "line is dead" in text]
    assert (folder / "artifacts" / "flaky").read_text().split() == ["0", "1", "2"]
    assert "sink_lost" in (folder / "EXPERIMENT.md").read_text()


def test_a_sink_that_does_not_close(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, f"record.sinks=['{ODD}:Flaky']", "sft.steps=2", "phases=['sft']").folder
    assert any("still dead" in text for text in runs.events(folder, "sink_lost"))
    assert runs.read_info(folder)["status"] == "finished"


def test_a_sink_that_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAKY_OPEN", "1")
    folder = runs.run(tmp_path, f"record.sinks=['{ODD}:Flaky']", "sft.steps=2", "phases=['sft']").folder
    assert any("nobody answers" in text for text in runs.events(folder, "sink_lost"))
    assert runs.read_info(folder)["status"] == "finished"


def test_a_sink_whose_package_is_missing_or_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pip install"):
        runs.run(tmp_path / "a", f"record.sinks=['{ODD}:Missing']", text=runs.ONLINE)
    assert runs.read_info(runs.only_run(tmp_path / "a"))["status"] == "failed"
    with pytest.raises(UserError, match="wandbb"):
        runs.run(tmp_path / "b", "record.sinks=['wandbb']", text=runs.ONLINE)
    assert runs.only_run(tmp_path / "b") is None
