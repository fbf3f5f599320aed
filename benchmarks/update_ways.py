"""The faster ways of an update beside the plain ones: how far gradients lie apart, and what one takes.

    python benchmarks/update_ways.py --model FOLDER --device cuda [--lora 32] [--groups 32] [--answers 16] [--json FILE]

Each way (rlvrlab.engines.hf.ways) is switched on alone, then all together; `taken` tells which of them the model and
the device really take. `apart` is the distance of a gradient from the plain ways' first one, relative to its norm. The
plain ways are asked twice: what lies between those two is the device's own. Answers and prompts are random tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.engines.hf import Hf, ways
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.record.facts import machine, package_versions

WAYS = ("flash", "adapters", "head", "layers", "blocks")
TRIED = {"plain": (), "plain, again": (), **{way: (way,) for way in WAYS}, "all": WAYS}
SPREAD = 0.01
"""Of what is added to the trained parameters: an adapter that is still zero would hide half of its gradient."""


def batch_for(vocabulary: int, groups: int, answers: int, prompt: int, longest: int) -> TokenBatch:
    """Groups of answers of different lengths to prompts of their own."""
    rng = np.random.default_rng(0)
    prompts = [rng.integers(1, vocabulary, size).tolist() for size in rng.integers(prompt // 2, prompt, groups)]
    asked = [one for one in prompts for _ in range(answers)]
    drawn = [rng.integers(1, vocabulary, size).tolist() for size in rng.integers(8, longest + 1, len(asked))]
    plain = batch_of(asked, drawn)
    advantage_BT = np.where(plain.loss_BT, rng.choice([-1.0, 1.0], len(asked))[:, None], 0.0)
    return replace(plain, advantage_BT=advantage_BT).rescaled()


def gradient_of(engine: Any, batch: TokenBatch) -> tuple[torch.Tensor, float]:
    """A copy, and the seconds it took."""
    started = time.perf_counter()
    found = engine.gradient(batch, PpoClip())[0].clone()
    if found.is_cuda:
        torch.cuda.synchronize()
    return found, time.perf_counter() - started


def beside(engine: Any, batch: TokenBatch, times: int) -> dict[str, dict[str, Any]]:
    """Every way; the first gradient of each pays for caches and is not timed."""
    first, told = None, {}
    for name, wanted in TRIED.items():
        engine.ways = ways.choose(engine.model, engine.body, **{way: way in wanted for way in WAYS})
        gradient, _ = gradient_of(engine, batch)
        first = gradient if first is None else first
        runs = [gradient_of(engine, batch) for _ in range(times)]
        told[name] = {
            "taken": engine.ways._asdict(),
            "apart": float((gradient - first).norm() / first.norm()),
            "cosine": float(torch.nn.functional.cosine_similarity(gradient, first, dim=0)),
            "repeats_bitwise": all(torch.equal(gradient, one) for one, _ in runs),
            "seconds": [round(seconds, 4) for _, seconds in runs],
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--lora", type=int, default=32)
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--answers", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=160, help="longest prompt")
    parser.add_argument("--tokens", type=int, default=254, help="longest answer")
    parser.add_argument("--micro-tokens", type=int, default=16384)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    engine = Hf(a.model, lora_rank=a.lora, device=a.device, micro_tokens=a.micro_tokens).build(Optimizer())
    drawn = torch.randn(engine.weights.size, generator=torch.Generator().manual_seed(1)) * SPREAD
    engine.weights.add(drawn.to(engine.device))
    told = beside(engine, batch_for(engine.body.vocabulary, a.groups, a.answers, a.prompt, a.tokens), a.times)
    found = {"model": Path(a.model).name, "lora": a.lora, "ways": told, "machine": machine()}
    found |= {"packages": package_versions()}
    if a.json:
        a.json.write_text(json.dumps(found, indent=1), "utf-8")
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
