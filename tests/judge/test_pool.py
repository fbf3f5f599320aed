"""Workers that die, jobs that hang, and what remains afterwards."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rlvrlab.judge import code
from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.finding import Starved, failure_of
from rlvrlab.judge.jail.limits import MEGABYTE, Limits
from rlvrlab.judge.jail.numbers import KEEPER
from rlvrlab.judge.jail.template import NAME as TEMPLATE
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask
from rlvrlab.judge.workers import memory
from rlvrlab.judge.workers import pool as workers_pool
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.pool import LONG_S, MOST_LENT, RESERVED_MB, Places, Pool
from rlvrlab.judge.workers.worker import Worker, lines_of
from rlvrlab.types import ErrorKind

ECHO = StdioTask((("x\n", "x\n"),))
# Ended after 0.05 s of CPU or 0.15 s of sleep; ten times that for the job, or a busy machine would starve it first.
HANGS = CallsTask("f", (Call((), 1),), limits=Limits(cpu_s=0.05, job_cpu_s=0.5, wall_s=0.15))
WAIT_S = 60.0


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processes_below(pid: int) -> list[int]:
    """Its children without its template and the keeper of process numbers, which live as long as their worker."""
    return [child for child in children_of(pid) if name_of(child).encode() not in (KEEPER, TEMPLATE)]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_until(true: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)


def ended(pid: int) -> bool:
    """Gone, or dead and not yet collected: who adopts orphans in a container may never do that."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All judges of a user share one scratch folder: those of other tests must not be taken for ours."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.slow
def test_a_worker_killed_mid_batch_is_replaced_and_the_batch_finishes() -> None:
    slow = "import time\ntime.sleep(0.05)\nprint(input())"
    with Judge(workers=2) as judge:
        judge.verify(ECHO, "print(input())")

        killed: set[Worker] = set()

        def murder() -> None:
            """Three workers, each while it holds a job: whoever kills one that only starts may hit one job thrice."""
            while len(killed) < 3 and not over.wait(0.002):
                busy = [one for one in list(judge.pools["code"]._workers) if one.children and one not in killed]
                if busy:
                    killed.add(busy[0])
                    with suppress(ProcessLookupError):
                        os.kill(busy[0].process.pid, signal.SIGKILL)

        over = threading.Event()
        killer = threading.Thread(target=murder)
        killer.start()
        verdicts = judge.verify_many([(ECHO, f"{slow}  # {i}") for i in range(30)])
        over.set()
        killer.join()
        assert [verdict.correct for verdict in verdicts] == [True] * 30
        assert judge.pools["code"].restarts >= 1


def test_the_number_of_workers_changes_no_verdict(judge: Judge) -> None:
    """One worker, one after the other, finds what several find in whatever order they come to it."""
    texts = ["return x", "return -x", "return x / 0", "return [x", "import os\n    os._exit(0)", "return str(x)"]
    items = [(CallsTask("f", (Call((n,), n),)), f"def f(x):\n    {text}\n") for n in (1, 2) for text in texts]
    with Judge(workers=1) as alone:
        one, several = alone.verify_many(items), judge.verify_many(items)
    assert [(v.correct, v.score, v.error) for v in one] == [(v.correct, v.score, v.error) for v in several]
    assert [v.correct for v in one] == [text == "return x" for _ in (1, 2) for text in texts]


@pytest.mark.slow
def test_hung_candidates_leave_the_pool_at_full_size() -> None:
    with Judge(workers=2) as judge:
        verdicts = judge.verify_many([(HANGS, f"import time\ndef f(): time.sleep(60)  # {i}") for i in range(20)])
        assert {verdict.error for verdict in verdicts} == {ErrorKind.TIMEOUT}
        pool = judge.pools["code"]
        assert len(pool._workers) == 2 and pool.restarts == 0  # those started for lent places have ended
        for worker in pool._workers:
            assert processes_below(worker.process.pid) == []


@pytest.mark.slow
def test_forty_hung_candidates_in_a_row() -> None:
    with Judge(workers=2) as judge:
        items = [(HANGS, f"def f():\n    while True: pass  # {i}") for i in range(40)]
        assert {verdict.error for verdict in judge.verify_many(items)} == {ErrorKind.TIMEOUT}
        assert len(judge.pools["code"]._workers) == 2
        assert judge.verify(ECHO, "print(input())").correct is True


@pytest.mark.long
@pytest.mark.slow
def test_thousands_of_checks_without_growth() -> None:
    """Memory, descriptors and processes after 5,000 checks are those after 1,000."""
    with Judge(workers=2) as judge:

        def burst(start: int, count: int) -> None:
            judge._kept.clear()
            items = [(ECHO, f"print(input())  # {i}") for i in range(start, start + count)]
            assert all(verdict.correct for verdict in judge.verify_many(items))

        def footprint() -> tuple[int, int, int]:
            gc.collect()
            workers = [worker.process.pid for worker in judge.pools["code"]._workers]
            lasting = [*workers, *(child for pid in workers for child in children_of(pid))]
            memory = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in lasting)
            descriptors = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in [os.getpid(), *lasting])
            return memory, descriptors, sum(len(processes_below(pid)) for pid in workers)

        burst(0, 1000)
        before = footprint()
        for start in range(1000, 5000, 1000):
            burst(start, 1000)
        after = footprint()
    assert after[1] <= before[1] and after[2] <= before[2]  # what others held meanwhile may have gone
    assert after[0] <= before[0] * 1.05 + 256  # pages; a leak of one kilobyte per check would be 1,000


def test_no_process_and_no_folder_survive_the_judge(own_scratch: None) -> None:
    with Judge(workers=2) as judge:
        judge.verify(ECHO, "print(input())")
        workers = list(judge.pools["code"]._workers)
    assert all(worker.process.poll() is not None for worker in workers)
    assert os.listdir(workers[0].scratch) == []


def test_workers_end_when_their_parent_is_killed(own_scratch: None) -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            judge = Judge(workers=1)
            judge.verify(ECHO, "print(input())")
            worker = next(iter(judge.pools["code"]._workers))
            os.write(writing, f"{worker.process.pid} {worker.scratch}".encode())
            time.sleep(60)
        finally:
            os._exit(0)
    os.close(writing)  # or a child that fails early would be waited for in vain
    pid, scratch = os.read(reading, 1000).decode().split()
    os.close(reading)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until(lambda: ended(int(pid)))
    assert os.listdir(scratch) == []


def ran(**facts: object) -> Ran:
    known = {"exit": 0, "killed": "", "cpu_s": 0.1, "wall_s": 0.1, "peak_mb": 10.0}
    return Ran(**{**known, **facts})  # type: ignore[arg-type]


def test_death_from_outside_is_the_machines_fault() -> None:
    """An out-of-memory killer's SIGKILL is no verdict: the jail leaves a program no way to send one to itself."""
    with pytest.raises(Starved):
        failure_of(ran(exit=-signal.SIGKILL), Limits(), ())
    with pytest.raises(Starved):
        failure_of(ran(exit=-signal.SIGKILL, killed="starved"), Limits(), ())


def test_starvation_is_retried_then_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    async def starve(*order: object) -> None:
        attempts.append(order)
        raise Starved("no time")

    async def go() -> object:
        judge = CodeJudge(Pool(size=1))
        try:
            return (await judge.judge("print(1)", ECHO)).correct
        finally:
            judge.pool.close()

    monkeypatch.setattr(code, "judge_stdio", starve)
    assert asyncio.run(go()) is None and len(attempts) == 3


@pytest.mark.parametrize(
    "report", [b"no newline", b"[]\n", b"{}\n", b'["a"]\n' * 5, b"[" * 5000 + b"\n", b"\xff\n", b"[1]\n"]
)
def test_a_report_that_is_none(report: bytes) -> None:
    with pytest.raises(ValueError):
        lines_of(report, at_most=3)


def test_equal_work_is_done_once(judge: Judge) -> None:
    before = judge.latency()
    verdicts = judge.verify_many([(ECHO, "print(input())  # once")] * 5)
    again = judge.verify(ECHO, "print(input())  # once")
    after = judge.latency()
    assert all(verdict.correct for verdict in [*verdicts, again])
    assert after.checks - before.checks == 1 and after.cached - before.cached == 5
    assert "cached" in again.cost and "cached" not in verdicts[0].cost
    assert after.p50_ms <= after.p95_ms <= after.p99_ms <= after.slowest[0][0]


def test_failures_of_the_judge_are_not_kept(judge: Judge) -> None:
    task = StdioTask((("", ""),), checker="1 / 0")
    assert judge.verify(task, "print()  # unlucky").correct is None
    assert "cached" not in judge.verify(task, "print()  # unlucky").cost


def test_a_worker_nobody_waits_for_any_more_is_ended() -> None:
    async def go() -> tuple[int, int]:
        pool = Pool(size=1)
        try:
            asked = asyncio.ensure_future(pool.warm())
            while not pool._workers:
                await asyncio.sleep(0)
            started = len(pool._workers)
            asked.cancel()
            await asyncio.wait({asked})
            return started, len(pool._workers)
        finally:
            pool.close()

    assert asyncio.run(go()) == (1, 0)


def test_the_end_of_a_worker_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> tuple[float, bool]:
        pool = Pool(size=1)
        await pool.warm()
        [worker] = pool._workers
        reap = worker.reap
        monkeypatch.setattr(worker, "reap", lambda: (time.sleep(0.3), reap()))
        started = time.monotonic()
        pool._end(worker)
        took = time.monotonic() - started
        pool.close()
        return took, worker.process.poll() is not None

    took, gone = asyncio.run(go())
    assert took < 0.25 and gone


def test_cancelled_jobs_leave_no_child() -> None:
    async def go() -> None:
        pool = Pool(size=1)
        job = asyncio.create_task(pool.run(Order({"role": "program", "code": "import time; time.sleep(60)"}, Limits())))
        until = time.monotonic() + WAIT_S
        # Cancelled while its worker starts, it would leave nothing; what runs before an order is a rehearsal.
        while not (
            started := [pid for one in pool._workers if one.children for pid in processes_below(one.process.pid)]
        ):
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        result = await pool.run(Order({"role": "program", "code": "print(1)"}, Limits()))
        assert result.stdout == b"1\n"
        assert all(processes_below(worker.process.pid) == [] for worker in pool._workers)
        assert all(ended(pid) for pid in started)
        pool.close()

    asyncio.run(go())


def test_a_job_that_takes_long_does_not_hold_up_the_others() -> None:
    """One place: three short jobs end while a sleeping one, which came first, still runs."""

    async def go() -> list[str]:
        pool, ended_in_turn = Pool(size=1), []

        async def run(name: str, program: str) -> None:
            await pool.run(Order({"role": "program", "code": program}, Limits()))
            ended_in_turn.append(name)

        try:
            await pool.warm()
            sleeping = asyncio.create_task(run("sleeping", "import time; time.sleep(60)"))
            await asyncio.sleep(0)
            await asyncio.gather(*(run(f"short {i}", "print(1)") for i in range(3)))
            sleeping.cancel()
            await asyncio.wait({sleeping})
            return ended_in_turn
        finally:
            pool.close()

    assert asyncio.run(asyncio.wait_for(go(), WAIT_S)) == ["short 0", "short 1", "short 2"]


@pytest.mark.parametrize(
    ("begin", "memory_mb", "at_once"),
    [(True, 10 * RESERVED_MB, 2 + 2 * MOST_LENT), (True, 5 * RESERVED_MB - 1, 4), (False, 10 * RESERVED_MB, 2)],
    ids=["of all that began", "of few where memory is scarce", "of none that waits for its worker"],
)
def test_places_are_lent(monkeypatch: pytest.MonkeyPatch, begin: bool, memory_mb: int, at_once: int) -> None:
    """More hung jobs than places leave room for others. Whoever waits for its worker to start lends nothing: it takes
    long through no fault of its own."""
    monkeypatch.setattr(workers_pool, "spare_mb", lambda: memory_mb)

    async def go() -> tuple[int, int]:
        places, running, most = Places(2), 0, 0
        end = asyncio.Event()

        async def job() -> None:
            nonlocal running, most
            async with places.one() as begins:
                if begin:
                    begins()
                running += 1
                most = max(most, running)
                await end.wait()
                running -= 1

        jobs = [asyncio.create_task(job()) for _ in range(4 + 2 * MOST_LENT)]
        until = time.monotonic() + WAIT_S
        while most < at_once and time.monotonic() < until:
            await asyncio.sleep(LONG_S)
        await asyncio.sleep(3 * LONG_S)
        lent = most
        end.set()
        await asyncio.gather(*jobs)
        return lent, most

    assert asyncio.run(go()) == (at_once, at_once)


def test_a_place_is_lent_as_soon_as_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    spare = [0] * 3
    monkeypatch.setattr(workers_pool, "spare_mb", lambda: spare.pop() if spare else 3 * RESERVED_MB)

    async def go() -> None:
        places, end = Places(1), asyncio.Event()
        started = 0

        async def job() -> None:
            nonlocal started
            async with places.one() as begins:
                begins()
                started += 1
                await end.wait()

        jobs = [asyncio.create_task(job()) for _ in range(3)]
        while started < 3:
            await asyncio.sleep(LONG_S)
        end.set()
        await asyncio.gather(*jobs)

    asyncio.run(asyncio.wait_for(go(), WAIT_S))
    assert spare == []


@pytest.mark.parametrize("line", ["0::/job/step", "4:memory:/job/step"], ids=["one tree", "a tree of its own"])
def test_the_least_room_of_all_groups_counts_and_files_that_can_be_dropped_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    kinds = line.split(":")[1]
    limit, taken = memory.NAMES[kinds == ""]
    tree = tmp_path / kinds
    (tree / "job" / "step").mkdir(parents=True)
    for group, (most, used, dropped) in {"job": ("9000000", "8000000", 2_000_000), "job/step": ("max", "1", 0)}.items():
        for name, told in ((limit, most), (taken, used), ("memory.stat", f"anon 1\ninactive_file {dropped}")):
            (tree / group / name).write_text(told)
    (tmp_path / "own").write_text(f"2:cpu:/elsewhere\n{line}\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", str(tmp_path / "own"))
    assert memory.spare_mb() == 3_000_000 // MEGABYTE
