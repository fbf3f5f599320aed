"""Trackio, imported only when a recipe asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.record.sinks.base import Tracker
from rlvrlab.registry import register


@register("sink", "trackio")
@dataclass(frozen=True)
class TrackioSink(Tracker):
    """Copies metrics to trackio."""

    package = "trackio"

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """One trackio run per run folder."""
        import trackio

        self._opened.append(trackio.init(project="rlvrlab", name=name, config=config, resume="allow", embed=False))
