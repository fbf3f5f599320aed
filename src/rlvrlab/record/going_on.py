"""The commands of a run, as its record tells: how it is gone on with, and how it is made again.

Decided here for every page: a run goes on exactly, after a mend, or not at all, and one that was changed on its way is
not what its first command makes.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from rlvrlab.registry import PYTHON


def resume_command(folder: Path, config: dict[str, Any], *, accept_code: bool = False) -> str:
    """What to type; functions that are in no file must be given again, and only Python can do that."""
    if _in_memory(config):
        return resume_call(folder, config, accept_code=accept_code)
    return f"rlvr train --resume {folder}{' --accept-code' * accept_code}"


def resume_call(folder: Path, config: dict[str, Any], *, accept_code: bool = False) -> str:
    """What to write in Python; elsewhere than in the process that trained, `…` stands for functions in no file."""
    given = [f"{kind}=…" for kind in _in_memory(config)] + ["accept_code=True"] * accept_code
    return f"rlvrlab.Run({str(folder)!r}).resume({', '.join(given)})"


def _in_memory(config: dict[str, Any]) -> list[str]:
    """Of reward and environment, those that only a Python process knows."""
    tables = {kind: config.get("recipe", {}).get(kind) or {} for kind in ("reward", "env")}
    return [kind for kind, table in tables.items() if str(table.get("type")).startswith(PYTHON)]


def going_on(folder: Path, config: dict[str, Any], info: dict[str, Any]) -> str:
    """One sentence: the command, and what must happen before it."""
    if info.get("status") == "failed" and info.get("failed_in_own_code"):
        command = resume_command(folder, config, accept_code=True)
        return f"A plain resume would fail there again: mend the function, then go on with `{command}`."
    if not info.get("resumable", True):
        return "A resume would fail there again: mend what the reason says, then start a new run."
    return f"An interrupted run goes on exactly with `{resume_command(folder, config)}`."


def made_again(folder: Path, config: dict[str, Any], info: dict[str, Any]) -> tuple[str, str]:
    """The command that makes the same run from the start, and what it cannot do; a longer run is one command, too."""
    command = [str(word) for word in info.get("command") or ["rlvr", "train", "RECIPE"]]
    changes = [item for one in config.get("history", []) for item in one["changed"].items()]
    now = {key: ends["to"] for key, ends in changes if not key.endswith(".code")}
    words = [shlex.quote(f"{key}={json.dumps(value)}") for key, value in now.items()]
    code = "; ".join(f"{key} {ends['from']} → {ends['to']}" for key, ends in changes if key.endswith(".code"))
    limits = f"Its own code changed on the way ({code}), so no one command makes the same run." if code else ""
    if not words or command[:2] == ["rlvr", "train"]:
        kept = [word for word in command if word.lstrip("-").partition("=")[0] not in now or "=" not in word]
        return " ".join([*kept, *words]), limits
    return f"{' '.join(command)}\nrlvr train --resume {folder} {' '.join(words)}", limits
