"""Programs that compute for long run behind the others: their threads, not their worker, and no limit counts it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from test_load import TIGHT, sleeping

from rlvrlab.judge.jail import priority
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.priority import LONG_S, SLOWER, STEP
from rlvrlab.judge.jail.supervisor import LEAST_PATIENCE_S, Crew
from rlvrlab.judge.jail.waits import EXCUSED_PER_CPU, EXCUSED_S, EXCUSED_WALLS
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.judge.workers import pool as workers_pool
from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.workers.worker import Worker

WAIT_S = 120.0
LONG = Limits(cpu_s=1000, job_cpu_s=1000)
SPINNING = "import threading\ndef spin():\n    while True: pass\n"
SPINNING += "for _ in range({threads} - 1): threading.Thread(target=spin).start()\nspin()"
OURS = os.getpriority(os.PRIO_PROCESS, 0)


def program(code: str, limits: Limits = LONG, urgent: bool = False) -> Order:
    return Order({"role": "program", "code": code}, limits, urgent=urgent)


def below(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def jobs_of(worker: Worker) -> list[int]:
    """The processes of its job."""
    return [pid for pid in below(worker.process.pid) if name_of(pid) == "rlvr-job"] if worker.children else []


def niceness(pid: int) -> list[int]:
    """Of each thread, how much nicer it is than we are."""
    return [os.getpriority(os.PRIO_PROCESS, int(thread)) - OURS for thread in os.listdir(f"/proc/{pid}/task")]


async def until_nice(worker: Worker, threads: int) -> None:
    until = time.monotonic() + WAIT_S
    while not any(niceness(job) == [STEP] * threads for job in jobs_of(worker)):
        assert time.monotonic() < until, [niceness(job) for job in jobs_of(worker)]
        await asyncio.sleep(0.01)


@pytest.fixture
def one_processor() -> Iterator[None]:
    """For this process and all that it starts: whoever computes has to share it."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("threads", [1, 12])
def test_all_threads_of_a_spinning_job_step_back_and_the_next_job_does_not_know(threads: int) -> None:
    """A priority once lowered can be raised by root alone, so nothing that outlives the job may have the low one."""

    async def go() -> None:
        pool = Pool(size=1)
        try:
            await pool.warm()
            [worker] = pool._workers
            hung = asyncio.create_task(pool.run(program(SPINNING.format(threads=threads))))
            await until_nice(worker, threads)
            others = [worker.process.pid, *(pid for pid in below(worker.process.pid) if pid not in jobs_of(worker))]
            assert len(others) > 1 and {nice for pid in others for nice in niceness(pid)} == {0}
            hung.cancel()
            await asyncio.wait({hung})
            told = await pool.run(program("import os; print(os.getpriority(os.PRIO_PROCESS, 0))"))
            assert int(told.stdout) == OURS and pool.restarts == 0
        finally:
            pool.close()

    asyncio.run(go())


@pytest.mark.usefixtures("one_processor")
def test_quick_programs_end_before_hung_ones_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that hang, and one place for ten others, who together need twice as long as the hung ones may."""
    monkeypatch.setattr(workers_pool, "LONG_S", 1000.0)  # no place is lent: what decides is who gets the processor
    quick = "from time import process_time as now\nwhile now() < 0.2: pass"

    async def go() -> list[str]:
        pool, ended_in_turn = Pool(size=3), []

        async def run(name: str, code: str) -> None:
            ran: Ran = await pool.run(program(code, Limits(cpu_s=1, job_cpu_s=1)))
            assert ran.killed == ("cpu" if name == "hung" else "")
            ended_in_turn.append(name)

        try:
            await pool.warm()
            hung = [run("hung", "while True: pass") for _ in range(2)]
            await asyncio.gather(*hung, *(run("quick", quick) for _ in range(10)))
            return ended_in_turn
        finally:
            pool.close()

    assert asyncio.run(go()) == ["quick"] * 10 + ["hung"] * 2


@pytest.mark.usefixtures("one_processor")
def test_a_slow_program_beside_quick_ones_is_right_all_the_same() -> None:
    """It waits for most of the time that it takes, several times its wall limit, and is not blamed for that."""
    slow = "from time import process_time as now\nwhile now() < 0.9: pass\nprint('ok')"
    quick = "from time import process_time as now\nwhile now() < 0.2: pass\nprint('ok')"
    task = StdioTask((("", "ok"),), limits=Limits(cpu_s=2, job_cpu_s=2, wall_s=1.0))
    with Judge(workers=2) as judge:
        verdicts = judge.verify_many([(task, slow), *((task, f"{quick}  # {i}") for i in range(12))])
    assert [verdict.detail for verdict in verdicts] == ["accepted"] * 13


def test_workers_share_our_session_for_priorities_to_count_between_them() -> None:
    """Linux weighs sessions against each other (autogroup). A process group of their own keeps Ctrl-C away."""

    async def go(isolation: str) -> bool:
        pool = Pool(Image(isolation), size=1)
        try:
            await pool.warm()
            [worker] = pool._workers
            assert os.getpgid(worker.process.pid) == worker.process.pid
            return os.getsid(worker.process.pid) == os.getsid(0)
        finally:
            pool.close()

    assert asyncio.run(go("landlock")) and not asyncio.run(go("weak"))


def test_whoever_computes_for_most_of_its_time_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, LONG) as job:
        job.at(1.0, {1: (LONG_S - 0.01, 0.0)})
        assert job.stepped_back == []
        job.at(2.0, {1: (LONG_S, 1.0)})  # of a second of its own
        assert job.stepped_back == []
        job.at(3.0, {1: (LONG_S + 0.5, 1.5), 2: (0.0, 0.0)})
        job.at(4.0, {1: (LONG_S + 0.5, 1.5), 3: (0.0, 0.0)})  # it sleeps now, but it is low already
        assert job.stepped_back == [[1, 2], [1, 3]]


def test_a_job_that_somebody_waits_for_by_the_clock_keeps_its_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, LONG) as job:
        job.watches[0].urgent = True
        job.at(2.0, {1: (2.0, 0.0)})
        assert job.stepped_back == []


def test_an_urgent_order_reaches_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that spin, of which one is urgent: when the other one has stepped back, it has not, though it came first."""

    async def go() -> None:
        pool = Pool(size=2)
        try:
            await pool.warm()
            spin = SPINNING.format(threads=1)
            urgent = asyncio.create_task(pool.run(program(spin, urgent=True)))
            await asyncio.sleep(0.1)
            hung = asyncio.create_task(pool.run(program(spin)))
            until = time.monotonic() + WAIT_S
            while sorted(nice for one in pool._workers for job in jobs_of(one) for nice in niceness(job)) != [0, STEP]:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
            await asyncio.sleep(4 * LONG_S)
            assert sorted(nice for one in pool._workers for job in jobs_of(one) for nice in niceness(job)) == [0, STEP]
            for one in (urgent, hung):
                one.cancel()
            await asyncio.wait({urgent, hung})
        finally:
            pool.close()

    asyncio.run(go())


def test_whoever_stepped_back_has_more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind others it waits ten times as long for the same time on a processor."""
    for ran, patience in ((LONG_S, 1.0), (LONG_S + 0.6, float(SLOWER))):
        with sleeping(monkeypatch, TIGHT) as job:
            late = patience * LEAST_PATIENCE_S
            job.at(1.4, {1: (ran, 0.0)})
            assert job.at(late - 1, {1: (ran, late - 2.4)}) == [""]
            assert job.at(late + 1, {1: (ran, late - 0.4)}) == ["starved"]


def test_so_many_times_as_much_is_excused_between_the_short_runs_of_a_job_that_stepped_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = SLOWER * (EXCUSED_WALLS * 2.0 + EXCUSED_S + EXCUSED_PER_CPU * 0.5)
    with sleeping(monkeypatch, TIGHT) as job:
        job.times = 20_000  # of 25 µs
        assert job.at(0.6, {1: (0.5, 0.0)}) == [""] and job.stepped_back
        assert job.at(most, {1: (0.5, most - 0.6)}) == [""]
        assert job.at(most + 2.1, {1: (0.5, most + 1.5)}) == ["wall"]


def test_a_wait_that_is_under_way_is_excused_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells of it when it is over: behind others a job was out of time in the middle of a long one."""
    with sleeping(monkeypatch, TIGHT) as job:
        job.at(0.5, {1: (0.1, 0.0)})
        job.runnable.add(1)
        for second in (1.0, 2.0, 3.0, 4.0):
            assert job.at(second, {1: (0.1, 0.0)}) == [""]
        assert job.crew.clock == pytest.approx(0.5, abs=0.05)
        job.runnable.clear()
        job.at(4.5, {1: (0.2, 3.9)})  # it began before the first of these looks, and was over before the last
        assert job.crew.clock == pytest.approx(0.6, abs=0.05)
        assert job.at(5.8, {1: (0.2, 3.9)}) == [""] and job.at(6.0, {1: (0.2, 3.9)}) == ["wall"]


def test_of_a_wait_that_began_between_two_looks_the_first_part_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, TIGHT) as job:
        job.at(0.5, {1: (0.1, 0.0)})
        job.runnable.add(1)
        job.at(1.0, {1: (0.2, 0.0)})  # it waits since 0.6
        job.at(1.5, {1: (0.2, 0.0)})
        job.at(2.0, {1: (0.2, 1.3)})
        assert job.crew.clock == pytest.approx(0.7, abs=0.05)


def test_what_a_child_has_started_steps_back_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job may start processes, the one that its worker watches may only wait for the one that spins."""
    child = os.fork()
    if child == 0:
        os.fork() or [None for _ in iter(int, 1)]
        time.sleep(600)
        os._exit(0)
    until = time.monotonic() + WAIT_S
    while not below(child):
        assert time.monotonic() < until
        time.sleep(0.01)
    [grandchild] = below(child)
    reading, writing = os.pipe()
    crew = Crew()
    watch = crew.watch(1, LONG, os.pidfd_open(child), writing)
    try:
        crew.no_jobs = frozenset(int(name) for name in os.listdir("/proc") if name.isdigit()) - {child, grandchild}
        while niceness(child) + niceness(grandchild) != [STEP] * 2:
            assert time.monotonic() < until
            crew.look(time.monotonic())
            time.sleep(0.01)
    finally:
        with suppress(ProcessLookupError):
            os.kill(grandchild, 9)
        watch.kill("cancelled")
        watch.reap()
        os.close(reading)
        os.close(crew.proc)


def test_threads_that_have_ended_are_no_trouble() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    priority.step_back([child])
