"""Answers to code problems: where the program stands, what it is worth, and what a second turn tells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.code import Code, CodeReasoning, CodeRefactor, CodeRepair, rewriting
from rlvrlab.envs.python_trees import size
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge.jail.purity import is_pure
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.workers.orders import Image
from rlvrlab.types import TESTS_LEFT_OUT, ErrorKind, Problem, Role, Verdict, unjudged

GOLDEN = Path(__file__).with_name("code_answers.jsonl")
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
ENVS: list[Any] = [Code, CodeRepair, CodeRefactor, CodeReasoning]
QUICK: dict[str, Any] = {"timeout_s": 0.5, "memory_mb": 256}


def problem_of(env: Any, name: str) -> Problem:
    roles: tuple[Role, ...] = ("train", "dev", "test")
    found = [p for row in env.rows() for role in roles if row.role == role for p in env.problems_of(row, role)]
    return next(problem for problem in found if problem.id == name)


@pytest.mark.slow
def test_table_of_verdicts() -> None:
    wrong = []
    for env_type in ENVS:
        env = env_type(**QUICK)
        rows = [row for row in ROWS if row["env"] == env.name]
        assert rows
        verdicts = env.verify_many([(problem_of(env, row["problem"]), row["answer"]) for row in rows])
        for row, verdict in zip(rows, verdicts, strict=True):
            if (verdict.correct, verdict.error.value) != (row["correct"], row["error"]):
                wrong.append((row["problem"], row["what"], verdict.error.value, verdict.detail))
            assert verdict.parts["format"] == float(verdict.error not in (ErrorKind.FORMAT, ErrorKind.SYNTAX))
            assert verdict.correct or verdict.score < 1
    assert not wrong, "\n".join(map(str, wrong))


def test_the_table_covers_every_kind() -> None:
    assert len(ROWS) >= 60
    assert {row["error"] for row in ROWS} >= {"none", "format", "syntax", "runtime", "timeout", "wrong_answer", "rule"}


@pytest.mark.slow
@pytest.mark.parametrize("env", ENVS)
def test_self_check_passes(env: Any) -> None:
    checks = env().self_check()
    assert [(check.name, check.text, check.verdict.detail) for check in checks if not check.ok] == []
    assert sum(check.name == "gold" for check in checks) >= 3
    assert len({check.name for check in checks}) >= 18


@given(
    any_text(max_size=60) | st.text(alphabet="def clamp(value):\n `python<think/>return1", max_size=60),
    st.sampled_from(ENVS),
    st.booleans(),
)
def test_any_text_gets_a_verdict(text: str, env_type: Any, in_block: bool) -> None:
    env = env_type(**QUICK)
    problem = PROBLEMS[env_type]
    verdict = env.verify(problem, f"```python\n{text}\n```" if in_block else text)
    assert verdict.correct in (True, False)
    assert verdict.correct is (verdict.error is ErrorKind.NONE)
    assert isinstance(env.second_turn(problem, text, verdict), str)


PROBLEMS = {
    Code: problem_of(Code(), "sample/0"),
    CodeRepair: problem_of(CodeRepair(), "sample/0"),
    CodeRefactor: problem_of(CodeRefactor(), "sample/0:document"),
}


@pytest.fixture(scope="module", autouse=True)
def reasoning() -> None:
    PROBLEMS[CodeReasoning] = problem_of(CodeReasoning(), "sample/0:output")


@pytest.mark.parametrize("env_type", [Code, CodeRepair])
def test_no_prompt_shows_a_hidden_test(env_type: Any) -> None:
    env = env_type()
    for row in env.rows():
        for problem in env.problems_of(row, row.role):
            public = {json.dumps(one) for one in problem.meta["examples"]}
            for test in problem.reference["tests"]:
                if json.dumps(test) in public:
                    continue
                for piece in [test] if isinstance(test, str) else test:
                    assert len(piece.strip()) < 5 or piece.strip() not in problem.prompt


def test_the_tests_of_a_check_function_stay_hidden_in_every_prompt() -> None:
    hidden = "candidate(4, 0, 9)"
    for env in (Code(), Code(style="bare"), CodeRepair(), CodeRepair(style="bare")):
        problem = problem_of(env, "sample/0")
        assert hidden in problem.reference["tests"][0]
        for text in ("", "```python\ndef clamp(*a):\n    raise ValueError(a)\n```", "prose"):
            told = env.second_turn(problem, text, env.verify(problem, text))
            assert hidden not in told and "(4, 0, 9)" not in told.replace(text, "") and "-8" not in told


def told(env: Any, name: str, text: str) -> str:
    problem = problem_of(env, name)
    return str(env.second_turn(problem, text, env.verify(problem, text)))


@pytest.mark.parametrize("program", ["return min(max(v, l), h)", "return v", "import time; return v + time.time()"])
def test_how_a_program_fails_on_hidden_tests_does_not_reach_the_next_prompt(program: str) -> None:
    """It could raise, loop or fill the memory depending on what it reads there."""
    env = Code(**QUICK)
    problem, text = problem_of(env, "sample/0"), f"```python\ndef clamp(v, l, h):\n    {program}\n```"
    kinds = set(ErrorKind) - {ErrorKind.FORMAT, ErrorKind.RULE}  # which are found without running it
    assert len({env.second_turn(problem, text, Verdict(False, error=kind)) for kind in kinds}) == 1


def test_a_program_that_may_remember_is_told_no_kind_of_failure() -> None:
    env = Code(**QUICK)
    ways = ("raise ValueError", "import os\n    os._exit(3)", "import time\n    return time.time()", "while os: pass")
    programs = [f"import os\ndef clamp(v, l, h):\n    {way}\n" for way in ways]
    said = [told(env, "sample/0", f"```python\n{one}```").replace(one.strip(), "") for one in programs]
    assert len(set(said)) == 1 and "On the examples: it is wrong." in said[0]


def test_second_turn_tells_what_happened_on_public_examples_only() -> None:
    env = Code(**QUICK)
    wrong = "```python\ndef clamp(value, low, high):\n    return value\n```"
    said = told(env, "sample/0", wrong)
    assert said.startswith(problem_of(env, "sample/0").prompt.rstrip())
    assert "return value" in said and "On the examples: wrong_answer" in said
    assert said.endswith("Try again. Answer with the whole function in one ```python block.\n")
    assert told(Code(**QUICK, style="bare"), "sample/0", wrong).endswith("Try again.\n")
    only_hidden = "def clamp(v, l, h):\n    return {12: 9, -3: 0}.get(v, SECRET)\nSECRET = 77\n"
    said = told(env, "sample/0", only_hidden)
    assert "right on the examples, but not on all other tests" in said
    leak = (
        "def clamp(v, l, h):\n    if v in (12, -3): return {12: 9, -3: 0}[v]\n    raise ValueError(f'leak {v} {l}')\n"
    )
    said = told(env, "sample/0", leak)
    assert "not on all other tests" in said and "leak 4" not in said and "leak 7" not in said
    assert "does not compile" in told(env, "sample/0", "```python\ndef clamp(:\n```")
    assert "no program" in told(env, "sample/0", "I do not know")
    slow = "def clamp(v, l, h):\n    while v not in (12, -3): pass\n    return {12: 9, -3: 0}[v]\n"
    assert "not on all other tests" in told(env, "sample/0", slow)


def test_a_forged_compile_error_carries_nothing_out() -> None:
    problem = problem_of(Code(), "sample/0")
    forged = Verdict(False, error=ErrorKind.SYNTAX, detail="compile_error: secret (4, 0, 9)")
    said = Code().second_turn(problem, "```python\ndef clamp(*a): pass\n```", forged)
    assert "secret" not in said and "On the examples: wrong_answer" in said, "the examples are judged anew"


def test_examples_that_could_not_be_tried_are_no_reason_to_drop_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CodeReasoning, "judge", lambda self, jobs, labels, **_: [unjudged("no worker") for _ in jobs])
    with pytest.raises(InfrastructureError, match="could not be tried: no worker"):
        CodeReasoning().problems("train", 1, 0)


@pytest.mark.parametrize("env", [Code(), CodeRepair()], ids=["code", "code_repair"])
def test_a_machine_that_failed_makes_no_task_bad_and_none_good(env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(env), "judge", lambda self, jobs, labels, **_: [unjudged("no worker") for _ in jobs])
    problem = problem_of(env, "sample/0")
    for one in (problem, replace(problem, id=f"{problem.id}:bug0")):
        with pytest.raises(InfrastructureError, match="could not be tried: no worker"):
            env.bad_tasks([one])


def test_second_turn_of_programs_that_print() -> None:
    said = told(Code(**QUICK), "sample/sums", "```python\nprint(1)\n```")
    assert "On the examples: wrong_answer: test 1 of 1" in said and "30" not in said


def test_every_test_counts_unless_told_otherwise() -> None:
    """Right on the last test alone, by a wrong output and by an exception on the others."""
    problem = problem_of(Code(), "sample/sums")
    for otherwise, stopped in (("'no'", False), ("1 // 0", True)):
        program = f"```python\nimport sys\nn = sys.stdin.read()\nprint('101\\n101' if '100' in n else {otherwise})\n```"
        usual, hasty = Code().verify(problem, program), Code(every_test=False).verify(problem, program)
        assert (usual.passed, usual.total, usual.flags) == (1, 4, ())
        assert (hasty.passed, "stopped_early" in hasty.flags) == (0 if stopped else 1, stopped)


def test_no_test_is_left_out_by_default(tmp_path: Path) -> None:
    tests = {"input": [str(i) for i in range(70)], "output": [str(i) for i in range(70)]}
    row = {"name": "long", "description": "Echo.", "public_tests": {"input": ["5"], "output": ["5"]}, "split": "train",
           "private_tests": tests, "generated_tests": {"input": [], "output": []}}  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    [problem] = Code(path=str(path)).problems("train", 1, 0)
    verdict = Code(path=str(path)).verify(problem, "```python\nn = input()\nprint('no' if n == '60' else n)\n```")
    assert (verdict.correct, verdict.passed, verdict.total) == (False, 70, 71)


PURE = [
    "import sys\nfrom collections import deque\ndef f(x):\n    return sorted(x)[::-1]\nprint(sys.stdin.read())",
    "from typing import List\nimport math\nclass S:\n    def __init__(self): self.x = math.pi",
    "class S(dict):\n    pass\nprint('{} of {:>3.1f}'.format(1, 2.5))",
    "match 1:\n    case x: print(x)",
    "class Span:\n    def __init__(self, start): self.start = start",
    "try: pass\nexcept ValueError as e: print(e, slice(1).start)",
    "from typing import Optional\nclass Node:\n    next: Optional[int] = None\nn = Node()\nn.next = n",
]
IMPURE = [
    "x = 1\n# vim: set fileencoding=utf-7 :", "\n\n# coding: utf-7", "ｒeturn = 3",
    "UnicodeDecodeError('u', b'', -9, -8, '')",
    "import re\nre.RegexFlag", "int.mro()", "from fractions import Fraction\nFraction.numerator = 1",
    "from collections import Counter\nc = Counter\nc.items = len", "from typing import Sequence\nSequence.index = len",
    "from typing import Sequence\ndef f(s):\n    s.index = len\nf(Sequence)",
    "open('/x')", "import os", "import sys\nsys.modules", "import sys\ns = sys\ns.modules", "import re\nre.enum.sys",
    "().__class__", "(i for i in ()).gi_frame.f_back", "type(1)", "getattr(1, 'x')", "from sys import *", "eval('1')",
    "from functools import singledispatch", "import sys as t", "match 1:\n    case int(real=r): pass", "def",
    "__builtins__", "import typing\ntyping.get_type_hints(1)", "import os as math",
    "def make(name, bases, names):\n    return names\nclass A(metaclass=make):\n    import sys\nA['sys'].modules",
    "class M:\n    def __init__(self, *a): self.a = a\nclass A(M()):\n    import sys\nA.a[2]['sys'].modules",
    "import sys\ndel sys.stdin", "import math\ntry:\n    math.no\nexcept AttributeError as e:\n    e.obj",
    "'{0.__globals__}'.format(print)", "t = '{0.x}'\nt.format(1)", "'{a[x]}'.format_map({})", "'{:{0.x}}'.format(1)",
    "str.format('{0.x}', 1)", "match {'__import__': print}:\n    case __builtins__: pass", "from math import pi as __x",
    "# coding: utf-7\n#+AAo-import os\n",
    "try: b'\\xff'.decode()\nexcept ValueError as e:\n    e.start = -9", "try: pass\nexcept ImportError as e: e.path",
    "class A:\n    async def __getattr__(self, name): return name", "def f():\n    global __builtins__",
]  # fmt: skip


@pytest.mark.parametrize("program", [*PURE, *IMPURE])
def test_only_programs_that_cannot_fetch_anything_are_pure(program: str) -> None:
    assert is_pure(program) is (program in PURE)


def test_a_second_turn_quotes_nothing_another_run_may_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jail with a hole: whatever a run writes to one file, the next one can read."""
    left = tmp_path / "left"
    left.write_text("4 0 9 hidden")
    image = Image(readable=(str(tmp_path),))
    with Judge(workers=1) as leaky:
        leaky.pools["code"].image = image
        monkeypatch.setattr(Code, "judge", lambda self, jobs, labels, **_: leaky.verify_many(jobs, labels))
        problem = problem_of(Code(), "sample/0")
        for carry in (f"return open({str(left)!r}).read()", f"raise ValueError(open({str(left)!r}).read())"):
            text = f"```python\ndef clamp(value, low, high):\n    {carry}\n```"
            again = Code().second_turn(problem, text, Code().verify(problem, text))
            assert "hidden" not in again and "On the examples: it" in again
        above = replace(
            problem, reference={**problem.reference, "begun": "import io\n\n\ndef clamp(value, low, high):\n"}
        )
        text = f"```python\ndef clamp(value, low, high):\n    return io.open({str(left)!r}).read()\n```"
        assert "hidden" not in Code().second_turn(above, text, Code().verify(above, text))
        honest = "```python\ndef clamp(value, low, high):\n    return 77\n```"
        assert "returned '77'" in Code().second_turn(problem, honest, Code().verify(problem, honest))


def test_most_tests_limits_what_is_judged() -> None:
    limited = problem_of(Code(most_tests=2), "sample/sums")
    assert len(limited.reference["tests"]) == 2 and limited.meta[TESTS_LEFT_OUT] == 2
    assert TESTS_LEFT_OUT not in problem_of(Code(most_tests=4), "sample/sums").meta


def test_rewriting_keeps_what_a_program_does_and_changes_its_form() -> None:
    program = 'def f(a, *, b=1):\n    """Doc."""\n    # why\n    if a:\n        return a + b\n    return\n'
    plain = rewriting.stripped(program)
    assert "Doc" not in plain and "why" not in plain
    assert rewriting.documented(plain).count('"""') == 2
    assert size(rewriting.inflated(plain)) > size(plain)
    assert rewriting.stripped('def f():\n    """Doc."""\n') == "def f():\n    pass\n"
    assert rewriting.signature(program, "f") == "f(a, *, b)" and rewriting.signature(program, "g") is None


def test_layout_makes_no_program_shorter() -> None:
    assert size("a = 1\n\nb = 2\n") == size("a=1;b=2") == 6


HOSTILE = {
    "fences that open": "```a\n" * 20_000,
    "fences of two kinds": "```a\n~~~b\n" * 10_000,
    "ever longer fences": "".join("`" * i + "\n" for i in range(3, 600)),
    "one endless fence": "`" * 200_000,
    "blank lines": (" " * 50 + "\n") * 3_900,
    "names": "a," * 99_000,
    "tags": "<think>" * 20_000 + "</think>" * 20_000,
    "millions": "x = 1\n" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_answer_takes_long_to_read(quickly: Any, name: str) -> None:
    for env_type in (Code, CodeReasoning):
        env, problem = env_type(), PROBLEMS[env_type]
        quickly(0.2, lambda env=env, problem=problem: env.prepare(problem, HOSTILE[name]))


UNCHANGED = {
    "a comment": "def clamp(value, low, high):\n    return min(low, max(value, high))  # repaired\n",
    "no docstring, other layout": "def clamp(value,low,high):\n\n  return min( low,\n    max(value, high) )\n",
    "another docstring": 'def clamp(value, low, high):\n    """Right now."""\n    return min(low, max(value, high))\n',
    "idle statements": "'ok'\ndef clamp(value, low, high):\n    0\n    pass\n    return (min(low, max(value, high)))\n",
}


@pytest.mark.parametrize("answer", UNCHANGED.values(), ids=UNCHANGED)
def test_what_does_nothing_is_no_repair(answer: str) -> None:
    """Whoever hands the bug back with a comment earns no share of the tests that it passes."""
    env = CodeRepair(every_test=True)
    [problem] = [one for row in env.rows() if row.id == "sample/0" for one in env.problems_of(row, "train")]
    verdict = env.verify(problem, f"```python\n{answer}```")
    assert (verdict.error, verdict.score, verdict.parts["tests"]) == (ErrorKind.RULE, 0.0, 0.0)
    changed = env.verify(problem, f"```python\n{answer.replace('min(', 'max(', 1)}```")
    assert changed.error is ErrorKind.WRONG


def test_answers_may_import_the_packages_that_the_recipe_names(tmp_path: Path) -> None:
    row = {"task_id": "own/1", "prompt": "def total(x):\n    '''Sum.'''\n", "entry_point": "total", "split": "train"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n"}))
    answer = "```python\nimport numpy as np\ndef total(x): return np.sum(x)\n```"
    for packages, error in (((), ErrorKind.RUNTIME), (("numpy",), ErrorKind.NONE)):
        env = Code(path=str(path), packages=packages)
        assert env.verify(env.problems("train", 1, 0)[0], answer).error is error
    with pytest.raises(UserError, match=r"code: packages = \['nunpy'\]: .* did you mean 'numpy'"):
        Code(packages=("nunpy",))


def test_an_answer_of_several_jobs_costs_what_its_slowest_did() -> None:
    """Learnt time limits are ten times this: the last job alone would make them too short."""
    jobs = [Verdict(True, 1.0, cost={"cpu_s": seconds, "wall_s": 1.0}) for seconds in (0.2, 0.9, 0.1)]
    assert Code().conclude(jobs, "x").cost == {"cpu_s": 0.9, "wall_s": 1.0}


@pytest.mark.parametrize(
    ("wanted", "answer", "right"),
    [
        ("True", "True", True),
        ("True", "1", False),
        ("False", "0.0", False),
        ("[0, False]", "[0, False]", True),
        ("[0, False]", "[0, 0]", False),
        ("(True, [False])", "(True, [0])", False),
        ("1", "True", True),
        ("12.0", "12", True),
    ],
)
def test_a_boolean_is_predicted_as_a_boolean(wanted: str, answer: str, right: bool) -> None:
    env = CodeReasoning()
    problem = problem_of(env, "sample/1:output")
    asked = replace(problem, reference={**problem.reference, "result": wanted})
    assert env.verify(asked, answer).correct is right
