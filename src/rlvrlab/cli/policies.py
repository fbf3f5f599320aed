"""The policy of a run, for commands that examine it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab.errors import UserError

if TYPE_CHECKING:
    from rlvrlab.engines.base import Engine
    from rlvrlab.recipe import Resolved

STEP = "global_step_"


def run_of(path: Path) -> Path:
    """The run folder a path means: itself, or that of one of its checkpoints."""
    return path.parent.parent if path.name.startswith(STEP) and path.parent.name == "checkpoints" else path


def engine_of_run(path: Path) -> tuple[Resolved, Engine, dict[str, Any]]:
    """A run's recipe, its policy at the newest complete checkpoint (or at the one named), and what was loaded.

    Nothing in the folder is touched: the run may still be going on.
    """
    from rlvrlab.train import checkpoint
    from rlvrlab.train.lab import engine_alone
    from rlvrlab.train.session import resolved_of

    folder = run_of(path)
    resolved = resolved_of(folder)
    found = [path] if path != folder else _complete(folder / "checkpoints")
    if not found:
        raise UserError(f"{folder}: no complete checkpoint yet; wait for one, or name another run")
    engine = engine_alone(resolved)
    state = checkpoint.load(found[0], engine)
    engine.publish()
    return resolved, engine, {"run": folder.name, "checkpoint": found[0].name, "step": state.step}


def is_model(folder: Path) -> bool:
    """A folder in Hugging Face's layout."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def engine_of_model(folder: Path, *, chat: bool) -> tuple[Engine, dict[str, Any]]:
    """A language model and what tells it from another; `chat` wraps prompts where the tokenizer has a template."""
    from rlvrlab.engines.hf import Hf
    from rlvrlab.types import OptimizerSettings

    files = sorted(folder.glob("*.safetensors"))
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    template = (folder / "chat_template.jinja").is_file() or "chat_template" in _text(folder / "tokenizer_config.json")
    engine: Any = Hf(str(folder), chat=chat and template).build(OptimizerSettings())
    return engine, {"model": folder.name, "weights": digest.hexdigest()[:16], "chat": chat and template}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _complete(folder: Path) -> list[Path]:
    """Complete checkpoints, newest first."""
    from rlvrlab.train.checkpoint import defect

    named = [path for path in folder.glob(f"{STEP}*") if path.name.removeprefix(STEP).isdigit()]
    newest = sorted(named, key=lambda path: int(path.name.removeprefix(STEP)), reverse=True)
    return [path for path in newest if defect(path) is None]
