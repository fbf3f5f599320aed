"""Seals: what a run's recipe and logs were when a checkpoint was written, so that later edits are noticed.

Each checkpoint holds seal.json: the recipe, and for both logs the number of lines and their hash. The logs are only
ever appended to, so the lines that a seal counts must still be there, unchanged. run_info.json has the configuration's
hash too, for runs without a checkpoint and for changes that were made on purpose (`Run.reconfigure`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab import plain_files
from rlvrlab.errors import RunError
from rlvrlab.record.files import read_facts
from rlvrlab.record.run import SEAL, config_sha256, read_config, read_info


class Sealed(NamedTuple):
    """The seal in one checkpoint."""

    step: int
    facts: Mapping[str, Any]

    def of_log(self, name: str) -> tuple[int, str]:
        """How many lines a log had, and their hash."""
        try:
            return int(self.facts[name]["lines"]), str(self.facts[name]["sha256"])
        except (KeyError, TypeError, ValueError):
            raise RunError(f"{SEAL} of the checkpoint of step {self.step} is damaged; restore it or --fork") from None


def read_seal(checkpoint: Path) -> Mapping[str, Any] | None:
    """The seal in a checkpoint; None in those of older versions."""
    return read_facts(checkpoint / SEAL, "restore the checkpoint")


def changed_config(folder: Path, seals: Sequence[Sealed]) -> str | None:
    """What was edited in config.json since the run began, key by key where a checkpoint has the recipe."""
    config, info = read_config(folder), read_info(folder)
    now, known, before = config_sha256(config), info.get("config_sha256"), info.get("config_before", [])
    newest = seals[-1].facts if seals else {}
    sealed = newest.get("config")
    if (known is None or now in (known, *before[-1:])) and (sealed is None or sealed in (now, *before)):
        return None
    edits = _differences(newest.get("recipe"), config.get("recipe"))
    what = f": {'; '.join(edits)}" if edits else ""
    return f"{folder / 'config.json'} is not what this run was started with{what}"


def changed_log(folder: Path, name: str, seals: Sequence[Sealed]) -> str | None:
    """Where a log is not what the checkpoints remember: too short, or lines that were edited, added or removed."""
    path = folder / "logs" / f"{name}.jsonl"
    data = plain_files.read_bytes(path) if path.exists() else b""
    lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
    digest, done, sound = hashlib.sha256(), 0, 0
    for sealed in seals:
        count, sha256 = sealed.of_log(name)
        if count > len(lines):
            had = f"had {count} lines at the checkpoint of step {sealed.step}"
            return f"{path}:{len(lines)}: the file ends here, but {had}"
        for line in lines[done:count]:
            digest.update(line)
        done = max(done, count)
        if digest.hexdigest() != sha256:
            where = str(count) if count == sound + 1 else f"{sound + 1}-{count}"
            return f"{path}:{where}: edited after the checkpoint of step {sealed.step} was written"
        sound = count
    return None


def _differences(before: Any, now: Any, prefix: str = "") -> list[str]:
    """`rollout.n 4 → 8`, for every value that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted({*before, *now})
        return [text for key in keys for text in _differences(before.get(key), now.get(key), f"{prefix}{key}.")]
    if before == now or (before is None and not prefix):
        return []
    return [f"{prefix.removesuffix('.')} {json.dumps(before)} → {json.dumps(now)}"]
