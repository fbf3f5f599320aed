"""What the toy policy reads: the tokens of a text, and what it sees of a context of tokens.

Tokens are characters, and whole numbers as one token each; any other character becomes "\\x00" (unknown):
    "3 17 = 51\\n" -> ["3", " ", "17", " ", "=", " ", "51", "\\n"]
Of a context it sees which weights are active (two buckets) and what they are multiplied with. A context is a prompt and
the tokens answered so far. Its numbers fill `slots`; its *shape* is the text with those numbers replaced by their slot,
so that "3 7 = 21" and "5 9 = 14" share weights and a rule carries over to numbers never trained on:
    prompt "3 7 = 21\\n", answer so far "3*"  ->  shape "#0 #1 = #2\\n" + "#0*"
    dense features  = all products of pairs of (1, v/scale, log v) over the slots' values v
Quadratics suffice for the four operations: −(t − a − b)² and −(log t − log a − log b)² are both in their span.
Suffixes: N contexts, M slots, D dense features.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints, TokenBatch, pad

END = 0
UNKNOWN = 1
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
_PIECES = re.compile(r"0|[1-9][0-9]*|.", re.DOTALL)


class ToyTokenizer:
    """Ids: 0 end, 1 unknown, then CHARACTERS, then the numbers 10 … max_number."""

    end = END
    ends = frozenset({END})

    def __init__(self, max_number: int) -> None:
        texts = ["", "\x00", *CHARACTERS, *(str(n) for n in range(10, max_number + 1))]
        self.vocab_size = len(texts)
        self.characters = 2 + len(CHARACTERS)
        """Tokens below this id are single characters; the rest are numbers of several digits."""
        self._texts = texts
        self._ids = {text: i for i, text in enumerate(texts)}
        self.number_of_token: Ints = np.array([int(t) if t.isdigit() else -1 for t in texts])
        """Value of a number token, −1 for the others."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Longest numbers first; a number beyond max_number falls back to its digits."""
        ids: list[int] = []
        for piece in _PIECES.findall(text):
            if piece in self._ids:
                ids.append(self._ids[piece])
            else:
                ids.extend(self._ids.get(character, UNKNOWN) for character in piece)
        return tuple(ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """Plain concatenation."""
        return "".join(self._texts[t] for t in tokens)


POSITIONS = 16
_MIX = np.int64(1_000_003)
_MODULUS = np.int64((1 << 31) - 1)


class PromptView(NamedTuple):
    """What is read once per prompt."""

    slots_NM: Ints
    """Token in each slot, −1 when the prompt has fewer numbers."""
    dense_ND: Floats
    """Products of pairs."""
    shape_N: Ints
    """Running hash of the shape."""


def dense_size(slots: int) -> int:
    """Pairs with repetition among 1 + 2·slots base features."""
    base = 1 + 2 * slots
    return base * (base + 1) // 2


def view_prompts(prompts: Sequence[Sequence[int]], tokenizer: ToyTokenizer, slots: int, scale: float) -> PromptView:
    """Slots, dense features and shape hash of each prompt."""
    unique = {prompt: i for i, prompt in enumerate(dict.fromkeys(tuple(p) for p in prompts))}
    slots_NM = np.full((len(unique), slots), -1, dtype=np.int64)
    for prompt, i in unique.items():
        numbers = [t for t in prompt if tokenizer.number_of_token[t] >= 0][:slots]
        slots_NM[i, : len(numbers)] = numbers
    token_NT, length_N = pad(list(unique), np.int64), np.array([len(prompt) for prompt in unique])
    shape_N = np.zeros(len(unique), dtype=np.int64)
    for t in range(token_NT.shape[1]):
        shape_N = np.where(t < length_N, advance(shape_N, slots_NM, token_NT[:, t]), shape_N)
    values_NM = np.where(slots_NM >= 0, tokenizer.number_of_token[slots_NM], 0)
    linear = (np.ones((len(values_NM), 1)), values_NM / scale, np.log(np.maximum(values_NM, 1)) / np.log(scale))
    base = np.concatenate(linear, axis=1)
    one, other = np.triu_indices(base.shape[1])
    index = np.array([unique[tuple(p)] for p in prompts])
    return PromptView(slots_NM[index], (base[:, one] * base[:, other])[index], shape_N[index])


def advance(shape_N: Ints, slots_NM: Ints, token_N: Ints) -> Ints:
    """Extend the shape hash by one token; a token that fills a slot counts as the slot."""
    in_slot_NM = slots_NM == token_N[:, None]
    symbol_N = np.where(in_slot_NM.any(axis=1), -1 - in_slot_NM.argmax(axis=1), token_N)
    return (shape_N * _MIX + symbol_N + 17) % _MODULUS


def buckets(position_N: Ints, shape_N: Ints, count: int) -> tuple[Ints, Ints]:
    """The two active weight blocks: one for the position, one (hashed) for the shape."""
    return np.minimum(position_N, POSITIONS - 1), POSITIONS + shape_N % count


class Contexts(NamedTuple):
    """Every seen completion position of a batch, flattened."""

    row_N: Ints
    column_N: Ints
    token_N: Ints
    """The token chosen there."""
    slots_NM: Ints
    dense_ND: Floats
    position_N: Ints
    shape_N: Ints


def contexts_of(batch: TokenBatch, view: PromptView) -> Contexts:
    """Teacher forcing: each position's context is the prompt plus the tokens before it."""
    shape_BT = np.empty(batch.tokens_BT.shape, dtype=np.int64)
    shape_B = view.shape_N
    for t in range(batch.tokens_BT.shape[1]):
        shape_BT[:, t] = shape_B
        shape_B = advance(shape_B, view.slots_NM, batch.tokens_BT[:, t])
    row_N, column_N = np.nonzero(batch.seen_BT)
    return Contexts(
        row_N,
        column_N,
        batch.tokens_BT[row_N, column_N],
        view.slots_NM[row_N],
        view.dense_ND[row_N],
        column_N,
        shape_BT[row_N, column_N],
    )
