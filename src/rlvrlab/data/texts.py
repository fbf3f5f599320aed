"""Texts as arrays of tokens and of token n-grams, so that twenty thousand of them are compared in seconds.

    "Ann has 3 apples."  ->  ann · has · 3 · apples · .      n-grams of 3: (ann has 3) (has 3 apples) (3 apples .)
Normalisation: NFKC, one case. A token is a word or number, a sign, or one character of a script without spaces.
An n-gram is a 44-bit number made of its tokens' numbers; a text shorter than n tokens is one n-gram of all it has.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rlvrlab.errors import UserError

TOKEN = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]|[\u3040-\u30ff\u3400-\u9fff]")
BASE = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with scattered bits: token positions weigh differently."""
OWNER_BITS = 20
KEPT_BITS = np.uint64(2 ** (64 - OWNER_BITS) - 1)
"""An n-gram keeps 44 bits, so that it and its text's number fit one sortable integer."""
GAP = -1
"""In place of a token that does not count."""
COMMON_SHARE = 0.2
"""N-grams in more than this share of a file's texts are form, not content."""
COMMON_FROM = 20
"""With fewer texts than this nothing is called common."""

Numbers = NDArray[np.uint64]
Indices = NDArray[np.int64]


def tokenised(text: str) -> list[str]:
    """The tokens; spaces are none, so only case and form need normalising."""
    return TOKEN.findall(text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold())


def is_word(token: str) -> bool:
    """A word or number, not a sign."""
    return token[0].isalnum() or token[0] == "_"


@dataclass(frozen=True)
class Grams:
    """For each text its distinct n-grams, sorted; `starts` has one entry more than there are texts."""

    values: Numbers
    starts: Indices

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, index: int) -> Numbers:
        """The n-grams of one text."""
        return self.values[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> Indices:
        """How many each text has."""
        return np.diff(self.starts)

    def gathered(self, texts: Indices) -> Numbers:
        """Those of some texts, one after the other."""
        sizes = self.sizes[texts]
        before = np.cumsum(sizes) - sizes
        return self.values[np.arange(sizes.sum()) + np.repeat(self.starts[texts] - before, sizes)]

    def form(self, parts: Indices) -> Numbers:
        """What many texts of one part (a file) have: the words every prompt is wrapped in. `parts`: each text's part.

        Two prompts are not alike because both end in `think step by step`.
        """
        mine = np.repeat(parts, self.sizes)
        common = [self.values[:0]]
        for part, texts in zip(*np.unique(parts, return_counts=True), strict=True):
            if texts >= COMMON_FROM:
                values, counts = np.unique(self.values[mine == part], return_counts=True)
                common.append(values[counts > COMMON_SHARE * texts])
        return np.unique(np.concatenate(common))

    def without(self, others: Numbers) -> Grams:
        """The same texts without these n-grams."""
        kept = ~np.isin(self.values, others)
        before = np.concatenate(([0], np.cumsum(kept)))
        return Grams(self.values[kept], before[self.starts])


@dataclass(frozen=True)
class Texts:
    """Many texts, tokenised."""

    tokens: Indices
    """Numbers of tokens, text after text."""
    starts: Indices
    is_word: NDArray[np.bool_]
    """By token number: a word or number rather than a sign."""
    has_letter: NDArray[np.bool_]
    """By token number."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Tokenise; equal tokens get equal numbers."""
        known: defaultdict[str, int] = defaultdict(count().__next__)
        numbers = array("q")
        starts = [0]
        for text in texts:
            numbers.extend(map(known.__getitem__, tokenised(text)))
            starts.append(len(numbers))
        words = np.fromiter(map(is_word, known), bool, len(known))
        letters = np.fromiter((any(map(str.isalpha, token)) for token in known), bool, len(known))
        return cls(np.frombuffer(numbers, np.int64), np.array(starts, np.int64), words, letters)

    def chosen(self, texts: Indices) -> Texts:
        """Only these texts, in this order."""
        sizes = np.diff(self.starts)[texts]
        before = np.cumsum(sizes) - sizes
        inside = np.arange(sizes.sum()) + np.repeat(self.starts[texts] - before, sizes)
        return replace(self, tokens=self.tokens[inside], starts=np.concatenate(([0], np.cumsum(sizes))))

    def gapped(self, n: int, parts: Indices) -> Texts:
        """With a gap in place of each n-gram that is form (see Grams.form), so that no passage reaches across it."""
        owners, values, places = self.placed(n, whole_if_short=False)
        form = _distinct(owners, values, len(self.starts) - 1).form(parts)
        starts, tokens = places[np.isin(values, form)], self.tokens.copy()
        for offset in range(n):
            tokens[starts + offset] = GAP
        return replace(self, tokens=tokens)

    def words(self) -> tuple[Texts, Indices]:
        """Without signs, and the place of each word among all tokens; gaps stay."""
        kept = self.is_word[self.tokens] if len(self.tokens) else np.zeros(0, bool)
        kept |= self.tokens == GAP
        before = np.concatenate(([0], np.cumsum(kept)))
        return replace(self, tokens=self.tokens[kept], starts=before[self.starts]), np.flatnonzero(kept)

    def grams(self, n: int, whole_if_short: bool = True) -> Grams:
        """Distinct n-grams of each text."""
        owners, values, _ = self.placed(n, whole_if_short)
        return _distinct(owners, values, len(self.starts) - 1)

    def placed(self, n: int, whole_if_short: bool) -> tuple[Indices, Numbers, Indices]:
        """Every n-gram without a gap, with its text and its place among the tokens."""
        sizes = np.diff(self.starts)
        whole = np.maximum(0, sizes - n + 1)  # how many n-grams of a text do not cross into the next
        owners = np.repeat(np.arange(len(sizes)), whole)
        firsts = np.arange(len(owners)) - np.repeat(np.cumsum(whole) - whole, whole) + self.starts[owners]
        gaps = np.concatenate(([0], np.cumsum(self.tokens == GAP)))
        closed = gaps[firsts + n] == gaps[firsts]
        owners, firsts = owners[closed], firsts[closed]
        values = self._rolled(n)[firsts]
        short = np.flatnonzero((sizes > 0) & (sizes < n)) if whole_if_short else np.zeros(0, np.int64)
        if len(short):
            owners = np.concatenate((owners, short))
            parts = [self.tokens[self.starts[index] : self.starts[index + 1]] for index in short.tolist()]
            hashes = [replace(self, tokens=part)._rolled(len(part))[0] for part in parts]
            values = np.concatenate((values, np.array(hashes, np.uint64)))
            firsts = np.concatenate((firsts, self.starts[short]))
        return owners, values, firsts

    def _rolled(self, n: int) -> Numbers:
        mixed = scattered(self.tokens.astype(np.uint64) + np.uint64(1))
        length = max(0, len(mixed) - n + 1)
        total = np.zeros(length, np.uint64)
        for offset in range(n):
            total *= BASE
            total += mixed[offset : offset + length]
        return scattered(total) & KEPT_BITS


def scattered(values: Numbers) -> Numbers:
    """splitmix64: equal numbers stay equal, near numbers end up far apart."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _distinct(owners: Indices, values: Numbers, texts: int) -> Grams:
    """Sorted by text, then by value: owner and value are packed into one integer, which is sorted once."""
    if texts >= 1 << OWNER_BITS:
        raise UserError(f"{texts} texts at once; at most {(1 << OWNER_BITS) - 1}, audit the files in parts")
    both = np.sort((owners.astype(np.uint64) << np.uint64(64 - OWNER_BITS)) | values)
    both = both[np.concatenate((np.ones(min(1, len(both)), bool), both[1:] != both[:-1]))]
    sizes = np.bincount((both >> np.uint64(64 - OWNER_BITS)).astype(np.int64), minlength=texts)
    return Grams(both & KEPT_BITS, np.concatenate(([0], np.cumsum(sizes))))
