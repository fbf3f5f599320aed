"""Trackio, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.registry import register


@register("sink", "trackio")
@dataclass(frozen=True)
class TrackioSink:
    """Copies metrics to trackio."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One trackio run per run folder."""
        import trackio

        run = trackio.init(project="rlvrlab", name=name, config=config, resume="allow", embed=False)
        object.__setattr__(self, "_run", run)

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """One step."""
        self._run.log(metrics, step=step)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Finish."""
        self._run.finish()  # type: ignore[attr-defined]
