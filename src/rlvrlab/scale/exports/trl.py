"""`rlvr export trl`: a recipe with one GRPO phase as data, reward and settings for TRL's GRPOTrainer (1.16).

Every key of a recipe is in one of three lists: it becomes a setting of TRL (`settings`), this package sees to it
(OURS), or TRL cannot honour it and it is refused by name (REFUSED and `refusals`). tests/scale/test_export_trl.py keeps
the lists complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.engines.hf.config import ALL_LINEAR, alpha_of
from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.record.files import write_atomically, write_json
from rlvrlab.registry import find
from rlvrlab.scale.exports.folder import filled, new_folder, unusual, with_model, write_common
from rlvrlab.scale.exports.trl_texts import README, REWARD, TRAIN

VERSION = "1.16"
OURS = {
    "name", "question", "output_dir", "phases", "env.type", "reward.type", "engine.type", "advantage.type",
    "objective.type", "data.train_size", "data.dev_size", "data.train_file", "data.dev_file", "data.seed",
    "optimizer.warmup_steps", "optimizer.decay", "optimizer.final_ratio", "correction.cap", "filter.max_refills",
    "kl.estimator", "kl.place",
}  # fmt: skip
"""Data, reward and the schedule come with the export; the rest has no effect once what it belongs to is refused."""
MAPPED = {
    "seed", "rollout.n", "rollout.max_tokens", "rollout.temperature", "rollout.top_p", "optimizer.type",
    "optimizer.beta1", "optimizer.beta2", "optimizer.epsilon", "optimizer.weight_decay", "optimizer.max_grad_norm",
    "kl.coef", "entropy.coef", "checkpoint.every", "checkpoint.keep", "record.sinks", "record.log_interval",
    "filter.dead_groups",
}  # fmt: skip
"""Keys that `settings` translates or `refusals` looks at."""
AFTERWARDS = "TRL does not examine greedily; use `rlvr eval` on its checkpoints"
REFUSED = {
    "credit": "TRL credits whole answers",
    "rollout.type": "TRL draws each answer by itself",
    "surgery": "TRL pools all gradients",
    "guard": "TRL has nothing that protects skills",
    "protocol": "TRL draws from all problems alike",
    "correction.level": "TRL corrects vLLM's samples only",
    "eval.every": AFTERWARDS,
    "data.test_file": AFTERWARDS,
    "eval.test_size": AFTERWARDS,
    "eval.test_n": AFTERWARDS,
    "stop.patience": "TRL runs all its steps",
    "stop.target": "TRL runs all its steps",
    "stop.no_signal_steps": "TRL runs all its steps",
    "entropy.floor": "TRL's entropy bonus counts in every update",
    "pipeline.lag": "TRL draws and trains in turn",
    "pipeline.limits": "limits are learnt in the loop of this package; set the environment's timeout_s",
    "stop.deadline_s": "TRL has no deadline for a step",
    "record.rollouts": "TRL keeps no answers",
}
"""Key -> why; refused where the value is not the default."""
ENGINE_KEYS = {
    "type", "model", "lora_rank", "lora_alpha", "lora_targets", "dtype", "device", "gradient_checkpointing", "chat",
}  # fmt: skip
"""Keys of the hf engine that have a counterpart; the others are refused where they are not the default."""
SPREADS = {"token-mean": "dapo", "seq-mean-token-mean": "grpo", "seq-mean-token-sum-norm": "dr_grpo"}
"""Aggregation -> TRL's loss_type."""
TRL_EPSILON = 1e-4
"""What TRL adds to a group's standard deviation."""
MOST_ROWS = 16
"""Answers in one forward pass."""


class Exported(NamedTuple):
    """The folder that was written, GRPOTrainer's settings, and how many problems of each role."""

    folder: Path
    settings: dict[str, Any]
    problems: dict[str, int]


def export(resolved: Resolved, folder: Path) -> Exported:
    """Write the whole folder; nothing is written while something is refused."""
    if problems := refusals(resolved):
        raise RecipeError(problems)
    resolved = with_model(resolved)
    wanted = settings(resolved)
    new_folder(folder)
    counts = write_common(folder, resolved, chat=resolved.recipe.engine["chat"])
    write_json(folder / "settings.json", wanted)
    write_atomically(folder / "reward.py", REWARD)
    write_atomically(folder / "train.py", TRAIN)
    words = {"@NAME@": resolved.recipe.name, "@VERSION@": VERSION, "@TRAIN@": str(counts["train"])}
    question = f"\nThe question: {resolved.recipe.question}\n" if resolved.recipe.question else ""
    write_atomically(folder / "README.md", filled(README, words) + question)
    return Exported(folder, wanted, counts)


def refusals(resolved: Resolved) -> list[str]:
    """What TRL cannot honour, each with its key, why, and what to do."""
    recipe = resolved.recipe
    if recipe.phases != ["grpo"]:
        before = "run the others with `rlvr train` and name their result in engine.model"
        return [
            f'phases = {recipe.phases}: TRL\'s GRPOTrainer is one grpo phase; {before}; export with phases=["grpo"]'
        ]
    return [*unusual(resolved, REFUSED), *_refused(recipe)]


def _refused(recipe: Recipe) -> Iterator[str]:
    """What TRL does otherwise with groups, penalty, optimiser, engine, advantage, objective and minibatches."""
    if recipe.filter.dead_groups not in ("keep", "count"):
        yield "filter.dead_groups: TRL keeps groups without signal in the mean; export with filter.dead_groups=keep"
    if recipe.kl.coef and (recipe.kl.estimator != "k3" or recipe.kl.place != "loss"):
        yield "kl.estimator, kl.place: TRL's penalty is k3 in the loss; export with both so, or kl.coef=0"
    if recipe.optimizer.type != "adam":
        yield 'optimizer.type: TRL is driven with AdamW here; export with optimizer.type="adam"'
    yield from _refused_engine(recipe)
    advantage = recipe.advantage or {"type": "grpo", "scale": "group", "epsilon": 1e-6}
    if advantage["type"] not in ("grpo", "dr_grpo"):
        yield f"advantage.type = {advantage['type']!r}: TRL has grpo and dr_grpo; take one of them"
    else:
        if advantage.get("singleton", "zero") != "zero":
            yield 'advantage.singleton: a lone answer has advantage 0 in TRL; export with advantage.singleton="zero"'
        if advantage.get("scale", "none") != "none" and advantage["epsilon"] != TRL_EPSILON:
            remedy = 'export with advantage.type="grpo" advantage.epsilon=1e-4'
            yield f"advantage.epsilon = {advantage['epsilon']:g}: TRL adds {TRL_EPSILON:g} to the deviation; {remedy}"
    objective = recipe.objective or {"type": "ppo_clip"}
    kind, spread = objective["type"], objective.get("aggregation", "token-mean")
    known = {
        "ppo_clip": spread in SPREADS,
        "gspo": spread == "seq-mean-token-mean",  # with one advantage per answer both kinds of its credit are the same
        "cispo": spread == "token-mean" and objective.get("ratio_low") is None,
    }
    if kind not in known:
        yield f"objective.type = {kind!r}: TRL has ppo_clip, gspo and cispo; take one of them"
    elif not known[kind]:
        yield f"objective: {kind} with {spread} (or a lower bound) is none of TRL's losses; see the docs"
    parts, size = recipe.phase_tables["grpo"]["minibatches"], recipe.phase_tables["grpo"]["batch_size"]
    if size % parts:
        yield f"grpo.minibatches: {parts} parts of {size} problems; it must divide them"


def _refused_engine(recipe: Recipe) -> Iterator[str]:
    table = recipe.engine
    if table["type"] != "hf":
        remedy = "export with engine.type=hf engine.model=…"
        yield f"engine.type = {table['type']!r}: it has no model TRL can train; {remedy}"
        return
    usual = {item.name: item.default for item in fields(find("engine", "hf")) if item.default is not MISSING}
    for key, value in table.items():
        if key not in ENGINE_KEYS and value != usual.get(key):
            yield f"engine.{key} = {value!r}: TRL has no counterpart; export with engine.{key}={usual.get(key)!r}"
    if table["device"] not in ("auto", "cpu", "cuda"):
        yield f'engine.device = {table["device"]!r}: choose a GPU by CUDA_VISIBLE_DEVICES; export with "cuda"'
    if recipe.optimizer.weight_decay and not table["lora_rank"]:
        yield "optimizer.weight_decay: TRL leaves norms and biases out of it; export with LoRA or weight_decay=0"


def settings(resolved: Resolved) -> dict[str, Any]:
    """`config` are GRPOConfig's arguments; the rest is what train.py needs."""
    recipe, engine, optimizer = resolved.recipe, resolved.recipe.engine, resolved.recipe.optimizer
    table, targets = recipe.phase_tables["grpo"], engine["lora_targets"]
    updates = table["minibatches"] * table["epochs"]
    lora = {"r": engine["lora_rank"], "lora_alpha": alpha_of(engine["lora_rank"], engine["lora_alpha"]),
            "target_modules": targets if targets == ALL_LINEAR else [part.strip() for part in targets.split(",")],
            }  # fmt: skip
    return {
        "model": engine["model"],
        "dtype": engine["dtype"],
        "device": engine["device"],
        "lora": lora if engine["lora_rank"] else None,
        "updates_per_collection": updates,
        "config": {
            **_batches(resolved, updates),
            **_loss(resolved),
            "learning_rate": table["learning_rate"],
            "optim": "adamw_torch",
            "adam_beta1": optimizer.beta1,
            "adam_beta2": optimizer.beta2,
            "adam_epsilon": optimizer.epsilon,
            "weight_decay": optimizer.weight_decay,
            "max_grad_norm": optimizer.max_grad_norm,
            "disable_dropout": True,
            "gradient_checkpointing": engine["gradient_checkpointing"],
            "output_dir": "output",
            "run_name": recipe.name,
            "seed": recipe.seed,
            "save_strategy": "steps",
            "save_steps": recipe.checkpoint.every * updates,
            "save_total_limit": recipe.checkpoint.keep,
            "logging_steps": recipe.record.log_interval or 1,
            "report_to": recipe.record.sinks or "none",
        },
    }


def _batches(resolved: Resolved, updates: int) -> dict[str, Any]:
    """A collection is generation_batch_size answers; an update sees a minibatch of them in equal forward passes."""
    table, rollout = resolved.recipe.phase_tables["grpo"], resolved.recipe.rollout
    rows = table["batch_size"] * rollout.n // table["minibatches"]
    at_once = max(size for size in range(1, min(rows, MOST_ROWS) + 1) if rows % size == 0)
    return {
        "max_steps": table["steps"] * updates,
        "num_generations": rollout.n,
        "generation_batch_size": table["batch_size"] * rollout.n,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": rows // at_once,
        "num_iterations": table["epochs"],
        "max_completion_length": rollout.max_tokens,
        "temperature": rollout.temperature,
        "top_p": rollout.top_p,
    }


def _loss(resolved: Resolved) -> dict[str, Any]:
    recipe = resolved.recipe
    objective: Any = resolved.build("objective") or find("objective", "ppo_clip")()
    advantage = recipe.advantage or {"type": "grpo", "scale": "group"}
    scale = advantage.get("scale", "none")
    loss = {"beta": recipe.kl.coef, "entropy_coef": recipe.entropy.coef, "scale_rewards": scale}
    if objective.name == "cispo":
        return {**loss, "loss_type": "cispo", "epsilon_high": objective.ratio_high}
    loss |= {"loss_type": SPREADS[objective.aggregation]}
    loss |= {"epsilon": objective.clip_low, "epsilon_high": objective.clip_high}
    if objective.name == "gspo":
        return {**loss, "importance_sampling_level": "sequence"}
    return {**loss, "delta": objective.dual_clip}
