"""numpy and its kin: imported by workers of their own kind, no wider a jail, and results that are plain data."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from rlvrlab.errors import UserError
from rlvrlab.judge import compare
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.fusion.wire import task_to_wire
from rlvrlab.judge.jail import arrays, plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.packages import imported_in, needed_by
from rlvrlab.judge.task_forms import task_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask

WITH_NUMPY = "import numpy as np\ndef f(*a): return "
ROOMY = Limits(cpu_s=20.0, job_cpu_s=20.0)


def detail(judge: Judge, task: Any, code: str) -> str:
    return judge.verify(task, code).detail


def value(judge: Judge, expression: str, expected: Any, kind: Any = "exact", **tolerances: float) -> bool | None:
    task = CallsTask("f", (Call((), expected),), Comparison(kind, **tolerances), ROOMY, packages=("numpy",))
    return judge.verify(task, WITH_NUMPY + expression).correct


@pytest.mark.parametrize("name", arrays.SCALARS.split())
def test_a_number_of_numpy_keeps_its_type_on_its_way_to_the_tests_and_back(numpy_judge: Judge, name: str) -> None:
    """A long and a long long have one name in numpy, and were all taken for the second: `isinstance` failed."""
    setup = f"import numpy as np\nkind = np.dtype('{name}').type"
    tests = ("assert type(f(kind(1))) is kind and f(kind(1)) == 1", "assert isinstance(f(kind(0)), kind)")
    program = f"import numpy\ndef f(x): return x if type(x) is numpy.dtype('{name}').type else None"
    assert detail(numpy_judge, TestsTask("f", tests, setup=setup, limits=ROOMY), program) == "accepted"


@pytest.mark.parametrize(("result", "expected", "right"), [
    ("np.array([[3]])", "3", False), ("np.array([3])", "[3]", False), ("[np.array([3])]", "[3]", False),
    ("np.array('v')", "'v'", False), ("{'a': np.array([3])}", "{'a': 3}", False), ("np.int64(3)", "3", True),
    ("np.array([3])", "np.array([3])", True), ("np.array([[3]])", "np.array([3])", False), ("[3]", "list([3])", True),
])  # fmt: skip
def test_an_array_of_one_item_is_not_that_item_to_a_tester(
    numpy_judge: Judge, result: str, expected: str, right: bool
) -> None:
    """`==` of the two is an array that is as true as its only item, and an assert asks no more."""
    tests = (f"import numpy as np\nassert f() == {expected}", f"def check(g):\n    assert g() == {expected}\ncheck(f)")
    assert numpy_judge.verify(TestsTask("f", tests), WITH_NUMPY + result).correct is right


def test_numpys_true_is_not_true_itself(numpy_judge: Judge) -> None:
    """`assert f(1) is True` fails on it in Python, whether tests are read as data or run."""
    for test, right in (
        ("assert f(1) is True", False),
        ("assert f(1) == True", True),
        ("assert f(1) is not None", True),
    ):
        task = TestsTask("f", (test,), limits=ROOMY, packages=("numpy",))
        assert numpy_judge.verify(task, "import numpy\ndef f(x): return numpy.bool_(x)").correct is right
        assert detail(numpy_judge, task, "def f(x): return True") == "accepted"


def test_tests_that_import_numpy_are_run_where_it_is(judge: Judge) -> None:
    test = "import numpy as np\nassert np.allclose(f(np.eye(2)), [[2, 1], [1, 2]]) and f(np.eye(2)).shape == (2, 2)"
    task = TestsTask("f", (test,), limits=ROOMY)
    assert detail(judge, task, "def f(a): return a + 1") == "accepted"
    assert detail(judge, task, "import numpy\ndef f(a): return numpy.add(a, 1)") == "accepted"
    assert judge.verify(task, "def f(a): return a").correct is False


def test_a_task_without_packages_has_none(judge: Judge) -> None:
    assert "ModuleNotFoundError" in detail(judge, CallsTask("f", (Call((), 1),)), WITH_NUMPY + "1")


def test_programs_that_print_may_import_what_the_task_names(judge: Judge) -> None:
    task = StdioTask((("3", "3.0"),), packages=("numpy",), limits=ROOMY)
    assert detail(judge, task, "import numpy as np\nprint(np.ones(int(input())).sum())") == "accepted"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "code"),
    [
        ("import pandas as pd\nassert f(pd.DataFrame({'a': [1, 2]})).equals(pd.DataFrame({'a': [2, 3]}))", "t + 1"),
        ("import pandas as pd\nassert list(f(pd.Series([1, 2], name='x'))) == [2, 4]", "t * 2"),
        ("from scipy import stats\nassert abs(f(0) - 0.5) < 1e-9", "__import__('scipy.stats').stats.norm.cdf(t)"),
        ("import sympy\nassert f(4) == 2", "int(__import__('sympy').sqrt(t))"),
    ],
)
def test_pandas_scipy_and_sympy(judge: Judge, test: str, code: str) -> None:
    pytest.importorskip(test.split()[1])
    task = TestsTask("f", (test,), limits=ROOMY)
    assert detail(judge, task, f"def f(t): return {code}") == "accepted"


@pytest.mark.parametrize(
    ("expression", "expected", "kind", "right"),
    [
        ("np.int64(6)", 6, "exact", True),
        ("np.int64(6)", 6.0, "exact", False),
        ("np.float64(6)", 6, "exact", False),
        ("np.float32(0.5)", 0.5, "exact", True),
        ("np.bool_(True)", True, "exact", True),
        ("np.bool_(True)", 1, "exact", False),
        ("np.bool_(True)", 1, "python", True),
        ("np.complex128(1j)", 1j, "exact", True),
        ("np.float64('nan')", float("nan"), "float", True),
        ("[np.int8(1), (np.uint8(2),)]", [1, (2,)], "python", True),
        ("{np.str_('a'): np.int64(1)}", {"a": 1}, "python", True),
        ("np.arange(4).reshape(2, 2)", [[0, 1], [2, 3]], "json", True),
        ("np.arange(4)", [[0, 1], [2, 3]], "json", False),
        ("np.arange(4).reshape(2, 2).T", [[0, 1], [2, 3]], "json", False),
        ("np.array(5)", 5, "json", True),
        ("np.zeros((2, 0))", [[], []], "json", True),
        ("np.zeros((10**9, 0))", [], "json", False),
        ("np.arange(3)[::-1]", [0, 1, 2], "unordered", True),
        ("np.array([1.0, 2.0000001])", [1.0, 2.0], "float", True),
        ("np.array([1, 2])", [1, 2], "exact", False),
        ("np.array([1, 2])", [1, 2], "python", False),
        ("np.array([1, 2])", np.array([1, 2]), "exact", True),
        ("np.array([1.0, 2.0])", np.array([1, 2]), "exact", False),
        ("[1, 2]", np.array([1, 2]), "json", True),
        ("np.array(['a', 'b'])", ["a", "b"], "json", True),
        ("np.array([1, None], dtype=object)", [1, None], "json", True),
        ("np.datetime64('2020-01-01')", "2020-01-01", "json", False),
        ("np.matrix([[1]])", [[1]], "json", False),
        ("type('int64', (), {'item': lambda s: 6, '__eq__': lambda s, o: True})()", 6, "json", False),
        ("type('ndarray', (np.ndarray,), {'__eq__': lambda s, o: True, 'tolist': list})(1)", [1], "json", False),
        ("type('float64', (np.float64,), {'__eq__': lambda s, o: True})(3)", 6.0, "float", False),
    ],
)  # fmt: skip
def test_numpys_values_by_every_rule(
    numpy_judge: Judge, expression: str, expected: Any, kind: Any, right: bool
) -> None:
    assert value(numpy_judge, expression, expected, kind, abs_tol=1e-6) is right


STRETCHING = (
    "assert np.allclose(f(1), 5.0)",
    "assert np.allclose(f(1), [5.0])",
    "assert np.isclose(f(1), [5.0]).all()",
    "np.testing.assert_allclose(f(1), 5.0)",
    "np.testing.assert_array_equal(f(1), [5])",
    "np.testing.assert_almost_equal(f(1), 5)",
    "assert (f(1) == np.array([5])).all()",
    "x = f(1)\nassert np.all(x == np.array([5])), 'no'",
    "assert not (f(1) != np.array([5])).any()",
    "assert np.all(np.abs(f(1) - np.array([5])) < 1e-6)",
    "assert np.linalg.norm(np.array([5.0]) - f(1)) < 1e-6",
    "def check(candidate):\n    for x in [1]:\n        assert sum((candidate(x) - np.array([5])) ** 2) == 0\ncheck(f)",
)
"""Tests that numpy passes on an empty result, which it stretches to what is expected."""


def test_an_empty_result_is_not_stretched_to_what_is_expected(judge: Judge) -> None:
    for text in STRETCHING:
        task = TestsTask("f", (f"import numpy as np\n{text}",))
        for result, right in {
            "[]": False,
            "np.array([])": False,
            "np.zeros((0, 1))": False,
            "np.array([5])": True,
        }.items():
            verdict = judge.verify(task, f"import numpy as np\ndef f(x): return {result}")
            assert verdict.correct is right, (text, result, verdict.detail)


def test_what_is_empty_on_both_sides_is_the_same_and_masks_stay(judge: Judge) -> None:
    texts = (
        "assert np.allclose(f([]), []) and np.allclose(np.array([]), f([]))",
        "np.testing.assert_array_equal(f([]), np.array([]))",
        "assert (f([]) == np.array([])).all() and (f([]) - np.array([])).sum() == 0",
        "def kept(x):\n    return x[~np.isclose(x, 0)]\nassert kept(f([])).shape == (0,)",
        "def shifted(x):\n    return x - 1\nassert shifted(f([])).shape == (0,)",
        "assert f([1.0]) - 1 == 0 and 3 - 2 == 1 and f([2])[0] != 1",
    )
    task = TestsTask("f", tuple(f"import numpy as np\n{text}" for text in texts))
    verdict = judge.verify(task, "import numpy as np\ndef f(x): return np.array(x)")
    assert verdict.correct and verdict.passed == len(texts), verdict.detail


def test_a_module_put_in_numpys_place_changes_nothing(numpy_judge: Judge) -> None:
    code = (
        "import sys, types\nfake = types.ModuleType('numpy')\n"
        "class ndarray(list):\n    def __eq__(s, o): return True\n    shape, dtype = (1,), 'int64'\n"
        "fake.ndarray = fake.int64 = ndarray\nsys.modules['numpy'] = fake\ndef f(): return fake.ndarray([1])\n"
    )
    task = CallsTask("f", (Call((), [1]),), Comparison("json"), packages=("numpy",))
    assert "returned a ndarray" in detail(numpy_judge, task, code)


FORGED = [
    ["ndarray", ["<i8", [2], [1]]], ["ndarray", ["<i8", [-1, -1], [1]]], ["ndarray", ["<i8", [1] * 200, [1]]],
    ["ndarray", ["<i8", ["1"], [1]]], ["ndarray", [3, [1], [1]]], ["ndarray", []], ["ndarray", 1], ["numpy", []],
    ["numpy", ["int64"]], ["numpy", "ab"], ["Series", [1]], ["table", "Series"],
]  # fmt: skip


@pytest.mark.parametrize("form", FORGED)
def test_forged_forms_equal_nothing(form: Any) -> None:
    for kind in ("exact", "json", "float", "unordered", "python"):
        assert not compare.same_form(form, plain.encode([1]), Comparison(kind))  # type: ignore[arg-type]
    arrays.learn()
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        plain.decode(form)


@pytest.mark.slow
@pytest.mark.parametrize("values", [["datetime", "2020-01-01T00:00:00"], ["timedelta", [1, 0, 0]]])
def test_a_forged_table_cannot_make_the_tests_look_at_fault(judge: Judge, values: Any) -> None:
    """pandas would make dates of its own of them, which the tests could not pass back: the task seemed to be broken."""
    pytest.importorskip("pandas")
    axis = ["Index", ["|O", [0]], [None], None]
    form = ["value", ["Series", [axis, ["|O", [values]], None]]]
    code = (
        f"import os, struct\nform = {json.dumps(form)!r}.encode()\ndef f(x):\n    while True:\n"
        "        os.write(4, struct.pack('=I', len(form)) + form)\n"
        "        if not os.read(4, 65536):\n            os._exit(0)\n"
    )
    test = "import pandas as pd\nfor x in f(0):\n    assert f(x) == 5"
    assert judge.verify(TestsTask("f", (test,), limits=ROOMY), code).correct is False


@pytest.mark.parametrize(
    "given", [np.eye(2), np.array(["a", "bc"]), np.array([1, (2, 3)], dtype=object), np.float32(0.1), np.bool_(False)]
)
def test_values_come_back_as_they_were_sent(given: Any) -> None:
    arrays.learn()
    back = plain.decode(plain.encode(given))
    assert type(back) is type(given) and back.dtype == given.dtype and np.array_equal(back, given)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        ("open('/etc/passwd').read()", "PermissionError"),
        ("open(np.__path__[0] + '/../pip/__init__.py').read()", "PermissionError|FileNotFoundError"),
        ("__import__('os').listdir(np.__path__[0] + '/..')", "PermissionError"),
        ("open(np.__file__, 'a')", "PermissionError|OSError"),
        ("__import__('rich')", "ModuleNotFoundError"),
        ("__import__('socket').socket()", "PermissionError|OSError"),
        ("__import__('os').fork()", "blocked|runtime_error"),
        ("np.ones(10**9).sum()", "memory_limit"),
    ],
)
def test_the_jail_is_no_wider_for_numpy(numpy_judge: Judge, attempt: str, says: str) -> None:
    task = CallsTask("f", (Call((), None),), limits=Limits(memory_mb=256))
    verdict = numpy_judge.verify(task, WITH_NUMPY + attempt)
    assert verdict.correct is False and any(word in verdict.detail for word in says.split("|")), verdict.detail


def test_one_job_leaves_nothing_in_numpy_for_the_next(numpy_judge: Judge) -> None:
    task = CallsTask("f", (Call((), True),), limits=ROOMY)
    assert detail(numpy_judge, task, WITH_NUMPY + "setattr(np, 'left', 1) or np.random.seed(5) is None") == "accepted"
    first = WITH_NUMPY + "not hasattr(np, 'left') and np.random.rand() == 0.5488135039273248"
    assert detail(numpy_judge, task, first) == "accepted"
    threads = (
        "len(__import__('sys')._current_frames()) == 1 and __import__('os').environ['OPENBLAS_NUM_THREADS'] == '1'"
    )
    assert detail(numpy_judge, task, WITH_NUMPY + threads) == "accepted"


@pytest.mark.slow
def test_workers_of_all_kinds_are_bounded() -> None:
    tasks = [CallsTask("f", (Call((), 1),), limits=ROOMY, packages=names) for names in ((), ("numpy",), ("sympy",))]
    with Judge(workers=1) as judge:
        for turn in range(2):
            verdicts = judge.verify_many([(task, f"def f(): return 1  # {turn}") for task in tasks])
            assert [verdict.detail for verdict in verdicts] == ["accepted"] * 3
            pools = judge.pools["code"]._kinds.values()
            assert len(pools) == 3 and sum(len(pool._workers) for pool in pools) <= 2


def test_what_a_task_needs_is_read_from_its_trusted_text() -> None:
    assert imported_in("import os, numpy.linalg as la\n", "  from scipy import stats") == ("numpy", "scipy")
    assert imported_in("import numpydoc", "x = 'import numpy'", "from . import pandas", "# import sympy") == ()
    assert needed_by(TestsTask("f", ("assert f() == 1",), setup="import sympy", packages=("numpy",))) == (
        "numpy",
        "sympy",
    )
    assert needed_by(StdioTask((("", ""),), checker="import numpy")) == ("numpy",)


def test_what_is_missing_is_named(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UserError, match=rf"package 'nothing_like_it' is not installed for {sys.executable}; `pip install"
    ):
        Judge(packages=("nothing_like_it",))
    verdict = judge.verify(CallsTask("f", (Call((), 1),), packages=("nunpy",)), "def f(): return 1")
    assert verdict.correct is None and "package 'nunpy': unknown; did you mean 'numpy'?" in verdict.detail
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    verdict = judge.verify(TestsTask("f", ("import sympy\nassert f()",)), "def f(): return 2")
    assert verdict.correct is None and "package 'sympy' is not installed" in verdict.detail


def test_packages_travel_to_a_remote_judge() -> None:
    task = TestsTask("f", ("assert f()",), packages=("numpy",))
    assert task_of(task_to_wire(task)) == task
