"""Characters, and whole numbers as one token each.

"3 17 = 51\\n" -> ["3", " ", "17", " ", "=", " ", "51", "\\n"]; any other character becomes "\\x00" (unknown).
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import numpy as np

from rlvrlab.batch import Ints

END = 0
UNKNOWN = 1
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
_PIECES = re.compile(r"0|[1-9][0-9]*|.", re.DOTALL)


class ToyTokenizer:
    """Ids: 0 end, 1 unknown, then CHARACTERS, then the numbers 10 … max_number."""

    end = END

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
