"""Where programs may start processes: what they may use, how they may end, and what is left of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask

PATIENT = Limits(wall_s=120.0)
"""On a busy machine a program sleeps for long while it waits for another that gets no processor."""
RIGHT = StdioTask((("", "15\n"),), limits=PATIENT)
PRINTED = "printed '"


@pytest.fixture(scope="module")
def wrapped() -> Iterator[Judge]:
    if shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap")
    with Judge(workers=1, isolation="bwrap") as one:
        yield one


SHARING = {
    "Pool": "with m.Pool(2) as p: print(sum(p.map(int, ['4', '5', '6'])))",
    "Queue": "q = m.Queue()\np = m.Process(target=q.put, args=(15,)); p.start(); print(q.get()); p.join()",
    "executor": "import concurrent.futures as c\nwith c.ProcessPoolExecutor(2) as p: print(sum(p.map(int, '456')))",
    "Lock": "with m.Lock(): print(15)",
    "Value": "v = m.Value('i')\ndef w(): v.value = 15\np = m.Process(target=w); p.start(); p.join(); print(v.value)",
    "memory": "import multiprocessing.shared_memory as s\nx = s.SharedMemory('x', True, 1)\nx.unlink(); print(15)",
    "itself": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(15)'], check=True)",
}  # fmt: skip


@pytest.mark.parametrize("name", SHARING)
def test_processes_share_what_programs_share_between_them(wrapped: Judge, name: str) -> None:
    assert wrapped.verify(RIGHT, f"import multiprocessing as m\n{SHARING[name]}").detail == "accepted"


def test_shared_memory_is_one_with_the_scratch_directory_and_new_for_every_job(wrapped: Judge) -> None:
    leave = "open('/dev/shm/left', 'w').write('x')\nprint(sorted(__import__('os').listdir('.')) == ['left'] and 15)"
    assert wrapped.verify(RIGHT, leave).detail == "accepted"
    for folder in (".", "/dev/shm"):
        assert wrapped.verify(RIGHT, f"import os\nprint(15 + len(os.listdir({folder!r})))").detail == "accepted"
    fill = "try:\n    for i in range(40): open(f'/dev/shm/{i}', 'wb').write(bytes(3 << 20))\nexcept OSError: print(15)"
    assert wrapped.verify(RIGHT, fill).detail == "accepted"


def test_nothing_else_of_the_devices_can_be_written(wrapped: Judge) -> None:
    for attempt in ("open('/dev/new', 'w')", "__import__('os').unlink('/dev/null')", "open('/dev/tty')"):
        code = f"try:\n    {attempt}\nexcept OSError:\n    print(15)"
        assert wrapped.verify(RIGHT, code).detail == "accepted", attempt


KILLS = {
    "itself": "os.kill(os.getpid(), 9)",
    "its group": "os.killpg(0, 9)",
    "a parent": "if os.fork() == 0: os.kill(os.getppid(), 9)\n    __import__('time').sleep(5)",
    "a shell's parent": "os.system('kill -9 $PPID')",
}


@pytest.mark.parametrize("name", KILLS)
def test_a_program_that_kills_itself_is_judged(wrapped: Judge, name: str) -> None:
    code = f"import os\ndef f(x):\n    {KILLS[name]}\n"
    calls = CallsTask("f", (Call((1,), 2),), limits=PATIENT)
    tests = TestsTask("f", ("assert f(1) in (2,)",), limits=PATIENT)
    verdicts = wrapped.verify_many([(RIGHT, f"{code}f(1)"), (calls, code), (tests, code)])
    for verdict in verdicts:
        assert verdict.correct is False and "ended by SIGKILL" in verdict.detail, verdict.detail


@pytest.mark.parametrize(
    ("victim", "told"), [("getpid", "ended by SIGKILL"), ("getppid", "whenever it ran, its worker was killed")]
)
def test_a_program_that_nothing_holds_is_judged_too(victim: str, told: str) -> None:
    with Judge(workers=1, isolation="weak", allow_weak=True) as judge:
        task = StdioTask((("", "15\n"), ("1", "15\n")))
        verdict = judge.verify(task, f"import os\nos.kill(os.{victim}(), 9)")
        assert verdict.correct is False and told in verdict.detail
        assert judge.verify(RIGHT, "print(15)").correct is True


def test_process_numbers_tell_nothing_of_earlier_jobs(wrapped: Judge) -> None:
    number = "import os\nprint(os.getpid(), end='')  # "
    forking = "import os\nfor i in range(20):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\nprint(15)"
    first = wrapped.verify(RIGHT, number + "first").detail
    assert PRINTED in first
    assert wrapped.verify(RIGHT, forking).detail == "accepted"
    assert wrapped.verify(RIGHT, number + "second").detail == first
