"""An entropy bonus with a floor acts only in steps whose answers were drawn with less entropy than that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import runs

from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised

LONGER = (
    "grpo.steps=40", "grpo.batch_size=16", "rollout.n=8", "grpo.learning_rate=0.05", "eval.every=0", "entropy.coef=0.3",
)  # fmt: skip


def trained(place: Path, *words: str) -> list[dict]:
    folder = runs.run(place, *LONGER, *words, text=runs.ONLINE).folder
    return [row for row in runs.read_metrics(folder) if row["phase"] == "grpo" and "actor/grad_norm" in row]


def test_at_the_floor_or_above_it_there_is_no_bonus() -> None:
    bounded = Regularised(PpoClip(), 0.1, entropy_coef=0.2, entropy_floor=0.5)
    assert bounded.on_answers(0.49) is bounded
    assert bounded.on_answers(0.5) == replace(bounded, entropy_coef=0.0)
    endless = replace(bounded, entropy_floor=0.0)
    assert endless.on_answers(9.0) is endless


@pytest.fixture(scope="module")
def with_floor(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    return trained(tmp_path_factory.mktemp("floor"), "entropy.floor=1.0")


@pytest.mark.slow
def test_the_metrics_tell_what_was_drawn_and_which_bonus_counted(with_floor: list[dict]) -> None:
    found = with_floor
    drawn = [row["actor/drawn_entropy"] for row in found]
    assert [row["actor/entropy_coef"] for row in found] == [0.3 if entropy < 1.0 else 0.0 for entropy in drawn]
    assert min(drawn) < 1.0 < max(drawn), "both kinds of steps are there, or nothing is tested"


@pytest.mark.slow
def test_the_policy_stays_near_the_floor_and_does_not_rise_beyond_it(with_floor: list[dict], tmp_path: Path) -> None:
    arms = {
        "none": trained(tmp_path / "none", "entropy.coef=0"), "floor": with_floor,
        "always": trained(tmp_path / "always"),
    }  # fmt: skip
    last = {name: sum(row["actor/entropy"] for row in rows[-10:]) / 10 for name, rows in arms.items()}
    assert last["none"] < 0.6 < last["floor"] < 1.4 < last["always"], last
