"""No job slows or blocks another beyond its share: a victim is judged beside one that does its worst.

What counts is the victim's verdict and its CPU time; how long it takes depends on who else wants the processor.
"""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from rlvrlab.judge.isolation import probe
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.types import ErrorKind

FOREVER = "\nimport time\nend = time.monotonic() + {seconds}\n"
SECONDS = 1.2
TRIES = 5
VICTIM = "import colorsys, sched, tempfile, os\nopen(colorsys.__file__).read()\nopen('x', 'w').write('a' * 100_000)\nprint(sum(i * i for i in range(60_000)) % 7)"
EXPECTED = str(sum(i * i for i in range(60_000)) % 7)
DISTURBERS = {
    "locks": "import fcntl, os, colorsys\nf = open(colorsys.__file__)\nfcntl.flock(f, fcntl.LOCK_EX)\nfcntl.lockf(open('mine', 'w'), fcntl.LOCK_EX)\nwhile time.monotonic() < end: time.sleep(0.05)",
    "leases": "import fcntl, colorsys\nf = open(colorsys.__file__)\nwhile time.monotonic() < end:\n    try: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n    except OSError: time.sleep(0.01)",
    "memory": "while time.monotonic() < end:\n    a = bytearray(300_000_000)\n    a[::4096] = bytes(len(a[::4096]))",
    "threads": "import threading\nts = []\ntry:\n    while time.monotonic() < end and len(ts) < 2000:\n        ts.append(threading.Thread(target=time.sleep, args=(0.3,), daemon=True))\n        ts[-1].start()\nexcept RuntimeError: pass\nwhile time.monotonic() < end: time.sleep(0.05)",
    "files": "i = 0\ntry:\n    while time.monotonic() < end:\n        open(str(i), 'w').close()\n        i += 1\nexcept OSError: pass\nwhile time.monotonic() < end: time.sleep(0.05)",
    "full_disk": "try:\n    while time.monotonic() < end:\n        open(str(time.monotonic()), 'wb').write(bytes(4_000_000))\nexcept OSError: pass\nwhile time.monotonic() < end: time.sleep(0.05)",
    "fsync": "import os\nf = open('f', 'wb')\nwhile time.monotonic() < end:\n    f.seek(0)\n    f.write(bytes(100_000))\n    f.flush()\n    os.fsync(f.fileno())",
    "pipes": "import os\nps = []\ntry:\n    while True: ps.append(os.pipe())\nexcept OSError: pass\nfor _, w in ps:\n    os.set_blocking(w, False)\n    try:\n        while True: os.write(w, bytes(65536))\n    except OSError: pass\nwhile time.monotonic() < end: time.sleep(0.05)",
    "futexes": "import ctypes, os\nlibc = ctypes.CDLL(None)\nn = 202 if os.uname().machine == 'x86_64' else 98\nf = os.open(os.__file__, 0)\nlibc.mmap.restype = ctypes.c_void_p\np = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0)))\nwhile time.monotonic() < end: libc.syscall(n, p, 1, 1 << 30, None, None, 0)",
    "page_cache": "import ctypes, os, colorsys, sched\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nwhile time.monotonic() < end:\n    for m in (os, colorsys, sched):\n        f = os.open(m.__file__, 0)\n        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)\n        p = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0))\n        libc.madvise(ctypes.c_void_p(p), ctypes.c_size_t(4096), 21)\n        libc.munmap(ctypes.c_void_p(p), ctypes.c_size_t(4096))\n        os.close(f)",
    "signals": "import os, signal\nwhile time.monotonic() < end:\n    for pid in (os.getppid(), os.getpid() + 1, os.getpid() - 1, -1):\n        try: os.kill(pid, signal.SIGSTOP)\n        except OSError: pass",
    "output": "import sys\nwhile time.monotonic() < end: sys.stdout.write('x' * 100_000)",
}  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> Iterator[Judge]:
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    with Judge(workers=2) as one:
        one.verify_many([(StdioTask((("", "1"),)), f"import time; time.sleep(0.2)\nprint(1)  # {i}") for i in range(2)])
        yield one


def victims(judge: Judge, beside: str, count: int) -> tuple[list[str], float]:
    """Judge so many, one after the other, while the other worker runs `beside`: verdicts, and CPU time of the median."""
    worst = StdioTask((("", "?"),), limits=Limits(cpu_s=3.0, wall_s=6.0))
    task = StdioTask((("", EXPECTED),))
    items = [(worst, f"{FOREVER.format(seconds=SECONDS)}{beside}\n# {beside!r}"[:100_000])] if beside else []
    items += [(task, f"{VICTIM}\n# {number} {beside[:9]!r}") for number in range(count)]
    judge._kept.clear()
    verdicts = judge.verify_many(items)[len(items) - count :]
    return [verdict.detail for verdict in verdicts], statistics.median(v.cost["cpu_s"] for v in verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTURBERS)
def test_a_victim_is_judged_as_if_alone(pair: Judge, name: str) -> None:
    pairs = []
    # What a disturber does to its neighbour it does every time; what the machine's other guests do it does not.
    for _ in range(TRIES):
        alone, cpu_alone = victims(pair, "", 8)
        beside, cpu_beside = victims(pair, DISTURBERS[name], 8)
        assert beside == alone == ["accepted"] * 8
        # Caches and memory bandwidth are shared, and processors that are two threads of one core.
        if cpu_beside < 2.5 * cpu_alone + 0.01:
            return
        pairs.append((cpu_alone, cpu_beside))
    pytest.fail(f"the CPU time of the median victim, alone and beside {name}: {pairs}")


@pytest.mark.slow
def test_a_worker_is_as_good_after_each_of_them() -> None:
    """The next job on the very worker, in its own folder, and no worker had to be replaced."""
    limits = Limits(cpu_s=2.0, wall_s=3.0)
    with Judge(workers=1) as judge:
        for name, program in DISTURBERS.items():
            worst = judge.verify(StdioTask((("", "?"),), limits=limits), FOREVER.format(seconds=0.3) + program)
            assert worst.error in (ErrorKind.WRONG, ErrorKind.RUNTIME, ErrorKind.MEMORY, ErrorKind.OUTPUT), name
            assert judge.verify(StdioTask((("", EXPECTED),)), f"{VICTIM}\n# after {name}").detail == "accepted"
        assert judge.pools["code"].restarts == 0


def test_two_jobs_do_not_share_a_quota_of_pipes_or_a_page_to_sleep_on(pair: Judge) -> None:
    for name in ("pipes", "futexes"):
        assert victims(pair, DISTURBERS[name].replace("end:", "end - 1:"), 2)[0] == ["accepted"] * 2
