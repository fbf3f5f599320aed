"""Answers of the model server as OpenAI's interface writes them, or as server-sent events.

Each answer is written by itself, so that a thread which writes many of them lets others have their turns.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlvrlab.engines.openai.wire import TOKEN_ID
from rlvrlab.http_messages import Response
from rlvrlab.types import Completion

Form = dict[str, Any]
Spelled = Callable[[int], str]
"""The text of one token."""
CHAT, TEXT = "chat.completion", "text_completion"
"""What an answer is called in each of the two forms."""


def written(kind: str, form: Form, prompt: int, answers: Sequence[Completion], spelled: Spelled) -> Response:
    """What is answered to `form`, whose prompt had so many tokens and whose model has its name."""
    made = sum(len(one.tokens) for one in answers)
    usage = {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
    head = {"id": f"cmpl-{secrets.token_hex(8)}", "object": kind, "created": int(time.time()), "model": form["model"]}
    shown = _message if kind == CHAT else _choice
    choices = ({"index": i, **shown(form, one, spelled)} for i, one in enumerate(answers))
    if form.get("stream"):
        return _stream(form, head, choices, usage)
    begin = json.dumps({**head, "usage": usage}).removesuffix("}")
    return Response(f'{begin}, "choices": [{", ".join(map(json.dumps, choices))}]}}'.encode())


def _choice(form: Form, one: Completion, spelled: Spelled) -> Form:
    told = None
    if form.get("logprobs") not in (None, False):
        as_ids = form.get("return_tokens_as_token_ids")
        names = [f"{TOKEN_ID}{token}" if as_ids else spelled(token) for token in one.tokens]
        told = {"tokens": names, "token_logprobs": list(one.logprobs), "top_logprobs": None}
    ids = {"token_ids": list(one.tokens)} if form.get("return_token_ids") else {}
    return {"text": one.text, "finish_reason": str(one.finish), "logprobs": told, **ids}


def _message(form: Form, one: Completion, spelled: Spelled) -> Form:
    told = None
    if form.get("logprobs"):
        pairs = zip(one.tokens, one.logprobs, strict=True)
        told = {"content": [{"token": spelled(t), "logprob": logprob, "top_logprobs": []} for t, logprob in pairs]}
    message = {"role": "assistant", "content": one.text}
    return {"message": message, "finish_reason": str(one.finish), "logprobs": told}


def _stream(form: Form, head: Form, choices: Iterator[Form], usage: Form) -> Response:
    """Server-sent events: one per answer, since all is drawn by then."""
    head = {**head, "object": "chat.completion.chunk" if head["object"] == CHAT else head["object"]}
    events: list[str] = []
    for one in choices:
        # A choice of a stream: its message is what is added to an empty one.
        delta = {("delta" if key == "message" else key): value for key, value in one.items()}
        events.append(json.dumps({**head, "choices": [delta]}))
    options = form.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        events.append(json.dumps({**head, "choices": [], "usage": usage}))
    body = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
    return Response(body.encode(), media_type="text/event-stream")
