"""Tests that make code of what the answer returns can be told anything by it: their verdicts are flagged, as weak."""

from __future__ import annotations

import ast
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import pytest

from rlvrlab.envs.code import Code
from rlvrlab.errors import UserError
from rlvrlab.judge.jail.data_modules import MODULES
from rlvrlab.judge.jail.evaluating import evaluates, may_evaluate, nodes_of
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask, TestsTask

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
    "import sympy\nassert sympy.expand(candidate()) == 3",
    "import sympy\nassert sympy.Symbol('x').equals(candidate())",
    "from sympy import Rational\nassert Rational(candidate()) == 3",
    "from sympy import *\nassert expand(candidate()) == 3",
    "import math as m\nimport sympy as m\nimport math as m\nassert m.sqrt(candidate()) == 3",
    "import nobody.knows as n\nassert n.read(candidate()) == 3",
    "import pandas as pd\nassert pd.DataFrame({'a': [1]}).query(candidate()).shape == (1, 1)",
    "import pandas as pd\nsearch = pd.DataFrame({'a': [1]}).pipe\nassert search(candidate())",
    "import pandas as pd\npd.read_pickle(candidate())",
    "import pandas as pd\npd.DataFrame({'a': [1]}).to_csv(candidate())",
    "import numpy as np\nnp.load(candidate(), allow_pickle=True)",
    "import numpy as np\nnp.array([1]).tofile(candidate())",
    "import numpy as np\nnp.testing.rundocs(candidate())",
    "import typing\nclass A:\n    __annotations__ = {'v': candidate()}\nassert typing.get_type_hints(A)['v'] is int",
    "from typing import *\nForwardRef(candidate())._evaluate({}, {}, frozenset())",
    "import pathlib\npathlib.Path(candidate()).write_text(candidate(1))",
    "from pathlib import Path\nassert Path(candidate()).read_text() == 'x'",
    "import io\nio.FileIO(candidate(), 'w').write(b'x')",
    "import codecs\ncodecs.open(candidate(), 'w')",
    "import json\njson.codecs.open(candidate(), 'w')",
    "import os\nos.execv(candidate(), [])",
    "import os as system\nsystem.path.genericpath.os.remove(candidate())",
    "import math\nmath.sqrt.__self__.__loader__.load_module(candidate())",
    "import subprocess\nassert subprocess.run(candidate()).returncode == 0",
    "import ctypes\nctypes.CDLL(candidate())",
    "import types\ntypes.CodeType(*candidate())",
    "import types\ng = lambda: 0\nassert types.FunctionType(g.__code__.replace(co_code=candidate()), {})()",
    "import code\ncode.InteractiveInterpreter().runsource(candidate())",
    "import cProfile\ncProfile.run(candidate())",
    "import unittest\nunittest.TestLoader().loadTestsFromName(candidate())",
    "import pydoc\nassert pydoc.locate(candidate())",
    "import logging.config\nlogging.config.dictConfig(candidate())",
    "import sys\nassert sys.modules[candidate()]",
    "import sys\nassert sys.modules.get(candidate())",
    "class Box: x = 5\nassert Box.__dict__.get(candidate()) == 5",
    "assert object.__getattribute__([], candidate())",
    "assert __loader__.load_module(candidate())",
    "help(candidate())",
    "import numpy as np\nexpected = [1]\nassert (np.r_[candidate()] == expected).all()",
    "import numpy as np\nexpected = [1]\nassert (np.c_[candidate()] == expected).all()",
    "from io import *\nFileIO(candidate(), 'w').write(b'x')",
    "from sys import *\nassert modules[candidate()]",
    "from builtins import *\nassert eval(candidate()) == 5",
    "from os import *\nremove(candidate())",
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
    "import sympy\nimport os, subprocess\nassert candidate() == 5",
    "from sympy import isprime\nassert all(isprime(one) == candidate(one) for one in range(9))",
    "import sys\nsys.setrecursionlimit(10**6)\nsys.path.append('.')\nassert candidate() == 5",
    "import numpy as np\nassert np.allclose(candidate(), np.array([1.0, 2.0]).mean(axis=0), rtol=1e-7)",
    "import numpy as np\nnp.testing.assert_allclose(np.linalg.norm(candidate()), np.random.default_rng(0).normal())",
    "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\nassert list(df.a) == candidate(df.groupby('a').sum())",
    "import pandas as pd\ndf = pd.DataFrame({'a': [1]})\nassert candidate(df.query('a > 0')).equals(df[df.a > 0])",
    "import pandas as pd\npd.testing.assert_frame_equal(candidate(), pd.Series([1]).to_frame())",
    "import math, os\nassert math.isclose(candidate(), math.pi) and os.path.join('a', candidate('b'))",
    "from typing import *\nfrom collections import *\nassert Counter(candidate()) == Counter('ab')",
    "from io import *\nfrom sys import *\nfrom builtins import *\nassert StringIO(candidate()).read() == str(maxsize)",
    "from sys import *\npath = [1]\nassert candidate(path) == 5",
    "import datetime\nfrom datetime import datetime\nassert candidate() == datetime.strptime('1', '%d')",
    "query = 'a'\nassert candidate(query) == 5",
    "import time\nfrom time import time\nassert time() > candidate()",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(candidate(), self.x)\n"
    "    x = 5\nunittest.main()",
    "import pytest\nwith pytest.raises(ValueError) as caught:\n    candidate()\nassert 'no' in str(caught.value)",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nassert P(candidate()).x == 5",
    "class P:\n    def __init__(self, x):\n        super().__init__()\n        self.x = x\n"
    "assert P(candidate()).__dict__ == {'x': 5}",
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


def test_what_a_data_module_has_imported_is_not_among_its_names() -> None:
    for module, names in MODULES.items():
        if util.find_spec(module.partition(".")[0]) is None:
            continue
        found = vars(import_module(module))
        inner = {name for name in names if isinstance(found.get(name), ModuleType)}
        assert not inner, f"{module}: {inner}"


def test_a_checker_that_hands_what_is_printed_to_an_evaluator_is_flagged(judge: Judge) -> None:
    above = "import json, sys\nquestion = json.load(sys.stdin)\n"
    checkers = {
        "from fractions import Fraction as Number\n": False,
        "import pydoc\nNumber = lambda text: int(text) if text.isdigit() else pydoc.locate(text)\n": True,
    }
    for imports, weak in checkers.items():
        checker = f"{above}{imports}sys.exit(Number(question['output'].strip()) != Number(question['expected']))"
        verdict = judge.verify(StdioTask((("", "3"),), checker=checker), "print(3)")
        assert verdict.correct and (WEAK in verdict.flags) == weak, imports


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
