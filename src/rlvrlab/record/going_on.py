"""How a run is gone on with, as its record tells: exactly, after a mend, or not at all. Decided here for every page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.registry import PYTHON


def resume_command(folder: Path, config: dict[str, Any], *, accept_code: bool = False) -> str:
    """What to type; functions that are in no file must be given again, and only Python can do that."""
    tables = {kind: config.get("recipe", {}).get(kind) or {} for kind in ("reward", "env")}
    in_memory = [kind for kind, table in tables.items() if str(table.get("type")).startswith(PYTHON)]
    if in_memory:
        given = [f"{kind}=…" for kind in in_memory] + ["accept_code=True"] * accept_code
        return f"rlvrlab.Run({str(folder)!r}).resume({', '.join(given)})"
    return f"rlvr train --resume {folder}{' --accept-code' * accept_code}"


def going_on(folder: Path, config: dict[str, Any], info: dict[str, Any]) -> str:
    """One sentence: the command, and what must happen before it."""
    if info.get("status") == "failed" and info.get("failed_in_own_code"):
        command = resume_command(folder, config, accept_code=True)
        return f"A plain resume would fail there again: mend the function, then go on with `{command}`."
    if not info.get("resumable", True):
        return "A resume would fail there again: mend what the reason says, then start a new run."
    return f"An interrupted run goes on exactly with `{resume_command(folder, config)}`."
