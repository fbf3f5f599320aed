"""Our advantages against the real code of verl 0.9.1, and TRL 1.16.0 as far as it can be called.

Array suffixes: B rows, T completion positions.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from oracle_cases import NEAR, SEEDS, agree, random_case

from rlvrlab.advantages.gae import Gae
from rlvrlab.advantages.gdpo import Gdpo
from rlvrlab.advantages.grpo import DrGrpo, Grpo
from rlvrlab.advantages.opo import Opo
from rlvrlab.advantages.reinforce_pp import ReinforcePP, ReinforcePPBaseline
from rlvrlab.advantages.rloo import Rloo
from rlvrlab.batch import RewardBatch

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def reward_case(seed, holes=False):
    rng = np.random.default_rng(seed)
    _, batch = random_case(seed, rows=12, holes=holes)
    last_B = batch.loss_BT.shape[1] - 1 - np.argmax(batch.loss_BT[:, ::-1], axis=1)
    reward_BT = np.zeros(batch.loss_BT.shape)
    reward_BT[np.arange(12), last_B] = rng.choice([0.0, 1.0, 0.5], 12)
    group_B = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3])
    return RewardBatch(reward_BT, batch.loss_BT, group_B, np.ones(12, bool), rng.normal(size=reward_BT.shape))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("function", "options", "estimator"),
    [
        ("grpo_outcome", {}, Grpo(singleton="verl")),
        ("grpo_outcome", {"norm_adv_by_std_in_grpo": False}, DrGrpo("verl")),
        ("rloo_outcome", {}, Rloo("verl")),
        ("opo_outcome", {}, Opo("verl")),
        ("reinforce_plus_plus_baseline_outcome", {}, ReinforcePPBaseline("verl")),
        ("reinforce_plus_plus_outcome", {"config": SimpleNamespace(gamma=0.9)}, ReinforcePP(0.9)),
    ],
)
def test_verl_advantages(torch, verl, function, options, estimator, holes, seed):
    batch = reward_case(seed, holes)
    groups = {} if function == "reinforce_plus_plus_outcome" else {"index": batch.group_B}
    call = getattr(verl, f"compute_{function}_advantage")
    theirs, _ = call(torch.tensor(batch.reward_BT), torch.tensor(batch.mask_BT).double(), **groups, **options)
    agree(estimator(batch).advantage_BT, theirs.numpy(), 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("holes", [False, True])
def test_verl_gae(torch, verl, holes, seed):
    """On trained tokens; verl leaves numbers on the others."""
    batch = reward_case(seed, holes)
    reward, value = torch.tensor(batch.reward_BT), torch.tensor(batch.value_BT)
    mask = torch.tensor(batch.mask_BT).double()
    advantage, returns = verl.compute_gae_advantage_return(reward, value, mask, 0.9, 0.8)
    ours = Gae(0.9, 0.8)(batch)
    agree(ours.advantage_BT[batch.mask_BT], advantage.numpy()[batch.mask_BT], NEAR)
    agree(ours.return_BT[batch.mask_BT], returns.numpy()[batch.mask_BT], NEAR)
    assert np.abs(advantage.numpy()[~batch.mask_BT]).max() > 0
    assert not ours.advantage_BT[~batch.mask_BT].any()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_trl_advantages(torch, scale, seed):
    """TRL computes them inside generation, which cannot be called alone: its nanstd and its three lines, repeated."""
    tools = pytest.importorskip("trl.trainer.utils", exc_type=ImportError)
    rng = np.random.default_rng(seed)
    reward_B, group_B = rng.choice([0.0, 1.0, 0.3], 12), np.repeat([0, 1, 2], 4)
    judged_B = rng.random(12) < 0.8
    rewards = torch.tensor(np.where(judged_B, reward_B, np.nan))
    grouped = rewards.view(-1, 4)
    spread = tools.nanstd(grouped, dim=1).repeat_interleave(4) if scale != "batch" else tools.nanstd(rewards)
    theirs = rewards - torch.nanmean(grouped, dim=1).repeat_interleave(4)
    theirs = torch.nan_to_num(theirs / (spread + 1e-4) if scale != "none" else theirs)
    batch = RewardBatch(rewards.numpy()[:, None], np.ones((12, 1), bool), group_B, judged_B)
    agree(Grpo(scale, epsilon=1e-4)(batch).advantage_BT[:, 0], theirs.numpy(), NEAR)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("holes", [False, True])
def test_verl_gdpo(torch, verl, holes, seed):
    """verl puts each part on the last seen token; here a part belongs to the row."""
    batch = reward_case(seed, holes)
    rng = np.random.default_rng(seed)
    parts = {"a": rng.choice([0.0, 1.0], 12), "b": rng.normal(size=12) * 50}
    config = {"gdpo_reward_keys": list(parts), "gdpo_reward_weights": [1.0, 0.25]}
    prompt = {
        "prompts": torch.zeros(12, 3),
        "attention_mask": torch.ones(12, 3 + batch.mask_BT.shape[1], dtype=torch.long),
    }
    theirs, _ = verl.compute_gdpo_outcome_advantage(
        torch.tensor(batch.reward_BT),
        torch.tensor(batch.mask_BT).double(),
        index=batch.group_B,
        config=config,
        non_tensor_batch=parts,
        batch=prompt,
    )
    ours = Gdpo({"b": 0.25}, singleton="verl")(batch._replace(parts=parts))
    agree(ours.advantage_BT, theirs.numpy(), 1e-5)
