"""Which checkpoint an export takes: the best of the last phase, and of equal ones the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.cli import model_export
from rlvrlab.record.files import write_rows
from rlvrlab.train import checkpoint


def a_run(folder: Path, *rows: tuple[str, int, int, float]) -> Path:
    """Rows are phase, step in it, step and accuracy; every step has a checkpoint."""
    made = [
        {"step": step, "phase": phase, "phase_step": own, "val-core/x/acc": acc, "val-core/x/acc_low": 0.0,
         "val-core/x/acc_high": 1.0}
        for phase, own, step, acc in rows
    ]  # fmt: skip
    (folder / "logs").mkdir(parents=True)
    write_rows(folder / "logs" / "metrics.jsonl", made)
    for _, _, step, _ in rows:
        (folder / "checkpoints" / f"global_step_{step}").mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([("sft", 5, 5, 0.2), ("grpo", 0, 5, 0.2), ("grpo", 2, 7, 0.2), ("grpo", 4, 9, 0.2)], 9),
        ([("sft", 5, 5, 0.2), ("grpo", 0, 5, 0.2), ("grpo", 2, 7, 0.4), ("grpo", 4, 9, 0.3)], 7),
        ([("sft", 5, 5, 0.9), ("grpo", 0, 5, 0.9), ("grpo", 2, 7, 0.3)], 7),
        ([("sft", 5, 5, 0.1)], 5),
    ],
)
def test_ties_go_to_the_last_and_the_phases_start_is_not_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, int, int, float]], chosen: int
) -> None:
    monkeypatch.setattr(checkpoint, "defect", lambda path: None)
    run = a_run(tmp_path / "run", *rows)
    assert model_export._checkpoint(run, "best")[0].name == f"global_step_{chosen}"
