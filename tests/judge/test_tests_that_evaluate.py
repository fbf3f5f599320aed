"""Tests that make code of what the answer returns can be told anything by it: their verdicts are flagged, as weak."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rlvrlab.envs.code import Code
from rlvrlab.errors import UserError
from rlvrlab.judge.jail.evaluating import evaluates, may_evaluate, nodes_of
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import TestsTask

WEAK = "integrity: weak"
EVALUATING = (
    "assert eval(candidate()) == 5",
    "x = candidate()\nassert eval(x, {}) == 5",
    "def check(f):\n    assert eval(f(1)) == 2\ncheck(candidate)",
    "exec(candidate())",
    "exec(compile(candidate(), 'x', 'exec'))",
    "import builtins\nassert builtins.eval(candidate()) == 5",
    "assert list(map(eval, candidate())) == [5]",
    "e = eval\nassert e(candidate()) == 5",
    "assert getattr(__builtins__, candidate())('5') == 5",
    "class Box: x = 5\nassert getattr(Box, candidate()) == 5",
    "import operator\nassert operator.attrgetter(candidate())(int)",
    "assert vars(int)[candidate()]",
    "assert int.__dict__[candidate()]",
    "exec(compile(candidate(), 'x', 'exec'), {})",
    "assert globals()[candidate()] == 5",
    "import importlib\nassert importlib.import_module(candidate())",
    "import pickle\nassert pickle.loads(candidate()) == 5",
    "from pickle import loads as read\nassert read(candidate()) == 5",
    "import sympy\nassert sympy.sympify(candidate()) == 5",
    "import timeit\nassert timeit.timeit(candidate(), number=1) < 5",
    "open(candidate(), 'w').write('x')",
    "import os\nos.write(candidate(), b'x')",
    "assert (lambda: 0).__globals__[candidate()]",
)
HARMLESS = (
    "assert candidate() == eval('2 + 3')",
    "exec(compile('x = 5', 'name', 'exec'), {'candidate': candidate})\nassert candidate() == 5",
    "exec('x = 5', globals_of_the_reference)\nassert candidate() == 5",
    "import re\nassert re.compile(r'[0-9]').match(candidate())",
    "import json\nassert json.loads(candidate()) == 5",
    "import ast\nassert ast.literal_eval(candidate()) == 5",
    "assert getattr(candidate, '__name__', '') and candidate() == 5",
    "with open('/dev/null') as file:\n    assert file.read() + str(candidate()) == '5'",
    "assert 'eval' in candidate()",
    "assert '{:.2f}'.format(candidate()) == '5.00'",
    "for x in (1, 2):\n    assert candidate(x) == x",
)
FORGES = """
def f():
    return '''[c for c in ().__class__.__base__.__subclasses__()] and 5'''
"""


@pytest.mark.parametrize("test", EVALUATING)
def test_tests_that_bring_a_returned_text_to_life_are_seen(test: str) -> None:
    assert evaluates(nodes_of([ast.parse(test)])) and may_evaluate(("import math", test))


@pytest.mark.parametrize("test", HARMLESS)
def test_other_tests_are_not(test: str) -> None:
    assert not evaluates(nodes_of([ast.parse(test)])) and not may_evaluate((test,))


def test_what_is_nested_too_deeply_to_be_read_might_be_such_a_test() -> None:
    deep = "assert eval(candidate()) == " + "-" * 50_000 + "5"
    assert may_evaluate((deep,)) and not may_evaluate(("assert eval(",))


def test_their_verdicts_are_flagged_as_weak(judge: Judge) -> None:
    tasks = [TestsTask("f", ("assert eval(f()) == 5",)), TestsTask("f", ("assert str(f())[-1] == '5'",))]
    forged, honest = judge.verify_many([(task, FORGES) for task in tasks])
    assert forged.correct and WEAK in forged.flags, "the tester ran what the answer returned"
    assert honest.correct and WEAK not in honest.flags
    caught = TestsTask("f", ("try:\n    assert eval(f()) == 5\nexcept Exception:\n    assert False",))
    assert WEAK in judge.verify(caught, FORGES).flags
    in_setup = TestsTask("f", ("assert same(f(), 5)",), setup="def same(text, value):\n    return eval(text) == value")
    assert WEAK in judge.verify(in_setup, FORGES).flags


def test_data_with_such_tests_is_only_given_out_when_weak_verdicts_are_wanted(tmp_path: Path) -> None:
    import json

    row = {"task_id": "X/1", "prompt": "def f(x):\n", "entry_point": "f", "split": "train"}
    plain = {**row, "test": "def check(candidate):\n    assert candidate(1) == 1\n"}
    weak = {
        **row,
        "task_id": "X/2",
        "prompt": "def f(y):\n",
        "test": plain["test"].replace("candidate(1)", "eval(candidate('1'))"),
    }
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (plain, weak)))
    assert [one.id for one in Code(path=str(path)).problems("train", 1, seed=0)] == ["X/1"]
    with pytest.raises(UserError, match="has 1"):
        Code(path=str(path)).problems("train", 2, seed=0)
    assert len(Code(path=str(path), inprocess=True).problems("train", 2, seed=0)) == 2
    assert Code().read_row(weak) is None and Code(inprocess=True).read_row(weak) is not None
