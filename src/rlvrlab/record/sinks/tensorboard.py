"""TensorBoard event files beside the run's own logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.registry import register


@register("sink", "tensorboard")
@dataclass(frozen=True)
class TensorboardSink:
    """Writes logs/tensorboard/."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """tensorboardX writes event files without TensorFlow or torch."""
        from tensorboardX import SummaryWriter

        object.__setattr__(self, "_writer", SummaryWriter(str(folder / "logs" / "tensorboard")))

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """One scalar per metric."""
        for key, value in metrics.items():
            self._writer.add_scalar(key, value, step)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Flush."""
        self._writer.close()  # type: ignore[attr-defined]
