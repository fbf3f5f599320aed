"""Preference rows from a file, for DPO: what `rlvr data prepare RUN --as preference` writes, or TRL's own shape.

    {"prompt": [{"role": "user", "content": …}], "chosen": [{"role": "assistant", …}], "rejected": […], "extra_info": …}
    {"prompt": "…", "chosen": "…", "rejected": "…"}
A prompt that a manifest beside the file, or the run's own held-out problems, call anything but training is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.loading import protected_prompts
from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.split import refuse_roles
from rlvrlab.errors import UserError


class Preference(NamedTuple):
    """One pair of answers to one prompt."""

    problem: str
    prompt: str
    chosen: str
    rejected: str


def read_preferences(path: Path, held_out: Mapping[str, str]) -> list[Preference]:
    """The pairs of a file; `held_out` are hashes of prompts (manifest.prompt_sha256) -> why they may not be used."""
    protected = {**protected_prompts(path.parent), **held_out}
    pairs, wrong = [], []
    for number, row in read_rows(path):
        where = f"{path}:{number}"
        prompt, chosen, rejected = (_text(row.get(side), where, side) for side in ("prompt", "chosen", "rejected"))
        extra = row.get("extra_info")
        problem = str(extra.get("problem", number)) if isinstance(extra, dict) else str(number)
        if held := protected.get(prompt_sha256(prompt)):
            wrong.append((problem, f"held out: {held}"))
        pairs.append(Preference(problem, prompt, chosen, rejected))
    refuse_roles(wrong, "preference", str(path))
    if not pairs:
        raise UserError(f"{path}: holds no pairs; `rlvr data prepare RUN --as preference` makes some")
    return pairs


def _text(value: Any, where: str, column: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        content = value[0].get("content")
        if isinstance(content, str):
            return content
    raise UserError(f"{where}: column {column!r}: a text or one message with `content` was expected")
