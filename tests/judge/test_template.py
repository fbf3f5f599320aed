"""A job is a copy of its worker's template, whose memory knows nothing of earlier jobs; and what becomes of the three.

Memory is looked at from outside, all that can be written: a job sees no more of itself, with ctypes or without.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_pool import children_of, ended, name_of, wait_until

from rlvrlab.judge.isolation import probe
from rlvrlab.judge.jail import scratch, template, walls
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.numbers import KEEPER
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.workers.worker import Worker

SHORT = Limits(cpu_s=0.2, job_cpu_s=0.2)
HOLDS_STILL = "print('x', flush=True)\nimport os\nos.read(os.pipe()[0], 1)"
"""It does the same every time, and reads no clock."""
ACTS = {
    "nothing": "",
    "sleeps": "import time; time.sleep(0.12)",
    "has_threads": "from threading import *\nfor _ in range(40): Timer(0.1, int).start()",
    "writes_files": "for i in range(20): open(str(i), 'w').write('hello')",
    "is_killed": "while True: pass",
}
MORE_ACTS = {
    "burns": "import time\nwhile time.process_time() < 0.15: pass",
    "prints": "print('x' * 3_000_000)",
    "reports": "import os\nos.write(3, b'x' * 500_000)",
    "fails": "1 / 0",
    "ends_early": "import os; os._exit(7)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "takes_memory": "x = bytearray(300 << 20)",
    "is_long": "x = '" + "y" * 100_000 + "'",
    "has_threads_in_turn": "from threading import *\nfor _ in range(300): (t := Thread(target=int)).start(), t.join()",
}

Memory = dict[int, bytes]


def memory_of(pid: int) -> Memory:
    """All that a process may write to, by address; without what the kernel alone writes there."""
    found = {}
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                place, rights, *_ = line.split()
                if "w" in rights:
                    start, end = (int(edge, 16) for edge in place.split("-"))
                    memory.seek(start)
                    found[start] = memory.read(end - start)
    except PermissionError:
        pytest.skip("the memory of other processes cannot be read here")
    return found


def different_words(one: Memory, other: Memory) -> list[str]:
    """Addresses and both contents of the words that differ, and ranges that only one has."""
    words = [hex(place) for place in one.keys() ^ other.keys()]
    for place in one.keys() & other.keys():
        if one[place] != other[place]:
            pairs = zip(memoryview(one[place]).cast("Q"), memoryview(other[place]).cast("Q"), strict=False)
            words += [f"{place + 8 * i:x}: {a:x} {b:x}" for i, (a, b) in enumerate(pairs) if a != b]
    return words


def below(worker: Worker, name: bytes) -> list[int]:
    return [child for child in children_of(worker.process.pid) if name_of(child) == name.decode()]


def program(code: str, limits: Limits = SHORT) -> Order:
    return Order({"role": "program", "code": code}, limits)


async def seen_by_a_job(worker: Worker) -> tuple[Memory, Memory]:
    """The memory of the template, and that of a job that has just begun."""
    if not below(worker, KEEPER):
        pytest.skip("no pid namespace here: process numbers are to be seen (docs/judge.md)")
    child = worker.start(program(HOLDS_STILL))
    while not os.pread(child.stdout, 1, 0):
        await asyncio.sleep(0.002)
    both = below(worker, template.NAME) + below(worker, walls.JOB)
    wait_until(lambda: all(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S" for pid in both))
    of_template, of_job = (memory_of(pid) for pid in both)
    worker.cancel(child)
    await worker.finish(child)
    return of_template, of_job


@pytest.fixture
def one_processor() -> Iterator[None]:
    """The kernel notes in every process on which processor it runs."""
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


def with_a_worker(use: Callable[[Worker], Coroutine[Any, Any, Any]], image: Image | None = None) -> Any:
    async def go() -> Any:
        pool = Pool(image or Image(), size=1)
        try:
            async with pool.worker() as worker:
                return await asyncio.wait_for(use(worker), 120)
        finally:
            pool.close()

    return asyncio.run(go())


async def what_acts_leave(worker: Worker, acts: dict[str, str]) -> dict[str, list[str]]:
    """Words of the template and of a later job that depend on what an earlier job did, by its name.

    A job's own reading of a clock may lie on its stack (on x86_64 its seconds do); it differs between jobs.
    """
    first = await seen_by_a_job(worker)
    await asyncio.sleep(1.1)
    second = await seen_by_a_job(worker)
    own = {word.partition(":")[0] for word in different_words(first[1], second[1])}
    assert len(own) <= 1
    left = {}
    for name, code in acts.items():
        await worker.run(program(code))
        again = await seen_by_a_job(worker)
        words = different_words(first[0], again[0])
        words += [word for word in different_words(first[1], again[1]) if word.partition(":")[0] not in own]
        left |= {name: words} if words else {}
    return left


@pytest.mark.usefixtures("one_processor")
def test_no_word_of_a_job_depends_on_how_an_earlier_one_ran() -> None:
    assert with_a_worker(lambda worker: what_acts_leave(worker, ACTS)) == {}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("packages", [(), ("numpy",)], ids=["plain", "numpy"])
def test_no_word_depends_on_any_of_many_acts_either(packages: tuple[str, ...]) -> None:
    left = with_a_worker(lambda worker: what_acts_leave(worker, ACTS | MORE_ACTS), Image(preload=packages))
    assert left == {}


@pytest.mark.usefixtures("one_processor")
def test_nor_on_how_many_there_were_or_on_their_terms() -> None:
    """How many tests are run after an answer, and with which budgets, may tell whether it was right."""

    async def use(worker: Worker) -> list[list[str]]:
        first, _ = await seen_by_a_job(worker)
        left = []
        for count in range(1, 4):
            for _ in range(count):
                await worker.run(program("", Limits(cpu_s=1.0 + count)))
            await worker.run(Order({"role": "program", "code": ""}, SHORT, scratch=False))
            again, _ = await seen_by_a_job(worker)
            left.append(different_words(first, again))
        return left

    assert with_a_worker(use) == [[], [], []]


def test_without_its_template_a_worker_ends_and_is_replaced() -> None:
    echo = StdioTask((("x\n", "x\n"),))
    with Judge(workers=1) as lonely:
        assert lonely.verify(echo, "print(input())").correct is True
        (worker,) = lonely.pools["code"]._workers
        os.kill(*below(worker, template.NAME), signal.SIGKILL)
        wait_until(lambda: worker.process.poll() is not None)
        assert lonely.verify(echo, "print(input())  # again").correct is True
        assert worker not in lonely.pools["code"]._workers


def test_a_worker_that_is_killed_takes_all_with_it() -> None:
    async def use(worker: Worker) -> None:
        child = worker.start(program("print('x', flush=True)\nimport time\ntime.sleep(60)", Limits()))
        while not os.pread(child.stdout, 1, 0):
            await asyncio.sleep(0.002)
        started = [pid for name in (walls.JOB, template.NAME, KEEPER) for pid in below(worker, name)]
        assert len(started) >= 2
        worker.process.kill()
        wait_until(lambda: all(ended(pid) for pid in started))
        child.close()

    with_a_worker(use)


def test_a_child_can_be_cancelled_before_its_worker_has_heard_of_it() -> None:
    async def use(worker: Worker) -> list[Ran]:
        results = []
        for _ in range(5):
            child = worker.start(program("import time; time.sleep(60)", Limits()))
            worker.cancel(child)
            results.append(await worker.finish(child))
        return results

    assert [ran.killed for ran in with_a_worker(use)] == ["cancelled"] * 5


def test_a_cancellation_that_comes_late_ends_nobody_else() -> None:
    async def use(worker: Worker) -> list[int]:
        exits = []
        for number in range(1, 4):
            exits.append((await worker.run(program("print(1)"))).exit)
            worker.control.send(marshal.dumps((number, "cancelled")))
        return exits

    assert with_a_worker(use) == [0, 0, 0]


def test_where_nothing_can_be_mounted_the_scratch_folder_is_replaced_in_one_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_leave_mounts", lambda: False)
    monkeypatch.setenv("TMPDIR", "")
    monkeypatch.setenv("HOME", "")
    one = scratch.Scratch(str(tmp_path), 1)
    holder, folder = Path(one.holder), Path(one.path)
    assert holder.stat().st_mode & 0o222 == 0
    (folder / "made").mkdir()
    one.renew()
    assert os.listdir(folder) == [] and folder.stat().st_mtime == 0 and holder.stat().st_mode & 0o222 == 0
    one.close()
    assert not holder.exists()
