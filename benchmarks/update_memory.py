"""Peak memory and seconds of one update of the hf engine, by length of answers, with all parameters and with a LoRA.

    python benchmarks/update_memory.py --model FOLDER [--device cuda] [--rows 16] [--tokens 1024 2048] [--json FILE]

An update is a forward and backward pass over ROWS answers of TOKENS tokens (a prompt of 32 included; each row has its
own) with `ppo_clip`, and Adam's step. Tokens are random; memory does not depend on which they are. The first update of
a case pays for caches and is not counted; the second is. Beside it what the formula of docs/cluster.md says
(`formula_gb`, of the micro-batch that was used, `at_once`). Without a GPU there are only seconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf
from rlvrlab.errors import LabError
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.record.facts import machine, package_versions
from rlvrlab.scale.sizing import Model, Update, peak_gb
from rlvrlab.train.update import descend

PROMPT = 32
RANK = 16


def measured(folder: Path, rank: int, tokens: int, a: Any) -> dict[str, Any]:
    """One case in an engine of its own."""
    engine = Hf(str(folder), lora_rank=rank, device=a.device, gradient_checkpointing=a.checkpointing).build(Optimizer())
    rng = np.random.default_rng(0)
    drawn_BT = rng.integers(100, engine.body.vocabulary - 1, (a.rows, tokens))
    prompts, answers = drawn_BT[:, :PROMPT].tolist(), drawn_BT[:, PROMPT:].tolist()
    shape = (a.rows, tokens - PROMPT)
    advantage_BT = np.where(np.arange(a.rows) % 2, 1.0, -1.0)[:, None] * np.ones(shape)
    plain = batch_of(prompts, answers, advantage_BT=advantage_BT)
    old_BT, _ = engine.logprobs(plain)
    batch = replace(plain, old_BT=old_BT)
    found: dict[str, Any] = {"lora_rank": rank, "tokens": tokens, "rows": a.rows, "micro_tokens": engine.micro_tokens}
    for name in ("first_s", "update_s"):
        _reset(a)
        start = time.perf_counter()
        descend(engine, batch, PpoClip(), 1e-6, 1.0)
        _wait(a)
        found[name] = round(time.perf_counter() - start, 3)
    config, count = engine.model.config, sum(one.numel() for one in engine.model.parameters())
    adapter = engine.weights.size if rank else 0
    sizes = config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.vocab_size
    at_once = min(engine.micro_tokens, a.rows * tokens)  # the engine halves micro_tokens when memory runs out
    formula = peak_gb(Model(count - adapter, *sizes), Update(at_once, tokens, adapter, a.checkpointing))
    found |= {"parameters": count, "at_once": at_once, "formula_gb": round(formula, 2)}
    if a.device != "cpu":
        found["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        found["reserved_gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
    return found


def _reset(a: Any) -> None:
    _wait(a)
    if a.device != "cpu":
        torch.cuda.reset_peak_memory_stats()


def _wait(a: Any) -> None:
    if a.device != "cpu":
        torch.cuda.synchronize()


def main() -> None:
    """All cases, one after the other in one process; a case that does not fit is on record too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048, 4096])
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    found = []
    for rank in (RANK, 0):
        for tokens in a.tokens:
            try:
                found.append(measured(a.model, rank, tokens, a))
            except (torch.cuda.OutOfMemoryError, LabError) as error:
                found.append({"lora_rank": rank, "tokens": tokens, "rows": a.rows, "failed": str(error)[:200]})
            print(json.dumps(found[-1]), flush=True)
            gc.collect()
            if a.device != "cpu":
                torch.cuda.empty_cache()
            if a.json:
                facts = {"model": a.model.name, "machine": machine(), "packages": package_versions(), "found": found}
                a.json.write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
