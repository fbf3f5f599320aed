"""When a phase ends, which checkpoints stay, and what the learning rate does meanwhile."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
import runs

from rlvrlab.evals.judged import Accuracy, BySkill
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train import checkpoint, loop
from rlvrlab.train.state import Best, State
from rlvrlab.train.update import learning_rate

SFT = ["phases=['sft']", "eval.every=1", "checkpoint.every=100", "checkpoint.keep=1", "sft.steps=9"]


def scripted(monkeypatch: pytest.MonkeyPatch, *accuracies: float) -> None:
    """Evaluations answer from a list; the last one repeats."""
    left = list(accuracies)

    def evaluate(*_: object) -> BySkill:
        now = left.pop(0) if len(left) > 1 else left[0]
        return BySkill(Accuracy(solved=round(100 * now), judged=100, unjudged=0, errors={}, truncated=0), {})

    monkeypatch.setattr(loop, "evaluate_skills", evaluate)


def steps(folder: Path) -> int:
    return runs.read_metrics(folder)[-1]["step"]


def test_the_best_checkpoint_is_kept_though_later_ones_prune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.1, 0.2, 0.5, 0.3, 0.4, 0.5, 0.2)
    folder = runs.run(tmp_path, *SFT, "checkpoint.every=1").folder
    kept = {path.name for path in (folder / "checkpoints").iterdir()}
    assert kept == {"global_step_2", "global_step_9"}
    assert runs.read_info(folder)["result"]["sft"]["best"]["step"] == 2, "a tie keeps the earlier one"


def test_the_best_of_a_finished_phase_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.1, 0.2, 0.9, 0.3)
    folder = runs.run(tmp_path, *SFT[1:], "phases=['sft', 'grpo']", "checkpoint.every=1", "grpo.steps=3").folder
    kept = {path.name for path in (folder / "checkpoints").iterdir()}
    assert kept == {"global_step_2", "global_step_9", "global_step_12"}
    assert all(checkpoint.defect(folder / "checkpoints" / name) is None for name in kept)


def test_a_new_best_is_saved_between_the_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.1, 0.1, 0.1, 0.7, 0.1)
    folder = runs.run(tmp_path, *SFT).folder
    assert checkpoint.defect(folder / "checkpoints" / "global_step_3") is None


def test_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.1, 0.2, 0.5, 0.3, 0.5, 0.6, 0.7)
    assert steps(runs.run(tmp_path, *SFT, "stop.patience=2").folder) == 4


def test_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.1, 0.2, 0.8, 0.9)
    assert steps(runs.run(tmp_path, *SFT, "stop.target=0.8").folder) == 2


def test_without_rules_all_steps_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, 0.9, 0.1)
    assert steps(runs.run(tmp_path, *SFT).folder) == 9


def test_state_counts_in_a_row() -> None:
    state = State().stepped(silent=True, skipped=True).stepped(silent=True, skipped=False)
    assert (state.silent_steps, state.skipped_steps, state.step) == (2, 0, 2)
    assert state.stepped(silent=False, skipped=True).silent_steps == 0


def test_next_phase_keeps_the_best_and_the_last() -> None:
    state = State(phase=0, phase_step=5, step=5, best=Best(3, 0.5), kept=(1,)).next_phase()
    assert state == State(phase=1, step=5, kept=(1, 3, 5), origin=5)


@pytest.mark.parametrize(
    ("state", "row", "covered"),
    [
        (State(), (0, 0), False),
        (State(phase=0, phase_step=2), (0, 2), True),
        (State(phase=0, phase_step=2), (0, 0), True),
        (State(phase=0, phase_step=2), (0, 3), False),
        (State(phase=1, phase_step=0), (0, 9), True),
        (State(phase=1, phase_step=0), (1, 0), False),
        (State(phase=1, phase_step=1), (1, 0), True),
    ],
)
def test_covers(state: State, row: tuple[int, int], covered: bool) -> None:
    assert state.covers(*row) is covered


def rates(steps: int, **settings: object) -> list[float]:
    return [learning_rate(2.0, step, steps, Optimizer(**settings)) for step in range(steps)]


def test_constant_and_warm_up() -> None:
    assert rates(3) == [2.0, 2.0, 2.0]
    assert rates(5, warmup_steps=4) == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert rates(2, warmup_steps=4) == [0.5, 1.0]


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_decay_falls_from_the_peak_to_its_final_share(decay: str) -> None:
    found = rates(11, warmup_steps=2, decay=decay, final_ratio=0.1)
    assert found[1] == found[2] == 2.0 and math.isclose(found[-1], 0.2)
    assert all(a >= b for a, b in pairwise(found[2:]))
    assert math.isclose(found[6], 1.1), "half-way between the peak and the end"


@pytest.mark.parametrize("decay", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 5])
def test_a_phase_of_one_step_has_a_rate(decay: str, warmup: int) -> None:
    assert 0 < rates(1, decay=decay, warmup_steps=warmup)[0] <= 2.0


def test_a_phase_begins_with_its_own_reference_and_a_fresh_optimiser(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, "checkpoint.every=1", "checkpoint.keep=99", text=runs.ONLINE).folder
    end_of_sft, in_grpo = (runs.arrays(folder / "checkpoints" / f"global_step_{n}") for n in (5, 11))
    assert end_of_sft["optimizer.count"] == 5 and in_grpo["optimizer.count"] <= 2 * 6
    assert not end_of_sft["reference"].any(), "SFT started from the untrained policy"
    assert (in_grpo["reference"] == end_of_sft["theta"]).all()
    assert not (in_grpo["theta"] == end_of_sft["theta"]).all()
