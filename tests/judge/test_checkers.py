"""Programs that check outputs: whose fault is it when one fails?"""

from __future__ import annotations

import pytest

from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.types import ErrorKind


def test_output_that_breaks_the_checker_is_wrong(judge: Judge) -> None:
    checker = "import json, sys\nq = json.load(sys.stdin)\nsys.exit(int(q['output']) != int(q['expected']))"
    task = StdioTask((("", "2"),), checker=checker)
    assert judge.verify(task, "print('junk')").error is ErrorKind.WRONG
    assert judge.verify(task, "print(2)").correct
    assert judge.verify(StdioTask((("", "two"),), checker=checker), "print(2)").correct is None


READS_JSON = (
    "import json, sys\ndef read(text):\n    return json.loads(text)\n"
    "q = read(sys.stdin.read())\nsys.exit(read(q['output']) != [1])"
)
FIRST_WORD = "import json, sys\nq = json.load(sys.stdin)\nsys.exit(int(q['output'].split()[0]) < 3)"


@pytest.mark.parametrize(("checker", "expected", "right"), [(READS_JSON, "[1]", "[1]"), (FIRST_WORD, "", "7")])
def test_printing_nothing_does_not_make_a_bad_task_of_it(judge: Judge, checker: str, expected: str, right: str) -> None:
    task = StdioTask((("", expected),), checker=checker)
    assert [judge.verify(task, program).correct for program in ("pass", "print()", f"print({right!r})")] == [
        False,
        False,
        True,
    ]


EXITS = (
    "import json, sys\ntry:\n    q = json.load(sys.stdin)\n    a = int(q['output'])\n"
    "except Exception:\n    sys.exit({})\nsys.exit(a != 2)"
)
READS_NOTHING = (
    "import json, sys\nq = json.loads(sys.stdin.read() or '{}')\n"
    "first = q.get('output', '').split()[0]\nsys.exit(first != '2')"
)


@pytest.mark.parametrize("expected", ["2", ""])
@pytest.mark.parametrize("checker", [EXITS.format(2), EXITS.format(3), READS_NOTHING])
def test_a_checker_with_its_own_word_for_what_it_cannot_read_is_sound(
    judge: Judge, checker: str, expected: str
) -> None:
    """Whatever it says of no input at all; without an expected output another one is its witness."""
    task = StdioTask((("1", expected),), checker=checker)
    programs = ("print(2)", "print(3)", "print('x')", "pass")
    assert [judge.verify(task, program).correct for program in programs] == [True, False, False, False]


@pytest.mark.parametrize(
    ("reads", "weak"),
    [("eval(q['output'])", True), ("json.loads(q['output'])", False), ("int(q['output'])", False)],
)
def test_a_checker_that_makes_code_of_an_output_can_be_told_anything(judge: Judge, reads: str, weak: bool) -> None:
    task = StdioTask((("", "5"),), checker=f"import json, sys\nq = json.load(sys.stdin)\nsys.exit({reads} != 5)")
    for program in ("print(5)", "print(\"__import__('os')._exit(0)\")", "print(6)"):
        verdict = judge.verify(task, program)
        assert ("integrity: weak" in verdict.flags) is weak
        assert weak or verdict.correct is (program == "print(5)")
