"""How a question is put to a policy, as tokens.

It has two sides. Words (`plain`, `think`, `chat` styles: what to answer and in which form) belong to the environment's
own `style` key, because its verifier reads the answer. The wrapping of a conversation (system line, role marks,
`<|im_start|>`) belongs to the model: a tokenizer with a chat template wraps, one without does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rlvrlab.errors import UserError
from rlvrlab.types import Tokenizer


@runtime_checkable
class Chats(Protocol):
    """A tokenizer with a chat template."""

    chat: bool
    """Is the template used?"""

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Messages in the template, ready for the answer."""


def prompt_tokens(tokenizer: Tokenizer, text: str, system: str = "") -> tuple[int, ...]:
    """The prompt as this policy expects it: inside its chat template where the engine uses one, else as it stands."""
    if system:
        if not (isinstance(tokenizer, Chats) and tokenizer.chat):
            raise UserError("a system prompt needs an engine with a chat template (engine.chat = true); leave it out")
        return tokenizer.encode_chat([{"role": "system", "content": system}, {"role": "user", "content": text}])
    wrap = getattr(tokenizer, "encode_prompt", None)
    return tokenizer.encode(text) if wrap is None else tuple(wrap(text))


def again_tokens(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """A later turn of the same conversation: what follows the answer's end token, without the conversation's head."""
    more = getattr(tokenizer, "encode_again", None)
    return tokenizer.encode(text) if more is None else tuple(more(text))


def answer_tokens(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """A reference answer with its end: what the policy is to learn to say after the prompt."""
    return (*tokenizer.encode(text), tokenizer.end)


def result_tokens(tokenizer: Tokenizer, tagged: str, plain: str) -> tuple[int, ...]:
    """A tool's result as a later turn: a tool message of the chat template where there is one, else the tagged text."""
    more = getattr(tokenizer, "encode_result", None)
    return again_tokens(tokenizer, tagged) if more is None else tuple(more(tagged, plain))
