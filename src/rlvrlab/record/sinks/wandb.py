"""Wandb, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.registry import register


@register("sink", "wandb")
@dataclass(frozen=True)
class WandbSink:
    """Copies metrics to wandb."""

    _opened: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """The open wandb run; a plug-in is frozen, so it lies in a list."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One wandb run per run folder."""
        import wandb

        run = wandb.init(project="rlvrlab", name=name, id=name, dir=str(folder), config=config, resume="allow")
        self._opened.append(run)

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Copy one step's numbers."""
        self._opened[-1].log(metrics, step=step)

    def close(self) -> None:
        """Tell wandb that the run is over."""
        self._opened[-1].finish()
