"""How a question is put to a policy, as tokens.

It has two sides. Words (`plain`, `think`, `chat` styles: what to answer and in which form) belong to the environment's
own `style` key, because its verifier reads the answer. The wrapping of a conversation (system line, role marks,
`<|im_start|>`) belongs to the model: a tokenizer with a chat template wraps, one without does not.
"""

from __future__ import annotations

from rlvrlab.types import Tokenizer


def prompt_tokens(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The prompt as this policy expects it: inside its chat template where the engine uses one, else as it stands."""
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
