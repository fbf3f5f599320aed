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
        self._mine = self._raised = self._left = False
        self._reminds = False
        """Is the signal under way a reminder of this class, and no key that somebody pressed?"""
        self._until: float | None = None
        """When an import under way is no longer spared."""
        self._pressing = threading.Lock()

    def __enter__(self) -> CtrlC:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._mine = True
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True
        if self.pressed:
            with self._pressing:  # what another thread presses at this moment still comes to `_note`, which ignores it
                time.sleep(AGAIN_S / 10)
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Raise, but for an import under way: that may end first, since a reminder comes.

        Only this handler knows where the main thread is: when another thread has found it between two imports, it is
        in the next one before a signal arrives.
        """
        if self._left:
            return
        reminds, self._reminds, self.pressed = self._reminds, False, True
        sys.unraisablehook = self._again
        now = time.monotonic()
        if not _imports(frame):
            self._raised = True
            raise KeyboardInterrupt
        if self._until is None:
            self._until = now + PATIENCE_S
            _thread.start_new_thread(self._remind, (threading.get_ident(),))
        elif now > self._until or not reminds:
            self._until = now + PATIENCE_S
            raise KeyboardInterrupt

    def _remind(self, main: int) -> None:
        """Press again when no import seems to be under way, or when one goes on and on, until it was raised."""
        while not (self._raised or self._left):
            time.sleep(AGAIN_S / 10)
            if _imports(sys._current_frames().get(main)) and time.monotonic() <= (self._until or 0):
                continue
            self._reminds = True
            self._press()
            if signal.getsignal(signal.SIGINT) != self._note:
                return  # whoever handles it now needs to be told once

    def _again(self, dropped: sys.UnraisableHookArgs) -> None:
        """C code and finalisers, which cannot raise, drop an interruption: it comes again a moment later."""
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(self._press, (AGAIN_S,))  # `Thread.start` waits, and could be interrupted itself

    def _press(self, after_s: float = 0.0) -> None:
        time.sleep(after_s)
        with self._pressing:
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
