"""verl's real FSDP engine with our hooks on 1, 2 and 4 ranks: python verl_actor_rank.py FOLDER …

Each FOLDER is an export; its plan says what surgery and guard do. Two updates on fixed rows; what came out of N ranks
goes to FOLDER/outN.json, the parameters to outN.npy. verl is imported once and the ranks are forks of that process: the
import takes far longer than the updates.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

PROMPTS = (5, 3, 7, 4, 6, 5, 4, 3)
ANSWERS = (4, 6, 3, 5, 2, 6, 4, 5)
GROUP = (0, 0, 0, 1, 0, 1, 1, 2)
"""On two ranks (rows 0–3 and 4–7) the groups are uneven, and the last is on one rank alone; on four (two rows each) the
first rank has one group, and each group is missing somewhere."""
WORLDS = (1, 2, 4)
FACTS = {"names": ["a", "b", "c"], "owner": [0, 1, 2], "success": [0.5, 0.2, 0.9], "step": 0, "key": [0, "grpo", 0]}


def rows() -> list[dict]:
    rng = np.random.default_rng(3)
    found = []
    for prompt, answer, group in zip(PROMPTS, ANSWERS, GROUP, strict=True):
        found.append(
            {
                "prompt": rng.integers(5, 60, prompt).tolist(),
                "answer": rng.integers(5, 60, answer).tolist(),
                "old": (rng.normal(size=answer) * 0.1 - 4).tolist(),
                "advantage": (np.ones(answer) * rng.normal()).tolist(),
                "group": group,
            }
        )
    return found


def engine_of(config):
    from verl.trainer.config import CheckpointConfig
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.engine import EngineRegistry

    model = omega_conf_to_dataclass(config.model)
    config.actor.optim.total_training_steps = 2
    actor = omega_conf_to_dataclass(config.actor)
    settings = actor.engine
    settings.use_remove_padding = False
    settings.use_fused_kernels = False
    settings.use_dynamic_bsz = True
    settings.max_token_len_per_gpu = 20  # several micro-batches
    made = EngineRegistry.new(
        model_type="language_model",
        backend="fsdp2",
        model_config=model,
        engine_config=settings,
        optimizer_config=actor.optim,
        checkpoint_config=CheckpointConfig(),
    )
    made.initialize()
    return made, actor


def batch_of(engine, mine: list[dict]):
    import torch
    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu

    rows = [
        {
            "prompts": torch.tensor(row["prompt"]),
            "responses": torch.tensor(row["answer"]),
            "response_mask": torch.ones(len(row["answer"]), dtype=torch.int64),
            "loss_mask": torch.ones(len(row["answer"]), dtype=torch.int64),
            "input_ids": torch.tensor([*row["prompt"], *row["answer"]]),
            "position_ids": torch.arange(len(row["prompt"]) + len(row["answer"])),
            "old_log_probs": torch.tensor(row["old"], dtype=torch.float32),
            "advantages": torch.tensor(row["advantage"], dtype=torch.float32),
            "rlvr_group": torch.tensor([row["group"]]),
        }
        for row in mine
    ]
    # Nested even where the rows of a rank are of one length, as verl's workers get them.
    nested = {name: tu.nested_tensor_from_tensor_list([row[name] for row in rows]) for name in rows[0]}
    data = TensorDict(nested, batch_size=len(rows))
    settings = engine.engine_config
    tu.assign_non_tensor(
        data,
        temperature=1.0,
        calculate_entropy=True,
        use_remove_padding=False,
        use_dynamic_bsz=True,
        max_token_len_per_gpu=settings.max_token_len_per_gpu,
        use_fused_kernels=False,
        global_batch_size=len(PROMPTS),
        rlvr_facts=FACTS,
    )
    return data


def updated(folder: Path, config, rank: int, world: int) -> None:
    """Two updates of one rank; the first one writes what came out."""
    import torch
    from verl.workers.utils.losses import ppo_loss

    engine, actor = engine_of(config)
    size = len(PROMPTS) // world
    mine = rows()[rank * size : (rank + 1) * size]
    seen = []
    with engine.train_mode():
        for _ in range(2):
            found = engine.train_batch(batch_of(engine, mine), partial(ppo_loss, config=actor))
            gathered = [None] * world
            torch.distributed.all_gather_object(gathered, found["metrics"])
            names = [name for name, value in gathered[0].items() if isinstance(value, list)]
            means = {name: float(np.mean([np.mean(one[name]) for one in gathered])) for name in names}
            seen.append({"grad_norm": float(found["metrics"]["grad_norm"]), **means})
    trained = [p for p in engine.module.parameters() if p.requires_grad]
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in trained]
    if rank == 0:
        np.save(folder / f"out{world}.npy", torch.cat([p.detach().double().flatten() for p in whole]).numpy())
        (folder / f"out{world}.json").write_text(json.dumps(seen))


def one_rank(configs: dict, rank: int, world: int, port: int) -> None:
    """All folders, one after the other, in one process group."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }  # fmt: skip
    import torch

    from rlvrlab.scale.verl import job

    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    try:
        for folder, config in configs.items():
            os.environ["RLVR_VERL_PLAN"] = str(folder)
            job.current.cache_clear()
            torch.manual_seed(0)  # adapters begin at random, as verl's workers seed them
            updated(folder, config, rank, world)
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # the others wait for this rank and are ended by the process that forked them
    torch.distributed.destroy_process_group()


def main(folders: list[Path]) -> None:
    """Import once, then fork."""
    os.environ |= {"RLVR_VERL_PLAN": str(folders[0]), "VERL_PLATFORM": "cpu"}
    import torch

    torch.set_num_threads(1)
    import verl.workers.utils.losses  # noqa: F401
    from verl.workers.engine import EngineRegistry  # noqa: F401

    import rlvrlab.scale.verl.plugin  # noqa: F401  where the entry point is not installed
    from rlvrlab.scale.verl.validate import composed

    settings = {folder: (folder / "overrides.txt").read_text().splitlines() for folder in folders}
    configs = {folder: composed(lines).actor_rollout_ref for folder, lines in settings.items()}
    context = get_context("fork")
    for world in WORLDS:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = [context.Process(target=one_rank, args=(configs, rank, world, port)) for rank in range(world)]
        for process in started:
            process.start()
        for process in started:
            process.join()
            if process.exitcode:
                for other in started:
                    other.kill()
                sys.exit(f"a rank of {world} ended with {process.exitcode}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
