"""Process numbers that tell nothing: every job of a worker counts from the same one.

The kernel gives processes and threads numbers in turn, so a job could leave a message by starting threads until the
count is where it wants it; the next job would read it off its own number. Where a pid namespace can be had, the jobs of
a worker live in one of their own, together with the template, which sets the count back before every job. The first
process of such a namespace has to live as long as it does: that is the keeper. It also mounts a /proc of the namespace:
the host's would show a job its number on the host, and all of the host's processes.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

from rlvrlab.judge.jail import kernel

COUNTER = "/proc/sys/kernel/ns_last_pid"
BEFORE_THE_FIRST = b"999"
KEEPER = b"rlvr-keeper"
HIGHEST_DESCRIPTOR = 1024
PROC_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY
PROC_OPTIONS = "hidepid=2,subset=pid"
"""Each process sees itself only, for /dev/stdin and its like are links into /proc/self. All other files of /proc are
left out: the time of such a file is when somebody first asked for it, which a later job could read."""


class ProcessNumbers:
    """The count of one worker's jobs; without a namespace there is none to be set."""

    def __init__(self) -> None:
        self.counter = -1
        """A descriptor to set the count with: it is that of the namespace of whoever writes to it."""
        with suppress(OSError):  # before the worker's mounts become read-only
            self.counter = os.open(COUNTER, os.O_WRONLY | os.O_CLOEXEC)

    def begin(self, own_mounts: bool) -> None:
        """Children of this process live in a namespace of their own from here on, and it can start no thread.

        They get a /proc of their own too, unless this process shares its mounts with the host.
        """
        if self.counter < 0:
            return
        try:
            kernel.unshare(kernel.CLONE_NEWPID)
        except OSError:
            self.end()
            return
        ready, settled = os.pipe2(os.O_CLOEXEC)
        if ctypes.PyDLL(None).fork() == 0:
            _keep(settled, own_mounts)
        os.close(settled)
        os.read(ready, 1)
        os.close(ready)

    def stay(self) -> None:
        """Children live in the namespace of this process, which is its own already: only the count is set."""
        try:
            if self.counter >= 0:
                os.pwrite(self.counter, BEFORE_THE_FIRST, 0)
        except OSError:
            self.end()

    def end(self) -> None:
        """Leave the count alone."""
        if self.counter >= 0:
            os.close(self.counter)
        self.counter = -1


def _keep(settled: int, own_mounts: bool) -> None:
    """The life of the keeper; it ends with its worker, and all jobs of the worker with it."""
    try:
        kernel.libc.prctl(kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        kernel.libc.prctl(kernel.PR_SET_NAME, KEEPER, 0, 0, 0)
        if own_mounts:
            with suppress(OSError):  # a container may hide parts of /proc, and then nobody in it can have a new one
                kernel.mount("proc", "/proc", "proc", PROC_FLAGS, PROC_OPTIONS)
        os.dup2(settled, 0)
        os.closerange(1, HIGHEST_DESCRIPTOR)
        os.write(0, b".")
        os.close(0)
        while True:
            signal.pause()
    finally:
        os._exit(0)
