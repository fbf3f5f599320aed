"""A phase that makes the policy worse says so when it ends; one whose reward is a control was meant to."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

ODD = Path(__file__).parent / "odd_plugins.py"
SETTINGS = ("env.high=20", "data.dev_size=40", "eval.every=0", "sft.steps=25", "grpo.steps=8", "grpo.batch_size=16",
            "grpo.learning_rate=0.5")  # fmt: skip


@pytest.mark.parametrize(("reward", "warned"), [(f"{ODD}:PaysTheWrong", True), ("inverted", False)])
def test_harm_beyond_chance_is_warned_of_unless_the_reward_is_a_control(
    tmp_path: Path, reward: str, warned: bool
) -> None:
    run = runs.run(tmp_path, f"reward.type={reward}", *SETTINGS, text=runs.ONLINE).folder
    told = {event["subject"]: event["text"] for event in runs.read_events(run) if event["kind"] == "warning"}
    rows = [row["val-core/countdown/acc"] for row in runs.read_metrics(run) if "val-core/countdown/acc" in row]
    assert rows[-1] < rows[-2] - 0.3, "it is no test unless there was harm"
    assert ("harm/grpo" in told) is warned and ("hack/backward" in told) is warned
    if warned:
        assert (
            told["harm/grpo"].startswith("phase grpo lowered accepted@1: dev ")
            and "rlvr check reward" in told["harm/grpo"]
        )
