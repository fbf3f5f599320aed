"""EXPERIMENT.md costs the same at the last evaluation as at the first, and says the same as from the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.record import experiment
from rlvrlab.record.run import Run, read_events, read_metrics
from rlvrlab.record.summary import SERIES, Summary

CONFIG: dict[str, Any] = {
    "recipe": {"name": "long", "question": "", "phases": ["grpo"], "env": {"type": "countdown"},
               "engine": {"type": "toy"}, "reward": {"type": "binary"}},
    "origins": {}, "changed": {}, "folder": ".",
}  # fmt: skip


def row(step: int) -> dict[str, Any]:
    key = "val-core/countdown/acc"
    held_out = {key: step % 7 / 7, f"{key}_low": 0.0, f"{key}_high": 1.0} if step % 10 == 0 else {}
    return {"step": step, "phase": "grpo", "train/acc": step % 11 / 11, "actor/entropy": 1 / (1 + step), **held_out}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run.create(tmp_path, "long", CONFIG)
    yield made
    made.close()


def test_writing_it_reads_no_log(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = Path.read_bytes

    def counted(self: Path) -> bytes:
        data = whole(self)
        read.append(len(data))
        return data

    monkeypatch.setattr(Path, "read_bytes", counted)
    sizes = []
    for step in range(1200):
        run.metrics(row(step))
        run.event("memory", f"event {step}")
        if step % 400 == 399:
            experiment.write_experiment(run.folder, run.so_far)
            sizes.append((run.folder / "EXPERIMENT.md").stat().st_size)
    assert sum(read) == 0, "the logs are not read again"
    assert max(sizes) < 1.1 * min(sizes), "and the page does not grow with them"


def test_it_is_the_page_that_the_logs_give(run: Run) -> None:
    for step in range(3 * SERIES):
        run.metrics(row(step))
        run.event("warning" if step == 5 else "memory", f"event {step}")
    experiment.write_experiment(run.folder, run.so_far)
    mine = (run.folder / "EXPERIMENT.md").read_text()
    experiment.write_experiment(run.folder)
    assert (run.folder / "EXPERIMENT.md").read_text() == mine
    assert "more in `logs/events.jsonl`" in mine and "No warnings" not in mine
    again = Summary(read_metrics(run.folder), read_events(run.folder))
    assert again.phases == run.so_far.phases and again.phases["grpo"]["last"]["step"] == 380


def test_a_run_has_failed_until_it_is_resumed() -> None:
    told = [("start", "run starts"), ("end", "failed: no space"), ("checkpoint_kept", "failed"), ("resume", "goes on")]
    summary, failed = Summary(), []
    for kind, text in told:
        summary.add_event({"kind": kind, "text": text})
        failed.append(summary.failed)
    assert failed == [False, True, True, False]


def test_a_warning_that_was_taken_back_is_not_called_none(run: Run) -> None:
    run.warn("actor/entropy", "the entropy is gone")
    assert run.new_warnings() == ["the entropy is gone"] and run.new_warnings() == []
    run.withdraw("actor/entropy", "it is back")
    experiment.write_experiment(run.folder, run.so_far)
    page = (run.folder / "EXPERIMENT.md").read_text()
    assert "No warnings" not in page and "No warning stands at the end" in page and "the entropy is gone" in page
