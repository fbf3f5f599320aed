"""Wandb, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.registry import register


@register("sink", "wandb")
@dataclass(frozen=True)
class WandbSink:
    """Copies metrics to wandb."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One wandb run per run folder."""
        import wandb

        run = wandb.init(project="rlvrlab", name=name, id=name, dir=str(folder), config=config, resume="allow")
        object.__setattr__(self, "_run", run)

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """One step."""
        self._run.log(metrics, step=step)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Finish."""
        self._run.finish()  # type: ignore[attr-defined]
