"""Wandb, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.record.sinks.base import Tracker
from rlvrlab.registry import register


@register("sink", "wandb")
@dataclass(frozen=True)
class WandbSink(Tracker):
    """Copies metrics to wandb."""

    package = "wandb"

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One wandb run per run folder."""
        import wandb

        run = wandb.init(project="rlvrlab", name=name, id=name, dir=str(folder), config=config, resume="allow")
        self._opened.append(run)
