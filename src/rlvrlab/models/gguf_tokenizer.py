"""The tokenizer and chat template that a GGUF file carries, as the files Transformers reads."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlvrlab.models.tokenizer import byte_level_bpe, tokenizer_config

USER_DEFINED, CONTROL, UNUSED = 4, 3, 5
"""tokenizer.ggml.token_type of tokens that are read whole, of special ones, and of places without a token."""
DIGIT_BY_DIGIT = {"type": "Digits", "individual_digits": True}
QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Where qwen2 cuts a text: endings, words with one sign before them, single digits, signs, line ends, blanks."""


class Splitting(NamedTuple):
    """What happens to a text before its pieces become tokens."""

    cuts: list[dict[str, Any]]
    gpt2_words: bool
    digits: bool
    normalizer: dict[str, Any] | None = None


SPLITTINGS = {
    "gpt-2": Splitting([], gpt2_words=True, digits=False),
    "smollm": Splitting([DIGIT_BY_DIGIT], gpt2_words=True, digits=True),
    "qwen2": Splitting(
        [{"type": "Split", "pattern": {"Regex": QWEN2_WORDS}, "behavior": "Isolated", "invert": False}],
        gpt2_words=False, digits=True, normalizer={"type": "NFC"},
    ),
}  # fmt: skip
"""By tokenizer.ggml.pre."""
NAMES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


def tokenizer_files(facts: dict[str, Any], context: int) -> tuple[dict[str, Any], bool]:
    """File name -> text or JSON, and whether numbers are read digit by digit."""
    splitting = SPLITTINGS.get(facts["tokenizer.ggml.pre"])
    if facts["tokenizer.ggml.model"] != "gpt2" or splitting is None:
        raise ValueError(f"unknown tokenizer {facts['tokenizer.ggml.model']}/{facts['tokenizer.ggml.pre']}")
    if not facts.get("tokenizer.chat_template"):
        raise ValueError("the file has no chat template")
    ids = {name: facts.get(f"tokenizer.ggml.{key}_token_id") for name, key in NAMES.items()}
    known = {name: int(number) for name, number in ids.items() if number is not None}
    if missing := {"eos_token", "pad_token"} - known.keys():
        raise ValueError(f"the file names no {sorted(missing)[0]}")
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    used = max(i for i, kind in enumerate(kinds) if kind != UNUSED) + 1  # rows above are there to fill the matrix
    chosen = {kind: {i for i, own in enumerate(kinds[:used]) if own == kind} for kind in (CONTROL, USER_DEFINED)}
    made = byte_level_bpe(
        tokens[:used], facts["tokenizer.ggml.merges"], chosen[CONTROL], splitting.cuts, whole_words=False,
        gpt2_words=splitting.gpt2_words, whole_tokens=chosen[USER_DEFINED], normalizer=splitting.normalizer,
    )  # fmt: skip
    named = {name: tokens[number] for name, number in known.items()}
    files = {
        "tokenizer.json": made,
        "tokenizer_config.json": tokenizer_config(**named, model_max_length=context, padding_side="left"),
        "chat_template.jinja": str(facts["tokenizer.chat_template"]),
        "generation_config.json": {f"{name}_id": number for name, number in known.items() if name != "unk_token"},
    }
    return files, splitting.digits
