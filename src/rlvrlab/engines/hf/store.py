"""What an hf engine leaves on disk: safetensors and JSON, nothing else.

engine.json           version, counts and the shape of what is trained
engine.safetensors    parameters, optimiser, reference, critic: exact resume
huggingface/          the merged model with its tokenizer, as Transformers and vLLM load it
adapter/              the LoRA alone in PEFT's layout, where there is one
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from rlvrlab.batch import batch_of
from rlvrlab.errors import CheckpointError
from rlvrlab.randomness import generator

if TYPE_CHECKING:
    from rlvrlab.engines.hf.engine import HfEngine

STATE = "engine.safetensors"
FACTS = "engine.json"
EXPORT_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.25}
"""How far a log-prob of the exported model may be from the engine's: merging rounds once."""


def save(engine: HfEngine, folder: Path) -> None:
    """Everything; the caller makes it atomic."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / STATE, _state(engine))
    (folder / FACTS).write_text(json.dumps(_facts(engine), indent=1), encoding="utf-8")
    export(engine, folder / "huggingface")
    if engine.peft is not None:
        export_adapter(engine, folder / "adapter")


def load(engine: HfEngine, folder: Path) -> None:
    """Back to exactly where `save` was."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        state = load_file(folder / STATE, device=str(engine.device))
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: {FACTS} or {STATE} cannot be read ({error})") from error
    expected = _facts(engine)
    for key in ("trained", "precision", "optimizer"):
        if facts.get(key) != expected[key]:
            differs = "other parameters" if key == "trained" else f"{key} {facts.get(key)}"
            raise CheckpointError(f"{folder}: {differs}, not those of this recipe's engine (model, lora, dtype)")
    engine.weights.set(state["theta"])
    engine.reference = state["reference"]
    engine.critic.weight = state["critic"]
    engine.optimizer.restore(_under("optimizer.", state))
    engine.critic.optimizer.restore(_under("critic_optimizer.", state))
    engine.version = int(facts["version"])


def export(engine: HfEngine, folder: Path) -> None:
    """The model with its adapter merged, as any tool loads it."""
    folder.mkdir(parents=True, exist_ok=True)
    engine.tokenizer.inner.save_pretrained(folder)
    if engine.config.quantize != "none":
        return  # 4-bit weights cannot be merged exactly: the adapter is the result
    with disk_errors(folder):
        engine.model.save_pretrained(folder, state_dict=merged_state(engine))


def export_adapter(engine: HfEngine, folder: Path) -> None:
    """LoRA in PEFT's layout."""
    from peft import get_peft_model_state_dict

    assert engine.peft is not None
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "adapter_model.safetensors", get_peft_model_state_dict(engine.peft))
    engine.peft.peft_config["default"].save_pretrained(folder)


def write_tensors(path: Path, state: dict[str, Tensor]) -> None:
    """One safetensors file; copies, because parameters share the memory of one flat vector."""
    from safetensors.torch import save_file

    with disk_errors(path):
        save_file({name: x.detach().clone() for name, x in state.items()}, path, metadata={"format": "pt"})


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """A full disk comes out of safetensors as an error of its own kind; the callers know OSError."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def merged_state(engine: HfEngine) -> dict[str, Tensor]:
    """The state dict as it would be without adapters: W + (alpha / rank) B A, added in float32."""
    state = {}
    modules = dict(engine.model.named_modules())
    for name, value in engine.model.state_dict().items():
        if ".lora_" in name:
            continue
        owner = modules[name.rpartition(".")[0].removesuffix(".base_layer")]
        if name.endswith(".base_layer.weight") and hasattr(owner, "get_delta_weight"):
            value = (value.float() + _delta(owner)).to(value.dtype)
        state[name.replace(".base_layer.", ".")] = value.detach().clone()
    return state


def verify_export(folder: Path, engine: HfEngine, rows: int = 4) -> float:
    """Load an export with plain Transformers and score a few rows; the largest log-prob difference, or an error."""
    from rlvrlab.models.rescoring import rescore

    tokens = generator("verify_export").integers(0, engine.body.vocabulary, (rows, 12)).tolist()
    pairs = [(row[:6], row[6:]) for row in tokens]
    mine_BT = engine.logprobs(batch_of([p for p, _ in pairs], [a for _, a in pairs]))[0]
    worst = float(np.abs(np.array(rescore(folder, pairs).logprobs) - mine_BT).max())
    if not worst <= EXPORT_TOLERANCE[engine.precision]:
        raise CheckpointError(f"{folder}: the exported model scores differently (log-probs differ by {worst:.3g})")
    return worst


def _delta(owner: Any) -> Tensor:
    pieces = [x.weight.detach().float() for x in (owner.lora_B["default"], owner.lora_A["default"])]
    delta = owner.scaling["default"] * (pieces[0] @ pieces[1])
    return delta.T if owner.fan_in_fan_out else delta


def _state(engine: HfEngine) -> dict[str, Tensor]:
    state = {"theta": engine.weights.theta, "reference": engine.reference, "critic": engine.critic.weight}
    state |= {f"optimizer.{k}": v for k, v in engine.optimizer.state().items()}
    return state | {f"critic_optimizer.{k}": v for k, v in engine.critic.optimizer.state().items()}


def _facts(engine: HfEngine) -> dict[str, Any]:
    trained = [[name, list(shape)] for name, shape in zip(engine.weights.names, engine.weights.shapes, strict=True)]
    return {
        "model": engine.config.model,
        "version": engine.version,
        "precision": engine.precision,
        "optimizer": engine.optimizer_settings.type,
        "trained": trained,
    }


def _under(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
