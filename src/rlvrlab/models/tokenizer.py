"""Tokenizers as plain data: the JSON that Hugging Face's `tokenizers` reads, written without that library.

Both are byte-level, so every text has an encoding and comes back exactly. nano's is a greedy longest match over
LEXEMES with single bytes for the rest: a regular expression cuts the lexemes out (longest first), and a BPE without
merges takes a piece whole where it is in the vocabulary and byte by byte where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

PAD, END = "<|pad|>", "<|end|>"
PAD_ID, END_ID, FIRST_BYTE_ID, FIRST_LEXEME_ID = 0, 1, 2, 258
Json = dict[str, Any]

FRAME = (
    "#gen ", "#fix ", "#min\n", "#out\n", "def f(x):\n", "def f(x,y):\n", " x=", " return ", " return x\n",
    " return sum(x)\n", " return len(x)\n", " return max(x+[0])\n", " not ", "]>[",
)  # fmt: skip

LISTS = (
    "sorted(x)\n", "sorted(set(x))\n", "[v for v in x if v", "[v", " for v in x]\n", "%2==", "x[", "::-1]\n", "::2]\n",
    ":]\n", "]\n", ":]+x[:", "x+[", "]+x\n",
)  # fmt: skip

WORDS = (
    "sort", "ascending", "order", "reverse", "flip", "backwards", "unique", "distinct", "dedupe", "rotate", "cycle",
    "first to end", "every other", "alternate", "step ", "evens", "keep ", "even", "no ", "odds", "odd", "drop ",
    "skip ", "without ", "first ", "take ", "head ", "last ", "tail ", "final ", "add ", "plus ", "increase ",
    "times ", "multiply ", "scale ", "above ", "more than ", "below ", "less than ", "push ", "append ", "end with ",
    "lead ", "prepend ", "start with ", "sum", "total", "add up", "count", "size", "how many", "max", "largest",
    "biggest",
)  # fmt: skip

CONTROL = (
    " if ", "else:x=", ":x=", " else ", "if there is ", "if adds up over ", " for ", "in ", " for v in x", " in x",
    " r=[]\n", " x=r\n", "r+=[", "t=", "x[i]", "x[i-1]]\n", "len(x)>", "sum(x)>", "sum(x)%2==0:", "break\n",
    "while sum(x)>", ")\n",
)  # fmt: skip

TEXTS = (
    "''.join(", "x.replace('", "','", "')\n", "'aeiou'", "chr(ord(v)", "x.upper()\n", "'+x\n", "':", "{a:b",
    " for a,b in x.items()", " if b", " if a", "}\n", "x.count(", "x.index(", "enumerate(", "x.values()", "{**x,'",
    "zip(x,y)]\n", "y]",
)  # fmt: skip

LEXEMES = (*FRAME, *LISTS, *WORDS, *CONTROL, *TEXTS)
"""What minicode's prompts and programs are made of, each worth one token: 126, which makes 384 tokens with the two
special ones and the 256 bytes. Counted over 4,320 problems of all four skills and nine levels; levels 1 to 3 are
covered whole, of the others what saves most. A problem with its solution takes 29, 36 and 43 tokens at levels 1 to 3
and 54 to 106 at levels 4 to 9, a third of its characters. No lexeme begins or ends with a digit, so numbers are read
digit by digit. The order is the order of token ids: adding one changes nano's weights, so append only."""


def byte_symbols() -> list[str]:
    """GPT-2's printable stand-in for each byte: itself where it is printable, a character from 256 on elsewhere."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + hidden.index(byte)) for byte in range(256)]


def nano_vocabulary() -> list[str]:
    """Token texts by id, bytes and lexemes in their printable form."""
    symbols = byte_symbols()
    return [PAD, END, *symbols, *("".join(symbols[byte] for byte in lexeme.encode()) for lexeme in LEXEMES)]


def nano_tokenizer() -> Json:
    """tokenizer.json of every nano."""
    longest_first = sorted(LEXEMES, key=lambda lexeme: (-len(lexeme), lexeme))
    pattern = "|".join(re.escape(lexeme) for lexeme in longest_first)
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return byte_level_bpe(nano_vocabulary(), [], {PAD_ID, END_ID}, [cut], whole_words=True, gpt2_words=False)


def byte_level_bpe(
    vocabulary: Sequence[str], merges: Sequence[str], special: set[int], cuts: Sequence[Mapping[str, Any]], *,
    whole_words: bool, gpt2_words: bool, whole_tokens: Set[int] = frozenset(),
    normalizer: Mapping[str, Any] | None = None,
) -> Json:  # fmt: skip
    """tokenizer.json of a byte-level BPE; `cuts` come before the bytes, `gpt2_words` adds GPT-2's own splitting.

    `whole_tokens` are read as one wherever their text stands, as `special` ones are, but belong to the text.
    """
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    bytes_of_text = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": gpt2_words}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": vocabulary[i], **plain, "special": i in special}
            for i in sorted({*special, *whole_tokens})
        ],
        "normalizer": None if normalizer is None else dict(normalizer),
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*cuts, bytes_of_text]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": whole_words,
            "vocab": {text: i for i, text in enumerate(vocabulary)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }


def tokenizer_config(**facts: Any) -> Json:
    """tokenizer_config.json: nothing is cleaned up behind the text's back."""
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **facts}
