"""What an hf engine leaves on disk: safetensors and JSON, nothing else.

engine.json           version, counts and the shape of what is trained
engine.safetensors    parameters, optimiser, reference, critic: exact resume
huggingface/          the merged model with its tokenizer, as Transformers and vLLM load it
vectors.safetensors   what a guard keeps from step to step, in a folder of its own
adapter/              the LoRA alone in PEFT's layout, where there is one
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlvrlab.engines.hf.memory import out_of_memory
from rlvrlab.engines.hf.own_lora import OwnAdapter
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.errors import CheckpointError
from rlvrlab.models.tensors import ADAPTER_TENSORS

STATE = "engine.safetensors"
FACTS = "engine.json"
VECTORS = "vectors.safetensors"


def save(folder: Path, state: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write what `load` needs to go on exactly; the caller makes it atomic."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / STATE, state)
    (folder / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def load(folder: Path, device: torch.device, expected: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """State and facts as `save` got them; a CheckpointError where they are not those of the expected engine."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        state = load_file(folder / STATE, device=str(device))
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: {FACTS} or {STATE} cannot be read ({error})") from error
    for key in ("trained", "precision", "optimizer"):
        if facts.get(key) != expected[key]:
            differs = "other parameters" if key == "trained" else f"{key} {facts.get(key)}"
            raise CheckpointError(f"{folder}: {differs}, not those of this recipe's engine (model, lora, dtype)")
    return state, facts


def export(folder: Path, model: Any, tokenizer: HfTokenizer, *, quantized: bool) -> None:
    """The model with its adapter merged, as any tool loads it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.inner.save_pretrained(folder)
    if quantized:
        return  # 4-bit weights cannot be merged exactly: the adapter is the result
    with disk_errors(folder):
        model.save_pretrained(folder, state_dict=merged_state(model))


def export_adapter(folder: Path, adapter: Any) -> None:
    """The LoRA alone in PEFT's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(adapter, OwnAdapter):
        state = adapter.state()
        adapter.save_settings(folder)
    else:
        from peft import get_peft_model_state_dict

        state = get_peft_model_state_dict(adapter)
        adapter.peft_config["default"].save_pretrained(folder)
    write_tensors(folder / ADAPTER_TENSORS, state)


def write_tensors(path: Path, state: Mapping[str, Tensor]) -> None:
    """One safetensors file; copies, because parameters share the memory of one flat vector."""
    from safetensors.torch import save_file

    with disk_errors(path):
        save_file({name: in_main_memory(x) for name, x in state.items()}, path, metadata={"format": "pt"})


def read_tensors(path: Path, device: torch.device) -> dict[str, Tensor]:
    """Back from `write_tensors`."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path, device=str(device))
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """A full disk comes out of safetensors as an error of its own kind; the callers know OSError."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def in_main_memory(x: Tensor) -> Tensor:
    """A copy outside the card, where training and sampling may have left no room for a second model."""
    return x.detach().to("cpu", copy=True)


def merged_state(model: Any) -> dict[str, Tensor]:
    """The state dict as it would be without adapters, in main memory."""
    state = {}
    modules = dict(model.named_modules())
    for name, value in model.state_dict().items():
        if ".lora_" in name:
            continue
        owner = modules[name.rpartition(".")[0].removesuffix(".base_layer")]
        if name.endswith(".base_layer.weight") and hasattr(owner, "get_delta_weight"):
            try:
                value = merged_weight(owner, value, value.device)
            except RuntimeError as error:
                if not out_of_memory(error, value.device):
                    raise
                value = merged_weight(owner, value, torch.device("cpu"))
        state[name.replace(".base_layer.", ".")] = in_main_memory(value)
    return state


def merged_weight(owner: Any, weight: Tensor, device: torch.device) -> Tensor:
    """W + (alpha / rank) B A, added in float32 on this device."""
    up, down = (side["default"].weight.detach().to(device).float() for side in (owner.lora_B, owner.lora_A))
    delta = owner.scaling["default"] * (up @ down)
    return (weight.to(device).float() + (delta.T if owner.fan_in_fan_out else delta)).to(weight.dtype)
