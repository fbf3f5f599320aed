"""The `rlvr` command: one file per verb, imported only when it is used, so that `rlvr --help` answers at once.

Ctrl-C is one line and exit code 130 from here on, also while the rest is being loaded. A package that is interrupted in
the middle of its import may drop that, turn it into an error of its own, print what it cannot raise, or abort (torch's
C++): so an import may first come to its end, for as long as a user has patience. It is remembered that somebody has
asked, and whatever comes of it is told as what it is.

Who is impatient presses many times. Once the command is on its way out, what is pressed within a moment belongs to the
same burst and is let pass, so that no clean-up is torn and none of Python's own end is seen; what is pressed later ends
the process at once. That is for `rlvr`'s own process only, which no code outlives.
"""

from __future__ import annotations

import _thread
import atexit
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
BURST_S = 1.0
"""Seconds that the way out may take before another Ctrl-C ends the process around it."""
SHOW_CURSOR = b"\x1b[?25h"
"""A bar that is not ended leaves a terminal without its cursor."""
IMPORTS = "<frozen importlib._bootstrap>"


class CtrlC:
    """Within the block, whether somebody has pressed Ctrl-C; KeyboardInterrupt is raised as Python does.

    A handler that somebody else has set, or chosen to ignore, stays. With `own_process` this one stays, too, after the
    block, until Python has ended; nothing but `main` of `rlvr` itself may ask for that.
    """

    def __init__(self, own_process: bool = False) -> None:
        self.pressed = False
        self._process = os.getpid() if own_process else None
        self._out_since: float | None = None
        """When the way out began: an interruption was raised, or the verb has come to its end."""
        self._over = False
        """Has the verb come to its end, so that nobody is there to catch an interruption?"""
        self._mine = self._raised = self._left = False
        self._reminds = False
        """Is the signal under way a reminder of this class, and no key that somebody pressed?"""
        self._repeats = False
        """Is it one that was dropped and is sent again?"""
        self._until: float | None = None
        """When an import under way is no longer spared."""
        self._pressing = threading.Lock()

    def __enter__(self) -> CtrlC:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._mine = True
            if self._process is not None:
                # Registered first, so run last: where Python takes its handlers away, the signal itself would end it.
                atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        return self

    def over(self) -> None:
        """The verb has come to its end."""
        self._over = self._process is not None
        self._out_since = self._out_since or time.monotonic()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            return
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
        now, mine = time.monotonic(), self._reminds or self._repeats
        if mine and self._over:
            return
        if self._out_since is not None and os.getpid() == self._process and not mine:
            if now - self._out_since > BURST_S:
                _end_at_once()
            return
        reminds, self._reminds, self._repeats, self.pressed = self._reminds, False, False, True
        sys.unraisablehook = self._again
        if not _imports(frame):
            self._raised, self._out_since = True, self._out_since or now
            _thread.start_new_thread(self._follow, ())
            raise KeyboardInterrupt
        if self._until is None:
            self._until = now + PATIENCE_S
            _thread.start_new_thread(self._remind, (threading.get_ident(),))
        elif now > self._until or not (reminds or self._in_burst(now)):
            self._until = now + PATIENCE_S
            self._out_since = self._out_since or now
            raise KeyboardInterrupt

    def _in_burst(self, now: float) -> bool:
        """Does this press belong to the burst that is held back while an import is under way?"""
        return self._process is not None and now < (self._until or now) - PATIENCE_S + BURST_S

    def _remind(self, main: int) -> None:
        """Press again when no import seems to be under way, or when one goes on and on, until it was raised."""
        while not (self._raised or self._left or self._over):
            time.sleep(AGAIN_S / 10)
            if _imports(sys._current_frames().get(main)) and time.monotonic() <= (self._until or 0):
                continue
            self._reminds = True
            self._press()
            if self._reminds and signal.getsignal(signal.SIGINT) != self._note:
                return  # whoever handles it now has been told; a reminder that `_note` took and spared comes again

    def _follow(self) -> None:
        """Who takes the signal over after it was raised begins work all the same: the interruption was swallowed."""
        while not (self._left or self._over):
            time.sleep(AGAIN_S)
            if signal.getsignal(signal.SIGINT) != self._note:
                self._press()
                return

    def _again(self, dropped: sys.UnraisableHookArgs) -> None:
        """C code and finalisers, which cannot raise, drop an interruption: it comes again a moment later."""
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(self._repeat, ())  # `Thread.start` waits, and could be interrupted itself

    def _repeat(self) -> None:
        time.sleep(AGAIN_S)
        self._repeats = True
        self._press()

    def _press(self) -> None:
        with self._pressing:
            if not (self._left or self._over):
                os.kill(os.getpid(), signal.SIGINT)


def _imports(frame: FrameType | None) -> bool:
    """Is a module being imported there?"""
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None


def _end_at_once() -> NoReturn:
    """Whatever the process is at. Its record loses nothing by that, and its workers end with it (fate.py)."""
    cursor = SHOW_CURSOR if os.isatty(2) else b""
    os.write(2, cursor + b"error: interrupted again, and ended at once\n")
    os._exit(130)


def main() -> NoReturn:
    """Run the command."""
    caller = sys._getframe(1)
    program = caller.f_code.co_name == "<module>" and caller.f_globals.get("__name__") == "__main__"
    with CtrlC(own_process=program) as ctrl_c:
        try:
            try:
                from rlvrlab.cli.verbs import run  # not before: loading it takes time, too

                run(lambda: ctrl_c.pressed)
            finally:
                ctrl_c.over()
        except KeyboardInterrupt:
            print("error: interrupted", file=sys.stderr)
            sys.exit(130)
