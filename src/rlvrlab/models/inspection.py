"""What a model folder holds, read from its descriptions and the headers of its weights: nothing is loaded or run."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.errors import UserError
from rlvrlab.models.cache import size_of
from rlvrlab.models.tensors import ADAPTER_CONFIG, read_header

PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill"}
"""Endings of files that run code when they are loaded."""
INDEX = "model.safetensors.index.json"


def dangers(folder: Path) -> list[str]:
    """Why loading this folder could run foreign code; empty when it cannot."""
    found = []
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    for path in files:
        if path.suffix.lower() in PICKLES:
            found.append(f"{path.name}: a pickle, which runs code when loaded; only safetensors are read")
        elif path.suffix == ".py":
            found.append(f"{path.name}: Python code shipped with the model; it is never run")
        elif path.suffix == ".json" and path.name != "tokenizer.json":
            found += _asks_for_code(path)
    return found


def _asks_for_code(path: Path) -> list[str]:
    try:
        asks = "auto_map" in _read(path)
    except UserError as error:  # another reader may find in it what ours does not
        return [str(error).removeprefix(f"{path.parent}/")]
    return [f"{path.name}: auto_map asks for remote code, which is refused"] if asks else []


def examine(folder: Path) -> dict[str, Any]:
    """The facts `rlvr model show` prints; a folder that is no model is refused, a doubtful one described."""
    if not folder.is_dir():
        raise UserError(f"{folder}: not on this machine; `rlvr model list` shows what is, or name a folder")
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no model (no config.json); name a folder that Transformers can load")
    config = config_of(folder)
    tensors, problems = _weights(folder)
    architectures = config.get("architectures")
    dtypes = Counter(dtype for dtype, _ in tensors.values()).most_common(1)
    dtype = dtypes[0][0] if dtypes else str(config.get("torch_dtype", config.get("dtype")) or "unknown")
    path, template = folder / "chat_template.jinja", None
    stated = _read(folder / "tokenizer_config.json", missing_ok=True).get("chat_template")
    text = plain_files.read_bytes(path).decode(errors="replace") if path.is_file() else stated
    if isinstance(text, str):
        template = {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]}
    base = _read(folder / ADAPTER_CONFIG, missing_ok=True).get("base_model_name_or_path")
    return {
        "folder": str(folder),
        "architecture": architectures[0] if isinstance(architectures, list) and architectures else "unknown",
        "parameters": _counted(tensors),
        "tensors": len(tensors),
        "dtype": dtype,
        "layers": config.get("num_hidden_layers"),
        "width": config.get("hidden_size"),
        "context": config.get("max_position_embeddings"),
        "bytes": size_of(folder),
        "tokenizer": _tokenizer(folder),
        "template": template,
        "licence": licence(folder),
        "adapter": base if isinstance(base, str) else None,
        "warnings": problems + dangers(folder),
    }


def config_of(folder: Path) -> dict[str, Any]:
    """What a model's config.json says."""
    return _read(folder / "config.json")


def parameters_in(folder: Path) -> int:
    """How many numbers the weights in a folder have, by their headers; 0 where there are none to be read."""
    return _counted(_weights(folder)[0])


def _counted(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> int:
    """Numbers in all these tensors."""
    return sum(math.prod(shape) for _, shape in tensors.values())


def licence(folder: Path) -> str:
    """From the model card's front-matter, as written there."""
    try:
        lines = plain_files.read_bytes(folder / "README.md").decode(errors="replace").splitlines()
    except OSError:
        return ""
    if not lines or lines[0].strip() != "---":
        return ""
    for line in lines[1:200]:
        name, _, value = line.partition(":")
        if line.strip() == "---":
            break
        if name == "license":
            return value.strip().strip("\"'")
    return ""


def _read(path: Path, missing_ok: bool = False) -> dict[str, Any]:
    try:
        value = plain_files.strict(plain_files.read_text(path))
    except (OSError, ValueError) as error:
        if missing_ok:
            return {}
        missing = isinstance(error, FileNotFoundError)
        why = "is missing" if missing else f"cannot be read ({error}); fetch the model again"
        raise UserError(f"{path}: {why}") from None
    return value if isinstance(value, dict) else {}


def _weights(folder: Path) -> tuple[dict[str, tuple[str, tuple[int, ...]]], list[str]]:
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    problems = []
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors |= read_header(path)
        except UserError as error:
            problems.append(str(error))
    if not tensors and not problems:
        problems.append("no safetensors weights here")
    placed = _read(folder / INDEX, missing_ok=True).get("weight_map")
    if isinstance(placed, dict):
        missing = sorted({str(name) for name in placed.values()} - {path.name for path in folder.iterdir()})
        problems += [f"{name}: named in {INDEX} and missing" for name in missing]
    return tensors, problems


def _tokenizer(folder: Path) -> dict[str, Any] | None:
    stated = _read(folder / "tokenizer_config.json", missing_ok=True)
    content = _read(folder / "tokenizer.json", missing_ok=True)
    if not stated and not content:
        return None
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    return {
        "class": stated.get("tokenizer_class", "unknown"),
        "type": model.get("type", "unknown") if isinstance(model, dict) else "unknown",
        "vocabulary": len(vocabulary) if isinstance(vocabulary, dict | list) else None,
        "end": _token(stated.get("eos_token")),
        "pad": _token(stated.get("pad_token")),
    }


def _token(value: Any) -> str | None:
    """A token as text, or as the table some tokenizers write."""
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None
