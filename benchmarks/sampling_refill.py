"""What it is worth that rows which wait take the places of rows that have ended: one call for all answers, beside calls
for as many as there are places, one after another. Both draw the same answers with the same sampler.

    python benchmarks/sampling.py --refill --device cuda --model FOLDER --prompts FILE --places 256 --batches 1024

Ratios of tokens per second come first (median over rounds, range), then tokens per second. Without `--model` weights
and prompts are random. On a CPU this shows only that it works: fixed places are not how a CPU draws answers, and the
plain operations look at as many positions for every answer as the longest one has.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sampling
import torch
from sampling import SIZES, Tokens, interleaved, model_of
from sampling_beside import requests_of, texts_of

from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.types import Completion, Finish, Request


def sampler_of(options: argparse.Namespace) -> tuple[HfSampler, HfTokenizer | None]:
    """The sampler with its places, and who encodes the questions of a real model."""
    dtype, tokenizer = torch.bfloat16 if options.device == "cuda" else torch.float32, None
    if options.model:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype).to(options.device).eval()
        inner = AutoTokenizer.from_pretrained(options.model)
        tokenizer = HfTokenizer(inner, model.config.vocab_size, options.model, chat=options.chat)
        tokens = Tokens(model.config.vocab_size, tokenizer.end)
    else:
        model = model_of(options.sizes[0], options.device, dtype, lora=False)
        tokens = Tokens(SIZES[options.sizes[0]]["vocab_size"], model.config.eos_token_id)
    sampler = HfSampler(model, tokens, options.device, graphs=True)
    sampler.max_rows = options.places
    return sampler, tokenizer


def chunks(requests: Sequence[Request], places: int) -> list[list[Request]]:
    """What fits into the places together: similar prompts, as the sampler's own waves had."""
    by_size = sorted(requests, key=lambda one: -len(one.tokens))
    count = places // requests[0].n
    return [by_size[start : start + count] for start in range(0, len(by_size), count)]


def one_batch(sampler: HfSampler, requests: list[Request], rounds: int) -> dict[str, Any]:
    drawn: list[Completion] = []

    def asked(*calls: list[Request]) -> int:
        drawn[:] = [one for call in calls for group in sampler.sample(call, 0) for one in group]
        return sum(len(one.tokens) for one in drawn)

    waves = chunks(requests, sampler.max_rows)
    found = interleaved({"refilled": lambda: asked(requests), "waves": lambda: asked(*waves)}, rounds)
    rate = {name: [tokens / wall for _, wall, tokens in runs] for name, runs in found.items()}
    ratio = [ours / theirs for ours, theirs in zip(rate["refilled"], rate["waves"], strict=True)]
    return {
        "ratio": round(statistics.median(ratio), 3), "range": [round(min(ratio), 3), round(max(ratio), 3)],
        "answers": len(drawn), "places": sampler.max_rows, "abreast": sampler.abreast, "waves": len(waves),
        "rounds": rounds,
        "tokens_per_s": {name: round(statistics.median(one)) for name, one in rate.items()},
        "tokens_per_answer": round(sum(len(one.tokens) for one in drawn) / len(drawn), 1),
        "ended": round(sum(one.finish is Finish.STOP for one in drawn) / len(drawn), 3),
    }  # fmt: skip


def refill(options: argparse.Namespace) -> dict[str, Any]:
    """Each batch of answers, more than there are places."""
    if options.places % options.n or min(options.batches) <= options.places:
        raise SystemExit("--places must be a multiple of --n, and each of --batches larger than --places")
    sampler, tokenizer = sampler_of(options)
    rows, texts = [], texts_of(options.prompts)
    for answers in options.batches:
        if tokenizer is None:
            vocab = sampler.tokenizer.vocab_size
            requests = sampling.requests_of(answers // options.n, options.n, 48, options.tokens, vocab)
        else:
            requests = requests_of(texts, tokenizer, answers, options.n, options.tokens, 0)
        rows.append(one_batch(sampler, requests, options.rounds))
        print(rows[-1], flush=True)
    name = Path(options.model).name if options.model else options.sizes[0]
    return {"model": name, "n": options.n, "max_tokens": options.tokens, "chat": options.chat, "rows": rows}
