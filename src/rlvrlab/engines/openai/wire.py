"""What goes to an OpenAI-compatible server and what comes back.

chat         {"messages": [{"role": "user", "content": …}]}    the server applies its chat template
text         {"prompt": "…"}                                    for base models without one
tokens       {"prompt": [1, 2, …]}                              token in, token out: vLLM
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlvrlab.errors import cut
from rlvrlab.http_client import BadAnswer
from rlvrlab.types import Finish, Sampling

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "eos": Finish.STOP, "tool_calls": Finish.STOP}
TOKEN_ID = "token_id:"  # noqa: S105
SURROGATE = re.compile("[\ud800-\udfff]")
MOST = 1 << 31
"""No model writes as many tokens, or knows as many; beyond it a server's number means nothing, and none is a float."""
Body = dict[str, Any]


def has_half_character(text: str) -> bool:
    """Whether it holds a lone surrogate, which is no text: nothing can write it as UTF-8."""
    return not text.isascii() and SURROGATE.search(text) is not None


class Reply(NamedTuple):
    """One answer of a server, or why there is none."""

    text: str = ""
    tokens: tuple[int, ...] = ()
    """Token ids, where the server tells them."""
    logprobs: tuple[float, ...] = ()
    """As the server tells them: vLLM's are at temperature 1 unless started with --logprobs-mode processed_logprobs."""
    finish: Finish = Finish.ERROR
    gen_tokens: int = 0
    entropy: float | None = None
    """Mean token entropy in nats, from below: all mass outside the top log-probs counts as one token."""
    model: str = ""
    """The model the answer says it is from."""
    server: str = ""
    attempts: int = 1
    error: str = ""


def chat_body(prompt: str, sampling: Sampling, seed: int, top_logprobs: int = 0, system: str = "") -> Body:
    """One answer in chat form; no field that a strict server would refuse."""
    before = [{"role": "system", "content": system}] if system else []
    body = {"messages": [*before, {"role": "user", "content": prompt}], **_settings(sampling, seed)}
    return body | ({"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {})


def text_body(prompt: str, sampling: Sampling, seed: int, top_logprobs: int = 0) -> Body:
    """One continuation of a text."""
    return {"prompt": prompt, **_settings(sampling, seed), **({"logprobs": top_logprobs} if top_logprobs else {})}


def token_body(tokens: Sequence[int], sampling: Sampling, seed: int, n: int) -> Body:
    """`n` continuations of tokens, with ids and log-probs; vLLM.

    Whatever is not said, vLLM takes from the model's generation_config.json, so the neutral values are said.
    """
    once = sampling.temperature == 0  # vLLM refuses to give the same greedy answer n times; see `spread`
    extra: Body = {"n": 1 if once else n, "logprobs": 1, "return_token_ids": True, "return_tokens_as_token_ids": True}
    extra |= {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    stop = {"include_stop_str_in_output": True} if sampling.stop else {}
    return {"prompt": list(tokens), **_settings(sampling, seed), **extra, **stop}


def spread(replies: list[Reply], sampling: Sampling, n: int) -> list[Reply]:
    """`n` replies to a token_body: the greedy answer, which is asked for once, counts `n` times; less is no answer."""
    if replies[0].finish is Finish.ERROR:
        return replies
    full = replies * n if sampling.temperature == 0 and len(replies) == 1 else replies
    if len(full) != n:
        return [Reply(server=replies[0].server, error=f"{len(full)} answers instead of {n}")]
    return full


def _settings(sampling: Sampling, seed: int) -> Body:
    settings: Body = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": seed,
    }
    return settings | ({"stop": list(sampling.stop)} if sampling.stop else {})


def parse(content: Body) -> list[Reply]:
    """Every choice of an answer, chat or not; anything malformed is a BadAnswer, never an empty text."""
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadAnswer(f"no choices in the answer; it has {cut(', '.join(content), 200) or 'nothing'}")
    if not isinstance(content.get("model"), str | None):
        raise BadAnswer("the answer names no model")
    usage = content.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return [_choice(choice, content, count if len(choices) == 1 else None) for choice in choices]


def _choice(choice: Any, content: Body, count: Any) -> Reply:
    if not isinstance(choice, dict):
        raise BadAnswer("a choice is no object")
    text = _text(choice, nothing=type(count) is int and 0 <= count <= 1)
    reason = choice.get("finish_reason")
    finish = FINISHES.get(reason) if isinstance(reason, str) else None
    if finish is None:
        raise BadAnswer(f"finish_reason is {reason!r}" if isinstance(reason, str | None) else "no finish_reason")
    try:
        tokens, logprobs, entropy = _logprobs(choice)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise BadAnswer("log-probabilities of an unknown shape") from None
    if tokens and logprobs and len(tokens) != len(logprobs):
        raise BadAnswer(f"{len(tokens)} token ids and {len(logprobs)} log-probabilities")
    length = count if type(count) is int and count >= 0 else max(len(tokens), len(logprobs))
    if length > MOST:
        raise BadAnswer("a count of tokens that nobody could have written")
    return Reply(text, tokens, logprobs, finish, length, entropy, content.get("model") or "")


def _text(choice: dict[str, Any], *, nothing: bool) -> str:
    """A reasoning parser takes the thought out of the text; environments want to see it where it was.

    `content` may be null beside a thought or a call of a tool, and where the server counted `nothing` but the end of
    the text. Anywhere else it was lost on the way, and an empty text would be judged wrong. A text that is there and
    empty is an answer, however many tokens it took: stop words and special tokens are counted and not shown, and a
    policy that writes nothing else must not leave itself unjudged.
    """
    message = choice.get("message", choice)
    if not isinstance(message, dict):
        raise BadAnswer("a message is no object")
    text = message.get("content", message.get("text"))
    thought = message.get("reasoning_content") or message.get("reasoning")
    thinks = isinstance(thought, str) and bool(thought)
    called = isinstance(message.get("tool_calls"), list) and bool(message["tool_calls"])
    if text is None and (thinks or called or (nothing and "content" in message)):
        text = ""
    if not isinstance(text, str):
        raise BadAnswer("no text in the answer")
    whole = f"<think>{thought}</think>{text}" if thinks else text
    if has_half_character(whole):
        raise BadAnswer("half a character (a lone surrogate) in the answer")
    return whole


def _logprobs(choice: dict[str, Any]) -> tuple[tuple[int, ...], tuple[float, ...], float | None]:
    given = choice.get("logprobs") or {}
    entries = given.get("content") or ()
    if entries:
        names = [entry["token"] for entry in entries]
        logprobs = [_finite(entry["logprob"]) for entry in entries]
        tops = [[_finite(top["logprob"]) for top in entry.get("top_logprobs") or ()] for entry in entries]
    else:
        names = list(given.get("tokens") or ())
        logprobs = [_finite(value) for value in given.get("token_logprobs") or ()]
        tops = [[_finite(v) for v in (top or {}).values()] for top in given.get("top_logprobs") or ()]
    ids = choice.get("token_ids")
    if ids is None and names and all(str(name).startswith(TOKEN_ID) for name in names):
        ids = [int(name.removeprefix(TOKEN_ID)) for name in names]
    if ids is not None and not all(type(i) is int and 0 <= i <= MOST for i in ids):
        raise ValueError("token ids are whole numbers")
    useful = [top for top in tops if len(top) > 1]
    entropy = sum(map(_entropy, useful)) / len(useful) if useful else None
    return tuple(ids or ()), tuple(logprobs), entropy


def _finite(value: Any) -> float:
    """A log-probability; servers write −9999 or so where they mean minus infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a log-probability is a number")
    return float(value)


def _entropy(logprobs: Sequence[float]) -> float:
    known = [(math.exp(min(0.0, lp)), lp) for lp in logprobs]
    rest = max(0.0, 1.0 - sum(p for p, _ in known))
    return -sum(p * lp for p, lp in known if p > 0) - (rest * math.log(rest) if rest > 1e-9 else 0.0)
