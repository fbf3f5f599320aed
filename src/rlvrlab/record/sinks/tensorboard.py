"""TensorBoard event files beside the run's own logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.record.sinks.base import Tracker
from rlvrlab.registry import register


@register("sink", "tensorboard")
@dataclass(frozen=True)
class TensorboardSink(Tracker):
    """Writes logs/tensorboard/."""

    package = "tensorboardX"

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """tensorboardX writes event files without TensorFlow or torch."""
        from tensorboardX import SummaryWriter

        self._opened.append(SummaryWriter(str(folder / "logs" / "tensorboard")))

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """One scalar per metric."""
        for key, value in metrics.items():
            self._opened[-1].add_scalar(key, value, step)

    def close(self) -> None:
        """Flush what is still in memory."""
        self._opened[-1].close()
