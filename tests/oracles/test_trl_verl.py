"""Our coefficients against the real code of TRL 1.16.0 and verl 0.9.1: values, and gradients by their autograd.

Array suffixes: B rows, T completion positions. What could not be called is said at the test that replaces it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle_cases import EXACT, HORIZON, NEAR, SEEDS, agree, random_case

from rlvrlab.objectives.base import aggregate
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.correction import Correction
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.kl import kl_BT, kl_slope_BT
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.objectives.value import value_loss

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

TOKEN, SEQ, NORM = "token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm"
MODES = (TOKEN, "token-sum", SEQ, "seq-mean-token-sum", NORM)


def compare(objective, logp_BT, batch, theirs, tolerance=EXACT):
    """`theirs` is (value, gradient)."""
    ours = objective(logp_BT, np.zeros_like(logp_BT), batch)
    assert np.abs(theirs[1]).max() > 1e-3
    agree(ours.value, theirs[0], tolerance)
    agree(ours.c_logp_BT, theirs[1], tolerance)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("loss_type", "options", "objective"),
    [
        pytest.param("grpo", {}, PpoClip(0.2, 0.28, aggregation=SEQ), id="grpo"),
        pytest.param("bnpo", {}, PpoClip(0.2, 0.28), id="bnpo"),
        pytest.param("dapo", {}, PpoClip(0.2, 0.28), id="dapo"),
        pytest.param("dr_grpo", {}, PpoClip(0.2, 0.28, aggregation=NORM), id="dr_grpo"),
        pytest.param("grpo", {"delta": 1.5}, PpoClip(0.2, 0.28, 1.5, SEQ), id="delta is the dual clip"),
        pytest.param("grpo", {"level": "sequence"}, Gspo(0.2, 0.28), id="gspo"),
        pytest.param("dapo", {"level": "sequence"}, Gspo(0.2, 0.28, "sequence", TOKEN), id="gspo token-mean"),
        pytest.param("luspo", {"level": "sequence"}, Gspo(0.2, 0.28, "sequence", "seq-mean-token-sum"), id="luspo"),
        pytest.param("cispo", {"high": 1.5}, Cispo(1.5), id="cispo"),
        pytest.param("grpo", {"beta": 0.3}, Regularised(PpoClip(0.2, 0.28, aggregation=SEQ), 0.3), id="grpo beta"),
        pytest.param("dapo", {"beta": 0.3}, Regularised(PpoClip(0.2, 0.28), 0.3), id="dapo beta"),
        pytest.param("cispo", {"beta": 0.3}, Regularised(Cispo(0.28), 0.3), id="cispo beta"),
    ],
)
def test_trl_policy_loss(trl_policy_loss, gradient, loss_type, options, objective, seed):
    logp_BT, batch = random_case(seed)
    compare(objective, logp_BT, batch, gradient(trl_policy_loss(batch, loss_type, **options), logp_BT))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("credit", ["token", "sequence"])
def test_trl_token_weights_under_a_sequence_ratio(trl_policy_loss, gradient, credit, seed):
    """TRL differentiates the sequence ratio itself, which is credit = "sequence"; "token" must then differ."""
    logp_BT, batch = random_case(seed)
    weight_BT, _ = Correction()(batch)
    theirs = gradient(trl_policy_loss(batch, "grpo", level="sequence", weights=weight_BT), logp_BT)
    objective, weighted = Gspo(0.2, 0.28, credit), replace(batch, weight_BT=weight_BT)
    if credit == "sequence":
        compare(objective, logp_BT, weighted, theirs)
    else:
        ours = objective(logp_BT, logp_BT, weighted)
        agree(ours.value, theirs[0], EXACT)
        assert np.abs(ours.c_logp_BT - theirs[1]).max() > 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_trl_importance_weights(trl_policy_loss, gradient, seed):
    logp_BT, batch = random_case(seed)
    weight_BT, _ = Correction(mode="mask", low=0.4, high=2.0)(batch)
    theirs = gradient(trl_policy_loss(batch, "dapo", beta=0.2, weights=weight_BT), logp_BT)
    compare(Regularised(PpoClip(0.2, 0.28), 0.2), logp_BT, replace(batch, weight_BT=weight_BT), theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_trl_entropy_bonus(torch, trl_policy_loss, gradient, seed):
    """TRL always takes the mean over tokens here, whatever the policy loss does."""
    logp_BT, batch = random_case(seed)
    entropy_BT = np.random.default_rng(seed).uniform(0, 3, logp_BT.shape)
    theirs = trl_policy_loss(batch, "grpo", entropy_coef=0.2)
    value, slope_BT = gradient(lambda leaf: theirs(torch.tensor(logp_BT), leaf), entropy_BT)
    policy = PpoClip(0.2, 0.28, aggregation=SEQ)
    ours = Regularised(policy, entropy_coef=0.2, terms=TOKEN)(logp_BT, entropy_BT, batch)
    agree(ours.value, value, EXACT)
    agree(ours.c_entropy_BT, slope_BT, EXACT)


def test_trl_divides_by_fully_masked_rows_and_we_do_not(trl_policy_loss, gradient):
    logp_BT, batch = random_case(0)
    mask_BT = batch.loss_BT.copy()
    mask_BT[-1] = False
    batch = replace(batch, loss_BT=mask_BT).rescaled()
    theirs, _ = gradient(trl_policy_loss(batch, "grpo"), logp_BT)
    ours = PpoClip(0.2, 0.28, aggregation=SEQ)(logp_BT, logp_BT, batch).value
    assert ours == pytest.approx(theirs * 6 / 5, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["sigmoid", "hinge", "ipo", "robust"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_trl_preference_losses(trl_preference_loss, gradient, loss, smoothing, seed):
    """TRL's sigmoid ignores label smoothing; ours is cDPO there, checked by hand and by finite differences."""
    logp_BT, batch = random_case(seed, holes=False)
    theirs = gradient(trl_preference_loss(batch, [loss], [1.0], 0.3, smoothing), logp_BT)
    objective = Dpo(loss, 0.3, 0.0 if loss == "sigmoid" else smoothing)
    compare(objective, logp_BT, paired(batch), theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_trl_preference_loss_with_sft(trl_preference_loss, gradient, seed):
    """TRL's term is the mean over chosen tokens, ours over chosen rows: equal where all are equally long."""
    logp_BT, batch = random_case(seed, holes=False)
    mask_BT = batch.loss_BT.copy()
    mask_BT[:3] = np.arange(5) < 3
    batch = paired(replace(batch, loss_BT=mask_BT))
    theirs = gradient(trl_preference_loss(batch, ["sigmoid", "sft"], [1.0, 0.7], 0.3, 0.0), logp_BT)
    compare(Dpo(beta=0.3, sft_coef=0.7), logp_BT, batch, theirs)


def paired(batch):
    half = len(batch) // 2
    pair_B = np.tile(np.arange(half), 2)
    return replace(batch, pair_B=pair_B, chosen_B=np.arange(2 * half) < half).rescaled()


def verl_loss(function, torch, batch, mode, settings, weight_BT=None):
    old, advantage = torch.tensor(batch.old_BT), torch.tensor(batch.advantage_BT)
    mask = torch.tensor(batch.loss_BT).double()
    weights = None if weight_BT is None else torch.tensor(weight_BT)
    return lambda leaf: function(old, leaf, advantage, mask, mode, settings, rollout_is_weights=weights)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("function", "options", "objective"),
    [
        ("vanilla", {}, lambda mode: PpoClip(0.2, 0.28, 3.0, mode)),
        ("vanilla", {"dual": 1e9}, lambda mode: PpoClip(0.2, 0.28, aggregation=mode)),
        ("vanilla", {"dual": 1.3}, lambda mode: PpoClip(0.2, 0.28, 1.3, mode)),
        ("gspo", {"low": 0.05, "high": 0.08}, lambda mode: Gspo(0.05, 0.08, "token", mode)),
        ("cispo", {}, lambda mode: Cispo(1.28, 0.8, mode)),
    ],
)
def test_verl_policy_loss(torch, verl, actor, gradient, function, options, objective, mode, weighted, seed):
    logp_BT, batch = random_case(seed)
    weight_BT = Correction()(batch)[0] if weighted else None
    batch = replace(batch, weight_BT=weight_BT)
    theirs = verl_loss(verl.get_policy_loss_fn(function), torch, batch, mode, actor(**options), weight_BT)
    compare(objective(mode), logp_BT, batch, gradient(lambda leaf: theirs(leaf)[0], logp_BT), NEAR)
    metrics = objective(mode).metrics(logp_BT, logp_BT, batch)
    for key, number in theirs(torch.tensor(logp_BT))[1].items():
        assert metrics.get(key, 0.0) == pytest.approx(number, rel=NEAR, abs=1e-9), key


@pytest.mark.parametrize("seed", SEEDS)
def test_verl_gspo_with_token_advantages(torch, verl, actor, gradient, seed):
    """Step credit: verl, like the paper's GSPO-token, keeps a token's credit on the token."""
    logp_BT, batch = random_case(seed)
    batch = replace(batch, advantage_BT=np.random.default_rng(seed).normal(size=logp_BT.shape))
    theirs = verl_loss(verl.get_policy_loss_fn("gspo"), torch, batch, SEQ, actor(low=0.05, high=0.08))
    compare(Gspo(0.05, 0.08), logp_BT, batch, gradient(lambda leaf: theirs(leaf)[0], logp_BT), NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_reinforce_by_autograd(torch, gradient, seed):
    """Independent torch code: neither library has REINFORCE without a ratio or a sampler correction around it."""
    logp_BT, batch = random_case(seed)
    weight = torch.tensor(batch.loss_BT).double() * torch.tensor(batch.advantage_BT) / batch.scale.tokens
    compare(Reinforce(), logp_BT, batch, gradient(lambda leaf: -(weight * leaf).sum(), logp_BT))


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k1+", "k3+"])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_verl_kl(torch, verl, gradient, estimator, spread):
    """The wide spread reaches verl's bound on k3, which is `bound=10` here."""
    rng = np.random.default_rng(1)
    logp_BT = rng.normal(-2, 1, (8, 6))
    reference_BT = logp_BT + spread * rng.normal(size=(8, 6))
    theirs = verl.kl_penalty(torch.tensor(logp_BT), torch.tensor(reference_BT), estimator).numpy()
    agree(kl_BT(logp_BT, reference_BT, estimator, bound=10), theirs, EXACT)
    slope = gradient(lambda leaf: verl.kl_penalty(leaf, torch.tensor(reference_BT), estimator).sum(), logp_BT)[1]
    agree(kl_slope_BT(logp_BT, reference_BT, estimator, bound=10), slope, EXACT)
    if spread == 3.0 and estimator == "k3":
        assert theirs.max() == 10


@pytest.mark.parametrize("mode", MODES)
def test_verl_aggregation_with_a_fully_masked_row(torch, verl, mode):
    loss_BT, batch = random_case(3)
    mask_BT = batch.loss_BT.copy()
    mask_BT[2] = False
    batch = replace(batch, loss_BT=mask_BT).rescaled()
    theirs = verl.agg_loss(torch.tensor(loss_BT), torch.tensor(mask_BT).double(), mode, loss_scale_factor=HORIZON)
    agree(aggregate(loss_BT, loss_BT, batch, mode).value, theirs.item(), NEAR)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", [TOKEN, SEQ])
def test_verl_value_loss(torch, verl, gradient, mode, seed):
    rng = np.random.default_rng(seed)
    predicted_BT, batch = random_case(seed)
    batch = replace(batch, value_BT=predicted_BT + rng.normal(size=(6, 5)), return_BT=rng.normal(size=(6, 5)))
    returns, values = torch.tensor(batch.return_BT), torch.tensor(batch.value_BT)
    mask = torch.tensor(batch.loss_BT).double()

    def theirs(leaf):
        return verl.compute_value_loss(leaf, returns, values, mask, 0.4, loss_agg_mode=mode)

    value, slope_BT = gradient(lambda leaf: theirs(leaf)[0], predicted_BT)
    ours = value_loss(predicted_BT, batch, 0.4, mode)
    agree(ours.value, value, NEAR)
    agree(ours.c_value_BT, slope_BT, NEAR)
    share = theirs(torch.tensor(predicted_BT))[1].item()
    assert 0 < share < 1
    assert ours.metrics["critic/vf_clipfrac"] == pytest.approx(share, rel=NEAR)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("threshold", [2.0, "0.5_2.0"])
def test_verl_importance_weights(torch, level, threshold):
    helper = pytest.importorskip("verl.trainer.ppo.rollout_corr_helper", exc_type=ImportError)
    _, batch = random_case(5)
    theirs, _ = helper.compute_rollout_correction_weights(
        torch.tensor(batch.old_BT - batch.behaviour_BT), torch.tensor(batch.loss_BT).double(), level, threshold
    )
    ours, _ = Correction(level, "truncate" if threshold == 2.0 else "mask")(batch)
    agree(ours, theirs.numpy(), EXACT)
