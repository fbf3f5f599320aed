"""What is added to which module of verl; called by plugin.py after that module was imported."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rlvrlab.registry import find, names
from rlvrlab.scale.verl.job import has_job


def algorithms(core: Any) -> None:
    """Advantage estimators and policy losses, each under `rlvr_<name>`."""
    from rlvrlab.scale.verl.advantages import estimator
    from rlvrlab.scale.verl.losses import policy_loss

    for name in names("advantage"):
        if f"rlvr_{name}" not in core.ADV_ESTIMATOR_REGISTRY:
            core.register_adv_est(f"rlvr_{name}")(estimator(name))
    for name in [name for name in names("objective") if find("objective", name).uses_advantages]:
        core.register_policy_loss(f"rlvr_{name}")(policy_loss(name))


def trainer(module: Any) -> None:
    """`trainer.v1.trainer_mode=rlvr_sync`: verl's synchronous trainer with our credit and labels."""
    from rlvrlab.scale.verl.trainer import TrainerHooks

    module.register_trainer("rlvr_sync")(type("RlvrTrainer", (TrainerHooks, module.PPOTrainerSync), {}))


def reward_manager(module: Any) -> None:
    """`reward.reward_manager.name=rlvr`: verl's own, which also shows the reward function an answer's tokens."""
    from rlvrlab.scale.verl.reward import ManagerHooks

    module.register("rlvr")(type("RlvrRewardManager", (ManagerHooks, module.NaiveRewardManager), {}))


def token_log_probs(module: Any) -> None:
    """In place of verl's loop over single tokens, which it falls back on without flash-attn."""
    from rlvrlab.scale.verl.log_probs import log_probs

    module.logprobs_from_logits_v2 = log_probs


def agent_loop(module: Any) -> None:
    """`agent.default_agent_loop`: rlvr_episodes, over several turns with tools, and rlvr_answers, of one turn."""
    from rlvrlab.scale.verl import ANSWERS, EPISODES
    from rlvrlab.scale.verl.episode_loop import episode_loop
    from rlvrlab.scale.verl.seeds import answer_loop

    for name, loop in ((EPISODES, episode_loop), (ANSWERS, answer_loop)):
        module._agent_loop_registry[name] = {"_target_": f"{loop.__module__}.{loop.__name__}"}


def engines(module: Any) -> None:
    """Surgery inside the update: verl's language model engine, where a run of ours is going on; also for a CPU."""
    from rlvrlab.scale.verl.actor import EngineHooks

    plain = module.FSDPEngineWithLMHead
    ours = type("RlvrEngine", (EngineHooks, plain), {}) if has_job() else plain
    known = module.EngineRegistry._engines
    for backend in ("fsdp", "fsdp2"):
        table = known["language_model"][backend]
        for device in [*table, "cpu"]:
            table[device] = ours
        known["value_model"][backend].setdefault("cpu", module.FSDPEngineWithValueHead)


def cpu_platform(_: ModuleType) -> None:
    """verl on a CPU."""
    from rlvrlab.scale.verl.cpu import register_platform

    register_platform()


def cpu_rollout(module: Any) -> None:
    """The sampler's side that receives weights."""
    module._ROLLOUT_REGISTRY["rlvr_cpu", "async"] = "rlvrlab.scale.verl.cpu_rollout.ServerAdapter"


def cpu_replica(module: Any) -> None:
    """The sampler's side that answers."""
    from rlvrlab.scale.verl.cpu_rollout import replica

    module.RolloutReplicaRegistry.register("rlvr_cpu", replica)
