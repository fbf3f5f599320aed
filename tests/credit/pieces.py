"""A tokenizer for policies that are small enough to enumerate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

END = 0


@dataclass
class Pieces:
    """A few pieces of text, the first of which ends an answer."""

    texts: tuple[str, ...]
    end: int = END
    ends: frozenset[int] = frozenset({END})

    @property
    def vocab_size(self) -> int:
        return len(self.texts)

    def encode(self, text: str) -> tuple[int, ...]:
        raise AssertionError("what was sampled is never tokenised again")

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.texts[token] for token in tokens)


class CountedPieces(Pieces):
    """The same where prices of tokens are asked for: a token per character."""

    def encode(self, text: str) -> tuple[int, ...]:
        return (1,) * len(text)
