"""Optional phases: one that finds nothing to learn is skipped with a warning, and the run goes on without it."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from rlvrlab.errors import NothingToLearn
from rlvrlab.record.files import read_lines
from rlvrlab.train import session

ODD = Path(__file__).with_name("odd_plugins.py")
WRONG = (
    f"env.type={ODD}:AlwaysWrong",
    "sft.steps=2",
    "grpo.steps=2",
    "dpo.problems=4",
    "eval.test_size=4",
    "rft.batch_size=8",
)


def test_a_phase_without_mixed_groups_is_skipped_and_said_so(tmp_path: Path) -> None:
    ended = runs.run(tmp_path, *WRONG, 'phases=["sft", "dpo", "grpo", "rft"]')
    assert ended.status == "finished"
    folder = ended.folder
    said = runs.events(folder, "warning")
    assert any("phase dpo is skipped: dpo: no problem got both right and wrong answers" in text for text in said)
    assert any("phase rft is skipped" in text for text in said)
    assert set(runs.read_info(folder)["skipped"]) == {"dpo", "rft"}
    assert [row["phase"] for row in runs.read_metrics(folder)] == ["sft"] * 3 + ["grpo"] * 3
    cards = sorted(path.name for path in (folder / "analysis" / "cards").glob("*.json"))
    assert cards == ["0_baseline.json", "1_sft.json", "3_grpo.json"], "no card where nothing was trained"
    before = (folder / "logs" / "metrics.jsonl").read_bytes(), len(runs.read_events(folder))
    assert session.resume(folder, runs.quiet).status == "finished"
    assert ((folder / "logs" / "metrics.jsonl").read_bytes(), len(runs.read_events(folder))) == before


def test_a_skipped_first_phase_leaves_the_baseline_to_the_next(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, *WRONG, 'phases=["dpo", "sft"]').folder
    assert sorted(path.name for path in (folder / "analysis" / "cards").glob("*.json")) == [
        "0_baseline.json", "2_sft.json",
    ]  # fmt: skip


def test_a_run_that_would_train_nothing_fails(tmp_path: Path) -> None:
    with pytest.raises(NothingToLearn, match="do SFT first"):
        runs.run(tmp_path, *WRONG, 'phases=["dpo"]')


def test_an_interrupted_run_skips_again(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, *WRONG, 'phases=["sft", "dpo", "grpo"]').folder
    whole = [row for row in read_lines(folder / "logs" / "metrics.jsonl") if row["phase"] == "grpo"]
    for path in sorted((folder / "checkpoints").glob("global_step_*"))[-2:]:
        if path.name != "global_step_2":
            (path / "manifest.json").unlink()
    assert session.resume(folder, runs.quiet).status == "finished"
    again = [row for row in read_lines(folder / "logs" / "metrics.jsonl") if row["phase"] == "grpo"]
    assert [row["step"] for row in again] == [row["step"] for row in whole]
