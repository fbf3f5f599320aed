"""The embedded sampler beside vLLM on one card, in turn: the same model, adapter and ragged prompts, ends kept.

    python benchmarks/sampling.py --device cuda --model FOLDER --vllm http://HOST:8000 [--offline http://HOST:8101]

| contender | what is timed |
| --- | --- |
| ours | the embedded sampler, adapter merged; log-probs of every token |
| served | the server with the adapter, asked by one Python client; no seeds (a generator per row) |
| offline | `LLM.generate` with the adapter, timed in its own process (vllm_offline.py), no text made of tokens |
| served, base | the server without the adapter: what merged weights would cost it |
| served, seeded | the server as `engine.sampler` asks it: the adapter, and a seed for each request |

Every round has prompts of its own, so that no cache of prefixes knows them. Answers of the server are scored again by
the model's own forward, with the adapter and without, to show that it is the adapter that answered.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request as Question
from urllib.request import urlopen

import numpy as np
import torch
from sampling import Tokens, scores

from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.store import export_adapter
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.openai.adapters import load_adapter, unload_adapter
from rlvrlab.engines.openai.servers import Servers
from rlvrlab.engines.openai.wire import Reply, token_body
from rlvrlab.randomness import generator, key_bits
from rlvrlab.types import Finish, Request, Sampling

NAME = "benchmark"
ALWAYS = ("ours", "served", "offline")
SPREAD = 0.01
"""Of the adapter's second factors: enough to be seen in the log-probs, too little to spoil the answers."""
SCORED = 16
"""Answers of the server that are scored again."""
WAIT_S = 600.0


class Run(NamedTuple):
    """One batch of one contender."""

    seconds: float
    tokens: int
    answers: int
    ended: int


def adapted(folder: str, rank: int, device: str, dtype: Any) -> Any:
    """The model with an adapter that does something."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
    chosen = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, chosen).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0.0, SPREAD)
    return model


def texts_of(path: Path | None) -> list[str]:
    """Questions, one to a line of JSON; without a file sums of several lengths."""
    if path is not None:
        return [json.loads(line)["prompt"] for line in path.read_text("utf-8").splitlines()]
    drawn = generator("texts")
    return [f"{'+'.join(map(str, drawn.integers(0, 100, 4 + i % 13)))}=" for i in range(64)]


def requests_of(texts: Sequence[str], tokenizer: HfTokenizer, rows: int, n: int, new: int, turn: int) -> list[Request]:
    """`rows` answers in groups of `n`; the turn stands before every question."""
    count = max(1, rows // n)
    asked = [tokenizer.encode_prompt(f"{turn}.{i} {texts[i % len(texts)]}") for i in range(count)]
    return [Request(tokens, n, (NAME, turn, i), Sampling(new)) for i, tokens in enumerate(asked)]


class Beside:
    """All contenders over one model."""

    def __init__(self, options: argparse.Namespace, shelf: Path) -> None:
        from transformers import AutoTokenizer

        self.options = options
        dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
        self.model = adapted(options.model, options.rank, options.device, dtype)
        inner = AutoTokenizer.from_pretrained(options.model)
        vocab = self.model.config.vocab_size
        self.tokenizer = HfTokenizer(inner, vocab, options.model, chat=options.chat)
        self.adapter = options.adapter or shelf / "adapter"
        export_adapter(self.adapter, self.model)
        self.sampler = HfSampler(self.model, Tokens(vocab, self.tokenizer.end), options.device)
        self.texts, self.kept = texts_of(options.prompts), list[tuple[Request, Reply]]()
        self.facts: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.servers = Servers(
            [options.vllm], self._base_name(), chat=False, concurrency=max(options.batches), attempts=1,
            prepare=self._load, give_up_s=30.0,
        )  # fmt: skip

    def _base_name(self) -> str:
        listed = json.loads(_asked(f"{self.options.vllm}/v1/models", WAIT_S))["data"]
        return str(next(one["id"] for one in listed if one["id"] != NAME))

    async def _load(self, host: Any) -> None:
        start = time.perf_counter()
        await load_adapter(host, NAME, str(self.adapter))
        self.facts.setdefault("load_adapter_s", round(time.perf_counter() - start, 3))

    def contenders(self, rows: int) -> dict[str, Callable[[list[Request]], Run]]:
        """Who takes part at this size."""
        known: dict[str, Callable[[list[Request]], Run]] = {
            "ours": self.ours,
            "served": lambda asked: self.served(asked, NAME),
            "offline": self.offline,
            "served, base": lambda asked: self.served(asked, self.base),
            "served, seeded": lambda asked: self.served(asked, NAME, seeded=True),
        }
        wanted = [name for name in known if name in ALWAYS or rows == self.options.all_at]
        return {name: known[name] for name in wanted if name != "offline" or self.options.offline}

    def ours(self, asked: list[Request]) -> Run:
        start = time.perf_counter()
        drawn = self.sampler.sample(asked, 0)
        seconds = time.perf_counter() - start
        rows = [one for group in drawn for one in group]
        ended = sum(one.finish is Finish.STOP for one in rows)
        return Run(seconds, sum(len(one.tokens) for one in rows), len(rows), ended)

    def served(self, asked: list[Request], model: str, seeded: bool = False) -> Run:
        bodies = []
        for one in asked:
            body = token_body(one.tokens, one.sampling, key_bits(*one.key) % 2**31, one.n)
            body |= {"stop_token_ids": [self.tokenizer.end], "model": model}
            if not seeded:
                del body["seed"]
            bodies.append(body)
        self.servers.model = model
        start = time.perf_counter()
        given = list(self.servers.all_choices(bodies))
        seconds = time.perf_counter() - start
        rows = [reply for _, group in given for reply in group]
        wrong = [reply.error for reply in rows if reply.finish is Finish.ERROR or not reply.logprobs]
        if wrong or len(rows) != sum(one.n for one in asked):
            raise RuntimeError(f"{len(rows)} answers, some without log-probs or failed: {wrong[:1]}")
        if model == NAME:
            self.kept += [(asked[place], group[0]) for place, group in given[: SCORED - len(self.kept)]]
        return Run(seconds, sum(len(r.tokens) for r in rows), len(rows), sum(r.finish is Finish.STOP for r in rows))

    def offline(self, asked: list[Request]) -> Run:
        first = asked[0]
        words = {"prompts": [one.tokens for one in asked], "n": first.n, "max_tokens": first.sampling.max_tokens}
        told = json.loads(_asked(f"{self.options.offline}/generate", WAIT_S, words | {"end": self.tokenizer.end}))
        return Run(told["seconds"], told["tokens"], told["answers"], told["ended"])

    def gaps(self) -> dict[str, float]:
        """Mean |log-prob of the server − of the model's own forward|: with the adapter, and without it."""
        found: dict[str, list[float]] = {"with_adapter": [], "without": []}
        for request, reply in self.kept:
            ids = torch.tensor([request.tokens + reply.tokens], device=self.model.device)
            told = torch.tensor(reply.logprobs)
            found["with_adapter"] += (told - scores(self.model, ids, len(request.tokens))).abs().tolist()
            with self.model.disable_adapter():
                found["without"] += (told - scores(self.model, ids, len(request.tokens))).abs().tolist()
        return {name: round(float(np.mean(gap)), 5) for name, gap in found.items()}

    def run(self) -> dict[str, Any]:
        options, ends = self.options, time.monotonic() + self.options.seconds
        runs: dict[tuple[int, str], list[Run]] = {}
        self.base = self.servers.model
        with self.servers:
            for turn in range(options.rounds + 1):  # the first does not count: it warms everyone up
                for rows in options.batches:
                    for name in generator("order", turn, rows).permutation(sorted(self.contenders(rows))):
                        if time.monotonic() < ends and (done := self._one(str(name), rows, turn)) and turn:
                            runs.setdefault((rows, str(name)), []).append(done)
                            print(rows, name, round(done.tokens / done.seconds), done, flush=True)
            start = time.perf_counter()
            self.sampler.refresh()
            if options.device == "cuda":
                torch.cuda.synchronize()
            self.facts["refresh_s"] = round(time.perf_counter() - start, 4)
            gaps = self.gaps() if self.kept else {}
            self.servers.each(_forget, 5.0)
        return self.told(runs, gaps)

    def _one(self, name: str, rows: int, turn: int) -> Run | None:
        """One batch; who fails once is left out from then on, and told."""
        if name in self.failed:
            return None
        # Ours captures its graphs when it first meets a length, vLLM when it starts.
        new = self.options.tokens if turn or name == "ours" else min(16, self.options.tokens)
        try:
            asked = requests_of(self.texts, self.tokenizer, rows, self.options.n, new, turn)
            return self.contenders(rows)[name](asked)
        except Exception as error:
            self.failed[name] = repr(error)[:300]
            print(name, "failed:", self.failed[name], flush=True)
            return None

    def told(self, runs: dict[tuple[int, str], list[Run]], gaps: dict[str, float]) -> dict[str, Any]:
        rows = []
        for batch in self.options.batches:
            rate = {name: [r.tokens / r.seconds for r in found] for (b, name), found in runs.items() if b == batch}
            if not rate:
                continue
            middle = {name: statistics.median(found) for name, found in rate.items()}
            own = middle.get("ours", float("nan"))
            rows.append({
                "batch": batch, "tokens_per_s": {name: [round(x) for x in found] for name, found in rate.items()},
                "median": {name: round(x) for name, x in middle.items()},
                "ours_over": {name: round(own / x, 3) for name, x in middle.items() if name != "ours"},
                "tokens_per_answer": {name: _share(runs[batch, name], "tokens") for name in rate},
                "ended": {name: _share(runs[batch, name], "ended") for name in rate},
            })  # fmt: skip
        options = self.options
        return {
            "model": Path(options.model).name, "rank": options.rank, "n": options.n, "max_tokens": options.tokens,
            "chat": options.chat, "rounds": options.rounds, "vllm": _version(options.vllm), "gap": gaps,
            "failed": self.failed,
            **self.facts, "rows": rows,
        }  # fmt: skip


def _share(runs: list[Run], what: str) -> float:
    """Per answer."""
    return round(sum(run._asdict()[what] for run in runs) / sum(run.answers for run in runs), 3)


async def _forget(host: Any) -> None:
    await unload_adapter(host, NAME)


def _version(url: str) -> str:
    try:
        return str(json.loads(_asked(f"{url}/version", 5.0))["version"])
    except (OSError, ValueError, KeyError):
        return "not told"


def _asked(url: str, patience_s: float, body: dict[str, Any] | None = None) -> bytes:
    """A server that is starting is waited for; one that answers with an error is not."""
    ends = time.monotonic() + patience_s
    data = None if body is None else json.dumps(body).encode()
    while True:
        try:
            with urlopen(Question(url, data, {"Content-Type": "application/json"}), timeout=WAIT_S) as answer:
                return bytes(answer.read())
        except ConnectionError:
            pass
        except OSError as error:
            if not isinstance(error.__dict__.get("reason"), ConnectionError):
                raise
        if time.monotonic() > ends:
            raise TimeoutError(f"{url} does not answer")
        time.sleep(0.5)


def beside(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, as told in benchmarks/results."""
    with tempfile.TemporaryDirectory() as shelf:
        return Beside(options, Path(shelf)).run()
