"""The data set's own code runs as Python runs it; where it looks for the answer, that is no fault of the task."""

from __future__ import annotations

import pytest

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import TestsTask

RIGHT, WRONG, WITHOUT = "def f(x): return x + 1", "def f(x): return 0", "def g(x): return x + 1"
CLASS = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
LATE = "from __future__ import annotations\n" + CLASS
BESIDE = TestsTask("f", ("assert f(P(1).x) in (2,)",))
PICKLED = "import pickle\nclass P: pass\nassert isinstance(pickle.loads(pickle.dumps(P())), P) and f(1) == 2"
OWN_CODE = {
    "dataclass in the tests": TestsTask("f", (CLASS + "assert f(P(1).x) == 2",)),
    "dataclass in the setup": TestsTask("f", BESIDE.tests, setup=CLASS),
    "dataclass of late annotations": TestsTask("f", BESIDE.tests, setup=LATE),
    "dataclass in the preamble": TestsTask("f", ("assert f(1) == 2",), preamble=CLASS),
    "late annotations in the preamble": TestsTask("f", ("assert f(1) == 2",), preamble=LATE),
    "dataclass in process": TestsTask("f", (CLASS + "assert f(P(1).x) == 2",), inprocess=True),
    "annotations": TestsTask("f", ("def g(a: int): pass\nassert f(1) == 2 and g.__annotations__ == {'a': int}",)),
    "pickle": TestsTask("f", (PICKLED,)),
    "copied": TestsTask("f", ("import copy\nassert copy.copy(f)(1) == 2",)),
    "copied inside": TestsTask("f", ("import copy\nassert copy.deepcopy({'f': [f]})['f'][0](1) == 2",)),
    "own module": TestsTask("f", ("import sys\nme = sys.modules[__name__]\nassert f(1) in (2,)",)),
    "name of the function": TestsTask("f", ("assert f.__name__ == 'f' and callable(f)\nassert f(1) in (2,)",)),
    "a preamble that writes": TestsTask("f", ("assert f(1) == 2",), preamble="open('a', 'w').write('x')"),
    "an answer goes on with the preamble": TestsTask("f", ("assert f(1) == 2",), preamble="if len:"),
}  # fmt: skip
LOOKING = {
    "is it defined": "assert 'f' in globals(), 'f is not defined'\nassert f(1) == 2",
    "by name": "assert globals()['f'](1) == 2",
    "get": "fn = globals().get('f')\nassert callable(fn)\nassert fn(1) == 2",
    "caught": "try: f\nexcept NameError: assert False, 'f is missing'\nassert f(1) == 2",
    "module": "import sys\nassert sys.modules['solution'].f(1) == 2",
    "own module": "import sys, unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(1), 2)\n"
    "s = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])\n"
    "assert unittest.TextTestRunner(stream=sys.stderr).run(s).wasSuccessful()",
    "pickle": PICKLED,
    "what it imports": "import xml\nassert xml.dom and f(1) == 2",
    "what it leaves behind": "assert open('left').read() == 'x' and f(1) == 2",
    "how deep it allows": "def deep(n): return n and deep(n - 1)\nassert deep(5000) == 0 and f(1) == 2",
    "a name that is built in": "assert sum([1]) == 'own' and f(1) == 2",
}
BESIDE_IT = "import sys, xml.dom\nsys.setrecursionlimit(9000)\nopen('left', 'w').write('x')\ndef sum(x): return 'own'\n"


@pytest.mark.parametrize("what", OWN_CODE)
def test_the_data_sets_own_code_runs_as_in_python(judge: Judge, what: str) -> None:
    task = OWN_CODE[what]
    indent = "    " if "goes on" in what else ""
    right, wrong = judge.verify_many([(task, indent + RIGHT), (task, indent + WRONG)])
    assert right.correct is True, right.detail
    assert wrong.correct is False, wrong.detail


@pytest.mark.parametrize("what", LOOKING)
def test_tests_beside_an_answer_may_look_for_it_in_any_way(judge: Judge, what: str) -> None:
    task = TestsTask("f", (LOOKING[what],), inprocess=True)
    right, wrong, without = judge.verify_many([(task, BESIDE_IT + RIGHT), (task, WRONG), (task, WITHOUT)])
    assert right.correct is True, right.detail
    assert wrong.correct is False and without.correct is False, (wrong.detail, without.detail)


def test_a_decorator_under_test_sees_annotations_as_they_are_written(judge: Judge) -> None:
    program = "def typed(f): return lambda x: f(x) if isinstance(x, f.__annotations__['a']) else None"
    test = "@typed\ndef one(a: int): return 1\nassert one(1) == 1"
    assert judge.verify(TestsTask("typed", (test,), inprocess=True), program).correct is True


def test_a_module_that_an_earlier_piece_makes_is_there(judge: Judge) -> None:
    pieces = ("import sys, math\nassert f(1) == 2\nsys.modules['hh'] = math", "import hh\nassert f(2) == 3")
    for inprocess in (False, True):
        task = TestsTask("f", pieces, inprocess=inprocess)
        right, wrong = judge.verify_many([(task, RIGHT), (task, WRONG)])
        assert right.correct is True and wrong.correct is False, wrong.detail


WRITING = (
    "import tempfile\nassert f(1) in (2,)\nwith tempfile.TemporaryDirectory() as d:\n    assert f(2) == 3",
    "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n    assert f(2) == 3",
    "from tempfile import mkdtemp\nassert f(1) in (2,)\nassert mkdtemp()",
    "assert f(1) in (2,)\nwith open('log.txt', 'w') as o: o.write('x')",
)


@pytest.mark.parametrize("test", WRITING)
def test_tests_that_write_files_need_to_run_beside_the_answer(judge: Judge, test: str) -> None:
    """In the tester's jail there is nothing that can be written to, for it would be shared with the answer."""
    task = TestsTask("f", (test,))
    for answer in (RIGHT, WRONG):
        assert judge.verify(task, answer).flags == ("bad_task",)
    assert judge.verify(TestsTask("f", (test,), inprocess=True), RIGHT).correct is True


def test_tests_that_write_files_only_after_a_wrong_answer_are_sound(judge: Judge) -> None:
    task = TestsTask("f", ("if f(1) != 2:\n    open('log.txt', 'w').write('x')\nassert f(2) == 3",))
    right, wrong = judge.verify_many([(task, RIGHT), (task, WRONG)])
    assert right.correct is True and wrong.correct is False


def test_blaming_long_tests_takes_no_time_of_the_answers(judge: Judge) -> None:
    lines = [f"x{i} = {i}\ny{i} = x{i} + 1\nassert f(x{i}) == y{i}" for i in range(300)]
    task = TestsTask("f", ("\n".join([*lines, "assert f(lambda x: x) == 1"]),), limits=Limits(cpu_s=0.5, job_cpu_s=1.0))
    assert judge.verify(task, RIGHT).flags == ("bad_task",)
