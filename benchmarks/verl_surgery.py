"""What per-skill surgery adds to an update of verl's real FSDP engine: CPU seconds with it over CPU seconds without.

    .venv-verl/bin/python benchmarks/verl_surgery.py [--json] [--model nano] [--rows 64] [--tokens 96] [--skills 4]

One process on a CPU (FSDP2 over gloo), the same rows, taking turns; the ratio is the median over the rounds. Both pass
over every row once; surgery adds the Gramian in double precision, the weights, one copy of the gradients per skill, and
micro-batches that end where a skill ends. Figures of several GPUs would add one all-reduce of skills² numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

RECIPE = """
phases = ["grpo"]
[env]
type = "countdown"
style = "bare"
[engine]
type = "verl"
model = "MODEL"
gpus = 1
rollout = "cpu"
gradient_checkpointing = false
[data]
train_size = 8
dev_size = 4
[grpo]
batch_size = 8
steps = 1000
learning_rate = 1e-5
[surgery]
type = "mgda"
noise_every = 0
"""
LIMIT = 1.10


def export_to(folder: Path, model: str) -> None:
    from rlvrlab.recipe import load_recipe
    from rlvrlab.scale.verl.export import export

    (folder / "recipe.toml").write_text(RECIPE.replace("MODEL", model))
    export(load_recipe(folder / "recipe.toml"), folder / "out")


def engine_of(folder: Path, micro_tokens: int) -> tuple[Any, Any]:
    import torch
    from verl.trainer.config import CheckpointConfig
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.engine import EngineRegistry

    from rlvrlab.scale.verl.validate import composed

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    config = composed((folder / "overrides.txt").read_text().splitlines()).actor_rollout_ref
    config.actor.optim.total_training_steps = 1000
    actor = omega_conf_to_dataclass(config.actor)
    settings = actor.engine
    settings.use_remove_padding = settings.use_fused_kernels = False
    settings.use_dynamic_bsz, settings.max_token_len_per_gpu = True, micro_tokens
    engine = EngineRegistry.new(
        model_type="language_model",
        backend="fsdp2",
        model_config=omega_conf_to_dataclass(config.model),
        engine_config=settings,
        optimizer_config=actor.optim,
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    return engine, actor


def batch(rows: int, tokens: int, skills: int, micro_tokens: int) -> Any:
    import torch
    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu

    torch.manual_seed(0)
    half, made = tokens // 2, []
    for i in range(rows):
        whole, mask = torch.randint(5, 60, (tokens,)), torch.ones(tokens - half, dtype=torch.int64)
        made.append(
            {
                "prompts": whole[:half],
                "responses": whole[half:],
                "response_mask": mask,
                "loss_mask": mask.clone(),
                "input_ids": whole,
                "position_ids": torch.arange(tokens),
                "old_log_probs": torch.full((tokens - half,), -4.0),
                "advantages": torch.randn(1).expand(tokens - half).clone(),
                "rlvr_group": torch.tensor([i % skills]),
            }
        )
    nested = {name: tu.nested_tensor_from_tensor_list([row[name] for row in made]) for name in made[0]}
    data = TensorDict(nested, batch_size=rows)
    facts = {"names": [f"s{i}" for i in range(skills)], "owner": list(range(skills)), "success": [0.5] * skills}
    tu.assign_non_tensor(
        data,
        temperature=1.0,
        calculate_entropy=False,
        use_remove_padding=False,
        use_dynamic_bsz=True,
        max_token_len_per_gpu=micro_tokens,
        use_fused_kernels=False,
        global_batch_size=rows,
        rlvr_facts={**facts, "step": 0, "key": [0]},
    )
    return data


def measure(engine: Any, actor: Any, rounds: int, *sizes: int) -> list[tuple[float, float]]:
    from verl.workers.utils.losses import ppo_loss

    surgery, found = engine._rlvr_surgery, []
    with engine.train_mode():
        for turn in range(rounds + 1):
            seconds = []
            for chosen in (None, surgery):
                engine._rlvr_surgery = chosen
                data = batch(*sizes)
                start = time.process_time()
                engine.train_batch(data, partial(ppo_loss, config=actor))
                seconds.append(time.process_time() - start)
            if turn:  # the first round warms up
                found.append((seconds[0], seconds[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", default="nano")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--skills", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        export_to(Path(name), given.model)
        os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
        os.environ |= {"MASTER_PORT": port, "RLVR_VERL_PLAN": str(folder), "VERL_PLATFORM": "cpu"}
        micro = 16 * given.tokens
        engine, actor = engine_of(folder, micro)
        rounds = measure(engine, actor, given.rounds, given.rows, given.tokens, given.skills, micro)
        parameters = sum(p.numel() for p in engine.module.parameters())
    ratios = sorted(after / before for before, after in rounds)
    result = {
        "ratio": statistics.median(ratios),
        "lowest": ratios[0],
        "highest": ratios[-1],
        "limit": LIMIT,
        "plain_cpu_s": statistics.median(before for before, _ in rounds),
        "parameters": parameters,
        "rows": given.rows,
        "tokens": given.tokens,
        "skills": given.skills,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    if given.json:
        print(json.dumps(result, indent=1))
        return
    words = f"surgery over plain: {result['ratio']:.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f}), at most {LIMIT} wanted"
    print(words)
    print("  ".join(f"{key} {value}" for key, value in result.items() if key not in ("ratio", "lowest", "highest")))


if __name__ == "__main__":
    main()
