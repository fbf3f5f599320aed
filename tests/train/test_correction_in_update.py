"""Importance weights made in the only update on a batch: those of a pass of their own, without that pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs

from rlvrlab.batch import add_metrics, batch_of
from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.objectives.correction import CorrectedInUpdate, Correction, with_sample_size
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.train import step

LAGGED = runs.ONLINE.replace("minibatches = 2", "minibatches = 1") + "[pipeline]\nlag = 1\n"


def trained(folder: Path, *overrides: str) -> list[dict[str, Any]]:
    rows = runs.read_metrics(runs.run(folder, *overrides, text=LAGGED).folder)
    return [row for row in rows if "rollout_is/mean" in row]


def alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    numbers = {name: x for name, x in one.items() if isinstance(x, float) and not name.startswith("time/")}
    assert one.keys() == other.keys()
    assert {name: other[name] for name in numbers} == pytest.approx(numbers, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("setting", ["token", "sequence", "token surgery.type=pcgrad surgery.num_groups=3"])
def test_a_lagged_run_is_the_one_with_a_pass_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    passes: list[int] = []
    inner = ToyEngine.logprobs

    def counted(self: ToyEngine, batch: Any, policy: Any = "current") -> Any:
        passes.extend([1] if policy == "current" else [])  # the KL to the reference asks for that one's
        return inner(self, batch, policy)

    monkeypatch.setattr(ToyEngine, "logprobs", counted)
    settings = f"correction.level={setting}".split()
    here = trained(tmp_path / "here", *settings)
    assert here and not passes, "the update's own log-probs are enough"
    monkeypatch.setattr(step, "corrected", lambda lab, phase, estimators: estimators.objective)
    before = trained(tmp_path / "before", *settings)
    assert passes and len(before) == len(here)
    assert any(row["rollout_is/max"] != 1 for row in here)
    for one, other in zip(before, here, strict=True):
        alike(one, other)


@pytest.mark.parametrize("setting", ["grpo.epochs=2", "grpo.minibatches=2", "kl.coef=0.1 kl.place=reward"])
def test_later_updates_and_penalised_rewards_keep_a_pass_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    asked: list[bool] = []
    inner = step.training_batch

    def watched(*given: Any, **named: Any) -> Any:
        asked.append(named["weighed"])
        return inner(*given, **named)

    monkeypatch.setattr(step, "training_batch", watched)
    trained(tmp_path, *setting.split(), "grpo.steps=3")
    assert asked and all(asked)


@pytest.mark.parametrize("objective", [PpoClip(), Gspo(), Reinforce()])
@pytest.mark.parametrize("correction", [Correction(), Correction("sequence"), Correction(mode="mask", low=0.8)])
def test_parts_of_a_batch_add_up_to_the_whole(objective: Any, correction: Correction) -> None:
    random = np.random.default_rng(0)
    batch = batch_of([(1,)] * 5, [[2] * n for n in (3, 1, 4, 2, 4)])
    logp_BT = random.normal(-1, 0.5, batch.tokens_BT.shape)
    batch = replace(
        batch,
        advantage_BT=random.normal(size=logp_BT.shape),
        behaviour_BT=logp_BT + random.normal(0, 0.4, logp_BT.shape),
        loss_BT=batch.seen_BT & (np.arange(5) != 1)[:, None],
    ).rescaled()
    weight_BT, facts = correction(replace(batch, old_BT=logp_BT))
    whole = objective(logp_BT, logp_BT, replace(batch, weight_BT=weight_BT))
    inside, metrics, value = CorrectedInUpdate(objective, correction), dict[str, float](), 0.0
    for rows in (np.array([0, 4]), np.array([1]), np.array([2, 3])):
        part = batch.rows(rows)
        loss = inside(logp_BT[rows], logp_BT[rows], part)
        np.testing.assert_allclose(loss.c_logp_BT, whole.c_logp_BT[rows], rtol=1e-12)
        value += loss.value
        add_metrics(metrics, inside.metrics(logp_BT[rows], logp_BT[rows], part))
    assert value == pytest.approx(whole.value)
    metrics = with_sample_size(metrics)
    assert {name: metrics[name] for name in facts} == pytest.approx(facts)
    assert metrics.keys() >= facts.keys() and "rollout_is/square" not in metrics
