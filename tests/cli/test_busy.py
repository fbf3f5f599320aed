"""Work that takes long says what it does."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from command_line import inside, tiny

from rlvrlab.cli import waiting


def test_an_export_that_takes_long_says_what_it_does_and_that_it_goes_on(monkeypatch, capsys, tmp_path: Path) -> None:
    from rlvrlab.scale.exports import trl

    whole = trl.export
    monkeypatch.setattr(waiting, "MOMENT_S", 0.01)
    monkeypatch.setattr(waiting, "REMINDER_S", 0.05)
    monkeypatch.setattr(trl, "export", lambda *given: (time.sleep(0.3), whole(*given))[1])
    tiny(tmp_path)
    words = ("export", "trl", "tiny.toml", "filter.dead_groups=keep", "-o", "out")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert re.search(r"^drawing \d+ train and \d+ dev problems of countdown for out …$", done.stderr, re.MULTILINE)
    assert re.search(r"… \d+ s so far$", done.stderr, re.MULTILINE)


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting.busy("drawing"):
        pass
    assert capsys.readouterr().err == ""
