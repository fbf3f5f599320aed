"""Tokenizers as plain data: the JSON that Hugging Face's `tokenizers` reads, written without that library.

Both are byte-level, so every text has an encoding and comes back exactly. nano's is a greedy longest match over
LEXEMES with single bytes for the rest: a regular expression cuts the lexemes out (longest first), and a BPE without
merges takes a piece whole where it is in the vocabulary and byte by byte where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlvrlab.models.lexemes import LEXEMES

PAD, END = "<|pad|>", "<|end|>"
PAD_ID, END_ID, FIRST_BYTE_ID, FIRST_LEXEME_ID = 0, 1, 2, 258
Json = dict[str, Any]


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
    vocabulary: Sequence[str],
    merges: Sequence[str],
    special: set[int],
    cuts: Sequence[Mapping[str, Any]],
    *,
    whole_words: bool,
    gpt2_words: bool,
) -> Json:
    """tokenizer.json of a byte-level BPE; `cuts` come before the bytes, `gpt2_words` adds GPT-2's own splitting."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    bytes_of_text = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": gpt2_words}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": vocabulary[i], **plain} for i in sorted(special)],
        "normalizer": None,
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
