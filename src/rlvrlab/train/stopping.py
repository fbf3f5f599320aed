"""When somebody asks a run to end before its last step.

SIGTERM, SIGHUP and SIGINT ask once for an orderly end; a second SIGINT ends at once. A signal the parent chose to
ignore stays ignored: `nohup rlvr train …` outlives its terminal. Outside the main thread Python lets nobody set a
handler, so there the signals stay with whoever has them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection
from types import FrameType, TracebackType

STATUS = {signal.SIGTERM: "preempted", signal.SIGINT: "interrupted", signal.SIGHUP: "preempted"}


class Interrupts:
    """Within the block, a signal only sets `received`; the loop looks at it between steps."""

    def __init__(self, heeded: Collection[signal.Signals] = tuple(STATUS)) -> None:
        self.received: signal.Signals | None = None
        self._heeded = heeded

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        heeded = [number for number in self._heeded if main and signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)

    @property
    def status(self) -> str:
        """Status of a run that was asked to stop; `finished` when nobody asked."""
        return STATUS[self.received] if self.received else "finished"

    @property
    def exit_code(self) -> int:
        """128 + signal, as shells have it; 0 when nothing came."""
        return 128 + self.received if self.received else 0
