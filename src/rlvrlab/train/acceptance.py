"""A run that goes on with the user's own functions as they are now, mended after it failed, say.

The change is on record: config.json gets the new fingerprints and keeps the old ones in its history, and an event says
after which step the new functions judge and pay. What was trained before stays as it was.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.train import checkpoint, run_folder
from rlvrlab.train.integrity import changed_code
from rlvrlab.train.session import resolved_of


def accept_code(folder: Path) -> dict[str, Any]:
    """Record the functions of now as those of the run; returns key -> fingerprints from and to, if any changed."""
    now = resolved_of(folder, accept_code=True)
    changed = changed_code(read_config(folder)["recipe"], now.recipe.model_dump())
    if not changed:
        return changed
    with closing(Run.open(folder)) as run:
        run_folder.refuse_edited(folder, "its code is accepted")
        found = checkpoint.complete(folder / "checkpoints")
        step = checkpoint.read_state(found[0]).step if found else 0
        told = ", ".join(f"{key} {one['from']} → {one['to']}" for key, one in changed.items())
        words = f"own code accepted as it is now: {told}; it judges and pays what follows step {step}"
        run_folder.change_recipe(run, now, changed, words, kind="code_accepted")
        data = read_info(folder).get("data", {})
        if data.get("version") == changed.get("env.code", {}).get("from", ""):  # functions that score are a version
            run.info(data={**data, "version": changed["env.code"]["to"]})
    return changed
