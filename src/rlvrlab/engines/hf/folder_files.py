"""The files of a model folder before anything, Transformers too, reads them: what they are, how large, and what numbers
config.json states. Weights decide how large a model is; numbers that they do not bear out cost memory or never end."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import UserError, cut, one_line, quoted
from rlvrlab.models.tensors import ADAPTER_CONFIG

LAYERS = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}
WINDOWS = {"max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "max_seq_len"}
MOST = dict.fromkeys((*WINDOWS, "vocab_size"), 1 << 24) | {
    "hidden_size": 1 << 20, "intermediate_size": 1 << 22, "num_hidden_layers": 1 << 14, "num_attention_heads": 1 << 14,
    "num_key_value_heads": 1 << 14, "head_dim": 1 << 14,
}  # fmt: skip
"""Whole numbers from 1 to these."""
FRACTIONS = {"rms_norm_eps", "rope_theta"}
"""Finite numbers above 0."""
SMALLEST = 1e-30
AGAIN = "fetch the model again"
CONFIGS = {
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", ADAPTER_CONFIG,
    "chat_template.json", "chat_template.jinja", "processor_config.json", "preprocessor_config.json",
}  # fmt: skip
VOCABULARIES = {"tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json", "tokenizer.model", "vocab.txt"}
LARGEST = dict.fromkeys(CONFIGS, 16 << 20) | dict.fromkeys(VOCABULARIES, 256 << 20)
"""Bytes that a file of this name may have."""
INDEX = ".index.json"
LARGEST_INDEX = 64 << 20


def refuse_odd(folder: Path) -> None:
    """UserError where an entry is a pipe or a device, or a file that is read whole is too large."""
    try:
        paths = sorted((*folder.iterdir(), *folder.glob("additional_chat_templates/*")))
    except OSError as error:
        raise UserError(f"{folder}: cannot be listed ({error.strerror}); check its permissions") from None
    for path in paths:
        try:
            facts = path.stat()
        except FileNotFoundError:  # a link to nothing is a file that is missing
            continue
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
        if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
            raise UserError(f"{path}: not a file but a pipe or a device; {AGAIN}")
        most = LARGEST_INDEX if path.name.endswith(INDEX) else LARGEST.get(path.name, facts.st_size)
        most = LARGEST["chat_template.jinja"] if path.suffix == ".jinja" else most
        if facts.st_size > most:
            raise UserError(f"{path}: {facts.st_size} bytes, at most {most} are read; {AGAIN}")
        if path.name.endswith(INDEX):
            _refuse_elsewhere(path)


def _refuse_elsewhere(path: Path) -> None:
    """An index names files of its own folder."""
    index = read_json(path)
    told = index.get("weight_map") if isinstance(index, dict) else None
    names = set(map(str, told.values())) if isinstance(told, dict) else set()
    odd = sorted(name for name in names if "/" in name or "\\" in name)
    if odd:
        raise UserError(f"{path}: weight_map names {quoted(odd[0], 200)}, allowed are files beside it; {AGAIN}")


def read_json(path: Path) -> Any:
    """A file of the folder; FileNotFoundError where there is none, UserError where it cannot be read."""
    try:
        return plain_files.strict(plain_files.read_text(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        text = f"{path}: cannot be read as JSON ({one_line(error)}); {AGAIN}"
        raise UserError(" ".join(text.split())) from None


def end_tokens(folder: Path) -> tuple[int, ...]:
    """The tokens that generation_config.json lets an answer end with: one, several or none."""
    path = folder / "generation_config.json"
    try:
        facts = read_json(path)
    except FileNotFoundError:
        return ()
    told = facts.get("eos_token_id") if isinstance(facts, dict) else None
    ends = told if isinstance(told, list) else [] if told is None else [told]
    if not all(type(one) is int and one >= 0 for one in ends):
        raise UserError(f"{path}: eos_token_id: allowed are a token's number or a list of such; {AGAIN}")
    return tuple(ends)


def refuse_numbers(path: Path, facts: Any, tensors: int) -> None:
    """UserError for a number in config.json, also in a table within it, that no model with so many tensors has."""
    for key, value in facts.items() if isinstance(facts, dict) else ():
        if isinstance(value, dict):
            refuse_numbers(path, value, tensors)
        if value is None or isinstance(value, dict | list):
            continue
        most = MOST.get(key)
        if most is not None and not is_whole(value, most):
            raise UserError(
                f"{path}: {key} is {cut(str(value), 40)}, allowed are whole numbers from 1 to {most}; {AGAIN}"
            )
        if key in LAYERS and not is_whole(value, tensors):
            text = f"{key} is {cut(str(value), 40)}, but the files hold {tensors} weights, at least one for each layer"
            raise UserError(f"{path}: {text}; {AGAIN}")
        if key in FRACTIONS and not is_positive(value):
            raise UserError(f"{path}: {key} is {cut(str(value), 40)}, allowed are finite numbers above 0; {AGAIN}")


def is_whole(value: Any, most: int) -> bool:
    """A whole number from 1 to `most`; true is none."""
    return type(value) is int and 1 <= value <= most


def is_positive(value: Any) -> bool:
    """A finite number above 0; true is none."""
    return plain_files.number(value, SMALLEST) is not None
