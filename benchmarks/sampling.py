"""Embedded sampling beside `generate` of Transformers: same model, prompts and number of tokens, interleaved.

    python benchmarks/sampling.py [--device cpu|cuda] [--sizes 10m 135m] [--rounds 5] [--lora] [--json FILE]
    python benchmarks/sampling.py --device cuda --model FOLDER --vllm URL [--offline URL]    beside vLLM
    python benchmarks/sampling.py --device cuda --model FOLDER --refill --places 256         beside plain waves

CPU: ratios of process CPU time per round first (median, range), then tokens/s. 4 prompts × 8 samples, ragged prompts.
CUDA: agreement with the model's own forward, tokens/s at several batch sizes with ragged prompts and ended rows, the
fraction of the memory-bandwidth floor, and the kernels a step consists of. Weights are random: speed does not mind.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.randomness import generator
from rlvrlab.types import Completion, Request, Sampling

SIZES: dict[str, dict[str, int]] = {
    "nano": {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 3, "num_attention_heads": 4,
             "num_key_value_heads": 4, "vocab_size": 178},
    "10m": {"hidden_size": 320, "intermediate_size": 864, "num_hidden_layers": 8, "num_attention_heads": 5,
            "num_key_value_heads": 5, "vocab_size": 261},
    "135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
             "num_key_value_heads": 3, "vocab_size": 49152},
}  # fmt: skip
NEW_TOKENS = {"nano": 32, "10m": 64, "135m": 32}
H200_BYTES_PER_S = 4.3e12
"""Measured by a device-to-device copy, read plus written."""


class Tokens:
    """A tokenizer that is never asked for text worth reading."""

    def __init__(self, vocab_size: int, end: int) -> None:
        self.vocab_size, self.end, self.ends = vocab_size, end, frozenset({end})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        return ""


def model_of(size: str, device: str, dtype: Any, lora: bool, spread: float = 0.02) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(**SIZES[size], max_position_embeddings=2048, tie_word_embeddings=True, rope_theta=100000.0,
                         bos_token_id=0, eos_token_id=2, pad_token_id=0, initializer_range=spread)  # fmt: skip
    model = LlamaForCausalLM(config).to(device, dtype).eval()
    if lora:
        from peft import LoraConfig, get_peft_model

        chosen = LoraConfig(r=16, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
        model = get_peft_model(model, chosen).eval()
    return model


def requests_of(groups: int, n: int, around: int, new: int, vocab: int, varied: bool = False) -> list[Request]:
    """Prompts of 3/4 to 5/4 of a length; `varied` cuts each request somewhere between 1/8 and all of its tokens."""
    drawn = generator("benchmark", groups, n, around)
    lengths = drawn.integers(around * 3 // 4, around * 5 // 4 + 1, groups)
    limits = drawn.integers(new // 8, new + 1, groups) if varied else [new] * groups
    return [
        Request(tuple(drawn.integers(10, vocab, length).tolist()), n, ("benchmark", i), Sampling(int(limit)))
        for i, (length, limit) in enumerate(zip(lengths, limits, strict=True))
    ]


def generate(model: Any, requests: Sequence[Request], device: str) -> int:
    """The same work by Transformers; returns the tokens sampled."""
    from transformers import GenerationConfig

    rows = [request.tokens for request in requests for _ in range(request.n)]
    longest, new = max(map(len, rows)), requests[0].sampling.max_tokens
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, longest - len(row) :], mask[i, longest - len(row) :] = torch.tensor(row), 1
    settings = GenerationConfig(max_new_tokens=new, min_new_tokens=new, do_sample=True, temperature=1.0, top_k=0,
                                top_p=1.0, pad_token_id=0, eos_token_id=2, disable_compile=True)  # fmt: skip
    with torch.inference_mode():
        out = model.generate(input_ids=ids.to(device), attention_mask=mask.to(device), generation_config=settings)
    return (out.shape[1] - longest) * len(rows)


def counted(groups: list[list[Completion]]) -> int:
    return sum(len(completion.tokens) for group in groups for completion in group)


def interleaved(work: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[tuple[float, float, int]]]:
    """CPU seconds, wall seconds and tokens of each, in a shuffled order per round."""
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in work}
    for name in work:
        work[name]()
    for turn in range(rounds):
        for name in generator("order", turn).permutation(sorted(work)):
            cpu, wall = time.process_time(), time.perf_counter()
            tokens = work[name]()
            found[name].append((time.process_time() - cpu, time.perf_counter() - wall, tokens))
    return found


def on_cpu(size: str, rounds: int, lora: bool) -> dict[str, Any]:
    model = model_of(size, "cpu", torch.float32, lora)
    sampler = HfSampler(model, Tokens(SIZES[size]["vocab_size"], -1), "cpu")
    requests = requests_of(4, 8, 48, NEW_TOKENS[size], SIZES[size]["vocab_size"])

    def ours() -> int:
        sampler.refresh()
        return counted(sampler.sample(requests, 0))

    found = interleaved({"generate": lambda: generate(model, requests, "cpu"), "ours": ours}, rounds)
    cpu, wall = (
        [theirs[k] / own[k] for theirs, own in zip(found["generate"], found["ours"], strict=True)] for k in (0, 1)
    )
    rate = {name: round(statistics.median(t / w for _, w, t in runs)) for name, runs in found.items()}
    return {
        "size": size, "lora": lora, "rounds": rounds, "threads": torch.get_num_threads(),
        "cpu_ratio": round(statistics.median(cpu), 2), "cpu_range": [round(min(cpu), 2), round(max(cpu), 2)],
        "wall_ratio": round(statistics.median(wall), 2), "wall_range": [round(min(wall), 2), round(max(wall), 2)],
        "tokens_per_s": rate,
    }  # fmt: skip


def agreement(model: Any, requests: Sequence[Request], answers: list[list[Completion]]) -> dict[str, Any]:
    """|log-prob of the sampler − log-prob of the model's own forward|, one row at a time; and how far either is from
    that forward in float32, the yardstick of what rounding alone does."""
    gaps: dict[str, list[float]] = {"sampler_model": [], "sampler_float32": [], "model_float32": []}
    wide = copy.deepcopy(model).float()
    for request, group in zip(requests, answers, strict=True):
        for completion in group[:2]:
            ids = torch.tensor([request.tokens + completion.tokens], device=model.device)
            ours = torch.tensor(completion.logprobs)
            theirs, exact = (scores(one, ids, len(request.tokens)) for one in (model, wide))
            gaps["sampler_model"] += (ours - theirs).abs().tolist()
            gaps["sampler_float32"] += (ours - exact).abs().tolist()
            gaps["model_float32"] += (theirs - exact).abs().tolist()
    return {
        name: {"mean": float(np.mean(gap)), "p99": float(np.quantile(gap, 0.99)), "max": float(np.max(gap))}
        for name, gap in gaps.items()
    }


def scores(model: Any, ids: torch.Tensor, prompt: int) -> torch.Tensor:
    """Log-probs of the tokens behind the prompt by the model's own forward."""
    with torch.inference_mode():
        logits = model(ids).logits[0, prompt - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, ids[0, prompt:, None])[:, 0].cpu()


def on_cuda_correct(lora: bool) -> list[dict[str, Any]]:
    """Small and large, float32 and bfloat16, kernels and plain torch."""
    from rlvrlab.engines.hf.decode_cuda import GraphDecoder
    from rlvrlab.engines.hf.operations import TorchOperations

    torch.backends.cuda.matmul.allow_tf32 = False
    rows = []
    for size, dtype in (("10m", torch.float32), ("135m", torch.float32), ("135m", torch.bfloat16)):
        model = model_of(size, "cuda", dtype, lora, spread=0.05)
        requests = requests_of(6, 4, 48, 48, SIZES[size]["vocab_size"], varied=True)
        for plain in (False, True):
            sampler = HfSampler(model, Tokens(SIZES[size]["vocab_size"], 2), "cuda")
            if plain:
                sampler._graphs = GraphDecoder(sampler.weights, TorchOperations(sampler.weights))
            answers = sampler.sample(requests, 0)
            again = sampler.sample(requests, 0)
            alone = [sampler.sample([request], 0)[0] for request in requests]
            flat = [[one.tokens for group in found for one in group] for found in (answers, alone)]
            same = [a == b for a, b in zip(*flat, strict=True)]
            rows.append({
                "size": size, "dtype": str(dtype), "plain": plain, "lora": lora, "repeatable": again == answers,
                "same_alone": f"{sum(same)}/{len(same)}", "gap": agreement(model, requests, answers),
            })  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def floor_s(sampler: HfSampler, requests: Sequence[Request], tokens: int) -> float:
    """Seconds the fewest bytes take: all weights once per step, each prompt's cache once per group, own caches."""
    weights, size = sampler.weights, sampler.weights.dtype.itemsize
    steps = max(request.sampling.max_tokens for request in requests)
    parameters = weights.head.numel() + sum(
        t.numel() for layer in weights.layers for t in (layer.qkv, layer.out, layer.gate_up, layer.down)
    )
    prompts = sum(len(request.tokens) * request.sampling.max_tokens for request in requests)
    own = sum(request.n * request.sampling.max_tokens**2 // 2 for request in requests)
    return size * (parameters * steps + weights.shape.cache_values * (prompts + own)) / H200_BYTES_PER_S


def on_cuda_speed(lora: bool, rounds: int, batches: Sequence[int]) -> list[dict[str, Any]]:
    model = model_of("135m", "cuda", torch.bfloat16, lora)
    sampler = HfSampler(model, Tokens(49152, 2), "cuda")
    rows = []
    for batch in batches:
        for n, varied in ((16, False), (1, False), (16, True)):
            requests = requests_of(batch // n, n, 64, 128, 49152, varied)
            start = time.perf_counter()
            sampler.sample(requests, 0)
            first = time.perf_counter() - start
            walls = []
            for _ in range(rounds):
                start = time.perf_counter()
                tokens = counted(sampler.sample(requests, 0))
                walls.append(time.perf_counter() - start)
            wall = statistics.median(walls)
            rows.append({"batch": batch, "n": n, "varied": varied, "lora": lora, "tokens_per_s": round(tokens / wall),
                         "ms_per_step": round(wall / 128 * 1e3, 3), "first_s": round(first, 2),
                         "of_floor": round(floor_s(sampler, requests, tokens) / wall, 3)})  # fmt: skip
            print(rows[-1], flush=True)
    start = time.perf_counter()
    sampler.refresh()
    torch.cuda.synchronize()
    refresh_s = round(time.perf_counter() - start, 4)
    rows.append({"refresh_s": refresh_s, "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 1)})
    return rows


def profile(batch: int) -> str:
    """Kernels of one wave, by total device time."""
    model = model_of("135m", "cuda", torch.bfloat16, False)
    sampler = HfSampler(model, Tokens(49152, 2), "cuda")
    requests = requests_of(batch // 16, 16, 64, 128, 49152)
    sampler.sample(requests, 0)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as found:
        sampler.sample(requests, 0)
        torch.cuda.synchronize()
    return str(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=25, max_name_column_width=70))


def on_cuda(options: argparse.Namespace) -> dict[str, Any]:
    out: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    out["speed"] = on_cuda_speed(options.lora, options.rounds, options.batches)
    out["agreement"] = on_cuda_correct(options.lora)
    if options.profile:
        options.profile.write_text("\n".join(profile(batch) for batch in (256, 1024)), "utf-8")
    return out


def _device(name: str) -> str:
    return torch.cuda.get_device_name() if name == "cuda" else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--sizes", nargs="+", choices=sorted(SIZES), default=["10m", "135m"])
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--refill", action="store_true", help="what refilling is worth, beside plain waves")
    parser.add_argument("--places", type=int, default=256, help="answers abreast at most, for --refill")
    beside = parser.add_argument_group("beside vLLM, with a real model and an adapter; --refill has some of it too")
    beside.add_argument("--vllm", help="address of a server that was started with --enable-lora")
    beside.add_argument("--offline", help="address of benchmarks/vllm_offline.py")
    beside.add_argument("--model", help="folder of the model that both have")
    beside.add_argument("--adapter", type=Path, help="where the adapter is written; both servers read it there")
    beside.add_argument("--rank", type=int, default=16)
    beside.add_argument("--prompts", type=Path, help='questions, a line of JSON with a "prompt" each')
    beside.add_argument("--chat", action="store_true", help="wrap them in the chat template")
    beside.add_argument("--n", type=int, default=16, help="answers to each question")
    beside.add_argument("--tokens", type=int, default=128, help="longest answer")
    beside.add_argument("--all-at", type=int, default=256, help="the batch at which every contender takes part")
    beside.add_argument("--seconds", type=float, default=3600.0, help="begin nothing after so many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    if options.vllm:
        from sampling_beside import beside as beside_vllm

        found: Any = {"device": _device(options.device), "torch": torch.__version__, **beside_vllm(options)}
    elif options.refill:
        from sampling_refill import refill

        found = {"device": _device(options.device), "torch": torch.__version__, **refill(options)}
    elif options.device == "cuda":
        found = on_cuda(options)
    else:
        found = [on_cpu(size, options.rounds, options.lora) for size in options.sizes]
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), "utf-8")
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
