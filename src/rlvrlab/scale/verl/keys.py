"""From a recipe to verl's configuration, key by key.

Every key of a recipe is in one of three lists: it becomes a key of verl (`settings`), this package sees to it itself
(OURS), or verl cannot honour it and anything but its default is refused by name (refusals.py). The lists are kept
complete by tests/scale/test_verl_keys.py.
"""

from __future__ import annotations

from typing import Any

from rlvrlab.engines.hf.config import ALL_LINEAR, alpha_of
from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.errors import RecipeError, UserError
from rlvrlab.recipe import Resolved
from rlvrlab.scale.code_version import code_version
from rlvrlab.scale.verl import ANSWERS, CODE, EPISODES, PLAN
from rlvrlab.scale.verl.refusals import online_phase, refusals
from rlvrlab.scale.verl.spelling import is_known, split, suggested
from rlvrlab.train.phases.base import Critic, OnlinePhase

Settings = dict[str, Any]

OURS = {
    "name", "question", "output_dir", "phases", "env.type", "reward.type", "engine.type", "advantage.type",
    "objective.type", "credit.type", "surgery.type", "guard.type", "protocol.type", "data.train_size", "data.dev_size",
    "data.train_file", "data.dev_file", "data.seed", "checkpoint.keep", "record.rollouts", "record.log_interval",
    "record.sinks", "optimizer.warmup_steps", "optimizer.decay", "optimizer.final_ratio",
}  # fmt: skip
"""Data, reward, credit, surgery, the learning rate's schedule and the record are this package's own, through verl's
hooks."""
MAPPED = {
    "seed", "rollout.n", "rollout.max_tokens", "rollout.temperature", "rollout.top_p", "optimizer.type",
    "optimizer.beta1", "optimizer.beta2", "optimizer.epsilon", "optimizer.weight_decay", "optimizer.max_grad_norm",
    "kl.coef", "kl.estimator", "kl.place", "entropy.coef", "correction.level", "correction.cap", "filter.dead_groups",
    "eval.every", "checkpoint.every",
}  # fmt: skip
"""What `settings` reads."""

ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""verl wraps every prompt in a chat template; this one leaves it as it is."""
NEVER_CLIPS = 1e9
MICRO_TOKENS = 16384
PLAIN_ATTENTION = {"use_remove_padding": False, "override_config.attn_implementation": "sdpa"}
"""torch's own attention, which needs padded rows; verl's models attend with flash-attn otherwise, on packed ones."""
STORAGE_UNITS = 8
"""verl's own number. Each reserves a whole core, and verl waits for ever where there are too few."""


def settings(resolved: Resolved, home: str) -> Settings:
    """verl's keys and values; `home` is the folder of the export as verl will see it. Raises RecipeError."""
    if problems := refusals(resolved):
        raise RecipeError(problems)
    phase = online_phase(resolved)
    found = {
        **_data(resolved, phase, home),
        **_model(resolved),
        **_sampling(resolved),
        **_update(resolved, phase),
        **_credit(resolved, phase),
        **_trainer(resolved, phase, home),
        **(_critic(resolved, phase.critic) if phase.critic else {}),
        **(_on_cpu(resolved, phase) if resolved.recipe.engine["rollout"] == "cpu" else {}),
    }
    for text in resolved.recipe.engine["overrides"]:
        key, value = split(text)
        if not is_known(key):
            raise UserError(f"engine.overrides: verl has no key {key!r}{suggested(key)}")
        found[key] = value
    return found


def _data(resolved: Resolved, phase: OnlinePhase, home: str) -> Settings:
    recipe = resolved.recipe
    return {
        "data.train_files": f"{home}/train.parquet",
        "data.val_files": f"{home}/dev.parquet",
        "data.train_batch_size": phase.batch_size,
        "data.max_prompt_length": recipe.engine["prompt_tokens"],
        "data.max_response_length": recipe.rollout.max_tokens,
        "data.truncation": "error",
        "data.filter_overlong_prompts": False,
        "data.shuffle": recipe.protocol is None,
        "data.validation_shuffle": False,
        "data.seed": recipe.seed,
        "reward.custom_reward_function.path": f"{home}/reward.py",
        "reward.custom_reward_function.name": "compute_score",
        "reward.reward_manager.name": "rlvr",
    }


def _model(resolved: Resolved) -> Settings:
    engine = resolved.recipe.engine
    found: Settings = {
        f"{MODEL}.path": engine["model"],
        f"{MODEL}.enable_gradient_checkpointing": engine["gradient_checkpointing"],
        f"{ACTOR}.strategy": "fsdp2",
        "critic.strategy": "fsdp2",
    }
    if not engine["chat"]:
        found[f"{MODEL}.custom_chat_template"] = PLAIN_TEMPLATE
    if engine["lora_rank"]:
        found[f"{MODEL}.lora_rank"] = engine["lora_rank"]
        found[f"{MODEL}.lora_alpha"] = alpha_of(engine["lora_rank"], engine["lora_alpha"])
        if engine["rollout"] == "cpu":
            found[f"{MODEL}.lora.merge"] = True  # its sampler takes whole weights, no adapters
        found[f"{MODEL}.target_modules"] = ALL_LINEAR
        found[f"{ROLLOUT}.load_format"] = "safetensors"
    return found


def _sampling(resolved: Resolved) -> Settings:
    recipe, engine = resolved.recipe, resolved.recipe.engine
    longest = engine["prompt_tokens"] + recipe.rollout.max_tokens
    env = resolved.build("env")
    tools, cpu = isinstance(env, BaseEnvironment) and env.uses_tools, engine["rollout"] == "cpu"
    loop: Settings = {f"{ROLLOUT}.agent.default_agent_loop": EPISODES if tools else ANSWERS}
    return (loop if tools or cpu else {}) | {
        f"{ROLLOUT}.name": "rlvr_cpu" if cpu else engine["rollout"],
        f"{ROLLOUT}.n": recipe.rollout.n,
        f"{ROLLOUT}.temperature": recipe.rollout.temperature,
        f"{ROLLOUT}.top_p": recipe.rollout.top_p,
        f"{ROLLOUT}.seed": recipe.seed,
        f"{ROLLOUT}.tensor_model_parallel_size": engine["tensor_parallel"],
        f"{ROLLOUT}.max_model_len": longest,
        f"{ROLLOUT}.max_num_batched_tokens": max(8192, longest),
        f"{ROLLOUT}.calculate_log_probs": True,
    }


def micro_tokens(resolved: Resolved) -> int:
    """Tokens per forward pass and GPU."""
    recipe, engine = resolved.recipe, resolved.recipe.engine
    given: int = engine["micro_tokens"]
    return given or max(MICRO_TOKENS, engine["prompt_tokens"] + recipe.rollout.max_tokens)


def _update(resolved: Resolved, phase: OnlinePhase) -> Settings:
    recipe, optimizer = resolved.recipe, resolved.recipe.optimizer
    found: Settings = {
        f"{ACTOR}.ppo_mini_batch_size": phase.batch_size // phase.minibatches,
        f"{ACTOR}.ppo_epochs": phase.epochs,
        f"{ACTOR}.shuffle": False,
        f"{ACTOR}.data_loader_seed": recipe.seed,
        f"{ACTOR}.use_dynamic_bsz": True,
        f"{ACTOR}.ppo_max_token_len_per_gpu": micro_tokens(resolved),
        f"{ACTOR}.optim.lr": phase.learning_rate,
        f"{ACTOR}.optim.betas": [optimizer.beta1, optimizer.beta2],
        f"{ACTOR}.optim.weight_decay": optimizer.weight_decay,
        f"{ACTOR}.optim.clip_grad": optimizer.max_grad_norm or NEVER_CLIPS,
        f"{ACTOR}.optim.override_optimizer_config": {"eps": optimizer.epsilon},
        f"{ACTOR}.fsdp_config.seed": recipe.seed,
        f"{ACTOR}.policy_loss.loss_mode": f"rlvr_{type(phase.objective(resolved)).name}",
        f"{ACTOR}.loss_agg_mode": phase.objective(resolved).aggregation,
        f"{ACTOR}.loss_scale_factor": recipe.rollout.max_tokens,
        f"{ACTOR}.entropy_coeff": recipe.entropy.coef,
        f"{ACTOR}.calculate_entropy": True,
        f"{ACTOR}.use_kl_loss": recipe.kl.coef > 0 and recipe.kl.place == "loss",
    }
    if found[f"{ACTOR}.use_kl_loss"]:
        found |= {f"{ACTOR}.kl_loss_coef": recipe.kl.coef, f"{ACTOR}.kl_loss_type": recipe.kl.estimator}
    return found


def _credit(resolved: Resolved, phase: OnlinePhase) -> Settings:
    recipe = resolved.recipe
    found: Settings = {
        "algorithm.adv_estimator": f"rlvr_{type(phase.advantage(resolved)).name}",
        "algorithm.use_kl_in_reward": recipe.kl.coef > 0 and recipe.kl.place == "reward",
        "algorithm.filter_groups.enable": recipe.filter.dead_groups == "refill",
        "algorithm.rollout_correction.rollout_is": None
        if recipe.correction.level == "none"
        else recipe.correction.level,
        "algorithm.rollout_correction.rollout_is_threshold": recipe.correction.cap,
    }
    if found["algorithm.use_kl_in_reward"]:
        found |= {"algorithm.kl_ctrl.kl_coef": recipe.kl.coef, "algorithm.kl_penalty": recipe.kl.estimator}
    return found


def _trainer(resolved: Resolved, phase: OnlinePhase, home: str) -> Settings:
    recipe, engine = resolved.recipe, resolved.recipe.engine
    return {
        "trainer.v1.trainer_mode": "rlvr_sync",
        "trainer.nnodes": engine["nodes"],
        "trainer.n_gpus_per_node": engine["gpus"],
        "trainer.total_training_steps": phase.steps,
        "trainer.total_epochs": phase.steps,
        "trainer.save_freq": recipe.checkpoint.every,
        "trainer.test_freq": recipe.eval.every or phase.steps,
        "trainer.val_before_train": True,
        "trainer.logger": ["console", "file"],
        "trainer.project_name": "rlvrlab",
        "trainer.experiment_name": recipe.name,
        "trainer.default_local_dir": f"{home}/checkpoints",
        "trainer.resume_mode": "auto",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": min(
            STORAGE_UNITS, engine["gpus"] * engine["nodes"]
        ),
        "trainer.max_actor_ckpt_to_keep": max(2, recipe.checkpoint.keep),
        "trainer.max_critic_ckpt_to_keep": max(2, recipe.checkpoint.keep),
        f"ray_kwargs.ray_init.runtime_env.env_vars.{PLAN}": home,
        f"ray_kwargs.ray_init.runtime_env.env_vars.{CODE}": code_version(),
        "ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH": f"{home}/metrics.jsonl",
    }


def _critic(resolved: Resolved, critic: Critic) -> Settings:
    engine = resolved.recipe.engine
    return {
        "critic.enable": True,
        "critic.model.path": engine["model"],
        "critic.model.enable_gradient_checkpointing": engine["gradient_checkpointing"],
        "critic.optim.lr": critic.learning_rate,
        "critic.ppo_epochs": critic.epochs,
        "critic.cliprange_value": NEVER_CLIPS if critic.clip is None else critic.clip,
        "critic.ppo_max_token_len_per_gpu": micro_tokens(resolved),
    }


def _on_cpu(resolved: Resolved, phase: OnlinePhase) -> Settings:
    """A machine without a GPU: Ray is told of as many as the recipe wants; they are names, not devices."""
    engine = resolved.recipe.engine
    parts = [f"{ACTOR}.fsdp_config", "actor_rollout_ref.ref.fsdp_config"]
    parts += ["critic.fsdp"] if phase.critic else []
    float32 = {f"{part}.mixed_precision.param_dtype": "fp32" for part in parts}
    models = [MODEL, "critic.model"] if phase.critic else [MODEL]
    plain: Settings = {f"{model}.{key}": value for model in models for key, value in PLAIN_ATTENTION.items()}
    return (
        float32
        | plain
        | {
            "trainer.device": "cpu",
            "ray_kwargs.ray_init.num_cpus": 16 + 4 * engine["gpus"],
            "ray_kwargs.ray_init.num_gpus": engine["gpus"],
            "ray_kwargs.ray_init.include_dashboard": False,
            "ray_kwargs.ray_init.runtime_env.env_vars.VERL_PLATFORM": "cpu",
            "ray_kwargs.ray_init.runtime_env.env_vars.OMP_NUM_THREADS": "1",
            "reward.num_workers": 1,
            "data.dataloader_num_workers": 0,
            f"{ROLLOUT}.agent.num_workers": 1,
            f"{ROLLOUT}.enforce_eager": True,
            f"{ROLLOUT}.dtype": "float32",
            f"{ACTOR}.use_torch_compile": False,
            f"{ACTOR}.fsdp_config.use_torch_compile": False,
        }
    )
