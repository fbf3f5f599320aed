"""What is exported and plugged in, with verl's own objects: configuration, data set, reward, estimators, losses.

Each part runs where verl has what it needs for it; `make verl-test` has all.
"""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlvrlab.errors import UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.scale.exports.folder import with_model
from rlvrlab.scale.verl import PLAN, job, keys, reward, validate
from rlvrlab.scale.verl.export import export
from rlvrlab.scale.verl.spelling import override

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
RECIPE = """
phases = ["PHASE"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[engine]
type = "verl"
model = "nano"
gpus = 2
[data]
train_size = 20
dev_size = 4
[reward]
type = "partial"
[rollout]
n = 4
max_tokens = 8
[PHASE]
batch_size = 4
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("PHASE", "grpo"))
    return path


@pytest.fixture
def planned(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = export(load_recipe(recipe), tmp_path / "out").folder
    monkeypatch.setenv(PLAN, str(folder))
    job.current.cache_clear()
    reward._desks.clear()
    yield job.current()
    job.current.cache_clear()
    reward._desks.clear()


@pytest.mark.parametrize("phase", ["grpo", "ppo", "reinforce"])
@pytest.mark.parametrize(
    "overrides",
    [
        [], ["engine.rollout=cpu"], ["engine.lora_rank=8", "engine.rollout=sglang"],
        ["kl.coef=0.1", "entropy.coef=0.01"],
        ["kl.coef=0.1", "kl.place=reward"], ["correction.level=sequence"], ["filter.dead_groups=refill"],
        ["objective.type=gspo"],
    ],
    ids=str,
)  # fmt: skip
def test_verls_configuration_takes_it(tmp_path: Path, phase: str, overrides: list[str]) -> None:
    pytest.importorskip("hydra", reason="Hydra comes with verl's dependencies")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("PHASE", phase))
    wanted = keys.settings(with_model(load_recipe(path, overrides)), "/home")
    config = validate.composed([override(key, value) for key, value in wanted.items()])
    assert config.actor_rollout_ref.rollout.n == 4 and config.algorithm.adv_estimator.startswith("rlvr_")
    assert list(config.actor_rollout_ref.actor.optim.betas) == [0.9, 0.99]
    if not overrides or (phase == "grpo" and config.actor_rollout_ref.rollout.name != "sglang"):
        pytest.importorskip("torchdata", reason="verl's own checks import its trainer")
        validate.validated(config)


def test_verl_refuses_a_misspelt_key() -> None:
    pytest.importorskip("hydra", reason="Hydra comes with verl's dependencies")
    with pytest.raises(UserError, match="savefreq"):
        validate.composed(["trainer.savefreq=1"])


def test_known_keys_are_verls() -> None:
    pytest.importorskip("hydra", reason="Hydra comes with verl's dependencies")
    from rlvrlab.scale.verl.spelling import known_keys

    config = validate.composed(["actor_rollout_ref.rollout.name=vllm"])
    for key in sorted(known_keys()):
        parent = config
        for part in key.split("."):
            assert part in set(parent.keys()), key  # `in` itself says no to a key that must be given
            parent = parent._get_node(part)


def test_the_data_set_reads_the_export(planned) -> None:
    pytest.importorskip("PIL", reason="verl's data set imports Pillow")
    transformers = pytest.importorskip("transformers")
    omegaconf = pytest.importorskip("omegaconf")
    data = pytest.importorskip("verl.utils.dataset.rl_dataset", exc_type=ImportError)
    tokenizer = transformers.AutoTokenizer.from_pretrained(planned.resolved.recipe.engine["model"])
    tokenizer.chat_template = keys.PLAIN_TEMPLATE
    settings = {"max_prompt_length": 64, "cache_dir": str(planned.folder / "cache"), "filter_overlong_prompts": False}
    rows = data.RLHFDataset(str(planned.folder / "train.parquet"), tokenizer, omegaconf.OmegaConf.create(settings))
    assert len(rows) == 20
    row = rows[0]
    assert planned.problems[row["extra_info"]["id"]].prompt == row["raw_prompt"][0]["content"]
    asked = tokenizer.apply_chat_template(row["raw_prompt"], add_generation_prompt=True, tokenize=False)
    assert asked == row["raw_prompt"][0]["content"], "the plain template must leave a prompt as it is"


def test_verl_loads_the_reward(planned) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    module = pytest.importorskip("verl.trainer.ppo.reward", exc_type=ImportError)
    function = {"path": str(planned.folder / "reward.py"), "name": "compute_score"}
    score = module.get_custom_reward_fn(omegaconf.OmegaConf.create({"reward": {"custom_reward_function": function}}))
    problem = next(iter(planned.problems.values()))
    given = {"data_source": problem.source, "ground_truth": "", "extra_info": {"id": problem.id}}
    found = asyncio.run(score(solution_str=planned.env.gold(problem), **given))
    assert found["acc"] == 1.0 and found["score"] > asyncio.run(score(solution_str="?", **given))["score"]


@pytest.fixture
def core(verl):
    """verl's algorithms with ours among them, as the plug-in leaves them."""
    importlib.import_module("rlvrlab.scale.verl.plugin")
    return verl


def test_estimators_agree_with_verls_own(core, torch) -> None:
    rng = np.random.default_rng(0)
    rewards, mask = torch.zeros(12, 5), torch.ones(12, 5)
    rewards[:, -1] = torch.tensor(rng.choice([0.0, 1.0, 0.5], 12), dtype=torch.float32)
    index = np.repeat(np.array(["a", "b", "c"], dtype=object), 4)
    for ours, theirs in (("rlvr_grpo", "grpo"), ("rlvr_rloo", "rloo"), ("rlvr_opo", "opo")):
        one, _ = core.get_adv_estimator_fn(ours)(token_level_rewards=rewards, response_mask=mask, index=index)
        two, _ = core.get_adv_estimator_fn(theirs)(token_level_rewards=rewards, response_mask=mask, index=index)
        np.testing.assert_allclose(one.numpy(), two.numpy(), atol=1e-5, err_msg=ours)


def test_compute_advantage_calls_ours(core, torch) -> None:
    trainer = pytest.importorskip("verl.trainer.ppo.ray_trainer", exc_type=ImportError)
    protocol = pytest.importorskip("verl.protocol", exc_type=ImportError)
    rewards = torch.zeros(4, 3)
    rewards[:, 2] = torch.tensor([1.0, 0.0, float("nan"), 0.0])
    batch = {"token_level_rewards": rewards, "response_mask": torch.ones(4, 3)}
    data = protocol.DataProto.from_dict(tensors=batch, non_tensors={"uid": np.array(list("aaaa"), dtype=object)})
    after = trainer.compute_advantage(data, adv_estimator="rlvr_grpo", config=SimpleNamespace())
    advantage = after.batch["advantages"].numpy()
    assert np.isfinite(advantage).all() and not advantage[2].any() and advantage[0, 0] > 0 > advantage[1, 0]


def test_ppo_loss_agrees_with_verls_own(core, torch, actor, gradient) -> None:
    rng = np.random.default_rng(1)
    logp, old, advantage = (rng.normal(size=(6, 5)) * 0.3 - 1 for _ in range(3))
    mask = np.arange(5)[None, :] < rng.integers(1, 6, 6)[:, None]
    settings = actor(low=0.2, high=0.2, dual=1e9)
    settings.global_batch_info.update(dp_size=2, batch_num_tokens=int(mask.sum()), global_batch_size=6)
    found = {}
    for name in ("vanilla", "rlvr_ppo_clip"):
        function = core.get_policy_loss_fn(name)

        def loss(leaf, function=function):
            return function(
                old_log_prob=torch.tensor(old),
                log_prob=leaf,
                advantages=torch.tensor(advantage),
                response_mask=torch.tensor(mask),
                loss_agg_mode="token-mean",
                config=settings,
            )[0]

        found[name] = gradient(loss, logp)
    assert found["vanilla"][0] == pytest.approx(found["rlvr_ppo_clip"][0], abs=1e-9)
    np.testing.assert_allclose(found["rlvr_ppo_clip"][1], found["vanilla"][1], atol=1e-9)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_log_probabilities_are_verls_own_without_a_loop_over_tokens(dtype: str, monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("verl.utils.torch_functional")
    from rlvrlab.scale.verl import log_probs, plugin

    plugin.add("token_log_probs", module)
    assert module.logprobs_from_logits_v2 is log_probs.log_probs
    monkeypatch.setattr(log_probs, "CHUNK", 5)
    torch.manual_seed(0)
    logits = torch.randn(13, 11).to(getattr(torch, dtype)).requires_grad_()
    labels, weight = torch.randint(0, 11, (13,)), torch.randn(13)
    ours = module.logprobs_from_logits(logits, labels)
    (ours * weight).sum().backward()
    mine, logits.grad = logits.grad, None
    theirs = module.logprobs_from_logits_naive(logits.double(), labels)
    (theirs * weight).sum().backward()
    assert ours.dtype == (torch.float64 if dtype == "float64" else torch.float32)
    assert torch.allclose(ours.double(), theirs, atol=1e-6)  # bfloat16 logits too: only the logits are rounded
    assert torch.allclose(mine.double(), logits.grad.double(), atol=1e-2 if dtype == "bfloat16" else 1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_outputs_of_padded_rows_are_verls_own_without_a_piece_per_answer(
    temperature: float, monkeypatch: pytest.MonkeyPatch
):
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("verl.workers.engine.fsdp.transformer_impl")
    from rlvrlab.scale.verl import actor

    recipe = SimpleNamespace(entropy=SimpleNamespace(coef=0.01))
    monkeypatch.setattr(actor, "current", lambda: SimpleNamespace(resolved=SimpleNamespace(recipe=recipe)))
    plain = type("Plain", (module.FSDPEngineWithLMHead,), {"__init__": lambda self: None})
    both = {"theirs": plain(), "ours": type("Ours", (actor.EngineHooks, plain), {})()}
    found = {}
    for name, engine in both.items():
        engine.engine_config = SimpleNamespace(entropy_checkpointing=False)
        logits, micro_batch, given = _padded_rows(torch, temperature, lengths=(5, 2, 7, 7))
        made = engine.prepare_model_outputs(SimpleNamespace(logits=logits), given, micro_batch, None)
        (made["log_probs"].values() * 0.3 - made["entropy"].values()).sum().backward()
        found[name] = [made["log_probs"].values(), made["entropy"].values(), made["log_probs"].offsets(), logits.grad]
    for ours, theirs in zip(found["ours"], found["theirs"], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


def test_the_gradient_of_padded_rows_does_not_take_an_operation_per_answer():
    torch = pytest.importorskip("torch")
    from rlvrlab.scale.verl.log_probs import padded_outputs

    def operations(answers: int) -> int:
        logits, micro_batch, given = _padded_rows(torch, 1.0, lengths=(3,) * answers)
        made = padded_outputs(logits, micro_batch["input_ids"], given["input_ids_rmpad_rolled"], False)
        assert not made["entropy"].requires_grad
        waiting, seen = [made["log_probs"].values().grad_fn], set()
        while waiting:
            node = waiting.pop()
            if node is not None and node not in seen:
                seen.add(node)
                waiting += [after for after, _ in node.next_functions]
        return len(seen)

    assert operations(60) == operations(2)


def _padded_rows(
    torch: Any, temperature: float, lengths: tuple[int, ...]
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Logits, micro-batch and facts as verl's engine hands them on, for rows padded to the longest."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(len(lengths), max(lengths), 11, generator=generator).requires_grad_()
    rows = [torch.randint(0, 11, (length,), generator=generator) for length in lengths]
    ids = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    rolled = torch.roll(ids.values(), shifts=-1, dims=0)
    given = {
        "input_ids_rmpad_rolled": rolled, "temperature_is_one": temperature == 1.0,
        "temperature": torch.full((len(lengths),), temperature),
    }  # fmt: skip
    micro_batch = {"input_ids": ids, "use_remove_padding": False, "calculate_entropy": True}
    return logits, micro_batch, given
