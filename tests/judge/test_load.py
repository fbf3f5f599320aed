"""Verdicts do not depend on who else wants the processor: what is excused, what is not, and budgets per test."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_server import Running, submission

from rlvrlab.errors import UserError
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.server import run_code
from rlvrlab.judge.jail import supervisor
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.supervisor import LEAST_PATIENCE_S, Crew, Watch
from rlvrlab.judge.jail.waits import EXCUSED_PER_CPU, EXCUSED_S, EXCUSED_WALLS, MOST_EXCUSED_THREADS
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.judge.workers import stolen, worker
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.types import ErrorKind

TIGHT = Limits(cpu_s=1, job_cpu_s=1, wall_s=2.0)
Threads = dict[int, tuple[float, float]]


class Sleeper:
    """A crew of children that only sleep, and a kernel that tells of them what a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limits: list[Limits]) -> None:
        self.crew, self.reports = Crew(), []
        self.threads: list[Threads] = [{} for _ in limits]
        self.watches: list[Watch] = []
        self.times = 1
        """How often each thread got a processor."""
        pids: list[int] = []
        for number, each in enumerate(limits):
            self.reports.append(os.pipe())
            child = os.fork()
            if child == 0:
                time.sleep(600)
                os._exit(0)
            pids.append(child)
            self.watches.append(self.crew.watch(number, each, os.pidfd_open(child), self.reports[-1][1]))
        self.began = self.watches[0].began
        self.runnable: set[int] = set()
        """The threads that have no processor and want one."""
        monkeypatch.setattr(
            supervisor, "state", lambda _, place: b"R" if int(place.rpartition("/")[2]) in self.runnable else b"S"
        )
        monkeypatch.setattr(supervisor, "cpu_seconds", lambda pid: sum(run for run, _ in self._of(pids, pid).values()))
        monkeypatch.setattr(
            supervisor,
            "thread_times",
            lambda _, pid: [
                (name, (int(a * 1e9), int(b * 1e9), self.times)) for name, (a, b) in self._of(pids, pid).items()
            ],
        )

    def _of(self, pids: list[int], pid: int) -> Threads:
        return self.threads[pids.index(pid)]

    def at(self, second: float, *threads: Threads) -> list[str]:
        """Look with these threads (run, waited), so many seconds after the start: why each child was killed."""
        for place, known in enumerate(threads):
            self.threads[place] = known
        self.crew.look(self.began + second)
        return [watch.killed for watch in self.watches]

    def close(self) -> None:
        for watch, (reading, _) in zip(self.watches, self.reports, strict=True):
            watch.kill("cancelled")
            watch.reap()
            os.close(reading)


@contextmanager
def sleeping(monkeypatch: pytest.MonkeyPatch, *limits: Limits) -> Iterator[Sleeper]:
    one = Sleeper(monkeypatch, list(limits))
    try:
        yield one
    finally:
        one.close()


def test_waiting_for_a_processor_is_excused_in_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, TIGHT) as job:
        assert job.at(5.0, {1: (0.01, 0.0), 2: (0.1, 4.5)}) == [""]
        assert job.at(9.0, {1: (0.01, 0.0), 2: (0.1, 8.4)}) == [""]
        assert job.at(11.0, {1: (0.01, 0.0), 2: (0.1, 8.4)}) == ["wall"]


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


def test_a_thread_that_has_just_begun_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a program that starts a thread now and then would stop its clock, as it has not run yet and waits."""
    with sleeping(monkeypatch, TIGHT) as job:
        job.times = 0
        for look in range(1, 25):
            job.runnable.add(look)
            assert job.at(0.08 * look, {look: (0.0, 0.0)}) == [""]
        assert job.at(2.1, {99: (0.0, 0.0)}) == ["wall"]


def test_a_wait_under_way_between_short_runs_is_excused_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    most = EXCUSED_WALLS * 2.0 + EXCUSED_S + EXCUSED_PER_CPU * 0.5
    with sleeping(monkeypatch, TIGHT) as job:
        job.times = 1
        job.at(0.5, {1: (0.499, 0.0)})  # it has computed,
        job.times = 1000
        job.at(0.6, {1: (0.5, 0.0)})  # and now runs for a microsecond at a time
        job.runnable.add(1)
        assert job.at(most, {1: (0.5, 0.0)}) == [""]
        assert job.at(most + 3, {1: (0.5, 0.0)}) == ["wall"]


def test_waits_between_short_runs_are_excused_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that sleeps a microsecond at a time would stop its clock, and end unjudged, on any busy machine."""
    most = EXCUSED_WALLS * 2.0 + EXCUSED_S + EXCUSED_PER_CPU * 0.5
    with sleeping(monkeypatch, TIGHT) as job:
        job.times = 20_000  # of 25 µs
        assert job.at(most, {1: (0.5, most)}) == [""]
        job.times = 21_000
        assert job.at(most + 1.9, {1: (0.5, most + 1.9)}) == [""]
        job.times = 22_000
        assert job.at(most + 2.1, {1: (0.5, most + 2.1)}) == ["wall"]
    with sleeping(monkeypatch, TIGHT) as job:  # one that never gives its processor up
        job.times = 100
        assert job.at(most + 9.0, {1: (0.5, most + 9.0)}) == [""]


def test_all_threads_of_a_process_are_seen() -> None:
    """The kernel's own count for the process is that of its first thread."""
    resting = threading.Event()
    threads = [threading.Thread(target=resting.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    proc = os.open("/proc", os.O_RDONLY)
    times = dict(supervisor.thread_times(proc, os.getpid()))
    os.close(proc)
    assert {thread.native_id for thread in threads} | {threading.get_native_id()} <= times.keys()
    assert times[threading.get_native_id()][0] > 0
    resting.set()
    for thread in threads:
        thread.join()


def test_threads_that_ended_are_excused_like_those_that_were_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, TIGHT) as job:
        assert job.at(1.0, {1: (0.1, 0.0), 2: (0.1, 0.8)}) == [""]
        monkeypatch.setattr(supervisor, "cpu_seconds", lambda pid: 0.7)  # of which only 0.2 s are of living threads
        assert job.at(3.5, {1: (0.1, 0.0), 2: (0.1, 0.8)}) == [""]


def test_a_crowd_of_threads_cannot_stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand that wait for each other now and then: together longer than the time that passed."""
    with sleeping(monkeypatch, TIGHT) as job:
        crowd = dict.fromkeys(range(1000), (0.0001, 0.01))
        assert sum(wait for _, wait in crowd.values()) > 2.1 + 0.01 * MOST_EXCUSED_THREADS
        assert job.at(2.1, crowd) == ["wall"]


def test_a_partner_that_waits_is_excused_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate sleeps until its tester asks something, and the tester has no processor."""
    with sleeping(monkeypatch, TIGHT, TIGHT) as pair:
        assert pair.at(6.0, {1: (0.1, 0.0)}, {2: (0.1, 5.0)}) == ["", ""]
        assert pair.at(9.0, {1: (0.1, 0.0)}, {2: (0.1, 5.0)}) == ["wall", "wall"]


def test_progress_of_the_tester_gives_the_candidate_its_next_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    several = Limits(cpu_s=1, job_cpu_s=10, wall_s=100.0)
    with sleeping(monkeypatch, several, several) as pair:
        for second in range(5):
            os.write(pair.reports[1][1], b'["passed"]\n')
            assert pair.at(second + 1.0, {1: (0.9 * (second + 1), 0.0)}, {}) == ["", ""]
        assert pair.at(6.0, {1: (5.6, 0.0)}, {})[0] == "cpu"


def test_a_full_pipe_is_the_judges_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, TIGHT) as job:
        reading, writing = job.reports[0]
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writing, b"x" * 4096)
        assert job.at(5.0, {1: (0.1, 0.0)}) == [""]
        os.read(reading, 4096)
        assert job.at(6.0, {1: (0.1, 0.0)}) == [""]
        assert job.at(8.5, {1: (0.1, 0.0)}) == ["wall"]


def test_who_never_gets_a_processor_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(monkeypatch, TIGHT) as job:
        late = LEAST_PATIENCE_S + 1
        assert job.at(late, {1: (0.1, late)}) == ["starved"]


def robbed(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """A machine of which a hypervisor takes this share, whatever happens to the real one."""
    taken = share / (1 - share)
    monkeypatch.setattr(stolen, "times", lambda: (time.monotonic(), taken * time.monotonic()))
    monkeypatch.setattr(stolen.Stretch, "_read_at", 0.0)


@pytest.mark.slow
def test_each_test_has_its_own_budget_when_a_tester_runs_them(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import time\ndef f(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
    pieces = ("assert f(0.15) is (lambda: None)()",) * 4
    limits = Limits(cpu_s=0.3, job_cpu_s=10)
    assert judge.verify(TestsTask("f", pieces, limits=limits), program).detail == "accepted"
    slow = TestsTask("f", (*pieces, "assert f(3) is (lambda: None)()"), limits=limits)
    robbed(monkeypatch, 0.0)
    assert judge.verify(slow, program).error is ErrorKind.TIMEOUT


def test_too_much_cpu_time_is_too_much_even_if_nobody_looked(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs a hair more than its limit ends before the next look: the kernel's count decides."""
    robbed(monkeypatch, 0.0)
    program = "import time\nwhile time.process_time() < 0.103: pass\nprint('ok')"
    assert judge.verify(StdioTask((("", "ok"),), limits=Limits(cpu_s=0.1)), program).error is ErrorKind.TIMEOUT


@pytest.mark.parametrize(("share", "attempts"), [(0.1, 1), (0.5, 3)])
def test_a_time_limit_is_doubted_while_a_hypervisor_takes_the_processors(
    monkeypatch: pytest.MonkeyPatch, share: float, attempts: int
) -> None:
    """It counts part of what it takes as the program's time: 0.6 s of work were seen to cost 12 s of CPU time."""
    robbed(monkeypatch, share)
    ran: list[Any] = []
    collect = worker.Child.collect
    monkeypatch.setattr(worker.Child, "collect", lambda child, ended: ran.append(collect(child, ended)) or ran[-1])
    with Judge(workers=1) as judge:
        task = StdioTask((("", "ok"),), limits=Limits(cpu_s=0.3))
        assert judge.verify(task, "while True: pass").error is ErrorKind.TIMEOUT
        assert sum(one.killed == "cpu" for one in ran) == attempts
        assert judge.verify(task, "print('ok')").correct


@pytest.mark.parametrize(("busy", "attempts"), [(0.01, 1), (1.0, 3)])
def test_whoever_sleeps_on_an_idle_machine_was_robbed_of_nothing(
    monkeypatch: pytest.MonkeyPatch, busy: float, attempts: int
) -> None:
    """Of a hundredth of a second that anybody wants three quarters are soon taken: limits grew fourfold for it."""
    monkeypatch.setattr(stolen, "times", lambda: (busy * time.monotonic(), 3 * busy * time.monotonic()))
    monkeypatch.setattr(stolen.Stretch, "_read_at", 0.0)
    ran: list[Any] = []
    collect = worker.Child.collect
    monkeypatch.setattr(worker.Child, "collect", lambda child, ended: ran.append(collect(child, ended)) or ran[-1])
    with Judge(workers=1) as judge:
        task = StdioTask((("", "ok"),), limits=Limits(cpu_s=0.1, wall_s=0.3))
        assert judge.verify(task, "import time\ntime.sleep(100)").error is ErrorKind.TIMEOUT
        assert sum(one.killed == "wall" for one in ran) == attempts


SLOW = "from time import process_time\ndef f():\n    while process_time() < 0.5: pass\n    return 1\n"
SLOW_TASKS = {
    "stdio": (StdioTask((("", "1"),), limits=Limits(cpu_s=0.2)), SLOW + "print(f())"),
    "calls": (CallsTask("f", (Call((), 1),), limits=Limits(cpu_s=0.2)), SLOW),
    "tester": (TestsTask("f", ("assert f() is (lambda: 1)()",), limits=Limits(cpu_s=0.2)), SLOW),
    "inprocess": (TestsTask("f", ("assert f() == 1",), inprocess=True, limits=Limits(cpu_s=0.2)), SLOW),
}


@pytest.mark.parametrize("mode", SLOW_TASKS)
def test_a_program_robbed_of_its_time_gets_as_much_as_it_was_promised(
    monkeypatch: pytest.MonkeyPatch, judge: Judge, mode: str
) -> None:
    """Half a second of CPU time where the limit is 0.2 s: out of time, unless three quarters of it were stolen."""
    task, program = SLOW_TASKS[mode]
    robbed(monkeypatch, 0.0)
    assert judge.verify(task, program).error is ErrorKind.TIMEOUT
    robbed(monkeypatch, 0.75)
    judge._kept.clear()
    assert judge.verify(task, program).detail == "accepted"


COUNTS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) SELECT max(x) FROM c"


def test_a_query_robbed_of_its_time_gets_as_much_as_it_was_promised(
    monkeypatch: pytest.MonkeyPatch, judge: Judge, tmp_path: Path
) -> None:
    """Beside others in one child, whose clock is not its own: SQLite used to say itself that it took too long."""
    database = tmp_path / "any.sqlite"
    with closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE t (a)")
    task = SqlTask(str(database), "SELECT 600000", limits=Limits(cpu_s=0.05, output_mb=16))
    robbed(monkeypatch, 0.0)
    queries = [COUNTS, *(f"SELECT 600000 + {i} - {i}" for i in range(8))]
    first, *others = judge.verify_many([(task, query) for query in reversed(queries)])[::-1]
    assert first.error is ErrorKind.TIMEOUT and all(one.correct for one in others)
    robbed(monkeypatch, 0.95)
    judge._kept.clear()
    assert [one.detail for one in judge.verify_many([(task, query) for query in reversed(queries)])] == ["accepted"] * 9


def test_a_submission_robbed_of_its_time_is_not_called_wrong(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    """Whoever only asks for a run is told at once how it ended; a submission is paid by its verdict."""
    robbed(monkeypatch, 0.9)
    row = {"id": 1, "test": [{"input": {"stdin": ""}, "output": {"stdout": "1"}}]}
    program = {"code": f"{SLOW}print(f())", "language": "python", "run_timeout": 0.2}
    _, ran, _ = running.post("/run_code", program)
    assert ran["run_result"]["status"] == "TimeLimitExceeded"
    asked = submission(f"```python\n{program['code']}\n```", row, run_timeout=0.2)
    assert running.post("/submit", asked)[1]["accepted"] is True


def test_where_the_kernel_tells_nothing_of_theft_nothing_was_stolen(monkeypatch: pytest.MonkeyPatch) -> None:
    for told in (b"", b"cpu 1 2 3", b"cpu  1 2 3 4 5 6 7 x 0 0"):
        monkeypatch.setattr(stolen, "content", lambda _, told=told: told)
        assert stolen.times() == (0.0, 0.0)
    monkeypatch.setattr(stolen, "content", lambda _: b"cpu  1 2 3 4 5 6 7 250 0 0\ncpu0 1 2 3")
    assert stolen.times() == (19 / os.sysconf("SC_CLK_TCK"), 250 / os.sysconf("SC_CLK_TCK"))


def descendants() -> set[int]:
    """The processes that this one has started, and those that they have."""
    found = [os.getpid()]
    for pid in found:
        for started in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, started.read_text().split())
    return {*found[1:]}


def cpu_used(pid: int) -> float:
    """CPU seconds of a process; without end for one that has ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return float("inf") if state == "Z" else (int(rest[10]) + int(rest[11])) / os.sysconf("SC_CLK_TCK")


BURN = (
    "from time import process_time as now\ndef burn(seconds):\n    end = now() + seconds\n    while now() < end: pass\n"
)
ONCE = BURN + "def f(x, asked=[]):\n    asked or burn(0.6)\n    asked.append(x)\n    return 2\n"
TWICE = BURN + "def f(x):\n    burn(0.25)\n    return 2\n"
AT_THE_TOP = BURN + "burn(0.6)\ndef f(x): return 2\n"
PIECES = ("assert f(1) == (2, 0)[0]",) * 2
CASE = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(1), 2)"
OVERSPENT = {
    "calls": (CallsTask("f", (Call((1,), 2),) * 2), ONCE),
    "tests": (TestsTask("f", PIECES), ONCE),
    "inprocess": (TestsTask("f", PIECES, inprocess=True), ONCE),
    "calls, top level": (CallsTask("f", (Call((1,), 2),)), AT_THE_TOP),
    "tests, top level": (TestsTask("f", PIECES), AT_THE_TOP),
    "inprocess, top level": (TestsTask("f", PIECES, inprocess=True), AT_THE_TOP),
    "a case of unittest": (TestsTask("f", (CASE,), inprocess=True), ONCE),
    "two calls of one piece": (TestsTask("f", ("a = f(1)\nb = f(2)\nassert a + b == 4",)), TWICE),
    "the tests": (TestsTask("f", (BURN + "burn(0.3 * f(1))",)), "def f(x): return 2"),
}


@pytest.mark.parametrize("what", OVERSPENT)
def test_what_used_too_much_is_too_much_even_if_nobody_looked(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that looks gets no processor until twice of what may be has been used, and what is right was said."""
    robbed(monkeypatch, 0.0)
    task, program = OVERSPENT[what]
    task = replace(task, limits=Limits(cpu_s=0.3, job_cpu_s=9.0, wall_s=20.0))
    others = descendants()
    with Judge(workers=1) as alone, ThreadPoolExecutor(1) as thread:
        assert alone.verify(CallsTask("f", (Call((1,), 2),)), "def f(x): return 2").correct
        watching = descendants() - others
        asked = thread.submit(alone.verify, task, program)
        started: list[int] = []
        while not started and not asked.done():
            started = [pid for pid in descendants() - others - watching if cpu_used(pid) > 0.1]
            time.sleep(0.005)
        for pid in watching:
            os.kill(pid, signal.SIGSTOP)
        latest = time.monotonic() + 15
        while started and cpu_used(started[0]) < 0.9 and time.monotonic() < latest:
            time.sleep(0.02)
        for pid in watching:
            os.kill(pid, signal.SIGCONT)
        assert asked.result().error is ErrorKind.TIMEOUT


@pytest.mark.parametrize("size", [4096, 1 << 16])
def test_large_results_pass_through_small_pipes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Where a user has used up the quota, a pipe holds two pages and cannot be made larger."""
    monkeypatch.setattr(worker, "PIPE_SIZE", size)
    task = CallsTask("f", (Call((3,), "x" * 3_000_000),) * 1, limits=Limits(wall_s=5.0))
    with Judge(workers=1) as small:
        assert small.verify(task, "def f(n): return 'x' * (n * 1_000_000)").detail == "accepted"


def test_an_endless_report_is_ended_as_output(judge: Judge) -> None:
    program = "import os, time\ndef f():\n    while True: os.write(3, b'x' * 65536)\n"
    verdict = judge.verify(CallsTask("f", (Call((), 1),), limits=Limits(output_mb=1)), program)
    assert verdict.error is ErrorKind.OUTPUT and verdict.cost["cpu_s"] < 3


@pytest.mark.parametrize(("size", "error"), [((1 << 20) - 1, ErrorKind.NONE), (1 << 20, ErrorKind.OUTPUT)])
def test_output_that_fills_the_limit_may_have_been_cut(judge: Judge, size: int, error: ErrorKind) -> None:
    task = StdioTask((("", "x" * size),), limits=Limits(output_mb=1))
    assert judge.verify(task, f"import os\nos.write(1, b'x' * {size})").error is error


@pytest.mark.long
@pytest.mark.slow
def test_the_same_verdicts_at_load() -> None:
    """The smaller sister of benchmarks/judge_under_load.py."""
    command = [sys.executable, "benchmarks/judge_under_load.py", "--count", "42", "--load", "6", "--rounds", "1"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_run_code_answers_by_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop on a machine that gives it next to no processor: the client hears so while it still listens."""
    form = {"code": "while True: pass", "language": "python", "run_timeout": 0.3, "compile_timeout": 0.3}
    monkeypatch.setattr(wire, "CLIENTS_WAIT_S", 0.2)
    ample, head = Limits(cpu_s=10.0, job_cpu_s=10.0, wall_s=10.0), worker.head
    monkeypatch.setattr(worker, "head", lambda terms, imported: head(terms._replace(limits=ample), imported))

    async def go() -> tuple[dict[str, Any], float, int]:
        pool = Pool(size=1)
        await pool.warm()
        started = time.monotonic()
        answer = await run_code(pool, form)
        waited = time.monotonic() - started
        finished = await run_code(pool, {**form, "code": "print(1)", "compile_timeout": 60})
        pool.close()
        assert finished["run_result"]["stdout"] == "1\n"
        return answer, waited, pool.restarts

    answer, waited, restarts = asyncio.run(go())
    assert (answer["status"], answer["run_result"]) == ("SandboxError", None) and "too busy" in answer["message"]
    assert 0.5 < waited < 4 and restarts == 0


@pytest.mark.parametrize("seconds", [-1, 1e300, "soon", float("nan")])
def test_a_compile_timeout_that_is_none_is_refused(seconds: object) -> None:
    with pytest.raises(UserError, match="compile_timeout"):
        wire.deadline_s({"compile_timeout": seconds}, Limits())


def test_a_candidate_that_fills_its_report_does_not_stop_the_clock() -> None:
    """Under a tester nobody read it until the tester was done, and the clocks of both stood still for minutes."""
    fills = "import os\n\ndef f(x):\n    os.set_blocking(3, False)\n"
    fills += "    try:\n        while os.write(3, b'x' * 4096): pass\n"
    fills += "    except BlockingIOError:\n        pass\n    import time\n    time.sleep(1000)\n"
    check = "def check(c):\n    for i in range(2):\n        assert c(i) == i + 1\ncheck(candidate)"
    task = TestsTask("f", (check,), limits=Limits(cpu_s=0.2, job_cpu_s=0.2, wall_s=0.5))
    with Judge(workers=1) as lonely:
        assert lonely.verify(task, fills).correct is False


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), 9), lambda: os._exit(0)], ids=["killed", "by itself"])
def test_a_child_that_spent_its_time_before_anybody_looked_was_too_slow(end: Callable[[], None]) -> None:
    """Looks take long where threads are many; the kernel then kills first, which is no fault of the machine."""
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.05:
            pass
        end()
    watch = Watch(1, Limits(cpu_s=0.01, job_cpu_s=0.01), os.pidfd_open(pid), os.open(os.devnull, os.O_RDONLY), 0.0)
    assert supervisor.REASONS[supervisor.ENDED.unpack(watch.reap())[2]] == "cpu"
