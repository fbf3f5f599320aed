"""Which of verl's checkpoints are merged into the run's folder, and that each is merged once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvrlab.recipe import resolve
from rlvrlab.scale.verl import follow
from rlvrlab.scale.verl.checkpoints import TRACKER
from rlvrlab.scale.verl.job import Job
from rlvrlab.train import checkpoint
from rlvrlab.train.state import Best, State

RECIPE = {
    "phases": ["grpo"],
    "env": {"type": "countdown", "numbers": [2], "style": "bare"},
    "engine": {"type": "verl", "model": "owner/model", "gpus": 1},
}


class Watched:
    """A follower whose merging only notes what it was asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
        self.merged: list[int] = []
        self.ours, self._raw = folder / "run" / "checkpoints", folder / "verl" / "checkpoints"
        self.ours.mkdir(parents=True)
        monkeypatch.setattr(follow, "index", self._note)
        self._follower = follow.Follower.__new__(follow.Follower)
        self._follower._job = Job(folder / "verl", resolve({**RECIPE, "checkpoint": {"keep": keep}}, {}, folder))
        self._follower._run = SimpleNamespace(folder=folder / "run", event=lambda *_, **__: None)
        self._follower._refused, self._follower._python = set(), "python"

    def _note(self, raw: Path, folder: Path, state: State, python: str) -> None:
        self.merged.append(state.step)
        (folder / f"global_step_{state.step}").mkdir()

    def verl_saves(self, step: int) -> None:
        """verl's checkpoint of a step; the ones before it stay, as they do when they are older than a resume."""
        (self._raw / f"global_step_{step}" / "actor").mkdir(parents=True)
        (self._raw / TRACKER).write_text(str(step))

    def look(self, step: int, best: int | None) -> None:
        self._follower.state = State(step=step, phase_step=step, best=Best(best, 0.5) if best else None)
        self._follower._merge()


@pytest.mark.parametrize(("keep", "best", "kept"), [(1, None, [40]), (2, None, [30, 40]), (1, 10, [10, 40])])
def test_what_verl_keeps_longer_than_we_do_is_merged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int, best: int | None, kept: list[int]
) -> None:
    """A resumed run merged the checkpoint it had begun from, removed it and merged it again, until it was stopped."""
    watched = Watched(tmp_path, monkeypatch, keep)
    for step in (10, 20, 30, 40):
        watched.verl_saves(step)
        for _ in range(3):
            watched.look(step, best)
    assert watched.merged == [10, 20, 30, 40] and checkpoint.steps(watched.ours) == kept


def test_of_those_that_come_at_once_only_what_stays_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(tmp_path, monkeypatch, 2)
    for step in (10, 20, 30, 40):
        watched.verl_saves(step)
    watched.look(35, 10)
    assert watched.merged == [10, 20, 30]
    watched.look(40, 10)
    assert watched.merged == [10, 20, 30, 40] and checkpoint.steps(watched.ours) == [10, 30, 40]
