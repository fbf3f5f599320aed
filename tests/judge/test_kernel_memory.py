"""What a job lets the kernel hold for it, which no limit of its memory counts: what waits in sockets, and threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from filter_machine import decide

from rlvrlab.judge.jail import bpf, kernel, privileges, seccomp
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask

MOST_MB = 32
"""Of 62 sockets with the sizes that the kernel gives them by itself, and some more."""
FILL = f"""
import ctypes, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
held, pairs = [], []
def fill():
    libc.syscall({kernel.NUMBERS["close_range"]}, 60, 60, 2)  # CLOSE_RANGE_UNSHARE
    try:
        while sum(held) < 200 << 20:
            pairs.append(socket.socketpair())
            for one in pairs[-1]:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
                one.setblocking(False)
                try:
                    while True:
                        held.append(one.send(bytes(1 << 16)))
                except BlockingIOError:
                    pass
    except OSError:
        pass  # no descriptor is left
def f():
    gate = threading.Event()
    threads = [threading.Thread(target=lambda: (fill(), gate.wait())) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
        thread.join(0.3)
    gate.set()
    return sum(held) < {MOST_MB} << 20
"""

JUDGED = """
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
with Judge(workers=1) as judge:
    print(judge.verify(StdioTask((("", "hi"),)), "print('hi')").detail)
"""
CROWD = """
import threading
def f(wanted):
    threading.stack_size(32768)
    gate, threads = threading.Event(), [threading.Thread(target=lambda: gate.wait()) for _ in range(wanted)]
    started = 0
    try:
        for thread in threads:
            thread.start()
            started += 1
    except RuntimeError:
        pass
    gate.set()
    return started == wanted
"""
CLOSE = f"""
import ctypes, os
def f(flags):
    os.dup2(1, 50)
    answer = ctypes.CDLL(None).syscall({kernel.NUMBERS["close_range"]}, 50, 50, flags)
    return [answer, os.path.exists("/proc/self/fd/50")]
"""


@pytest.mark.parametrize("threads", [1, 4])
def test_sockets_hold_little_for_a_job_however_many_threads_it_has(judge: Judge, threads: int) -> None:
    task = CallsTask("f", (Call((), True),))
    assert judge.verify(task, FILL.replace("THREADS", str(threads))).detail == "accepted"


def test_a_thread_may_close_many_descriptors_and_gets_none_of_its_own(judge: Judge) -> None:
    task = CallsTask("f", (Call((0,), [0, False]), Call((2,), [-1, True]), Call((6,), [-1, True])))
    assert judge.verify(task, CLOSE).detail == "accepted"


@pytest.mark.parametrize("processes", [False, True])
def test_the_flag_is_refused_whatever_stands_beside_it(processes: bool) -> None:
    both, architecture = seccomp.programs(processes), kernel.AUDIT_ARCH[kernel.MACHINE]
    answers = [decide(both, architecture, kernel.NUMBERS["close_range"], 3, 5, flags) for flags in range(8)]
    assert [answer == bpf.RET_ALLOW for answer in answers] == [not flags & 2 for flags in range(8)]


def test_a_job_has_hundreds_of_threads_and_not_thousands(judge: Judge) -> None:
    """A machine has 32,768 numbers for all of them together; without any left, other answers stayed unjudged."""
    assert judge.verify(CallsTask("f", (Call((400,), True),)), CROWD).detail == "accepted"
    many = judge.verify(CallsTask("f", (Call((2000,), False),)), CROWD)
    if os.geteuid() == 0 and not privileges.permitted() >= privileges.NEEDED:
        pytest.skip("root that can become nobody else may have as many as the machine")
    assert many.detail == "accepted"


@pytest.mark.parametrize("most", [300, 5000])
def test_a_machine_that_allows_fewer_still_starts_jobs(most: int) -> None:
    """The bound of a job is below whatever bound its judge has."""
    bounded = f"import resource; resource.setrlimit(resource.RLIMIT_NPROC, ({most}, {most}))\n{JUDGED}"
    told = subprocess.run([sys.executable, "-c", bounded], capture_output=True, text=True, timeout=300, check=False)
    assert told.stdout == "accepted\n", told.stderr
