"""Chooses the model code of an hf engine: ours for standard folders, which starts seconds earlier, else
Transformers and PEFT. No other place decides this."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch

from rlvrlab.engines.hf import load, own_lora
from rlvrlab.engines.hf.config import HfConfig
from rlvrlab.engines.hf.early_kernels import compiled_meanwhile
from rlvrlab.engines.hf.own_model import OwnModel
from rlvrlab.engines.hf.stored import Stored, stored
from rlvrlab.engines.hf.token_file import TokenFile, token_file
from rlvrlab.engines.hf.tokenizer import HfTokenizer


class Opened(NamedTuple):
    """All that is trained, and how it reads."""

    model: Any
    adapter: Any
    """Around and inside the model; None where every parameter is trained."""
    tokenizer: HfTokenizer


def opened(config: HfConfig, device: torch.device, *, own: bool = True) -> Opened:
    """What the recipe asks for; without `own` it is Transformers' in any case."""
    found = _own(config, device) if own else None
    if found is not None:
        return found
    model = load.load_model(config, device)
    adapter = load.add_adapter(model, config) if config.lora_rank else None
    vocabulary = int(model.get_output_embeddings().weight.shape[0])
    return Opened(model, adapter, load.load_tokenizer(config, vocabulary))


class Plain(NamedTuple):
    """A standard folder, read without Transformers."""

    model: Stored
    tokens: TokenFile


def plain_folder(config: HfConfig, device: torch.device) -> Plain | None:
    """A model and its tokenizer as they lie there; None where it takes Transformers to read them."""
    folder = Path(config.model)
    if config.quantize != "none" or not folder.is_dir():
        return None
    load.check_source(config.model)
    load.wake(device)
    tokens = token_file(folder)
    model = None if tokens is None else stored(folder)
    return None if tokens is None or model is None else Plain(model, tokens)


def _own(config: HfConfig, device: torch.device) -> Opened | None:
    """None where something is asked for that our modules do not have."""
    plain = None if config.gradient_checkpointing else plain_folder(config, device)
    if plain is None:
        return None
    targets = own_lora.targets_of(plain.model.tensors, config.lora_targets) if config.lora_rank else set()
    if targets is None:
        return None
    dtype = load.dtype_of(config, device)
    with compiled_meanwhile(plain.model.facts, device, dtype, train=True):
        model = OwnModel(plain.model, device, dtype).eval()
    adapter = own_lora.add(model, targets, config) if config.lora_rank else None
    vocabulary, ends = model.config.vocab_size, load.ends_of(config.model)
    tokenizer = HfTokenizer(plain.tokens, vocabulary, config.model, chat=config.chat, ends=ends)
    return Opened(model, adapter, tokenizer)
