"""Every engine keeps the contract, and the contract finds out every engine that does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_factories import ENGINES, toy
from slow_cases import some_slow

from rlvrlab.batch import add_metrics, batch_of, micro_batches
from rlvrlab.engines.contract import CHECKS, Broken, run_contract
from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.objectives.sft import Sft


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("engine", some_slow(ENGINES, {"toy-float64"}))
def test_contract(engine: str, check: str) -> None:
    CHECKS[check](ENGINES[engine])


class WrongScale(ToyEngine):
    def gradient(self, batch, objective):
        vector, value, metrics = super().gradient(batch, objective)
        return 1.001 * vector, value, metrics


class NoEntropyGradient(ToyEngine):
    def _backward(self, forward, loss):
        return super()._backward(forward, loss._replace(c_entropy_BT=None))


class RenormalisesMicroBatches(ToyEngine):
    """Each part divided by its own counts, as gradient accumulation often does."""

    def gradient(self, batch, objective):
        vector, value, metrics = np.zeros_like(self.theta), 0.0, {}
        for index in micro_batches(batch, objective.couples, self.config.micro_batch):
            part = super().gradient(batch.rows(index).rescaled(), objective)
            share = len(index) / len(batch)
            vector, value = vector + share * part[0], value + share * part[1]
            add_metrics(metrics, {key: share * x for key, x in part[2].items()})
        return vector, value, metrics


class ForgetsTheLastRow(ToyEngine):
    def gradient(self, batch, objective):
        return super().gradient(batch.rows(slice(None, -1)) if self.config.micro_batch else batch, objective)


class LosesMetrics(ToyEngine):
    """Only the last metric is wrong."""

    def gradient(self, batch, objective):
        vector, value, metrics = super().gradient(batch, objective)
        return vector, value, metrics | {list(metrics)[-1]: metrics[list(metrics)[-1]] + self.config.micro_batch}


class Unnormalised(ToyEngine):
    def logprobs(self, batch, policy="current"):
        logp_BT, entropy_BT = super().logprobs(batch, policy)
        return np.where(batch.seen_BT, logp_BT + 1e-3, 0.0), entropy_BT


class ScoresPadding(ToyEngine):
    def logprobs(self, batch, policy="current"):
        logp_BT, entropy_BT = super().logprobs(batch, policy)
        return np.where(batch.seen_BT, logp_BT, -1.0), entropy_BT


class RowsLeak(ToyEngine):
    def values(self, batch):
        return super().values(batch) + np.where(batch.seen_BT, 1e-3 * len(batch), 0.0)


class LopsidedModules(ToyEngine):
    def gramian(self, vectors, scope="global"):
        found = super().gramian(vectors, scope)
        return found if scope == "global" else {"symbols": found["symbols"]}


class WrongGramian(ToyEngine):
    def gramian(self, vectors, scope="global"):
        return {name: 2 * gram for name, gram in super().gramian(vectors, scope).items()}


class KlOfTheChosenToken(ToyEngine):
    """The usual estimate from single tokens instead of the whole distribution."""

    def anchor_kl(self, batch, anchor):
        gap_BT = self.logprobs(batch, anchor)[0] - self.logprobs(batch)[0]
        return super().anchor_kl(batch, anchor)[0], float(gap_BT[batch.loss_BT].sum() / batch.scale.tokens)


class KlTheOtherWayRound(ToyEngine):
    """Gradient of the cross-entropy of single answers: not 0 at the anchor."""

    def anchor_kl(self, batch, anchor):
        return self.gradient(batch, Sft())[0], super().anchor_kl(batch, anchor)[1]


class CombinesAsAWhole(ToyEngine):
    def combine(self, vectors, weights):
        return super().combine(vectors, {"global": next(iter(weights.values()))})


class RoundsVectors(ToyEngine):
    def save_vectors(self, folder, vectors):
        super().save_vectors(folder, {name: vector.astype("float32") for name, vector in vectors.items()})


class LiesAboutItsStep(ToyEngine):
    def step(self, vectors, weights, learning_rate):
        return 0.999 * super().step(vectors, weights, learning_rate)


class IgnoresShiftWeights(ToyEngine):
    def shift(self, vectors, weights):
        super().shift(vectors, [np.sign(w) for w in weights])


class ShiftResetsMomentum(ToyEngine):
    def shift(self, vectors, weights):
        super().shift(vectors, weights)
        self.fresh_optimizer()


class RemembersMomentum(ToyEngine):
    def fresh_optimizer(self):
        if not hasattr(self, "_optimizer"):
            super().fresh_optimizer()


class FisherOfTheMean(ToyEngine):
    def fisher(self, batch):
        return sum(super(FisherOfTheMean, self).fisher(batch.rows([i])) ** 0.5 for i in range(len(batch))) ** 2


class CriticMovesThePolicy(ToyEngine):
    def fit_values(self, batch, objective, learning_rate):
        self.theta = self.theta + 1e-12
        return super().fit_values(batch, objective, learning_rate)


class DeafCritic(ToyEngine):
    def fit_values(self, batch, objective, learning_rate):
        return super().fit_values(batch, objective, 0.0)


class ReferenceFollows(ToyEngine):
    def step(self, vectors, weights, learning_rate):
        applied = super().step(vectors, weights, learning_rate)
        self.reference = self.theta
        return applied


class ForgetsOnLoad(ToyEngine):
    what: str

    def load(self, folder):
        blank = ToyEngine(self.config, self.optimizer_settings)
        super().load(folder)
        setattr(self, self.what, self.theta if self.what == "reference" else getattr(blank, self.what))


class SharedDice(ToyEngine):
    def sample(self, requests):
        return super().sample([replace(r, key=(*r.key, len(requests))) for r in requests])


class UnkeyedDice(ToyEngine):
    calls = 0

    def sample(self, requests):
        self.calls += 1
        return super().sample([replace(r, key=(*r.key, self.calls)) for r in requests])


class OtherTemperature(ToyEngine):
    def sample(self, requests):
        return super().sample([replace(r, sampling=replace(r.sampling, temperature=1.1)) for r in requests])


STATE = ("_optimizer", "_critic_optimizer", "critic", "version", "reference")


def forgets(thing: str) -> type[ToyEngine]:
    return type("Forgets", (ForgetsOnLoad,), {"what": thing})


@pytest.mark.parametrize(
    ("engine", "check"),
    [
        (WrongScale, "gradient_is_derivative"),
        (WrongGramian, "gradient_is_derivative"),
        (NoEntropyGradient, "gradient_is_derivative"),
        (KlOfTheChosenToken, "anchor_kl_is_exact"),
        (KlTheOtherWayRound, "anchor_kl_is_exact"),
        (CombinesAsAWhole, "combine_is_by_module"),
        (RoundsVectors, "vectors_survive"),
        (RenormalisesMicroBatches, "micro_batches_do_not_matter"),
        (ForgetsTheLastRow, "micro_batches_do_not_matter"),
        (LosesMetrics, "micro_batches_do_not_matter"),
        (Unnormalised, "sums_to_one"),
        (ScoresPadding, "rows_are_alone"),
        (RowsLeak, "rows_are_alone"),
        (LopsidedModules, "modules_add_up"),
        (LiesAboutItsStep, "step_returns_displacement"),
        (IgnoresShiftWeights, "shift_adds"),
        (ShiftResetsMomentum, "shift_leaves_momentum"),
        (RemembersMomentum, "fresh_optimizer_forgets"),
        (FisherOfTheMean, "fisher_is_per_row"),
        (CriticMovesThePolicy, "critic_learns"),
        (DeafCritic, "critic_learns"),
        (ReferenceFollows, "reference_stays"),
        *((forgets(thing), "save_and_load") for thing in STATE),
        (SharedDice, "sampling_is_keyed"),
        (UnkeyedDice, "sampling_is_keyed"),
        (OtherTemperature, "sampling_is_keyed"),
        (OtherTemperature, "greedy_is_argmax"),
    ],
)  # fmt: skip
def test_the_contract_finds_out(engine: type[ToyEngine], check: str) -> None:
    with pytest.raises(Broken):
        CHECKS[check](toy(engine=engine))


@pytest.mark.slow
def test_an_engine_that_splits_pairs_is_found_out(monkeypatch) -> None:
    def by_rows(batch, couples, rows):
        return micro_batches(batch, "row", rows)

    monkeypatch.setattr("rlvrlab.engines.toy.engine.micro_batches", by_rows)
    found = [finding for finding in run_contract(toy()) if not finding.ok]
    assert [finding.name for finding in found] == ["micro_batches_do_not_matter"]
    assert "every pair_B needs one chosen and one rejected row" in found[0].detail


def test_an_engine_that_raises_has_failed() -> None:
    class Broken(ToyEngine):
        def pull(self, snapshot, diagonal=None):
            raise RuntimeError("no pull")

    found = {finding.name: finding.detail for finding in run_contract(toy(engine=Broken)) if not finding.ok}
    assert found["step_returns_displacement"] == "raised RuntimeError: no pull"
    assert set(found) < set(CHECKS) and "greedy_is_argmax" not in found


@pytest.mark.parametrize("couples", ["row", "pair", "batch"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 100])
def test_micro_batches_take_every_row_once_and_split_no_pair(couples: str, rows: int) -> None:
    pairs = np.array([0, 1, 0, 2, 2, 1])
    parts = list(micro_batches(batch_of([(1,)] * 6, [(2,)] * 6, pair_B=pairs), couples, rows))
    assert sorted(np.concatenate(parts).tolist()) == list(range(6))
    if couples == "pair":
        assert all(np.unique(pairs[part], return_counts=True)[1].tolist() == [2] * (len(part) // 2) for part in parts)
    if couples == "batch" or rows == 0:
        assert len(parts) == 1
    else:
        assert max(map(len, parts)) <= (rows if couples == "row" else max(2, rows + rows % 2))
