"""Process numbers that tell nothing: every job of a worker counts from the same one.

The kernel gives processes and threads numbers in turn, so a job could leave a message by starting threads until the
count is where it wants it; the next job would read it off its own number. Where a pid namespace can be had, the jobs of
a worker live in one of their own, and its first process, the keeper, sets the count back between two jobs. It also
mounts a /proc of that namespace: the host's would show a job its number on the host, and all of the host's processes.
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
PR_SET_NAME = 15
HIGHEST_DESCRIPTOR = 1024
PROC_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY
PROC_OPTIONS = "hidepid=2,subset=pid"
"""Each process sees itself only, for /dev/stdin and its like are links into /proc/self. All other files of /proc are
left out: the time of such a file is when somebody first asked for it, which a later job could read."""


class ProcessNumbers:
    """The count of one worker's jobs; without a namespace it does nothing."""

    def __init__(self) -> None:
        self._counter = self._asking = self._answers = -1
        with suppress(OSError):  # before the worker's mounts become read-only
            self._counter = os.open(COUNTER, os.O_WRONLY | os.O_CLOEXEC)

    def begin(self, own_mounts: bool) -> None:
        """Children of this process live in a namespace of their own from here on, and it can start no thread.

        They get a /proc of their own too, unless this process shares its mounts with the host.
        """
        if self._counter < 0:
            return
        with suppress(OSError):
            kernel.unshare(kernel.CLONE_NEWPID)
            questions, self._asking = os.pipe2(os.O_CLOEXEC)
            self._answers, answering = os.pipe2(os.O_CLOEXEC)
            if ctypes.PyDLL(None).fork() == 0:
                _keep(self._counter, questions, answering, own_mounts)
            for descriptor in (questions, answering):
                os.close(descriptor)
            self.ask()
            self.settle()  # so that it has closed what it inherited before the first job
            self.ask()
        os.close(self._counter)

    def ask(self) -> None:
        """After a job: have the count set back."""
        if self._asking >= 0:
            os.write(self._asking, b"?")

    def settle(self) -> None:
        """Before a job: it has been set back."""
        if self._answers >= 0 and not os.read(self._answers, 1):
            raise OSError("the keeper of process numbers has ended")


def _keep(counter: int, questions: int, answering: int, own_mounts: bool) -> None:
    """The life of the keeper; it ends with its worker, and all jobs of the worker with it."""
    try:
        kernel.libc.prctl(kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        kernel.libc.prctl(PR_SET_NAME, KEEPER, 0, 0, 0)
        for place, descriptor in enumerate((counter, questions, answering)):
            os.dup2(descriptor, place)
        os.closerange(3, HIGHEST_DESCRIPTOR)
        if own_mounts:
            with suppress(OSError):  # a container may hide parts of /proc, and then nobody in it can have a new one
                kernel.mount("proc", "/proc", "proc", PROC_FLAGS, PROC_OPTIONS)
        while os.read(1, 1):
            with suppress(OSError):
                os.pwrite(0, BEFORE_THE_FIRST, 0)
            os.write(2, b".")
    finally:
        os._exit(0)
