"""NaN and infinity: skipped with an event, then stopped with a diagnosis, and never in a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import runs
from slow_cases import some_slow

from rlvrlab.errors import LabError, OwnCodeError, TrainingDiverged, UserError
from rlvrlab.train import plan, session

ODD = Path(__file__).with_name("odd_plugins.py")


def nan_engine(first: int, last: int) -> list[str]:
    return [f"engine.type={ODD}:NanEngine", f"engine.bad_from={first}", f"engine.bad_until={last}"]


def assert_finite(folder: Path) -> None:
    saved = sorted((folder / "checkpoints").glob("global_step_*"))
    for path in saved:
        for name, values in runs.arrays(path).items():
            assert np.isfinite(values).all(), (path.name, name)


def test_one_bad_update_is_skipped(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, *nan_engine(1, 3), text=runs.ONLINE).folder
    skipped = [e for e in runs.read_events(folder) if e["kind"] == "skipped_update"]
    assert [e["step"] for e in skipped] == [2, 3]
    rows = runs.read_metrics(folder)
    assert rows[2]["actor/grad_norm"] is None and rows[4]["actor/grad_norm"] is not None
    assert_finite(folder)
    assert "skipped_update" in (folder / "EXPERIMENT.md").read_text()


def test_parameters_stay_as_they_were(tmp_path: Path) -> None:
    folder = runs.run(
        tmp_path, *nan_engine(2, 3), "checkpoint.every=1", "checkpoint.keep=9", "sft.steps=3", text=runs.ONLINE
    ).folder
    two, three = (runs.arrays(folder / "checkpoints" / f"global_step_{n}") for n in (2, 3))
    np.testing.assert_array_equal(two["theta"], three["theta"])
    np.testing.assert_array_equal(two["optimizer.first"], three["optimizer.first"])


@pytest.mark.parametrize(
    "phases", some_slow(['["sft"]', '["sft", "dpo"]', '["sft", "ppo"]'], {'["sft"]', '["sft", "ppo"]'})
)
def test_three_in_a_row_stop_the_run(tmp_path: Path, phases: str) -> None:
    first = 1 if phases == '["sft"]' else 5
    with pytest.raises(TrainingDiverged, match=r"3 updates in a row .*learning_rate") as caught:
        runs.run(tmp_path, *nan_engine(first, 99), f"phases={phases}", "checkpoint.every=1", "dpo.steps=5")
    folder = runs.only_run(tmp_path)
    assert caught.value.exit_code == 1 and "\n" not in str(caught.value)
    assert runs.read_info(folder)["status"] == "failed"
    assert any("3 updates in a row" in text for text in runs.events(folder, "end"))
    assert_finite(folder)
    with pytest.raises(TrainingDiverged):
        session.resume(folder, runs.quiet)
    assert_finite(folder)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rate", some_slow(["1e308", "1e200"], {"1e308"}))
@pytest.mark.parametrize("phase", ["sft", "grpo"])
def test_an_overflowing_step_never_reaches_a_checkpoint(tmp_path: Path, rate: str, phase: str) -> None:
    with pytest.raises(TrainingDiverged):
        runs.run(
            tmp_path,
            f"{phase}.learning_rate={rate}",
            "checkpoint.every=1",
            "engine.precision='float32'",
            "sft.steps=8",
            "grpo.steps=8",
            text=runs.ONLINE,
        )
    assert_finite(runs.only_run(tmp_path))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_diverging_critic_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingDiverged, match="value_learning_rate"):
        runs.run(tmp_path, "phases=['sft', 'ppo']", "ppo.value_learning_rate=1e200", "checkpoint.every=1")
    assert_finite(runs.only_run(tmp_path))


def test_a_reward_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(
        OwnCodeError, match=r"reward of problem countdown.* is nan .*; a reward must be a finite number"
    ):
        runs.run(tmp_path, f"reward.type={ODD}:NanReward", text=runs.ONLINE)
    assert runs.read_info(runs.only_run(tmp_path))["status"] == "failed"


def test_a_bug_in_a_plugin_is_recorded_and_raised(tmp_path: Path) -> None:
    with pytest.raises(OwnCodeError, match=r"odd_plugins.py:\d+ \(problem countdown.*--accept-code") as failed:
        runs.run(tmp_path, f"reward.type={ODD}:Crash", text=runs.ONLINE)
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == "failed"
    assert isinstance(failed.value.__cause__.__cause__, ZeroDivisionError)
    assert any("ZeroDivisionError: a bug of mine" in text for text in runs.events(folder, "end"))


def test_no_reference_answers_is_the_users_mistake(tmp_path: Path) -> None:
    """A run that fails leaves no lock behind."""
    with pytest.raises(LabError):
        runs.run(tmp_path, "phases=['dpo']", "rollout.max_tokens=1")
    folder = runs.only_run(tmp_path)
    assert runs.read_info(folder)["status"] == "failed"
    with pytest.raises(LabError, match="no problem got both right and wrong answers"):
        session.resume(folder, runs.quiet)


def test_a_surgery_without_a_solution_is_no_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr("rlvrlab.train.surgery.operate", fails)
    folder = runs.run(tmp_path, "surgery.type=pcgrad", text=runs.ONLINE).folder
    assert any("Singular matrix" in text for text in runs.events(folder, "surgery_failed"))
    assert not runs.events(folder, "skipped_update")


def test_a_plan_whose_step_is_not_finite_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^sft: the update of the measured step was not finite.*sft\.learning_rate"):
        plan.estimate(runs.recipe(tmp_path, *nan_engine(0, 9), text=runs.ONLINE))
