"""Answers drawn by servers (vLLM, or `rlvr serve model PATH --adapters RANK`) that load the policy's adapter.

publish -> write the adapter -> every server loads it as policy-VERSION-HASH -> the one before is unloaded -> sample

A server that does not see the folder is sent the files first (engines/openai/delivery.py).

Tokens go in, tokens and log-probs come back. Whose they are is checked three times: the name of the adapter in every
answer, its listing and a fixed greeting at each server (engines/openai/replica.py), and a few answers of every call
scored again by the trainer: what differs a little is left to [correction], what differs much is refused. Either all
requests of a call are answered or the call fails: nothing is trained on part of a batch. Which server was lost when,
and when it came back or joined, is told to the run (rlvrlab/notes.py).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from rlvrlab.engines.hf import store
from rlvrlab.engines.hf.addresses import Addresses
from rlvrlab.engines.hf.config import HfConfig
from rlvrlab.engines.hf.generate import distribution
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.openai.attendance import Attendance
from rlvrlab.engines.openai.delivery import Adapter, Delivery
from rlvrlab.engines.openai.servers import Servers, ServersGone
from rlvrlab.engines.openai.wire import Reply, spread, token_body
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.http_client import Host
from rlvrlab.models import cache
from rlvrlab.models.tensors import ADAPTER_TENSORS
from rlvrlab.notes import measure, note
from rlvrlab.plain_files import sha256_of
from rlvrlab.randomness import plain_seed
from rlvrlab.types import KEY_ENV, Completion, Finish, Request, Sampling, Told

WAIT_S = 600.0
"""How long lost servers are waited for."""
RETRY_S = 2.0
ROUNDS = 3
"""Times that a request without an answer is asked anew, after the client's own attempts."""
TIDY_S = 5.0
SCORED = 4
"""Answers of each call, of every server, that the trainer scores again."""
MISMATCH = {"float32": 0.05, "bfloat16": 0.2}
"""Mean difference of log-probs, in nats, above which server and trainer are not the same policy."""


Scored = tuple[Request, Completion]


class Trainer(Protocol):
    """What is asked of the engine whose adapter the servers load."""

    config: HfConfig
    precision: str
    device: torch.device
    model: Any
    peft: Any
    tokenizer: HfTokenizer
    version: int


class ServedSampler:
    """Servers that sample from the adapter this engine trains."""

    cache_bytes = 0
    """The servers have their own memory."""

    def __init__(self, engine: Trainer) -> None:
        """Refuses servers that are not there, take no adapters, or hold another model."""
        self._engine, self.tokenizer = weakref.proxy(engine), engine.tokenizer
        self._addresses, self._attendance = Addresses(engine.config.sampler), Attendance()
        key = os.environ.get(KEY_ENV)
        self._delivery = Delivery(self._addresses.door_of, key)
        self._servers = Servers(
            self._addresses.urls,
            "-",
            key,
            chat=False,
            give_up_s=WAIT_S,
            prepare=self._prepare(),
            say=_say,
            roster=self._addresses.renew,
        )
        self._home = _new_home(cache.root() / "adapters")
        self._adapter = Adapter("", self._home, "")
        self.max_rows = self.abreast = 1
        """The servers have their own memory: there is nothing to halve here."""
        self.mismatch = 0.0
        """Of the last call: mean |log-prob of a server − of the trainer| over its answers scored here, the largest."""
        self._end = weakref.finalize(self, _close, self._servers, self._delivery, self._home)
        self._write()
        self._servers.model = self._adapter.name
        try:
            self._servers.__enter__()
        except ServersGone as gone:
            more = f"with --adapters {engine.config.lora_rank}, or set engine.sampler = 'embedded'"
            raise ServersGone(f"engine.sampler: {gone} {more}") from None
        # A few tokens before anything is trained: a wrong model is found out at once.
        tokens = self.tokenizer.encode_prompt("1 + 2 = 3\n") or (self.tokenizer.end,)
        self._draw([Request(tokens, SCORED, ("prove",), Sampling(8))], engine.version, None)

    def refresh(self) -> None:
        """Have every server sample from the current parameters; waits for servers that are lost."""
        self._write()
        ends = time.monotonic() + WAIT_S
        said = False
        while True:
            try:
                self._servers.switch(self._adapter.name)
                break
            except ServersGone as gone:
                if time.monotonic() > ends:
                    raise ServersGone(f"{gone}; waited {WAIT_S:g} s, go on with --resume") from None
                if not said:
                    _say(f"{gone}; waiting up to {WAIT_S:g} s")
                said = True
                time.sleep(RETRY_S)
        # Servers and disk hold the current adapter alone.
        for folder in [path for path in self._home.iterdir() if path != self._adapter.folder]:
            self._servers.each(partial(self._delivery.unload, name=folder.name), TIDY_S)
            shutil.rmtree(folder, ignore_errors=True)

    def sample(
        self, requests: Sequence[Request], policy_version: int, told: Told | None = None
    ) -> list[list[Completion]]:
        """`n` completions for each request, all of the adapter published last; `told` hears of them as they come."""
        try:
            return self._draw(requests, policy_version, told)
        finally:  # who was lost and who came back is recorded also when that is why the call failed
            for sentence in [*self._addresses.complaints(), *self._attendance.sentences(self._servers.changes())]:
                note("server", f"while version {self._engine.version} was sampled: {sentence}")
            there = sum(not replica.down for replica in self._servers.replicas.all)
            measure({"sampler/servers": float(there), "sampler/mismatch": self.mismatch})

    def _draw(self, requests: Sequence[Request], policy_version: int, told: Told | None) -> list[list[Completion]]:
        drawn: dict[int, list[Completion]] = {}
        by_server: dict[str, list[Scored]] = {}

        def keep(i: int, replies: list[Reply]) -> None:
            drawn[i] = [self._completion(requests[i], reply, policy_version) for reply in replies]
            by_server.setdefault(replies[0].server, []).extend((requests[i], one) for one in drawn[i])
            if told is not None:
                told([(i, sample, one) for sample, one in enumerate(drawn[i])])

        self._ask_all(requests, keep)
        self.mismatch = max((self._mismatch(server, pairs) for server, pairs in by_server.items()), default=0.0)
        return [drawn[i] for i in range(len(requests))]

    def _write(self) -> None:
        """Version and content make the name: equal names are equal weights, also after a rollback."""
        version = self._engine.version
        draft = self._home / "draft"
        store.export_adapter(draft, self._engine.peft)
        content = sha256_of(draft / ADAPTER_TENSORS)
        unique = hashlib.sha256(f"{self._home} {content}".encode()).hexdigest()[:8]
        name = f"policy-{version}-{unique}"
        self._adapter = Adapter(name, self._home / name, content)
        if self._adapter.folder.exists():
            shutil.rmtree(draft)
        else:
            draft.rename(self._adapter.folder)

    def _prepare(self) -> Any:
        """What must be done at a server before it is asked, and again after a restart: load the current adapter."""
        me = weakref.ref(self)

        async def prepare(host: Host) -> None:
            sampler = me()
            if sampler is not None:
                await sampler._delivery.load(host, sampler._adapter)

        return prepare

    def _ask_all(self, requests: Sequence[Request], keep: Callable[[int, list[Reply]], None]) -> None:
        """Every request gets its replies, whatever has to be asked again; `keep` takes them as they come."""
        answered: set[int] = set()
        trouble = ""
        for _ in range(ROUNDS):
            missing = [i for i in range(len(requests)) if i not in answered]
            bodies = []
            for request in (requests[i] for i in missing):
                body = token_body(request.tokens, request.sampling, plain_seed(*request.key), request.n)
                # Our own server draws by the key, and so what the embedded sampler would; others ignore the field.
                bodies.append(body | {"stop_token_ids": [self.tokenizer.end], "rlvr_key": list(request.key)})
            for place, given in self._servers.all_choices(bodies):
                i = missing[place]
                replies = spread(given, requests[i].sampling, requests[i].n)
                if replies[0].finish is Finish.ERROR:
                    trouble = f"{replies[0].server}: {replies[0].error}"
                else:
                    keep(i, replies)
                    answered.add(i)
            if len(answered) == len(requests):
                return
        lost = f"engine.sampler: {len(requests) - len(answered)} of {len(requests)} requests got no answer ({trouble})"
        if "status 400" in trouble:  # asked again, it will be refused again
            raise UserError(f"{lost}; let rollout.max_tokens and the prompts fit the server (--max-model-len)")
        raise InfrastructureError(f"{lost}; nothing is trained on part of a batch, go on with --resume")

    def _completion(self, request: Request, reply: Reply, version: int) -> Completion:
        """Anything but `max_tokens` known tokens with a log-prob each, of this adapter, is refused."""
        if reply.model != self._adapter.name:
            said = f"answers as {reply.model!r}, not {self._adapter.name!r}"
            raise InfrastructureError(f"{reply.server} {said}; answers of another policy are never trained on")
        tokens, logprobs = reply.tokens, reply.logprobs
        if not tokens or len(tokens) != len(logprobs):
            pair = f"{len(tokens)} token ids and {len(logprobs)} log-probs"
            raise UserError(f"{reply.server} returns {pair}; training needs both: use vLLM 0.10.2 or later")
        fits = len(tokens) <= request.sampling.max_tokens and max(tokens) < self.tokenizer.vocab_size
        if not fits or min(tokens) < 0 or not np.isfinite(logprobs).all():
            raise InfrastructureError(f"{reply.server} returns tokens or log-probs that this model cannot have drawn")
        return Completion(self.tokenizer.decode(tokens), tokens, logprobs, reply.finish, version)

    def _mismatch(self, server: str, pairs: Sequence[Scored]) -> float:
        """Score some answers of a server here; the published policy is the current one whenever answers are drawn."""
        chosen = [pairs[i] for i in np.linspace(0, len(pairs) - 1, min(SCORED, len(pairs))).astype(int)]
        told = np.concatenate([one.logprobs for _, one in chosen])
        here = np.concatenate([self._score(request, one, request.sampling) for request, one in chosen])
        mismatch = float(np.abs(told - here).mean())
        limit = MISMATCH[self._engine.precision]
        if any(r.sampling.temperature not in (0, 1) or r.sampling.top_p < 1 for r, _ in chosen):
            plain = np.concatenate([self._score(request, one, Sampling()) for request, one in chosen])
            if np.abs(told - plain).mean() < mismatch:
                remedy = "start vLLM with --logprobs-mode processed_logprobs, or set rollout.temperature = 1"
                raise UserError(f"{server} tells log-probs before temperature and top_p; {remedy}")
        if not mismatch <= limit:
            what = f"log-probs of server and trainer differ by {mismatch:.3g} nats on average, allowed {limit:g}"
            remedy = f"serve {self._engine.config.model}, with this tokenizer and enough precision"
            raise UserError(f"{server} does not sample from this policy ({what}); {remedy}")
        return mismatch

    def _score(self, request: Request, one: Completion, sampling: Sampling) -> Any:
        """Log-probs of an answer by the trainer's own weights, under the distribution asked for."""
        ids = torch.tensor([[*request.tokens, *one.tokens]], device=self._engine.device)
        with torch.no_grad():
            logits = self._engine.model(input_ids=ids, use_cache=False).logits[0, len(request.tokens) - 1 : -1]
            logp = distribution(logits.float(), sampling).gather(1, ids[0, len(request.tokens) :, None])[:, 0]
        return logp.double().clamp(min=-50).cpu().numpy()  # rounding may put a token just outside its nucleus


def _new_home(shelf: Path) -> Path:
    """A folder for this process's adapters; those that killed processes left behind are removed after a day."""
    shelf.mkdir(parents=True, exist_ok=True)
    for old in shelf.iterdir():
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > cache.STALE_DRAFT_S:
                shutil.rmtree(old, ignore_errors=True)
    home = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}_", dir=shelf))
    home.chmod(0o755)  # the server may run as another user
    return home


def _say(words: str) -> None:
    print(f"engine.sampler: {words}", file=sys.stderr, flush=True)


def _close(servers: Servers, delivery: Delivery, home: Path) -> None:
    servers.each(partial(delivery.unload, name=servers.model), TIDY_S)
    servers.close()
    shutil.rmtree(home, ignore_errors=True)
