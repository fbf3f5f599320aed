"""A Transformers tokenizer behind the laboratory's protocol: tokens in, tokens out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlvrlab.engines.hf.token_sizes import growth_of
from rlvrlab.engines.template_process import TemplateProcess
from rlvrlab.errors import UserError, one_line

MARK = "<<answer>>"
"""Stands for an answer while a chat template is asked what follows it."""


class HfTokenizer:
    """Text to tokens and back; nothing is ever re-tokenised."""

    def __init__(self, tokenizer: Any, vocab_size: int, model: str, *, chat: bool, ends: Sequence[int] = ()) -> None:
        """`ends`: what else ends an answer, as the model's generation_config.json says."""
        self.inner, self.vocab_size, self.chat = tokenizer, vocab_size, chat
        """`vocab_size` is the model's: its output may be wider than what the tokenizer has names for."""
        if tokenizer.eos_token_id is None:
            raise UserError(f"{model}: the tokenizer has no end token; set eos_token in tokenizer_config.json")
        if chat and not tokenizer.chat_template:
            raise UserError(f"{model}: the tokenizer has no chat template; set engine.chat = false or give it one")
        self._model = model
        self._template: TemplateProcess | None = None
        inner = getattr(tokenizer, "backend_tokenizer", None)
        if grows := growth_of(inner):
            raise UserError(f"{model}: tokenizer.json: {grows}; give the model another tokenizer")
        if getattr(getattr(inner, "model", None), "dropout", None):
            raise UserError(f"{model}: model.dropout in tokenizer.json cuts a text by chance; set it to null")
        self._named = len(tokenizer)
        """Tokens with a name; asked once, because older tokenizers count them anew each time (16 ms for 49,000)."""
        self.end = int(tokenizer.eos_token_id)
        self.ends = frozenset({self.end, *(one for one in ends if one < vocab_size)})
        first = self._tried(lambda: tokenizer("x").input_ids, "read a prompt")[:1]
        if chat and isinstance(tokenizer.chat_template, str):
            self._template = self._begun()  # its process starts while the weights are read
        self._opening = tuple(first) if first and first[0] == tokenizer.bos_token_id else ()

    def encode(self, text: str) -> tuple[int, ...]:
        """Plain tokens, nothing added."""
        tokens = tuple(self._tried(lambda: self.inner(text, add_special_tokens=False).input_ids, "read a prompt"))
        if max(tokens, default=0) >= self.vocab_size:
            raise UserError(f"the tokenizer gave token {max(tokens)}, the model only knows {self.vocab_size}")
        return tokens

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """A prompt as the model expects it to begin: its opening token, or the chat template around it."""
        if not self.chat:
            return (*self._opening, *self.encode(text))
        return self.encode_chat([{"role": "user", "content": text}])

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Messages in the chat template, ready for the answer."""
        return self.encode(self._written(list(messages)))

    def _written(self, messages: list[dict[str, str]]) -> str:
        """Messages as the chat template writes them; a template is a program, and may end in any error."""
        try:
            if self._template is None:
                self._template = self._begun()
            return self._template.render(messages, **self.inner.special_tokens_map)
        except Exception as error:
            raise UserError(f"the chat template does not take these messages: {one_line(error)}") from None

    def _begun(self) -> TemplateProcess:
        several = self.inner.chat_template  # then Transformers takes this one, too, where there are no tools
        return TemplateProcess(several if isinstance(several, str) else several["default"])

    def _tried(self, what: Callable[[], Any], verb: str) -> Any:
        """What the tokenizer library makes of it, whose panics are no Exceptions."""
        try:
            return what()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise UserError(
                f"{self._model}: its tokenizer cannot {verb} ({one_line(error)}); give it another"
            ) from None

    def longest_token(self) -> int:
        """Characters of the longest token: so many times a number of tokens is the longest text they can hold."""
        return max(len(token) for token in self.inner.get_vocab())

    def encode_again(self, text: str) -> tuple[int, ...]:
        """A later turn of the user: what the chat template puts between an answer's end token and the next answer."""
        if not self.chat:
            return self.encode(text)
        turns = [("user", "…"), ("assistant", MARK), ("user", text)]
        messages = [{"role": role, "content": content} for role, content in turns]
        whole = self._written(messages)
        if MARK not in whole:
            raise UserError("the tokenizer's chat template rewrites earlier turns; take context = 'fresh'")
        return self.encode(whole.partition(MARK)[2].removeprefix(self.inner.eos_token))

    def encode_result(self, tagged: str, plain: str) -> tuple[int, ...]:
        """A tool's result: a message of role tool, in tags where the template puts none around it.

        A template that knows no tools gets it as a turn of the user.
        """
        if not self.chat:
            return self.encode(tagged)
        for content in (plain, tagged):
            turns = [("user", "…"), ("assistant", MARK), ("tool", content)]
            messages = [{"role": role, "content": text} for role, text in turns]
            try:
                whole = self._written(messages)
            except UserError:
                break
            if MARK in whole and "<tool_response>" in whole and plain in whole:
                return self.encode(whole.partition(MARK)[2].removeprefix(self.inner.eos_token))
        return self.encode_again(tagged)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text without special tokens; ids beyond the tokenizer's own are dropped."""
        known = [int(t) for t in tokens if t < self._named]
        form = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self._tried(lambda: self.inner.decode(known, **form), "write an answer"))
