"""No answer leaves itself unjudged: what it brings about in the tests is its own fault, what they do is theirs."""

from __future__ import annotations

import pytest

from rlvrlab.judge.jail.blame import Blame
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.types import ErrorKind

RAISES = 'def f(x): raise ImportError(f"x{x}")'
POOL = "from concurrent.futures import ThreadPoolExecutor\n"
HUGE = "from fractions import Fraction\ndef f(x): return Fraction(1 << 262143)"


@pytest.mark.parametrize(
    ("test", "program"),
    [
        (POOL + "with ThreadPoolExecutor(1) as ex: assert list(ex.map(candidate, [1, 2])) == [1, 2]", RAISES),
        (
            "try:\n    r = candidate(1)\nfinally:\n    try: candidate(2)\n    except ValueError: pass",
            "def f(x):\n    if x == 1: raise ImportError('no')\n    raise ValueError",
        ),
        ("assert __import__(candidate(1)).pi", "def f(x): return 'nothing_of_that_name'"),
        ("import importlib\nassert importlib.import_module(candidate(1)).pi", "def f(x): return 'nothing'"),
        (
            "assert eval(candidate(1)) == len('12')",
            "def f(x): return \"(_ for _ in ()).throw(NameError('x', name='len'))\"",
        ),
        ("assert candidate(candidate(3) * 2) == 12", HUGE),
        ("x = candidate(3) * 2\ny = [x]\nassert candidate(y[0]) == 12", HUGE),
        ("def twice(g, x): return g(g(x) * 2)\nassert twice(candidate, 3) == 12", HUGE),
        ("assert list(map(candidate, [x * 2 for x in map(candidate, [3])])) == [12]", HUGE),
        ("assert candidate(candidate(3).values) == 12", "def f(x): return {}"),
    ],
)
def test_what_an_answer_brings_about_is_its_own_fault(judge: Judge, test: str, program: str) -> None:
    verdict = judge.verify(TestsTask("f", (test,)), program)
    assert verdict.correct is False and verdict.error is not ErrorKind.BAD_TASK, verdict.detail


@pytest.mark.parametrize(
    "test",
    [
        "assert candidate(1) == 1\nimport nothing_of_that_name",
        "def late():\n    from math import nothing\nassert candidate(1) == 1\nlate()",
        "assert candidate(1) == 1\nassert helper(candidate(2)) == 2",
        "assert candidate(1) == 1\nassert candidate(lambda x: x) == 1",
        "big = object()\nassert candidate(1) == 1\nassert candidate(big) == 1",
    ],
)
def test_what_the_tests_do_wrong_stays_theirs(judge: Judge, test: str) -> None:
    verdict = judge.verify(TestsTask("f", (test,)), "def f(x): return x")
    assert verdict.error is ErrorKind.BAD_TASK, verdict.detail


TO_ITERATOR = "(r if r == 2 else iter([r]))"
FLOWS = {
    "alias": f"g = f\nr = g(1)\nassert g{TO_ITERATOR} == 3",
    "partial": f"from functools import partial\ng = partial(f)\nr = g(1)\nassert g{TO_ITERATOR} == 3",
    "partial without arguments": "from functools import partial\ng = partial(f, f(1) == 2 or iter([]))\nassert g()",
    "element": f"fs = [f]\nr = fs[0](1)\nassert fs[0]{TO_ITERATOR} == 3",
    "method": "class C:\n    def go(self, r): return f(r if r == 2 else iter([r]))\nassert C().go(f(1)) == 3",
    "static method": f"class S: g = staticmethod(f)\nr = S.g(1)\nassert S.g{TO_ITERATOR} == 3",
    "lambda": f"assert (lambda r: f{TO_ITERATOR})(f(1)) == 3",
    "match": f"match f(1):\n    case r: assert f{TO_ITERATOR} == 3",
    "generator": f"def g():\n    r = yield\n    yield f{TO_ITERATOR}\nh = g(); next(h)\nassert h.send(f(1)) == 3",
    "except": "y = 2\ntry: 1 / (f(1) == 2)\nexcept ZeroDivisionError as e: y = e\nassert f(y) == 3",
    "setattr": "from types import SimpleNamespace\nb = SimpleNamespace()\nsetattr(b, 'v', f(1))\n"
    "assert f(b.v if b.v == 2 else b) == 3",
    "inner list": "d = {'a': []}\nd['a'].append(f(1))\nr = d['a'][0]\nassert f(r if r == 2 else iter([r])) == 3",
    "branch": "if f(1) == 2: y = 2\nelse: y = iter([])\nassert f(y) == 3",
    "late branch": "y = 2\nif f(1) != 2: y = object()\nassert f(y) == 3",
    "call in a branch": "if f(1) != 2: f(object())\nassert f(2) == 3",
    "loop that is left": "for x in (1, len):\n    if f(x) == 2: break\nassert f(2) == 3",
    "helper that changes": "y = [2]\ndef spoil(): y[0] = len\nif f(1) != 2: spoil()\nassert f(y[0]) == 3",
    "name in a branch": "r = f(1)\nif r != 2: report_failure(r)\nassert r == 2",
    "import in a branch": "r = f(1)\nif r != 2: import no_such_module\nassert r == 2",
    "dotted import": "if f(1) == 2:\n    import xml.dom\nassert xml.dom and f(2) == 3",
    "star import": "if f(1) == 2:\n    from math import *\nassert sqrt(4) == 2",
    "globals": "globals().update({'value': 3} if f(1) == 2 else {})\nassert value == 3",
    "one module, two names": "import math\nimport math as m\nm.v = 2 if f(1) == 2 else len\nassert f(math.v) == 3",
    "from and import": "import os\nfrom os import environ\nenviron['A'] = str(f(1))\n"
    "assert f({'2': 2}.get(os.environ['A'], len)) == 3",
    "setter and getter": "from decimal import getcontext, Decimal\ngetcontext().prec = max(1, f(1))\n"
    "assert f({2: 2}.get(len(str(Decimal(1) / 3)) - 2, len)) == 3",
    "recursion limit": "from sys import setrecursionlimit, getrecursionlimit\n"
    "setrecursionlimit(998 + f(1) if f(1) == 2 else 900)\nassert f({1000: 2}.get(getrecursionlimit(), len)) == 3",
    "builtins": "import builtins\nbuiltins.zz = 2 if f(1) == 2 else iter([])\nassert f(zz) == 3",
    "builtins in a branch": "import builtins\nif f(1) == 2: builtins.zz = 3\nassert zz == 3 and f(2) == 3",
    "a built-in function": "import builtins\nif f(1) == 2: builtins.hash = 2\nassert f(hash) == 3",
    "f_globals": "import sys\nif f(1) == 2: sys._getframe().f_globals['yy'] = 3\nassert yy == 3",
    "currentframe": "import inspect\nif f(1) == 2: inspect.currentframe().f_globals.update(yy=3)\nassert yy == 3",
    "own module": "import sys\nif f(1) == 2: sys.modules[__name__].yy = 3\nassert yy == 3",
    "sys.modules": "import sys, types\nif f(1) == 2: sys.modules['helper'] = types.ModuleType('helper')\n"
    "import helper\nassert f(2) == 3",
    "attribute of a module": "import math\nif f(1) == 2: math.tau2 = 3\nfrom math import tau2\nassert tau2 == f(2)",
    "exec of a constant": "if f(1) == 2: exec('y = 3')\nassert y == 3",
    "exec of bytes": "if f(1) == 2: exec(b'y = 3')\nassert y == 3",
    "suppressed": "from contextlib import suppress\nassert f(1) == 2\nwith suppress(NameError), helper(): pass",
    "annotation": "def check(c):\n    x: Missing = c(1)\n    assert x == 2\ncheck(f)",
    "a loop without a turn": "assert f(1) == 2\nfor x in (): helper(x)",
    "what new makes": "class C:\n    def __new__(cls): return 2\nassert f(1) == 2 and f(C()) == 3",
    "a list that is changed": "y = [len]\nif f(1) == 2: y[0] = 2\nassert f(y[0]) == 3 and f(sum(y)) == 3",
    "other arguments": "def check(a, b):\n    assert b(1) == 2\n    a(len)\ncheck(*[print], f)",
    "exec": "exec('y = 3' if f(1) == 2 else '')\nassert y == 3",
}


@pytest.mark.parametrize("name", FLOWS)
def test_no_flow_of_a_result_makes_a_bad_task(judge: Judge, name: str) -> None:
    task = TestsTask("f", (FLOWS[name],))
    right, wrong = judge.verify_many([(task, "def f(x): return x + 1"), (task, "def f(x): return 0")])
    assert right.correct is True, right.detail
    assert wrong.correct is False, wrong.detail


@pytest.mark.parametrize(
    ("test", "shown"),
    [
        ("f(1)\nf(lambda x: h(x))", True),
        ("f(1)\nf([len, 2])", True),
        ("class Node: pass\nnode = Node()\nnode.next = Node()\nf(1)\nf(node)", True),
        ("def check(c):\n    c(1)\n    c(iter([1]))\ncheck(f)", True),
        ("def check(candidate):\n    candidate(1)\n    candidate(len)\ncheck(candidate)", True),
        ("f(1)\nfor x in range(2): f(len)", True),
        ("f(1)\nwhile f(2): f(len)", False),
        ("f(1)\nfor x in f(2): f(len)", False),
        ("def check(c):\n    if c(1): return\n    c(len)\ncheck(f)", False),
        ("f(1) and f(len)", False),
        ("try: f(1)\nexcept ValueError: f(len)", False),
        ("seen = []\nseen.append(f(1))\nf(seen)", False),
        ("x = len\nx = f(1)\nf(x)", False),
        ("len = f(1)\nf(len)", False),
        ("f(1)\ng = f\ng(len)", False),
        ("def check(c):\n    c(1)\n    c(len)\ncheck(f)\ncheck(f)", False),
        ("x = len\nexec(f(1))\nf(x)", False),
    ],
)
def test_only_what_every_answer_meets_is_shown(test: str, shown: bool) -> None:
    assert bool(Blame((test,), "f").fault()) is shown
