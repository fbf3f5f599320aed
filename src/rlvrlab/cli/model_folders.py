"""A folder in Hugging Face's layout as a policy."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab.plain_files import sha256_of

if TYPE_CHECKING:
    from rlvrlab.engines.base import ScoringSampler


def is_model(folder: Path) -> bool:
    """Does the folder hold a model in Hugging Face's layout, with safetensors?"""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def engine_of_model(folder: Path, *, chat: bool) -> tuple[ScoringSampler, dict[str, Any]]:
    """A language model and what tells it from another; `chat` wraps prompts where the tokenizer has a template."""
    from rlvrlab.engines.hf import Hf
    from rlvrlab.recipe.schema import Optimizer

    files = sorted(folder.glob("*.safetensors"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(bytes.fromhex(sha256_of(path)))
    settings = folder / "tokenizer_config.json"
    template = (folder / "chat_template.jinja").is_file() or (
        settings.is_file() and "chat_template" in settings.read_text(encoding="utf-8")
    )
    engine = Hf(str(folder), chat=chat and template).read(Optimizer())
    return engine, {"model": folder.name, "weights": digest.hexdigest()[:16], "chat": chat and template}
