"""Characters to tokens, under tokenizers of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.credit.steps import GLUE, step_of_tokens, token_spans
from rlvrlab.engines.toy.features import ToyTokenizer

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=REPLACEMENT), max_size=40)


class Pieces:
    """A byte-level BPE in effect: tokens are arbitrary runs of bytes, cut anywhere, also inside a character."""

    def __init__(self, text: str, cuts: Sequence[int]) -> None:
        data = text.encode()
        self.edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts} - {0, len(data)}), len(data)]
        self.bytes = [data[a:b] for a, b in zip(self.edges, self.edges[1:], strict=False)]
        self.tokens = tuple(range(len(self.bytes)))

    def decode(self, tokens: Sequence[int]) -> str:
        return b"".join(self.bytes[t] for t in tokens).decode(errors="replace")


class Sentences:
    """A SentencePiece in effect: a word carries the space before it, which decoding drops at the very beginning."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" {self.words[t]}" for t in tokens).removeprefix(" ")


def expected(text: str, edges: Sequence[int]) -> list[tuple[int, int]]:
    """Whole characters before and after each piece of bytes; a piece that completes none is part of the next one."""
    ends = np.cumsum([len(character.encode()) for character in text])
    whole = [int(np.searchsorted(ends, edge, side="right")) for edge in edges]
    pairs = pairwise(whole)
    return [(a, b if b > a else a + 1) for a, b in pairs]


@given(TEXT, st.lists(st.integers(0, 200), max_size=30))
def test_byte_pieces_cut_anywhere_find_their_characters(text: str, cuts: list[int]) -> None:
    pieces = Pieces(text, cuts)
    spans = token_spans(text, pieces.tokens, pieces.decode)
    assert [tuple(map(int, span)) for span in spans] == (expected(text, pieces.edges) if text else [(0, 0)])


@given(TEXT)
def test_single_bytes_and_single_characters(text: str) -> None:
    single = Pieces(text, range(1, len(text.encode())))
    spans = token_spans(text, single.tokens, single.decode) if text else np.zeros((0, 2))
    of_byte = [i for i, character in enumerate(text) for _ in character.encode()]
    assert [int(a) for a, _ in spans] == of_byte
    characters = token_spans(text, tuple(map(ord, text)), lambda tokens: "".join(map(chr, tokens)))
    assert characters.tolist() == [[i, i + 1] for i in range(len(text))]


@given(st.lists(st.text("abé", min_size=1, max_size=4), min_size=1, max_size=8))
def test_words_that_carry_their_space(words: list[str]) -> None:
    tokenizer = Sentences(words)
    text = tokenizer.decode(range(len(words)))
    spans = token_spans(text, tuple(range(len(words))), tokenizer.decode)
    assert "".join(text[a:b] for a, b in spans) == text
    assert [text[a:b].strip() for a, b in spans] == words


def test_the_toy_tokenizer_with_numbers_and_an_end() -> None:
    tokenizer = ToyTokenizer(99)
    tokens = (*tokenizer.encode("12+7\n"), tokenizer.end)
    assert token_spans("12+7\n", tokens, tokenizer.decode).tolist() == [[0, 2], [2, 3], [3, 4], [4, 5], [5, 5]]


def test_tokens_past_the_text_are_empty() -> None:
    """A stop string that was cut from the text, special tokens that decode to something."""
    decode = lambda tokens: "".join("abcdef"[t] for t in tokens)  # noqa: E731
    assert token_spans("abc", (0, 1, 2, 3, 4), decode).tolist() == [[0, 1], [1, 2], [2, 3], [3, 3], [3, 3]]
    assert token_spans("", (), decode).shape == (0, 2)


@given(st.text("ab\N{REPLACEMENT CHARACTER}é", max_size=12))
def test_a_text_with_replacement_characters_of_its_own_loses_none(text: str) -> None:
    spans = token_spans(text, tuple(map(ord, text)), lambda tokens: "".join(map(chr, tokens)))
    covered = {i for a, b in spans for i in range(a, b)}
    assert covered == set(range(len(text)))


@given(TEXT, st.lists(st.integers(0, 200), max_size=30), st.lists(st.integers(0, 40), max_size=8))
def test_every_token_is_in_one_step_or_is_glue(text: str, cuts: list[int], edges: list[int]) -> None:
    pieces = Pieces(text, cuts)
    borders = sorted({min(edge, len(text)) for edge in edges})
    steps = list(zip(borders[::2], borders[1::2], strict=False))
    spans = token_spans(text, pieces.tokens, pieces.decode)
    found = step_of_tokens(spans, steps)
    for (a, b), step in zip(spans, found, strict=True):
        shared = [max(0, min(b, end) - max(a, start)) for start, end in steps]
        if step == GLUE:
            assert not any(shared)
        else:
            assert shared[step] == max(shared) > 0 and max(shared) not in shared[:step]


@pytest.mark.parametrize(
    ("spans", "steps", "want"),
    [
        ([(0, 4)], [(0, 1), (1, 4)], [1]),
        ([(0, 4)], [(0, 2), (2, 4)], [0]),
        ([(0, 3)], [(2, 3)], [0]),
        ([(3, 3)], [(0, 3)], [GLUE]),
        ([], [(0, 3)], []),
        ([(0, 1)], [], [GLUE]),
    ],
)
def test_a_token_over_a_border_goes_where_most_of_it_is(spans, steps, want) -> None:
    assert step_of_tokens(np.array(spans, dtype=np.int64).reshape(-1, 2), steps).tolist() == want


def test_a_real_byte_level_bpe_gives_its_own_offsets() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="comes with the hf extra")
    from tokenizers import decoders, models, pre_tokenizers, trainers

    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    text = "def f(x):\n    größe = x  # naïve 日本 🙂🙂\n    return größe\n" * 3
    bpe.train_from_iterator([text], trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False))
    for sample in (text, "🙂日 ünï\n", "plain = 1\n"):
        encoded = bpe.encode(sample)
        spans = token_spans(sample, encoded.ids, lambda ids: bpe.decode(list(ids)))
        for (a, b), (start, end) in zip(spans, encoded.offsets, strict=True):
            assert a >= start and (b <= end or a + 1 == b), (sample[start:end], sample[a:b])
            assert b == end or sample[a:b] == "" or not sample[start:end].isascii()
