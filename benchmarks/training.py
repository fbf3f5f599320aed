"""A GRPO step here and in TRL: same model, prompts, answers per prompt, new tokens, LoRA, loss; turn and turn about.

    python benchmarks/training.py [--sizes 10m 135m] [--rounds 3] [--steps 4] [--threads N] [--json FILE]
    python benchmarks/training.py --sizes 10m --beside 1                    (beside one busy process)
    python benchmarks/training.py --device cuda --sizes 135m --rows 256 --group 16 --tokens 128 --alone      (one GPU)

Each side runs in a process of its own, in alternation, and every second round begins with the other side; ratios of the
rounds' medians first, then seconds and peak memory. Weights are random, or those of a folder that is named in place of
a size, and no answer may end early, so both do the same work; KL is off (β = 0). TRL is skipped where it is missing,
and nothing is fetched. Without --threads each side takes as many as it does for its users. With --beside N, N processes
spin from before the first side chooses its threads until the last one is done, and the JSON says how many.
`phases` are two more steps of ours with a clock (and on a GPU a synchronisation) around each verb of the engine:
sample, score, gradient, step, and the rest; on a GPU `kernels_<phase>_s` is how long its kernels ran in one more step,
and the rest of the phase is time in which the card waited for the next one to be started. `of_floor` is the time that
reading the fewest bytes would take while sampling, at this machine's measured copy bandwidth, over the time taken.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from turns import in_turn, spinning

SIZES = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 384},
    "10m": {"hidden_size": 320, "intermediate_size": 864, "num_hidden_layers": 8, "num_attention_heads": 5,
            "num_key_value_heads": 5, "vocab_size": 384},
    "135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
             "num_key_value_heads": 3, "vocab_size": 49152},
}  # fmt: skip
NEW_TOKENS = {"tiny": 16, "10m": 64, "135m": 32}
RANK = 8
CLOCKED = {"sample": "sample", "logprobs": "score", "gradient": "gradient", "gramian": "step", "step": "step",
           "publish": "step"}  # fmt: skip
"""Verbs of the engine and the phase each counts to."""
PROMPT = "#gen keep even;times 2;last 3;add all\n#[9,7,5,5,2]>{}\n#[1,2,3,4]>{}\ndef f(x):\n"


def make_model(folder: Path, size: str) -> None:
    """Random weights in the usual layout, with nano's tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from rlvrlab.models import resolve

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(resolve("nano"))
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    shape = {**SIZES[size], "max_position_embeddings": 1024, "tie_word_embeddings": size == "135m", **ends}
    LlamaForCausalLM(LlamaConfig(**shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def prompts(count: int) -> list[str]:
    """Alike, not equal."""
    return [PROMPT.format(i, i * i % 97) for i in range(count)]


class Parity:
    """Half of all answers are right; judging costs nothing."""

    name, version = "parity", "1"

    def verify_many(self, items: Any) -> list[Any]:
        """By length."""
        from rlvrlab.types import Verdict

        return [Verdict(len(text) % 2 == 0, float(len(text) % 2 == 0)) for _, text in items]


def ours(folder: Path, a: Any) -> dict[str, float]:
    """Collect, credit, update, publish: what the loop does in a step."""
    from rlvrlab.advantages.grpo import Grpo
    from rlvrlab.engines.hf import Hf
    from rlvrlab.objectives.ppo_clip import PpoClip
    from rlvrlab.recipe.schema import Optimizer, Recipe
    from rlvrlab.rewards.binary import Binary
    from rlvrlab.rollout.collect import collect
    from rlvrlab.train.batches import assemble, with_advantages
    from rlvrlab.train.update import descend
    from rlvrlab.types import Problem, Sampling

    engine = Hf(str(folder), lora_rank=RANK, device=a.device).build(Optimizer())
    engine.tokenizer.end = -1  # no answer ends early
    problems = [Problem(str(i), "b", "b", text) for i, text in enumerate(prompts(a.rows // a.group))]
    sampling = Sampling(a.tokens)

    def step(index: int) -> None:
        rollouts = collect(engine, Parity(), Binary(), problems, n=a.group, sampling=sampling, key=(index,))
        batch, _ = with_advantages(assemble(rollouts, a.tokens), rollouts, Grpo(), Recipe())
        descend(engine, batch, PpoClip(), 1e-4, 1.0)
        engine.publish()
        synchronise(a)

    found = timed(step, a)
    lengths = [len(engine.tokenizer.encode_prompt(problem.prompt)) for problem in problems]
    seconds = phases(engine, step, a)
    busy = kernels(engine, step, a)  # last: once a profiler has run, every kernel takes longer to start
    floor = floor_s(engine, lengths, a)
    tokens = a.rows * a.tokens
    return (
        found
        | seconds
        | busy
        | {
            "sampled_tokens_per_s": tokens / seconds["sample_s"],
            "sample_floor_s": floor,
            "sample_of_floor": floor / seconds["sample_s"],
        }
    )


def synchronise(a: Any) -> None:
    """Wait for the GPU."""
    if a.device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def phases(engine: Any, step: Any, a: Any, steps: int = 2) -> dict[str, float]:
    """Seconds of a step by phase; the engine's verbs are clocked from outside."""
    spent = dict.fromkeys([*dict.fromkeys(CLOCKED.values())], 0.0)

    def clocked(verb: str, phase: str) -> Any:
        inner = getattr(engine, verb)

        def run(*args: Any, **keys: Any) -> Any:
            synchronise(a)
            start = time.perf_counter()
            try:
                return inner(*args, **keys)
            finally:
                synchronise(a)
                spent[phase] += time.perf_counter() - start

        return run

    for verb, phase in CLOCKED.items():
        setattr(engine, verb, clocked(verb, phase))
    start = time.perf_counter()
    for index in range(steps):
        step(1000 + index)
    whole = (time.perf_counter() - start) / steps
    found = {f"{phase}_s": seconds / steps for phase, seconds in spent.items()}
    return found | {"rest_s": whole - sum(found.values())}


def kernels(engine: Any, step: Any, a: Any) -> dict[str, float]:
    """Seconds that kernels ran on the GPU, by phase; the profiler slows the host down, not them."""
    if not a.device.startswith("cuda"):
        return {}
    from torch.profiler import ProfilerActivity, profile

    spent = dict.fromkeys(CLOCKED.values(), 0.0)

    def watched(verb: str, phase: str) -> Any:
        inner = getattr(engine, verb)

        def run(*args: Any, **keys: Any) -> Any:
            synchronise(a)
            with profile(activities=[ProfilerActivity.CUDA]) as seen:
                found = inner(*args, **keys)
                synchronise(a)
            spent[phase] += sum(event.device_time_total for event in seen.events()) / 1e6
            return found

        return run

    for verb, phase in CLOCKED.items():
        setattr(engine, verb, watched(verb, phase))
    step(999)
    for verb in CLOCKED:
        delattr(engine, verb)
    return {f"kernels_{phase}_s": seconds for phase, seconds in spent.items()}


def floor_s(engine: Any, lengths: list[int], a: Any) -> float:
    """All weights once per token, each prompt's cache once per group, each answer's own cache."""
    weights = engine._sampler.weights
    layers = [t for layer in weights.layers for t in (layer.qkv, layer.out, layer.gate_up, layer.down)]
    numbers = (weights.head.numel() + sum(t.numel() for t in layers)) * a.tokens
    numbers += weights.shape.cache_values * (sum(lengths) * a.tokens + a.rows * a.tokens**2 // 2)
    return float(numbers * weights.dtype.itemsize / bandwidth(engine.device, a))


def bandwidth(device: Any, a: Any) -> float:
    """Bytes read and written per second by a copy too large for a cache; the best of five."""
    import torch

    source = torch.empty((256 << 20) if a.device == "cpu" else (2 << 30), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(5):
        synchronise(a)
        start = time.perf_counter()
        target.copy_(source)
        synchronise(a)
        best = min(best, time.perf_counter() - start)
    return 2 * source.numel() / best


def trl(folder: Path, a: Any) -> dict[str, float]:
    """GRPOTrainer with the same settings, stepped by its own loop."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    marks: list[tuple[float, float]] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            synchronise(a)
            marks.append((time.perf_counter(), time.process_time()))

    cpu = {"use_cpu": True, "bf16": False, "dataloader_pin_memory": False} if a.device == "cpu" else {"bf16": True}
    settings = GRPOConfig(
        tempfile.mkdtemp(), report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
        max_steps=a.steps + 1, per_device_train_batch_size=a.rows, num_generations=a.group,
        max_completion_length=a.tokens, beta=0.0, gradient_checkpointing=False, learning_rate=1e-4, loss_type="dapo",
        generation_kwargs={"min_new_tokens": a.tokens}, mask_truncated_completions=False, **cpu,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if a.device == "cuda" else torch.float32)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [float(len(text) % 2 == 0) for text in completions],
        args=settings,
        train_dataset=Dataset.from_list([{"prompt": text} for text in prompts(a.rows // a.group) * (a.steps + 2)]),
        processing_class=AutoTokenizer.from_pretrained(folder),
        peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
        callbacks=[Clock()],
    )
    trainer.train()
    gaps = [(w1 - w0, c1 - c0) for (w0, c0), (w1, c1) in itertools.pairwise(marks)]
    return facts([wall for wall, _ in gaps], [cpu for _, cpu in gaps])


def timed(step: Any, a: Any) -> dict[str, float]:
    """The first step pays for caches."""
    step(0)
    walls, cpus = [], []
    for index in range(1, a.steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        step(index)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return facts(walls, cpus)


def facts(walls: list[float], cpus: list[float]) -> dict[str, float]:
    """Medians of the steps and the process's peak memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall_s": statistics.median(walls), "cpu_s": statistics.median(cpus), "peak_mb": peak, **_gpu_memory()}


def _gpu_memory() -> dict[str, float]:
    import torch

    return {"gpu_gb": torch.cuda.max_memory_allocated() / 2**30} if torch.cuda.is_available() else {}


def in_child(side: str, folder: Path, a: Any) -> dict[str, float]:
    """One measurement in a fresh process."""
    words = [sys.executable, __file__, "--child", side, "--folder", str(folder), "--device", a.device]
    words += [f"--{key}={getattr(a, key)}" for key in ("rows", "group", "tokens", "steps", "threads")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"} | ({"OMP_NUM_THREADS": str(a.threads)} if a.threads else {})
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(size: str, a: Any) -> dict[str, Any]:
    """Rounds of both, in alternation."""
    a = SimpleNamespace(**{**vars(a), "tokens": a.tokens or NEW_TOKENS.get(size, 32)})
    sides = ["ours", "trl"] if has_trl() and not a.alone else ["ours"]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made if size in SIZES else size)
        if size in SIZES:
            make_model(folder, size)
        size = folder.name if size not in SIZES else size
        rounds = in_turn(sides, a.rounds, lambda side: in_child(side, folder, a))
    asked = {name: getattr(a, name) for name in ("rows", "group", "tokens", "beside")}
    found: dict[str, Any] = {"size": size, **asked, "rounds": rounds}
    if "trl" in sides:
        for name in ("wall_s", "cpu_s", "peak_mb"):
            ratios = [r["trl"][name] / r["ours"][name] for r in rounds]
            found[f"trl/ours {name}"] = [round(x, 2) for x in (statistics.median(ratios), min(ratios), max(ratios))]
    for side in sides:
        found[side] = {k: _short(statistics.median(r[side][k] for r in rounds)) for k in rounds[0][side]}
    return found


def _short(value: float) -> float:
    return round(value, 3) if abs(value) < 100 else round(value)


def has_trl() -> bool:
    """Is the peer installed?"""
    import importlib.util

    return importlib.util.find_spec("trl") is not None


def main() -> None:
    """One side in a child, or the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["10m", "135m"], help="or the folder of a model")
    parser.add_argument("--device", default="cpu")
    for name, default in (("rounds", 3), ("steps", 4), ("threads", 0), ("rows", 32), ("group", 8), ("tokens", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--beside", type=int, default=0, metavar="N", help="processes that spin meanwhile: a busy machine"
    )
    parser.add_argument("--alone", action="store_true", help="without TRL, also where it is installed")
    parser.add_argument("--child")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    if a.child:
        import torch

        if a.threads:
            torch.set_num_threads(a.threads)
        print(json.dumps({"ours": ours, "trl": trl}[a.child](a.folder, a)))
        return
    from rlvrlab.record.facts import machine, package_versions

    with spinning(a.beside):
        found = [compare(size, a) for size in a.sizes]
    for one in found:
        print(json.dumps({k: v for k, v in one.items() if k != "rounds"}))
    print(json.dumps({**machine(), **package_versions(), "load": os.getloadavg()[0], "threads": a.threads}))
    if a.json:
        a.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
