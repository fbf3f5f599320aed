"""Whose failure is it? The answer's, the task's or the machine's, each told as what it is, and no answer chooses."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.compare import Comparison, bounded, members, same_form
from rlvrlab.judge.finding import failure_of
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Item, Judge
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.judge.workers.orders import Ran
from rlvrlab.types import ErrorKind, Verdict

ROOT = Path(__file__).resolve().parents[2]
RIGHT = "def f(x):\n    return x + 1\n"
WRONG = "def f(x):\n    return x - 1\n"
CALLS = CallsTask("f", (Call((1,), 2), Call((2,), 3)))
RUN = ("assert [f(i) for i in range(3)] == [1, 2, 3]",)
SMALL = Limits(cpu_s=0.5, job_cpu_s=1.0, wall_s=2.0, memory_mb=64)


# The task's.

BROKEN_TASKS = {
    "setup raises": TestsTask("f", RUN, setup="1 / 0"),
    "setup does not compile": TestsTask("f", RUN, setup="def"),
    "setup imports what is not there": TestsTask("f", RUN, setup="import no_such_module"),
    "setup asserts what is not so": TestsTask("f", RUN, setup="assert 1 == 2"),
    "setup exits": TestsTask("f", RUN, setup="raise SystemExit(0)"),
    "tests are blank": TestsTask("f", ("", " ")),
    "tests are blank, in process": TestsTask("f", ("",), inprocess=True),
    "tests are a comment": TestsTask("f", ("# f(1) == 2",)),
    "tests define a check that nothing calls": TestsTask("f", ("def check_it(g):\n    assert g(1) == 2",)),
    "tests assert only what is so": TestsTask("f", ("assert True", "assert 1 + 1 == 2")),
    "setup takes all memory": TestsTask("f", RUN, setup="x = bytearray(10**9)", limits=SMALL),
    "preamble raises": TestsTask("f", ("assert f(1) == 2",), preamble="1 / 0"),
    "preamble does not compile": TestsTask("f", ("assert f(1) == 2",), preamble="def"),
    "preamble imports what is not there": TestsTask("f", RUN, preamble="import no_such_module"),
    "tests import what is not there": TestsTask("f", ("import no_such_module\nassert f(1) == 2",)),
    "later tests import what is not there": TestsTask("f", (*RUN, "import no_such_module\nassert f(1) == 2")),
    "tests import it late": TestsTask("f", ("r = f(1)\nimport no_such\nassert r == 2",)),
    "tests do not compile": TestsTask("f", (*RUN, "assert f(1) ==")),
    "tests take all memory": TestsTask("f", ("x = [0] * 10**9\nassert f(1) == 2",), limits=SMALL),
    "tests fail by themselves": TestsTask("f", ("x = {}['k']\nassert f(1) == 2",)),
    "tests use other names": TestsTask("f", ("assert f(helper(1)) == 2",)),
    "in process, setup raises": TestsTask("f", RUN, setup="1 / 0", inprocess=True),
    "in process, tests do not compile": TestsTask("f", ("assert f(1) ==",), inprocess=True),
    "in process, tests import what is not there": TestsTask("f", ("import no_such\nassert f(1) == 2",), inprocess=True),
    "the checker does not compile": StdioTask((("", "2"),), checker="def"),
    "the checker cannot be imported": StdioTask((("", "2"),), checker="import no_such_module"),
    "a comparison of values for text": StdioTask((("", "2"),), comparison=Comparison("json")),
    "a name that is no text": CallsTask("f", (Call((1,), 2, {1: 2}),)),  # type: ignore[dict-item]
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN_TASKS)
@pytest.mark.parametrize("answer", [RIGHT, WRONG])
def test_a_broken_task_is_nobodys_wrong_answer(judge: Judge, what: str, answer: str) -> None:
    answer = answer if not what.endswith("for text") and "checker" not in what else "print(2)"
    verdict = judge.verify(BROKEN_TASKS[what], answer)
    assert (verdict.correct, verdict.error, verdict.flags) == (None, ErrorKind.BAD_TASK, ("bad_task",)), verdict.detail
    assert verdict.detail.startswith("bad task: ")


@pytest.mark.slow
def test_a_setup_that_never_ends_is_nobodys_wrong_answer(judge: Judge) -> None:
    task = TestsTask("f", RUN, setup="while True: pass", limits=SMALL)
    assert judge.verify(task, RIGHT).error is ErrorKind.BAD_TASK


SOUND_TASKS = [
    TestsTask("f", ("ok = None\ntry:\n    ok = f(1)\nexcept: pass\nassert ok == 2",)),
    TestsTask("f", ("seen = [f(1)]", "assert seen[0] == 2")),
    TestsTask("f", ("from solution import f as g\nassert g(1) == 2",), inprocess=True),
    TestsTask("f", ("try:\n    f('a')\n    assert False\nexcept TypeError:\n    pass",)),
    TestsTask("f", ("assert f(1) == 2, no_such_name",)),
]


@pytest.mark.parametrize("task", SOUND_TASKS)
def test_a_sound_task_that_looks_odd_without_an_answer_is_judged(judge: Judge, task: TestsTask) -> None:
    assert judge.verify(task, RIGHT).correct is True
    assert judge.verify(task, "def f(x):\n    return 0\n").correct is False


NAMES_THAT_THE_ANSWER_GIVES = [
    "for x in f(3): pass\nassert x == 2", "try:\n    f(-1)\nexcept ValueError:\n    ok = True\nassert ok",
    "def check():\n    if f(1): r = 1\n    assert r == 1\ncheck()", "match f(1):\n    case [s]: pass\nassert s == 1",
    "with suppress(Exception):\n    v = f(1)[0]\nassert v == 2", "assert eval(f(1)) == 2",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMES_THAT_THE_ANSWER_GIVES)
def test_a_name_that_the_answer_leaves_without_a_value_is_its_own_failure(judge: Judge, text: str) -> None:
    """The tests bind it, or got it from the answer: an empty result must not make the task a bad one."""
    task = TestsTask("f", (text,), setup="from contextlib import suppress")
    answer = "def f(x):\n    return 'no_such_name' if EVAL else []\n".replace("EVAL", str("eval" in text))
    assert judge.verify(task, answer).correct is False


@pytest.mark.parametrize("size", [1_000, 60_000, 199_000])
def test_a_long_program_is_judged_however_little_memory_it_may_take(judge: Judge, size: int) -> None:
    """What it takes to read it is not the answer's: it must not fail before it is inside, and so stay unjudged."""
    task = CallsTask("f", (Call((1,), 2),), limits=Limits(memory_mb=4))
    assert judge.verify(task, RIGHT + "# " + "😀" * size).correct is True
    assert judge.verify(task, WRONG + "# " + "😀" * size).correct is False


# The machine's.

UNDER_A_LIMIT = """
import resource
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
resource.setrlimit(resource.RLIMIT_{kind}, ({amount}, {amount}))
right = "def f(x): return x + 1"
tests = "def check(g):\\n    for i in range(2): assert g(i) == i + 1\\ncheck(f)"
with Judge(workers=1) as judge:
    for verdict in judge.verify_many([
        (CallsTask("f", (Call((1,), 2),)), right), (StdioTask((("", "1"),)), "print(1)"),
        (TestsTask("f", (tests,)), right), (TestsTask("f", ("assert f(1) == 2",), inprocess=True), right),
    ]):
        print(verdict.correct, verdict.error, verdict.detail)
"""


@pytest.mark.parametrize(("kind", "amount"), [("AS", 1 << 30), ("FSIZE", 1 << 20)])
def test_a_child_that_cannot_enter_the_jail_is_the_machines_failure(judge: Judge, kind: str, amount: int) -> None:
    script = UNDER_A_LIMIT.format(kind=kind, amount=amount)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and all(line.startswith("None infra judge_error") for line in lines), done.stdout


def test_only_a_large_program_is_blamed_for_a_kill_from_outside() -> None:
    killed = Ran(exit=-9, killed="", cpu_s=0.1, wall_s=0.1, peak_mb=900.0)
    failure = failure_of(killed, Limits(memory_mb=512), ())
    assert failure and failure[0] == "memory_limit"


# The answer's: whatever it sends, it is judged, and so is everybody else.

HOSTILE_REPORTS = {
    **{f"{n} levels": '["loaded"]\n["value", ' + "[" * n + "]" * n + "]\n" for n in range(972, 990)},
    "deep objects": '["loaded"]\n["value", ' + '{"a":' * 900 + "1" + "}" * 900 + "]\n",
    "deep words": '["loaded"]\n["raised", ' + "[" * 900 + "]" * 900 + "]\n",
    "words that are none": '["loaded"]\n["raised", {"a": 1}, [2], [3]]\n["opaque", [[1]]]\n',
    "no value": '["loaded"]\n["value"]\n["opaque"]\n',
    "empty": "\n\n",
    "half a line": '["loaded"]\n["val',
    "no JSON": "\x00\x01\x02\n",
    "a compile error that is none": '["compile"]\n["no_entry_point", {}]\n',
}
TASKS: dict[str, tuple[Any, int]] = {
    "calls": (CALLS, 3),
    "tests": (TestsTask("f", RUN), 4),
    "tests' report": (TestsTask("f", RUN), 3),
    "inprocess": (TestsTask("f", RUN, inprocess=True), 3),
    "stdio": (StdioTask((("", "1"),)), 3),
}


def writes(data: bytes, descriptor: int) -> str:
    """A program that writes these bytes where the judge listens, and goes."""
    return f"import os\nos.write({descriptor}, {data!r})\nos._exit(0)\ndef f(x): return x\n"


@pytest.mark.parametrize("name", TASKS)
def test_no_report_leaves_its_answer_or_another_unjudged(judge: Judge, name: str) -> None:
    task, descriptor = TASKS[name]
    items: list[Item] = [(task, writes(text.encode(), descriptor)) for text in HOSTILE_REPORTS.values()]
    verdicts = judge.verify_many([*items, (CALLS, RIGHT)])
    assert [verdict.correct for verdict in verdicts] == [False] * len(items) + [True], verdicts


def random_value(draw: random.Random, depth: int = 0) -> Any:
    """JSON that looks like the judge's own, and is not."""
    tags = ["value", "raised", "list", "set", "dict", "int", "float", "Fraction", "Decimal", "complex", "range", "date",
            "bytes", "handle", "Counter", "timedelta", "defaultdict", "x" * 50]  # fmt: skip
    kind = draw.randrange(8 if depth < 4 else 5)
    if kind < 5:
        return draw.choice([None, True, -1, 10**30, 1e308, "", "1e9", "0x", "ä", *tags])
    if kind == 5:
        return {"k": random_value(draw, depth + 1)}
    return [draw.choice(tags), *(random_value(draw, depth + 1) for _ in range(draw.randrange(4)))][draw.randrange(2) :]


@pytest.mark.parametrize("name", ["tests", "calls"])
def test_random_messages_never_unjudge(judge: Judge, name: str) -> None:
    """Frames to the tester, lines to the judge; sent again at every call, so that each is met."""
    task, descriptor = TASKS[name]
    draw, items = random.Random(7), []
    for _ in range(24):
        bodies = [json.dumps(random_value(draw)).encode() for _ in range(4)]
        lines = b'["loaded"]\n' + b"\n".join(bodies) + b"\n"
        frames = b"".join(len(body).to_bytes(4, sys.byteorder) + body for body in [b'"ready"', *bodies])
        data = frames if name == "tests" else lines
        items.append(
            (task, f"import os, time\nos.write({descriptor}, {data!r})\ntime.sleep(0.05)\ndef f(x): return 'no'\n")
        )
    assert [verdict.correct for verdict in judge.verify_many(items)] == [False] * len(items)


@pytest.mark.parametrize("size", [12 << 20, 0])
def test_a_large_or_empty_message_is_the_candidates(judge: Judge, size: int) -> None:
    body = f"b'[\"value\", [\"' + b'x' * {size} + b'\", 1]]'" if size else "b'[\"value\"]'"
    send = "def send(b):\n    b = struct.pack('=I', len(b)) + b\n    while b: b = b[os.write(4, b):]\n"
    program = f"import os, struct, time\n{send}send(b'\"ready\"')\nsend({body})\ntime.sleep(0.2)\ndef f(x): return x\n"
    verdicts = judge.verify_many([(TestsTask("f", RUN), program), (CALLS, RIGHT)])
    assert [verdict.correct for verdict in verdicts] == [False, True]


CHECKER = "import json, sys\nq = json.load(sys.stdin)\nsys.exit(int(q['output']) ** 2 != int(q['input']))"


def test_output_that_no_checker_can_read_is_wrong(judge: Judge) -> None:
    """Also where there is no expected output by which to try the checker."""
    for expected in ("", "any", "7"):
        task = StdioTask((("49", expected),), checker=CHECKER)
        assert judge.verify(task, "print('junk')").error is ErrorKind.WRONG
        assert judge.verify(task, "print(7)").correct is True


def test_a_task_of_odd_types_is_no_exception() -> None:
    """An exception would end the others of its batch, or leave them running with nobody waiting."""
    odd: Any = StdioTask((("", ""),), checker=5)  # type: ignore[arg-type]
    assert asyncio.run(CodeJudge().judge("pass", odd)).correct is None


def test_an_exception_of_ours_stays_with_its_item(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    judging = CodeJudge.judge

    async def breaks(self: CodeJudge, code: str, task: Any) -> Verdict:
        if "break" in code:
            raise KeyError("ours")
        return await judging(self, code, task)

    monkeypatch.setattr(CodeJudge, "judge", breaks)
    items: list[Any] = [(CALLS, "# break"), (CALLS, RIGHT), (MathTask("1"), 5), (SyntaxTask(), "x = 1"), (CALLS, None)]
    verdicts = judge.verify_many(items)
    assert [verdict.correct for verdict in verdicts] == [None, True, None, True, None]
    assert verdicts[0].error is ErrorKind.INFRA and "ours" in verdicts[0].detail


# Size.


def test_a_result_is_measured_before_it_is_compared() -> None:
    wide = ["set", list(range(200_000))]
    deep: Any = ["list", []]
    for _ in range(400):
        deep = ["list", [deep]]
    assert bounded(wide, 200_002) and not bounded(wide, 200_001)
    assert not bounded(deep, 10**6) and not bounded([{"a": 1}], 10)
    assert not same_form(wide, ["set", [1, 2, 3]], CALLS.comparison)
    hollow = ["ndarray", ["<i8", [100, 100, 100, 100, 0], []]]
    assert not same_form(hollow, ["list", []], Comparison("json"))
    assert members(["complex", ["1.0", "0.0"]]) == 5 and members(1) == 1


def test_reading_a_result_is_paid_for_by_its_job(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "def f(x): return set(range(x * 300_000))"
    task = TestsTask("f", ("assert f(1) == {1, 2}",))
    sizes: list[int] = []
    monkeypatch.setattr("rlvrlab.judge.compare.canonical", lambda form: sizes.append(members(form)))
    verdict = judge.verify(task, program)
    assert verdict.correct is False and sizes == []
    spent: list[float] = []
    monkeypatch.setattr("time.thread_time", lambda: spent.append(1.0) or 100.0 * len(spent))
    assert judge.verify(task, program + "\n").cost["cpu_s"] > 100


EMPTIES_ITS_REPORT = (
    "import os\nreport = os.open('/proc/self/fd/3', os.O_RDONLY | os.O_NONBLOCK)\n"
    "try:\n    os.read(report, 1 << 16)\nexcept BlockingIOError:\n    pass\n"
)


@pytest.mark.parametrize(
    "task",
    [CALLS, StdioTask((("1", "2"),)), TestsTask("f", RUN), TestsTask("f", RUN, inprocess=True)],
    ids=["calls", "stdio", "tests", "inprocess"],
)
def test_an_answer_that_reads_its_report_empty_is_judged_all_the_same(judge: Judge, task: Any) -> None:
    """A pipe can be opened again through /proc: what says that a child entered the jail must not lie in there."""
    verdict = judge.verify(task, EMPTIES_ITS_REPORT + WRONG)
    assert verdict.correct is False, verdict.detail
