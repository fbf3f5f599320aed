"""What honest programs do: each of these is accepted, as outside the jail."""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask

GIVEN = "3\n1 2 3\n"
EXPECTED = "6\n"
# Each reads GIVEN, or not, and prints 6.
PROGRAMS = {
    "input": "input()\nprint(sum(map(int, input().split())))",
    "sys_stdin": "import sys\nsys.stdin.readline()\nprint(sum(int(x) for x in sys.stdin.read().split()))",
    "stdin_buffer": "import sys\ndata = sys.stdin.buffer.read().split()\nprint(sum(map(int, data[1:])))",
    "stdout_write": "import sys\nn, *xs = map(int, sys.stdin.read().split())\nsys.stdout.write(str(sum(xs)) + '\\n')",
    "os_read": "import os\nprint(sum(map(int, os.read(0, 1 << 20).split()[1:])))",
    "os_write": "import os\nos.write(1, b'6\\n')",
    "open_0": "print(sum(map(int, open(0).read().split()[1:])))",
    "dev_stdin": "print(sum(map(int, open('/dev/stdin').read().split()[1:])))",
    "dev_fd": "print(sum(map(int, open('/dev/fd/0').read().split()[1:])))",
    "dev_stdout": "open('/dev/stdout', 'w').write('6\\n')",
    "bytes_io": "import io, os, sys\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\ninput()\nprint(sum(map(int, input().split())))",
    "fileinput": "import fileinput\nprint(sum(map(int, list(fileinput.input())[1].split())))",
    "recursion": "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50_000) - 49_994)",
    "deep_thread_256": "import sys, threading\nsys.setrecursionlimit(10**7)\nthreading.stack_size(1 << 28)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(100_000) - 99_994))\nt.start()\nt.join()",
    "deep_thread_512": "import sys, threading\nsys.setrecursionlimit(10**7)\nthreading.stack_size(512 * 1024 * 1024)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(100_000) - 99_994))\nt.start()\nt.join()",
    "deep_thread_1024": "import threading, _thread\nassert threading.stack_size() == 0\n_thread.stack_size(1 << 30)\nassert threading.stack_size() > 1 << 27\nt = threading.Thread(target=print, args=(6,))\nt.start()\nt.join()",
    "own_module": "open('m.py', 'w').write('X = 6')\nimport m\nprint(m.X)",
    "own_module_later": "import colorsys\nopen('m.py', 'w').write('from n import X')\nopen('n.py', 'w').write('X = 6')\nimport importlib\nprint(importlib.import_module('m').X)",
    "help": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as said: help(len)\nprint(6 if 'len(obj, /)' in said.getvalue() else 0)",
    "words_of_site": "assert 'Python Software Foundation' in str(copyright) and str(credits) and 'license' in repr(license)\nprint(6)",
    "heapq": "import heapq\nh = [3, 1, 2]\nheapq.heapify(h)\nprint(sum(heapq.heappop(h) for _ in range(3)))",
    "bisect": "import bisect\nxs = [1, 2, 3]\nbisect.insort(xs, 0)\nprint(bisect.bisect_left(xs, 3) + bisect.bisect(xs, 2))",
    "functools": "from functools import cache, lru_cache, reduce\n@cache\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(6) - 2)",
    "collections": "from collections import Counter, defaultdict, deque, OrderedDict, namedtuple\nprint(sum(Counter('aabbcc').values()))",
    "itertools": "from itertools import permutations, accumulate, groupby, product\nprint(len(list(permutations('abc'))))",
    "math": "import math\nprint(math.comb(4, 2), end='')\nprint()",
    "decimal": "from decimal import Decimal, getcontext\ngetcontext().prec = 50\nprint(Decimal('1.5') * 4 // 1)",
    "fractions": "from fractions import Fraction\nprint(Fraction(3, 2) * 4)",
    "statistics": "import statistics\nprint(statistics.mean([5, 6, 7]))",
    "random": "import random\nrandom.seed(1)\nrandom.shuffle([1, 2])\nrandom.random()\nprint(6)",
    "perf_counter": "import time\nstart = time.perf_counter()\nassert time.time() > 0 and time.monotonic() > 0 and time.process_time() >= 0\nprint(6 + int(time.perf_counter() - start > 60))",
    "datetime": "import datetime\nprint((datetime.date(2024, 1, 7) - datetime.date(2024, 1, 1)).days)\ndatetime.datetime.now()",
    "zoneinfo": "import calendar, time\ntime.localtime(), time.strftime('%Y'), calendar.monthrange(2024, 2)\nprint(6)",
    "tempfile": "import tempfile\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('6')\n    f.seek(0)\n    print(f.read())\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x')\nwith tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close()",
    "subprocess_import": "import subprocess, multiprocessing, socket, signal\nprint(6)",
    "alarm": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: print(6))\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nsignal.pause()\nsignal.alarm(0)",
    "resource": "import resource, sys\nsoft, hard = resource.getrlimit(resource.RLIMIT_STACK)\nresource.setrlimit(resource.RLIMIT_STACK, (hard, hard))\nresource.getrusage(resource.RUSAGE_SELF)\nprint(6)",
    "thread_pool": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool: print(sum(pool.map(int, '123')))",
    "asyncio": "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\nasync def main(): return sum(await asyncio.gather(f(1), f(2), f(3)))\nprint(asyncio.run(main()))",
    "multiprocessing_value": "import multiprocessing as mp\nv, a = mp.Value('i', 1), mp.Array('i', 2)\na[1] = 5\nwith v.get_lock(): v.value += a[1]\nprint(v.value)",
    "asyncio_to_thread": "import asyncio\nasync def main(): return await asyncio.to_thread(int, '6')\nprint(asyncio.run(main()))",
    "queue": "import queue, threading\nq = queue.Queue()\nthreading.Thread(target=q.put, args=(6,), daemon=True).start()\nprint(q.get())",
    "re": "import re\nprint(len(re.findall(r'\\w', 'a b c d e f')))",
    "json": "import json\nprint(json.loads('[6]')[0])",
    "array": "from array import array\nprint(sum(array('q', [1, 2, 3])))",
    "struct": "import struct\nprint(struct.unpack('<i', struct.pack('<i', 6))[0])",
    "string": "import string\nprint(len(string.ascii_lowercase) - 20)",
    "pathlib": "from pathlib import Path\nPath('a').mkdir()\nPath('a/b').write_text('6')\nprint(Path('a/b').read_text(), Path.home() and '', sep='')",
    "atexit": "import atexit\natexit.register(print, 6)",
    "environ": "import os\nos.environ['X'] = '6'\nprint(os.environ.get('X', ''), os.getenv('LOCAL', ''), sep='')",
    "exit": "import sys\nprint(6)\nsys.exit(0)",
    "os_exit": "import os, sys\nprint(6)\nsys.stdout.flush()\nos._exit(0)",
    "dataclass": "from dataclasses import dataclass, field\nfrom enum import Enum, auto\n@dataclass(order=True)\nclass P:\n    x: int\n    y: list = field(default_factory=list)\nprint(P(6).x)",
    "copy_pickle": "import copy, pickle\nprint(copy.deepcopy(pickle.loads(pickle.dumps([6])))[0])",
    "hashlib": "import hashlib, uuid, secrets, zlib\nprint(len(hashlib.md5(b'x').hexdigest()) - 26)",
    "bits": "import operator, numbers, cmath, typing, contextlib, io, abc, types\nprint(operator.add(2, 4))",
    "contextlib": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print(6)\nprint(f.getvalue(), end='')",
    "logging": "import logging, warnings, traceback\nlogging.basicConfig()\nlogging.warning('x')\nwarnings.warn('x')\nprint(6)",
    "gc": "import gc, sys, weakref\ngc.disable()\ngc.collect()\nprint(6)",
    # Refused once.
    "finalizer": "class A:\n    def __del__(self): print(6)\na = A()",
    "finalizer_in_a_cycle": "class A:\n    def __del__(self): print(6)\na = A()\na.me = a",
    "suspended_generator": "def g():\n    try: yield 1\n    finally: print(6)\nx = g()\nnext(x)",
    "stdout_set_aside": "import io, sys\nb = sys.stdout = io.StringIO()\nprint(6)\nsys.__stdout__.write(b.getvalue())",
    "stdout_taken_apart": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint(6)",
    "stdout_opened_again": "out = open(1, 'w')\nout.write('6\\n')",
    "stdout_by_its_path": "out = open('/dev/stdout', 'w')\nprint(6, file=out)",
    "stdout_by_its_number": "import os\nout = os.fdopen(1, 'w')\nout.write('6\\n')",
    "stdout_as_bytes": "import io\nout = io.BufferedWriter(io.FileIO(1, 'w'))\nout.write(b'6\\n')",
    "end_of_threading": "import threading\nthreading._register_atexit(print, 6)",
    "finalizer_after_atexit": "import atexit\nclass A:\n    def __del__(self): print('', end='', flush=True) or print(6)\na = A()\natexit.register(lambda: a)",
    "own_stream_and_a_generator": "import os, sys\nclass Out:\n    text = ''\n    def write(self, s): self.text += s\n    def flush(self): os.write(1, self.text.encode())\nsys.stdout = Out()\ndef g(): yield 6\nprint(next(g()))",
    "own_stream_that_is_let_go": "out = None\nimport io, os\nclass Out(io.IOBase):\n    text = ''\n    def write(self, s): self.text += s\n    def flush(self): os.write(1, self.text.encode()); self.text = ''\nout = Out()\nout.write('6\\n')",
    "own_stream_in_a_cycle": "import io, os\nclass Out(io.IOBase):\n    text = ''\n    def __init__(self): self.add = lambda s: self.keep(s)\n    def keep(self, s): self.text += s\n    def flush(self): os.write(1, self.text.encode()); self.text = ''\nout = Out()\nout.add('6\\n')",
    "held_by_itself": "import __main__\nclass A:\n    def __del__(self): print(6)\n__main__.me = __main__\na = A()",
    "own_stream_that_is_flushed_and_let_go": "import io, os, sys\nclass Out(io.IOBase):\n    def __init__(self): self.kept = io.BytesIO()\n    def write(self, s): self.kept.write(s.encode())\n    def flush(self):\n        os.write(1, self.kept.getvalue())\n        self.kept.truncate(0), self.kept.seek(0)\nsys.stdout = Out()\nprint(6)",
    "kill_self": "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print(6))\nos.kill(os.getpid(), signal.SIGUSR1)",
    "nice": "import os\nos.nice(0)\nprint(6)",
    "fsync": "import os\nwith open('a', 'w') as f:\n    f.write('6')\n    f.flush()\n    os.fsync(f.fileno())\nos.sync()\nprint(open('a').read())",
    "dev_null": "import sys\nsys.stderr = open('/dev/null', 'w')\nprint('x', file=sys.stderr)\nopen('/dev/null').read()\nprint(6)",
    "dev_null_os": "import os\nfd = os.open(os.devnull, os.O_RDWR)\nos.dup2(fd, 2)\nos.write(2, b'x')\nprint(6)",
    "copy2": "import shutil\nopen('a', 'w').write('6')\nshutil.copy2('a', 'b')\nshutil.copy('a', 'c')\nshutil.move('b', 'd')\nprint(open('d').read())",
    "copytree": "import os, shutil\nos.makedirs('a/b/c')\nopen('a/b/x', 'w').write('6')\nshutil.copytree('a', 'z')\nprint(open('z/b/x').read())\nshutil.rmtree('a')",
    "process_lock": "import multiprocessing as mp\nwith mp.Lock(): print(6)\nlock = mp.RLock()\nwith lock:\n    with lock: pass\nassert not mp.Semaphore(0).acquire(False) and mp.BoundedSemaphore(1).acquire(timeout=1)",
    "process_queue": "import multiprocessing as mp\nq = mp.Queue()\nq.put(6)\nprint(q.get())\ns = mp.SimpleQueue()\ns.put(1)\ns.get()\nj = mp.JoinableQueue(3)\nj.put(1)\nj.get()\nj.task_done()\nj.join()",
    "process_event": "import multiprocessing as mp, threading\ne, c = mp.Event(), mp.Condition()\nthreading.Timer(0.01, e.set).start()\nassert e.wait(9)\nwith c: c.notify_all()\nprint(6)",
    "process_lock_between_threads": "import multiprocessing as mp, threading\nlock, n = mp.Lock(), 0\ndef f():\n    global n\n    for _ in range(200):\n        with lock: n += 1\nts = [threading.Thread(target=f) for _ in range(3)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(n // 100)",
    "process_pool_of_threads": "from multiprocessing.pool import ThreadPool\nfrom multiprocessing.dummy import Pool\nwith ThreadPool(2) as p: print(sum(p.map(int, '123')))",
    "spawn_context_lock": "import multiprocessing as mp\nwith mp.get_context('spawn').Lock(): print(6)",
    "cpu_count": "import os, multiprocessing\nassert os.cpu_count() and multiprocessing.cpu_count()\nprint(6)",
    "disk_usage": "import shutil\nassert shutil.disk_usage('.').total\nprint(6)",
    "mmap_input": "import mmap\nm = mmap.mmap(0, 0, prot=mmap.PROT_READ)\nprint(sum(map(int, m[:].split()[1:])))",
    "platform": "import platform, sys\nplatform.system(), platform.python_version(), sys.version_info\nprint(6)",
}  # fmt: skip


def test_honest_programs_are_accepted(judge: Judge) -> None:
    task = StdioTask(((GIVEN, EXPECTED),))
    verdicts = judge.verify_many([(task, program) for program in PROGRAMS.values()])
    assert {name: v.detail for name, v in zip(PROGRAMS, verdicts, strict=True) if not v.correct} == {}


@pytest.mark.slow
def test_they_do_the_same_outside(tmp_path: Path) -> None:
    """Or the table would be about the jail and not about Python."""
    wrong = {}
    for name, program in PROGRAMS.items():
        folder = tmp_path / name
        folder.mkdir()
        with (folder / "input").open("w+") as given:
            given.write(GIVEN)
            given.seek(0)
            told = subprocess.run(
                [sys.executable, "-c", program], stdin=given, capture_output=True, text=True, cwd=folder, check=False
            )
        if told.stdout != EXPECTED:
            wrong[name] = told.stdout + told.stderr[-200:]
    assert wrong == {}


def test_a_lock_in_the_jail_refuses_what_a_real_one_refuses(judge: Judge) -> None:
    program = (
        "import multiprocessing as mp\n"
        "def raises(kind, call):\n    try:\n        call()\n    except kind:\n        return 1\n    return 0\n"
        "lock = mp.Lock()\n"
        "print(raises(ValueError, lock.release) + raises(AssertionError, mp.RLock().release)\n"
        "      + raises(ValueError, mp.BoundedSemaphore(1).release) + (not lock.acquire(timeout=0) or 1)\n"
        "      + (not lock.acquire(block=False)) + (not lock.acquire(timeout=0.01)))\n"
    )
    assert judge.verify(StdioTask((("", "6"),)), program).detail == "accepted"


THREADS = """
import threading
started = threading.Event()
threads = [threading.Thread(target=started.wait) for _ in range({count})]
for thread in threads:
    thread.start()
started.set()
for thread in threads:
    thread.join()
print('ok')
"""


@pytest.mark.parametrize("count", [17, 64])
def test_dozens_of_idle_threads_fit_into_the_memory_of_a_job(judge: Judge, count: int) -> None:
    assert judge.verify(StdioTask((("", "ok"),)), THREADS.format(count=count)).detail == "accepted"


def test_a_thread_recurses_as_deep_as_it_asks_for(judge: Judge) -> None:
    deep = (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(128 << 20)\n"
        "class Node:\n    def __init__(self, depth): self.depth = depth\n"
        "    def __len__(self): return 1 + len(Node(self.depth - 1)) if self.depth else 0\n"
        "thread = threading.Thread(target=lambda: print(len(Node(30000))))\nthread.start()\nthread.join()\n"
    )
    assert judge.verify(StdioTask((("", "30000"),)), deep).detail == "accepted"


OWN_TEXT = [
    "import inspect\ndef f(): return 6\nprint(inspect.getsource(f).split()[-1])",
    "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError: print(6 if 'try: 1 / 0' in traceback.format_exc() else 0)",
]


@pytest.mark.parametrize("program", OWN_TEXT, ids=["source", "traceback"])
def test_a_program_can_read_its_own_text(judge: Judge, program: str) -> None:
    assert judge.verify(StdioTask((("", "6"),)), program).detail == "accepted"
