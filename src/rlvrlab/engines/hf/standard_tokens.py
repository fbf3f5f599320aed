"""Which tokenizer folders say no more than tokenizer.json: lists of all that may stand beside it, so that a setting
nobody here has heard of leaves the folder to Transformers instead of being passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from rlvrlab.engines.hf.folder_files import read_json
from rlvrlab.models.gguf_tokenizer import QWEN2_WORDS

Facts = dict[str, Any]
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LISTED = ("additional_special_tokens", "extra_special_tokens")
MORE_TEMPLATES = "additional_chat_templates"
AS_IT_IS = {"PreTrainedTokenizerFast", "TokenizersBackend"}
"""Classes that take tokenizer.json as it is, at least for `llama`; others build a tokenizer from its vocabulary, which
may cut a text elsewhere."""
OF_QWEN = {"Qwen2Tokenizer", "Qwen2TokenizerFast"}
"""Classes that build Qwen's tokenizer from the vocabulary, as every class does where the model is `qwen2`."""
QWEN_UNKNOWN = "<|endoftext|>"
"""Qwen's tokenizer adds this token where a file lacks it, and takes it for those that are not named."""
QWEN_NAMED = dict.fromkeys(("unk_token", "eos_token", "pad_token"), QWEN_UNKNOWN)
WITHOUT_PART = {
    "backend", "chat_template", "clean_up_tokenization_spaces", "errors", "is_local", "legacy", "local_files_only",
    "max_len", "max_length", "model_input_names", "model_max_length", "name_or_path", "pad_to_multiple_of",
    "pad_token_type_id", "padding_side", "processor_class", "special_tokens_map_file", "stride", "tokenizer_class",
    "truncation_side", "truncation_strategy", "use_fast", "vocab_size",
}  # fmt: skip
"""Keys of tokenizer_config.json that change no token and no text: nothing is cut or filled up here. Others, such as
add_bos_token, may only say nothing: null, false, an empty list."""
QWEN_CUTS = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": QWEN2_WORDS}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ],
}
QWEN_MODEL = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
    "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
}  # fmt: skip


def named_tokens(folder: Path, facts: Facts) -> dict[str, str]:
    """Special tokens by their names, with those that the class of Qwen adds."""
    told = (QWEN_NAMED if _built_as_qwen(folder, facts) else {}) | facts
    return {key: _content(told[key], typed=True) for key in NAMED if told.get(key) is not None}


def is_usual(folder: Path, facts: Facts, tokenizer: bytes, inner: Tokenizer) -> bool:
    """Does Transformers read this tokenizer as its file, and the library, have it?"""
    named, added = named_tokens(folder, facts), inner.get_added_tokens_decoder()
    listed = {_content(token, typed=True) for token in facts.get(LISTED[0]) or ()}
    special = {token.content for token in added.values() if token.special}
    known = {*NAMED, *LISTED[:1], "added_tokens_decoder"} | WITHOUT_PART
    if not all(key in known or _says_nothing(value) for key, value in facts.items()):
        return False
    if not set(named.values()) | listed <= special or not _same_beside(folder, facts, added):
        return False
    if inner.padding and "pad_token" not in named:
        return False  # its token is taken for the one that is not named
    if _built_as_qwen(folder, facts):
        whole = json.loads(tokenizer)  # the library took it, which goes 128 levels down
        return _is_of_qwen(whole) and _is_plainly_added(facts, added, {*named.values(), *listed})
    return _kind(folder) in ("llama", "qwen3") and facts.get("tokenizer_class") in AS_IT_IS


def _content(token: Any, *, typed: bool = False) -> str:
    """The text of a special token, which may stand in a table; tokenizer_config.json says of which type it is."""
    inside = isinstance(token, dict) and (not typed or token.get("__type") == "AddedToken")
    content = token["content"] if inside else token
    if not isinstance(content, str):
        raise TypeError("a token is a text")
    return content


def _says_nothing(value: Any) -> bool:
    return value is None or value is False or value in ([], {})


def _kind(folder: Path) -> Any:
    return read_json(folder / "config.json").get("model_type")


def _built_as_qwen(folder: Path, facts: Facts) -> bool:
    kind, named = _kind(folder), facts.get("tokenizer_class")
    return (kind == "qwen2" and named in AS_IT_IS | OF_QWEN) or (kind == "qwen3" and named in OF_QWEN)


def _same_beside(folder: Path, facts: Facts, added: dict[int, AddedToken]) -> bool:
    """Do the other files, which come before tokenizer.json or are added to it, say the same?"""
    told = {int(i): AddedToken(**token) for i, token in (facts.get("added_tokens_decoder") or {}).items()}
    if any(i not in added or repr(added[i]) != repr(token) for i, token in told.items()):
        return False
    older = _optional(folder / "added_tokens.json")
    if any(number not in added or added[number].content != text for text, number in older.items()):
        return False
    special = {token.content for token in added.values() if token.special}
    for key, value in _optional(folder / "special_tokens_map.json").items():
        if key in LISTED and not {_content(token) for token in value or ()} <= special:
            return False
        if key not in LISTED and (key not in NAMED or _named(value) != _named(facts.get(key), typed=True)):
            return False
    return not any((folder / MORE_TEMPLATES).glob("*.jinja"))


def _optional(path: Path) -> Facts:
    found = read_json(path) if path.exists() else {}
    if not isinstance(found, dict):
        raise TypeError("a table")
    return found


def _named(token: Any, *, typed: bool = False) -> str | None:
    return None if token is None else _content(token, typed=typed)


def _is_of_qwen(whole: Facts) -> bool:
    """Is the file what the class builds of its vocabulary, merges and added tokens?"""
    model = {key: whole["model"].get(key) or empty for key, empty in QWEN_MODEL.items()}
    cuts = whole.get("pre_tokenizer") or {}
    for one in cuts.get("pretokenizers", ()):
        one.pop("trim_offsets", None)  # about places in the text, which nobody asks for
    decodes = (whole.get("decoder") or {}).get("type") == "ByteLevel"
    return whole.get("normalizer") == {"type": "NFC"} and model == QWEN_MODEL and decodes and cuts == QWEN_CUTS


def _is_plainly_added(facts: Facts, added: dict[int, AddedToken], special: set[str]) -> bool:
    """The class adds the tokens that tokenizer_config.json lists, where it lists any, and special ones anew, without
    their habits at blanks."""
    told = facts.get("added_tokens_decoder")
    if told and {int(i) for i in told} != added.keys():
        return False
    plain = {token.content for token in added.values() if repr(token) == repr(AddedToken(token.content, special=True))}
    return special <= plain and QWEN_UNKNOWN in {token.content for token in added.values()}
