"""Sinks: where metrics are copied to. One that fails is dropped with a warning; training goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved
from rlvrlab.record.redact import redact
from rlvrlab.record.run import Run
from rlvrlab.registry import find


class Sink(Protocol):
    """A tracker that gets a copy of the metrics."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        """Begin tracking a run; raises ImportError when the tracker's package is missing."""

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Copy one step's numbers."""

    def close(self) -> None:
        """Send what is still held back, and end."""


@dataclass(frozen=True)
class Tracker:
    """Base of sinks whose package returns an object to write to; that of most has `log` and `finish`."""

    package: ClassVar[str]
    """What it imports, looked up before anything is begun."""
    _opened: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """That object; a plug-in is frozen, so it lies in a list."""

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Copy one step's numbers."""
        self._opened[-1].log(metrics, step=step)

    def close(self) -> None:
        """Tell the tracker that the run is over."""
        self._opened[-1].finish()


def find_sinks(resolved: Resolved) -> dict[str, Sink]:
    """The recipe's sinks by name, not yet open."""
    return sinks_of(resolved.recipe.record.sinks, "record.sinks", resolved.folder)


def sinks_of(names: Iterable[str], key: str, folder: Path | None = None) -> dict[str, Sink]:
    """Sinks by name, not yet open; an unknown name or a missing package is told by the `key` that holds it."""
    sinks: dict[str, Sink] = {name: find("sink", name, folder)() for name in names}
    for name, sink in sinks.items():
        if isinstance(sink, Tracker) and not _is_there(sink.package):
            raise UserError(f"{key}: {name} needs `pip install 'rlvrlab[{name}]'` ({sink.package} is not installed)")
    return sinks


def _is_there(package: str) -> bool:
    return package in sys.modules or find_spec(package) is not None


class Sinks(AbstractContextManager["Sinks"]):
    """All sinks of a run; the failure of one touches neither the others nor the run."""

    def __init__(self, run: Run, sinks: dict[str, Sink]) -> None:
        self._run, self._sinks = run, sinks

    @classmethod
    def open(cls, resolved: Resolved, run: Run) -> Sinks:
        """Open the recipe's sinks; a missing package is the user's to install, so it is said before training."""
        opened: dict[str, Sink] = {}
        for name, sink in find_sinks(resolved).items():
            try:
                with redirect_stdout(sys.stderr):  # trackers talk; our stdout belongs to the result
                    sink.open(run.folder, run.folder.name, redact(resolved.config()))
            except ImportError as error:
                raise UserError(f"record.sinks: {name} needs `pip install 'rlvrlab[{name}]'` ({error})") from None
            except Exception as error:
                run.event("sink_lost", f"sink {name} did not open ({error}); logs/metrics.jsonl goes on")
                continue
            opened[name] = sink
        return cls(run, opened)

    def log(self, row: dict[str, Any]) -> None:
        """Copy the numbers of a metrics line; a sink that fails is dropped with an event."""
        numbers = {k: float(v) for k, v in row.items() if isinstance(v, int | float)}
        for name, sink in list(self._sinks.items()):
            try:
                with redirect_stdout(sys.stderr):
                    sink.log(int(row["step"]), numbers)
            except Exception as error:
                self._run.event("sink_lost", f"sink {name} failed ({error}); logs/metrics.jsonl goes on")
                del self._sinks[name]

    def __exit__(self, *_: object) -> None:
        for name, sink in self._sinks.items():
            try:
                with redirect_stdout(sys.stderr):
                    sink.close()
            except Exception as problem:
                self._run.event("sink_lost", f"sink {name} did not close ({problem})")
