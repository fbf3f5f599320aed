"""One model server: what it serves, and whether that is still what it was."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from rlvrlab.engines.openai.wire import CHAT, COMPLETIONS, Reply, chat_body, parse, text_body
from rlvrlab.errors import ModelChanged, UserError
from rlvrlab.http_client import BadAnswer, Host, Refused
from rlvrlab.replicas import Replica
from rlvrlab.types import Sampling

DRIFT = 0.3
"""Nats by which a log-probability of the same greedy answer may move through batching and low precision."""
QUESTION = "Name a colour."
Prepare = Callable[[Host], Awaitable[None]]
"""What must be done at a server before it can be asked, again after each restart; may raise Refused or UserError."""
SHORT = Sampling(max_tokens=8, temperature=0.0)
GREETING = 1000
"""Characters kept of a greeting; a server that was asked for eight tokens may send megabytes."""


class ModelReplica(Replica):
    """A server of the pool that must go on serving the model it served first."""

    def __init__(self, url: str, key: str | None, chat: bool, prepare: Prepare | None = None) -> None:
        super().__init__(Host(url, key))
        self._chat, self._prepare = chat, prepare
        self.known_good = time.monotonic()
        """When its model was last checked."""
        self._first: Reply | None = None
        self._listed: dict[str, Any] | None = None
        self._was_listed = False
        self._tells_logprobs = True
        self.on_trial = False
        """It joined in the middle of the work and has not passed a check yet: refused, it is left out and no more."""

    def facts(self) -> dict[str, Any]:
        """As recorded in run_info.json."""
        known = self._listed or {}
        listed = {key: known[key] for key in ("id", "root", "max_model_len") if key in known}
        answer = self._first.text if self._first else None
        served = self._first.model if self._first else None
        return {"url": self.host.url, "served": served, "listed": listed, "greeting": answer, "trouble": self.trouble}

    def confirm(self, model: str, said: str) -> None:
        """An answer names the model it is from; another name than ours ends everything."""
        if said and not _same(model, said):
            raise ModelChanged(self.host.url, self.known_good, f"answers as {said!r}, not {model!r}")

    def forget(self) -> None:
        """Another model will be asked for: what is known of the last one does not count for it."""
        self._first, self._listed, self._was_listed = None, None, False

    async def models(self) -> list[str]:
        """The ids that it lists."""
        return [entry["id"] for entry in await self._entries() or ()]

    async def check(self, model: str) -> None:
        """Is it there, and does it still serve `model`? Raises Refused or a failure when not there."""
        began = time.monotonic()
        if self._prepare is not None:
            await self._prepare(self.host)
        entries = await self._entries()
        listed = next((entry for entry in entries or () if _same(model, entry["id"])), None)
        if self._first is None:
            await self._meet(model, listed, [entry["id"] for entry in entries or ()])
        else:
            if self._was_listed and entries is not None and listed is None:
                raise ModelChanged(self.host.url, self.known_good, f"no longer serves {model!r}")
            await self._meet_again(self._first, model, listed)
        self.known_good = began

    async def _meet(self, model: str, listed: dict[str, Any] | None, names: list[str]) -> None:
        """The first greeting; what it says is what every later one is compared with."""
        try:
            first = await self._greet(model)
        except Refused as error:
            if listed is None and error.status in (400, 404):
                serves = ", ".join(names) or "nothing it lists"
                raise UserError(f"{self.host.url} serves {serves}, not {model!r}; choose with --model NAME") from None
            raise
        if listed is None and not _same(model, first.model):
            # `transformers serve` lists its cache, not what it was started with; its answer says what it is.
            raise UserError(f"{self.host.url} answers as {first.model!r}, not {model!r}; choose with --model NAME")
        self._first, self._listed, self._was_listed = first, listed, listed is not None

    async def _meet_again(self, first: Reply, model: str, listed: dict[str, Any] | None) -> None:
        if listed and self._listed and _moved(model, self._listed.get("root"), listed.get("root")):
            roots = f"{self._listed.get('root')!r} before, {listed.get('root')!r} now"
            raise ModelChanged(self.host.url, self.known_good, f"serves other weights as {model!r}: {roots}")
        again = await self._greet(model)
        self.confirm(model, again.model)
        if _differ(first, again):
            raise ModelChanged(self.host.url, self.known_good, f"answers with other probabilities as {model!r}")

    def compare(self, peer: ModelReplica) -> None:
        """Does it greet as another server of the same model does? One that came back may hold something else."""
        if self._first is not None and peer._first is not None and _differ(self._first, peer._first):
            raise ModelChanged(self.host.url, self.known_good, f"answers with other probabilities than {peer.host.url}")

    async def _greet(self, model: str) -> Reply:
        """A fixed question, greedy: its log-probabilities are a fingerprint of the weights."""
        top = 1 if self._tells_logprobs else 0
        path, body = (CHAT, chat_body) if self._chat else (COMPLETIONS, text_body)
        response = await self.host.request(path, {"model": model, **body(QUESTION, SHORT, 0, top)})
        if response.status in (400, 422) and top:
            self._tells_logprobs = False
            return await self._greet(model)
        if response.status == 400 and b"chat template" in response.body.lower():
            raise UserError(f"{self.host.url}: {model!r} has no chat template; ask with --completions")
        if response.status != 200:
            raise Refused(response)
        first = parse(response.json())[0]
        return first._replace(text=first.text[:GREETING])

    async def _entries(self) -> list[dict[str, Any]] | None:
        """What /v1/models lists; None where that fails, as in `transformers serve` without a cache."""
        response = await self.host.request("/v1/models")
        if response.status in (401, 403, 429, 503):
            raise Refused(response)
        if response.status != 200:
            return None
        entries = response.json().get("data")
        if isinstance(entries, list) and all(isinstance(e, dict) and isinstance(e.get("id"), str) for e in entries):
            return entries
        raise BadAnswer("/v1/models lists no models")


def _differ(one: Reply, other: Reply) -> bool:
    """Whether two greetings cannot come from the same weights."""
    pairs = list(zip(one.logprobs, other.logprobs, strict=False))
    if one.text != other.text:
        pairs = pairs[:1]  # noise flipped a greedy token; what follows is another answer: compare the first only
    return max((abs(a - b) for a, b in pairs), default=0.0) > DRIFT


def _moved(model: str, before: Any, now: Any) -> bool:
    """Other files than before? Adapters whose folders have their name, which says what is in them, may change place."""
    return before != now and not all(isinstance(root, str) and root.endswith(f"/{model}") for root in (before, now))


def _same(wanted: str, said: str) -> bool:
    """`transformers serve` appends @revision."""
    return said == wanted or said.startswith(f"{wanted}@")
