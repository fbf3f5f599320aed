"""Trackio, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.registry import register


@register("sink", "trackio")
@dataclass(frozen=True)
class TrackioSink:
    """Copies metrics to trackio."""

    _opened: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """The open trackio run; a plug-in is frozen, so it lies in a list."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One trackio run per run folder."""
        import trackio

        self._opened.append(trackio.init(project="rlvrlab", name=name, config=config, resume="allow", embed=False))

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Copy one step's numbers."""
        self._opened[-1].log(metrics, step=step)

    def close(self) -> None:
        """Tell trackio that the run is over."""
        self._opened[-1].finish()
