"""Ctrl-C, remembered.

A package that is interrupted in the middle of its import may turn that into an error of its own, or print what it
cannot raise. Who remembers that somebody has asked can tell whatever comes of it as what it is.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType


class CtrlC:
    """Within the block, whether somebody has pressed Ctrl-C; KeyboardInterrupt is raised as Python does.

    A handler that somebody else has set, or chosen to ignore, stays.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._mine = False

    def __enter__(self) -> CtrlC:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._mine = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        sys.unraisablehook = lambda _: None  # C code that cannot raise it would print it
        raise KeyboardInterrupt
