"""A model server on the embedded sampler: `rlvr serve model PATH --backend embedded [--adapters RANK]`.

GET  /health, /v1/models
POST /v1/completions             a text or token ids; n, log-probs and token ids as vLLM gives them
POST /v1/chat/completions        messages in the model's chat template
                                 both with "stream": true as server-sent events, each answer in one piece
POST /v1/load_lora_adapter       {"lora_name", "lora_path"}; with --adapters only
POST /v1/unload_lora_adapter     {"lora_name"}

What waits is decoded together, one adapter at a time. Log-probs are those of the distribution drawn from (vLLM's
`processed_logprobs`). `rlvr_key` in a request is a randomness key of the laboratory: with it the answers are the ones
the embedded sampler of a trainer would draw; `seed` alone is a key too.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rlvrlab.engines.hf import answer_forms, load
from rlvrlab.engines.hf.answer_forms import Form
from rlvrlab.engines.hf.config import HfConfig
from rlvrlab.engines.hf.engine import embedded_sampler
from rlvrlab.engines.hf.merging import Adapter, Merging
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.openai.adapters import ALREADY, LOAD, UNLOAD
from rlvrlab.engines.openai.launch import TOKEN_ENV
from rlvrlab.engines.openai.wire import CHAT, COMPLETIONS, has_half_character
from rlvrlab.errors import UserError, cut
from rlvrlab.http_access import admit_token, read_token, refuse_open_door
from rlvrlab.http_messages import HttpError, Response
from rlvrlab.http_messages import Request as HttpRequest
from rlvrlab.http_server import HttpServer, JsonRoutes, told_to_stop
from rlvrlab.types import Completion, Request, Sampling, Unwanted

GATHER_S = 0.004
"""How long the first of a batch waits for others."""
MOST_ANSWERS = 4096
MOST_TOKENS = 1 << 22
"""Of all answers to a request."""
MOST_MESSAGES = 1024
EACH_MESSAGE = 64
"""Characters of text that take a chat template as long as a message does."""
AT_ONCE = 4 << 10
"""Characters or tokens that are read or written without leaving the loop that answers."""
MOST_ADAPTERS = 64
LOWEST_TEMPERATURE = 1e-4
"""Scores divided by less are not finite any more."""
MOST_STOPS, LONGEST_STOP, LONGEST_NAME = 16, 1000, 1000
READ_S = 120.0
"""For the files of an adapter, which may lie on a network."""
GRACE_S = 20.0
"""For answers that are being drawn when it is told to stop."""
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_k": (-1, 0),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "length_penalty": (1,),
    "min_tokens": (0,),
    "best_of": (1,),
    "echo": (False,),
    "ignore_eos": (False,),
    "use_beam_search": (False,),
    "suffix": ("",),
    "logit_bias": ({},),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
    "response_format": ({"type": "text"},),
    "tools": ([],),
}
"""Settings that are only taken where they change nothing."""
READ = {
    "model", "prompt", "messages", "n", "max_tokens", "max_completion_tokens", "stop", "temperature", "top_p", "seed",
    "rlvr_key", "logprobs", "top_logprobs", "return_token_ids", "return_tokens_as_token_ids", "stream",
    "stream_options", "stop_token_ids",
}  # fmt: skip
IDLE = {"user", "metadata", "store", "service_tier", "request_id", "priority"}
"""Notes of the caller, which no answer depends on."""
EITHER_WAY = {"include_stop_str_in_output", "skip_special_tokens", "tool_choice"}
"""What clients send to any server: an answer always holds its stop string, and nothing here calls tools."""
OWNER = "rlvrlab"
T = TypeVar("T")


class Waiting(NamedTuple):
    """A request on its way."""

    adapter: Adapter | None
    """None for the model itself; the one that had the name when it was asked for."""
    request: Request
    answer: asyncio.Future[list[Completion]]


@dataclass
class ModelServer:
    """One model, its adapters, and what waits for them."""

    config: HfConfig
    name: str
    largest_rank: int = 0
    """Largest rank of an adapter that is loaded; 0 takes no adapters."""
    token: str | None = None
    """Required of callers; needed where it is reached from other machines."""
    hosts: tuple[str, ...] = ()
    """Names that callers may use besides this machine's own."""
    port: int = 0
    waiting: list[Waiting] = field(default_factory=list)

    def __post_init__(self) -> None:
        device = load.device_of(self.config)
        model = load.load_model(self.config, device)
        self.vocab, self.window = int(model.config.vocab_size), int(model.config.max_position_embeddings)
        self.tokenizer: HfTokenizer = load.load_tokenizer(self.config, self.vocab)
        self.longest = self.window * self.tokenizer.longest_token()
        """Characters; whatever is longer cannot fit the window, and is not tokenised to find that out."""
        self.merging = Merging(model, self.largest_rank)
        self.sampler = embedded_sampler(model, self.tokenizer, device)
        self.spelled = cache(lambda token: self.tokenizer.decode([token]))
        """The text of a token, which answers with log-probs tell for each of theirs."""
        self._arrived = asyncio.Event()
        self._texts = ThreadPoolExecutor(1, "texts")
        self._drawing = ThreadPoolExecutor(1, "drawing")  # its own: folders that hang hold up their readers alone
        routes: dict[tuple[str, str], Callable[[HttpRequest], Any]] = {
            ("GET", "/health"): lambda request: {},
            ("GET", "/v1/models"): self._models,
            ("POST", COMPLETIONS): self._completions,
            ("POST", CHAT): self._chat,
        }
        if self.largest_rank:
            routes |= {("POST", LOAD): self._load, ("POST", UNLOAD): self._unload}
        self.answer = JsonRoutes(routes)
        self.http = HttpServer(self.answer, lambda head: admit_token(head, self.token), self.hosts)

    async def serve(self, host: str, port: int) -> None:
        """Until cancelled; `port` becomes the real one when it was 0."""
        refuse_open_door(host, self.token, TOKEN_ENV)
        self.port = await self.http.start(host, port)
        try:
            while True:
                await self._arrived.wait()
                await asyncio.sleep(GATHER_S)
                self._arrived.clear()
                while self.waiting:
                    adapter = self.waiting[0].adapter
                    batch = [one for one in self.waiting if one.adapter is adapter]
                    self.waiting = [one for one in self.waiting if one.adapter is not adapter]
                    await self._decode(adapter, batch)
        finally:
            await self.http.close()

    def _models(self, _: HttpRequest) -> Form:
        base = {"id": self.name, "object": "model", "owned_by": OWNER, "root": self.config.model}
        adapters = [
            {"id": name, "object": "model", "owned_by": OWNER, "root": str(adapter.folder), "parent": self.name}
            for name, adapter in self.merging.adapters.items()
        ]
        return {"object": "list", "data": [{**base, "max_model_len": self.window}, *adapters]}

    async def _load(self, request: HttpRequest) -> str:
        form = request.json()
        name, path = _name(form, "lora_name"), form.get("lora_path")
        if not (name and isinstance(path, str) and path and "\0" not in path):
            raise UserError("Both 'lora_name' and 'lora_path' must be provided.")
        self._refuse_name(name)
        try:
            deltas = await asyncio.wait_for(asyncio.to_thread(self.merging.read, Path(path)), READ_S)
        except TimeoutError:
            raise HttpError(503, f"'{name}' could not be read within {READ_S:g} s; does its folder answer?") from None
        self._refuse_name(name)  # another may have come in the meantime
        self.merging.add(name, Path(path), deltas)
        return f"Success: LoRA adapter '{name}' added successfully."

    def _refuse_name(self, name: str) -> None:
        if name in self.merging.adapters or name == self.name:
            raise UserError(f"The lora adapter '{name}' has {ALREADY}.")
        if len(self.merging.adapters) >= MOST_ADAPTERS:
            raise UserError(f"{MOST_ADAPTERS} lora adapters are loaded, no more fit; free one with POST {UNLOAD}")

    def _unload(self, request: HttpRequest) -> str:
        name = _name(request.json(), "lora_name")
        if name not in self.merging.adapters:
            raise HttpError(404, f"The lora adapter '{name}' cannot be found.")
        self.merging.drop(name)
        return f"Success: LoRA adapter '{name}' removed successfully."

    async def _completions(self, request: HttpRequest) -> Response:
        form = request.json()
        prompt = form.get("prompt")
        if isinstance(prompt, str):
            text = self._short_text("prompt", prompt)
            tokens: tuple[int, ...] = await self._beside(len(text), self.tokenizer.encode_prompt, text)
        elif isinstance(prompt, list) and len(prompt) > self.window:
            raise UserError(f"prompt: {len(prompt)} tokens do not fit the window of {self.window}")
        elif isinstance(prompt, list) and prompt and all(type(t) is int and 0 <= t < self.vocab for t in prompt):
            tokens = tuple(prompt)
        else:
            tokens = ()
        if not tokens:
            raise UserError(f"prompt: a text, or token ids in 0…{self.vocab - 1}; not nothing")
        return await self._answered(answer_forms.TEXT, form, tokens)

    async def _chat(self, request: HttpRequest) -> Response:
        form = request.json()
        messages = form.get("messages")
        if not self.tokenizer.inner.chat_template:
            raise UserError("this model has no chat template; ask at /v1/completions")
        if isinstance(messages, list) and len(messages) > MOST_MESSAGES:
            raise UserError(f"messages: {len(messages)} of them; at most {MOST_MESSAGES}, put several into one")
        texts = isinstance(messages, list) and all(
            isinstance(m, dict) and all(isinstance(m.get(key), str) for key in ("role", "content")) for m in messages
        )
        if not messages or not texts:
            raise UserError("messages: a list of {role, content}, both of them texts")
        text = self._short_text("messages", "".join(m["role"] + m["content"] for m in messages))
        plain = [{"role": m["role"], "content": m["content"]} for m in messages]
        tokens = await self._beside(len(text) + EACH_MESSAGE * len(plain), self.tokenizer.encode_chat, plain)
        return await self._answered(answer_forms.CHAT, form, tokens)

    def _short_text(self, where: str, text: str) -> str:
        if len(text) > self.longest:
            raise UserError(f"{where}: {len(text)} characters cannot fit the window of {self.window} tokens")
        if has_half_character(text):
            raise UserError(f"{where}: half a character (a lone surrogate) is no text")
        return text

    async def _answered(self, kind: str, form: Form, tokens: tuple[int, ...]) -> Response:
        answers = await self._draw(form, tokens)
        write = partial(answer_forms.written, kind, {"model": self.name, **form}, len(tokens), answers)
        return await self._beside(sum(len(one.tokens) for one in answers), write, self.spelled)

    async def _beside(self, size: int, work: Callable[[Any], T], given: Any) -> T:
        """Tokens of a text, or the text of tokens: at once where it is short, else while others are answered."""
        if size <= AT_ONCE:
            return work(given)
        return await asyncio.get_running_loop().run_in_executor(self._texts, work, given)

    async def _draw(self, form: Form, tokens: tuple[int, ...]) -> list[Completion]:
        """Wait for a place in a batch."""
        request = request_of(form, tokens, self.window)
        if form.get("stop_token_ids") not in (None, [], [self.tokenizer.end]):
            raise UserError(f"stop_token_ids: answers end with the token {self.tokenizer.end} alone")
        wanted = _name(form, "model", self.name)
        adapter = self.merging.adapters.get(wanted)
        if adapter is None and wanted != self.name:
            raise HttpError(404, f"The model `{wanted}` does not exist.")
        future: asyncio.Future[list[Completion]] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(adapter, request, future))
        self._arrived.set()
        try:
            return await future
        finally:  # who has hung up is not drawn for
            self.waiting = [one for one in self.waiting if one.answer is not future]

    async def _decode(self, adapter: Adapter | None, batch: list[Waiting]) -> None:
        try:
            requests = [one.request for one in batch]
            sample = partial(self._sample, adapter, requests, lambda i: batch[i].answer.done())
            drawn = await asyncio.get_running_loop().run_in_executor(self._drawing, sample)
        except Exception as error:  # one request's, which the others must not pay for
            if len(batch) > 1:
                for one in batch:
                    await self._decode(adapter, [one])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        for one, answers in zip(batch, drawn, strict=True):
            if not one.answer.done():
                one.answer.set_result(answers)

    def _sample(self, adapter: Adapter | None, requests: list[Request], unwanted: Unwanted) -> list[list[Completion]]:
        if adapter is not None and self.merging.adapters.get(adapter.name) is not adapter:
            raise HttpError(404, f"The model `{adapter.name}` does not exist any more.")
        if self.merging.use(adapter):
            self.sampler.refresh()
        return list(self.sampler.sample(requests, 0, unwanted=unwanted))


def request_of(form: Form, tokens: tuple[int, ...], window: int) -> Request:
    """What the sampler is asked for; a setting it does not have is refused, never ignored."""
    for key, allowed in NEUTRAL.items():
        if form.get(key) is not None and form[key] not in allowed:
            raise UserError(f"{key}: {form[key]!r:.80} is not supported; allowed: {allowed[0]}")
    unknown = next((key for key in form if key not in READ | IDLE | EITHER_WAY | NEUTRAL.keys()), None)
    if unknown is not None and form[unknown] is not None:
        raise UserError(f"{cut(unknown, 80)}: not a setting of this server; there are: {', '.join(sorted(READ))}")
    n = int(_number(form, "n", 1, 1, MOST_ANSWERS, whole=True))
    most = int(_number(form, "max_tokens", form.get("max_completion_tokens") or 16, 1, window, whole=True))
    if n * most > MOST_TOKENS:
        raise UserError(f"n {n} and max_tokens {most} are {n * most} tokens; at most {MOST_TOKENS}, ask several times")
    if len(tokens) + most > window:
        raise UserError(f"a prompt of {len(tokens)} tokens and max_tokens {most} do not fit the window of {window}")
    stop: Any = form.get("stop") or ()
    stops = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, list) else ()
    texts = all(isinstance(text, str) and 0 < len(text) <= LONGEST_STOP for text in stops)
    if (stop and not stops) or len(stops) > MOST_STOPS or not texts:
        raise UserError(f"stop: a text of at most {LONGEST_STOP} characters, or a list of up to {MOST_STOPS} of them")
    temperature = _number(form, "temperature", 1.0, 0.0, 100.0, whole=False)
    if 0 < temperature < LOWEST_TEMPERATURE:
        raise UserError(
            f"temperature: {temperature:g}; 0 for the most likely tokens, or at least {LOWEST_TEMPERATURE:g}"
        )
    sampling = Sampling(most, temperature, _number(form, "top_p", 1.0, 1e-6, 1.0, whole=False), stops)
    named, seed = form.get("rlvr_key"), form.get("seed")
    chosen = _key(named) if isinstance(named, list) else ("seed", secrets.randbits(62) if seed is None else seed)
    return Request(tokens, n, chosen, sampling)


def _name(form: Form, key: str, usual: str = "") -> str:
    """The name of a model or an adapter."""
    name = form.get(key, usual)
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise UserError(f"{key}: a text of at most {LONGEST_NAME} characters is needed")
    return name


def _key(parts: Any) -> Any:
    """A randomness key from JSON: its lists become tuples, at every depth."""
    return tuple(_key(part) for part in parts) if isinstance(parts, list) else parts


def _number(form: Form, key: str, usual: Any, low: float, high: float, *, whole: bool) -> float:
    value: Any = usual if form.get(key) is None else form[key]
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
        raise UserError(f"{key}: {value!r}; a number from {low:g} to {high:g} is needed")
    return float(value)


def main() -> None:
    """Serve one model until stopped."""
    parser = argparse.ArgumentParser(prog="rlvr serve model --backend embedded")
    parser.add_argument("model")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--adapters", type=int, default=0)
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("--dtype", default="auto", choices=["auto", "bfloat16", "float32"])
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    config = HfConfig(given.model, dtype=given.dtype, device=given.device)
    token, hosts = read_token(TOKEN_ENV, None), tuple(given.allow_host)
    server = ModelServer(config, given.served_model_name, given.adapters, token, hosts)

    async def run() -> None:
        serving = asyncio.create_task(server.serve(given.host, given.port))
        stop = asyncio.create_task(told_to_stop())
        await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        await server.http.close(GRACE_S)
        serving.cancel()

    asyncio.run(run())


if __name__ == "__main__":
    main()
