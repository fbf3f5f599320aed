"""The `rlvr` command: one file per verb, imported only when it is used, so that `rlvr --help` answers at once.

Ctrl-C is one line and exit code 130 from here on, also while the rest is being loaded. A package that is interrupted in
the middle of its import may drop that, turn it into an error of its own, print what it cannot raise, or abort (torch's
C++): so an import may first come to its end, for as long as a user has patience. It is remembered that somebody has
asked, and whatever comes of it is told as what it is.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

AGAIN_S = 0.1
"""Seconds after which an interruption that was dropped comes again."""
PATIENCE_S = 5.0
"""Seconds that an import may take to its end after the first Ctrl-C; the second one interrupts it."""
IMPORTS = "<frozen importlib._bootstrap>"


class CtrlC:
    """Within the block, whether somebody has pressed Ctrl-C; KeyboardInterrupt is raised as Python does.

    A handler that somebody else has set, or chosen to ignore, stays.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._mine = self._left = False

    def __enter__(self) -> CtrlC:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._mine = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._left = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        first, self.pressed = not self.pressed, True
        sys.unraisablehook = self._again
        if first and _imports(frame):
            _thread.start_new_thread(self._press_when_loaded, (threading.get_ident(),))
            return
        raise KeyboardInterrupt

    def _press_when_loaded(self, main: int) -> None:
        """Wait for the import under way; one that goes on and on is interrupted until it ends."""
        while not self._left:
            until = time.monotonic() + PATIENCE_S
            while (importing := _imports(sys._current_frames().get(main))) and time.monotonic() < until:
                time.sleep(AGAIN_S / 10)
            self._press()
            if not importing:
                return

    def _again(self, dropped: sys.UnraisableHookArgs) -> None:
        """C code and finalisers, which cannot raise, drop an interruption: it comes again a moment later."""
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(self._press, ())  # `Thread.start` waits, and could be interrupted itself

    def _press(self) -> None:
        time.sleep(AGAIN_S)
        if not self._left:
            os.kill(os.getpid(), signal.SIGINT)


def _imports(frame: FrameType | None) -> bool:
    """Is a module being imported there?"""
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None


def main() -> NoReturn:
    """Run the command."""
    with CtrlC() as ctrl_c:
        try:
            from rlvrlab.cli.verbs import run  # not before: loading it takes time, too
        except KeyboardInterrupt:
            print("error: interrupted", file=sys.stderr)
            sys.exit(130)
        run(lambda: ctrl_c.pressed)
