"""`/submit`: rows of data sets as SandboxFusion takes them, and whose fault it is when one cannot be judged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_server import ADDS, CONTEST, MBPP, NO_TEXTS, RIGHT, Running, submission

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.fusion.submissions import published
from rlvrlab.judge.workers.worker import Worker


@pytest.mark.parametrize("value", NO_TEXTS, ids=repr)
@pytest.mark.parametrize("field", ["entry_point", "prompt", "begun", "canonical_solution", "test_setup_code"])
def test_a_submitted_row_whose_texts_are_none_is_refused(running: Running, field: str, value: Any) -> None:
    row = {**MBPP, field: value}
    status, answer, _ = running.post("/submit", submission(RIGHT, row))
    assert status == 422 and answer["detail"].startswith(f"provided_data.{field}: "), answer
    status, answer, _ = running.post("/submit", submission(RIGHT, {**MBPP, "test_list": [MBPP["test_list"][0], value]}))
    assert status == 422 and "tests[1]" in answer["detail"], answer


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("rel_tol", 10**400, id="huge"),
        ("abs_tol", True),
        ("abs_tol", -1),
        ("rel_tol", "1"),
        ("kind", ["float"]),
        ("depth", 1),
    ],
)
def test_the_comparison_of_a_submission_is_checked_like_that_of_a_task(
    running: Running, field: str, value: Any
) -> None:
    status, answer, _ = running.post("/submit", submission(ADDS, CONTEST, extra={"comparison": {field: value}}))
    assert status == 422
    assert answer["detail"].startswith("config.extra.comparison") and field in answer["detail"]


def test_submit_contest(running: Running) -> None:
    _, answer, _ = running.post("/submit", submission(ADDS, CONTEST))
    assert answer["accepted"] is True and [test["passed"] for test in answer["tests"]] == [True, True]
    _, wrong, _ = running.post(
        "/submit", submission("```python\nprint(3)\n```", CONTEST, extra={"run_all_cases": True})
    )
    assert wrong["accepted"] is False and [test["passed"] for test in wrong["tests"]] == [True, False]
    _, first, _ = running.post("/submit", submission("```python\nprint(0)\n```", CONTEST))
    assert [test["passed"] for test in first["tests"]] == [False], "all are run, the first failed one is told"
    _, prose, _ = running.post("/submit", submission("I do not know.", CONTEST))
    assert prose["accepted"] is False and prose["extracted_code"] == ""


@pytest.mark.parametrize(
    ("printed", "wanted", "accepted"),
    [
        ("\\xff", "\ufffd", False),
        ("\\xef\\xbf\\xbd", "\ufffd", True),
        ("\\xff", "\udcff", True),
        ("?", "\udcff", False),
    ],
)
def test_outputs_are_compared_as_bytes(running: Running, printed: str, wanted: str, accepted: bool) -> None:
    """Bytes that are no text are not the sign that stands for them."""
    row = {"id": 1, "test": [{"input": {"stdin": ""}, "output": {"stdout": wanted}}]}
    program = f"```python\nimport sys\nsys.stdout.buffer.write(b'{printed}')\n```"
    assert running.post("/submit", submission(program, row))[1]["accepted"] is accepted


@pytest.mark.parametrize("part", [{"input": {"stdin": "\ud800"}}, {"output": {"stdout": "\ud800"}}])
def test_half_a_character_is_the_rows_fault(running: Running, part: dict[str, Any]) -> None:
    test = {"output": {"stdout": ""}, **part}
    status, answer, _ = running.post("/submit", submission(ADDS, {"id": 1, "test": [test]}))
    assert status == 422 and "surrogate" in answer["detail"]


ONE_RUN: dict[str, Any] = {"input": {"stdin": "5"}, "output": {"stdout": "5"}}
OPEN_ROWS: dict[str, dict[str, Any]] = {
    **{
        name: {"test": [ONE_RUN, test]}
        for name, test in {
            "no output": {"input": {"stdin": "5"}},
            "output misspelt": {"input": {"stdin": "5"}, "outputs": {"stdout": "5"}},
            "both spellings": {**ONE_RUN, "outputs": {"stdout": "6"}},
            "stdout misspelt": {"input": {"stdin": "5"}, "output": {"stdOut": "5"}},
            "an empty list as output": {"input": {"stdin": "5"}, "output": []},
            "null as output": {"input": {"stdin": "5"}, "output": None},
            "expects a file": {**ONE_RUN, "output": {"stdout": "5", "files": {"o.txt": "NQ=="}}},
            "brings a file": {**ONE_RUN, "input": {"stdin": "5", "files": {"i.txt": "NQ=="}}},
            "brings a checker": {**ONE_RUN, "checker": "print(1)"},
        }.items()
    },
    "asserts beside runs": {"test": [ONE_RUN], "test_list": ["assert add(1, 2) == 3"], "entry_point": "add"},
    "asserts beside test code": {"test": "assert add(1, 2) == 3", "test_list": ["assert add(1, 2) == 3"]},
    "nothing at all": {"test": [], "test_list": []},
}


@pytest.mark.parametrize("row", OPEN_ROWS.values(), ids=OPEN_ROWS)
@pytest.mark.parametrize("answer", ["```python\npass\n```", "```python\nprint(input())\n```", "I do not know."])
def test_a_row_that_leaves_open_what_is_right_pays_and_refuses_nobody(
    running: Running, row: dict[str, Any], answer: str
) -> None:
    status, told, _ = running.post("/submit", submission(answer, {"id": 1, **row}))
    assert status == 422 and told["detail"].startswith("provided_data"), told


@pytest.mark.parametrize("nothing", [None, {}, [], ""], ids=repr)
def test_columns_that_hold_nothing_ask_for_nothing(running: Running, nothing: Any) -> None:
    parts = {"input": {"stdin": "5", "files": nothing}, "output": {"stdout": "5", "files": nothing}}
    rows = ({"test": [{**parts, "checker": nothing}], "test_list": None}, {"test": [ONE_RUN], "test_list": []})
    for row in rows:
        for code, accepted in (("print(input())", True), ("pass", False)):
            _, answer, _ = running.post("/submit", submission(f"```python\n{code}\n```", {"id": 1, **row}))
            assert answer["accepted"] is accepted, answer


@pytest.mark.parametrize("where", ["test_setup_code", "test_list"])
def test_what_tests_bring_along_is_not_the_function_tested(where: str) -> None:
    helpers = "from math import isclose\ndef near(a, b):\n    return isclose(a, b)\nclass Pair(tuple): pass"
    tests = ["assert isclose(add(1, 2), 3)", "assert near(add(1, 1), 2)", "assert near(isclose(1, 1), Pair((1,)))"]
    row = {"test_list": tests, "test_setup_code": helpers}
    row = row if where == "test_setup_code" else {"test_list": [f"{helpers}\n{tests[0]}", *tests[1:]]}
    assert published(row)["entry_point"] == "add"


ASSERTS = {"id": 1, "test": "def check(candidate):\n    assert candidate(1) == 2\n", "entry_point": "f"}


def test_submit_keeps_wrong_answers_bad_rows_and_machine_failures_apart(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SandboxFusion's server answers 500 where its sandbox failed; `accepted: false` is for answers alone."""
    broken = {**ASSERTS, "test": "import nothing_of_this_name\n" + str(ASSERTS["test"])}
    assert running.post("/submit", submission(RIGHT, ASSERTS))[1]["accepted"] is True
    assert running.post("/submit", submission(RIGHT.replace("1", "2"), ASSERTS))[1]["accepted"] is False
    status, answer, _ = running.post("/submit", submission(RIGHT, broken))
    assert status == 422 and "bad task" in answer["detail"]
    for nothing in (None, ["def f(): pass"], 5):
        status, answer, _ = running.post("/submit", submission(RIGHT, ASSERTS) | {"completion": nothing})
        assert status == 422 and "completion: " in answer["detail"]

    async def fail(*_: object) -> Any:
        raise InfrastructureError("no process numbers are left")

    monkeypatch.setattr(Worker, "run", fail)
    monkeypatch.setattr(Worker, "start", fail)
    for completion, row in ((ADDS, CONTEST), (RIGHT, {**ASSERTS, "test": f"{ASSERTS['test']}\nimport math\n"})):
        status, answer, _ = running.post("/submit", submission(completion, row))
        assert status == 500 and "the machine failed, not the answer" in answer["detail"], answer
    assert running.post("/run_code", {"code": "1", "language": "python"})[1]["status"] == "SandboxError"
    fusion = pytest.importorskip("sandbox_fusion", reason="needs the PyPI package sandbox-fusion")
    form = submission(ADDS, CONTEST)
    form["config"] = fusion.TestConfig(**form["config"])
    with pytest.raises(Exception, match="responded with code 500"):
        fusion.submit(fusion.SubmitRequest(**form), endpoint=running.url, max_attempts=1)


def test_submit_asserts_cannot_be_passed_by_leaving(running: Running) -> None:
    row = {"id": 1, "entry_point": "add", "test": "def check(candidate):\n    assert candidate(1, 2) == 3"}
    good = "```python\ndef add(a, b): return a + b\n```"
    assert running.post("/submit", submission(good, row))[1]["accepted"] is True
    for exploit in (
        "import sys; sys.exit(0)",
        "import os\ndef add(a, b): os._exit(0)",
        "class E:\n    def __eq__(s, o): return True\ndef add(a, b): return E()",
    ):
        assert running.post("/submit", submission(f"```python\n{exploit}\n```", row))[1]["accepted"] is False
    mbpp = {"id": 2, "entry_point": "add", "test_list": ["assert add(1, 2) == 3"]}
    assert running.post("/submit", submission(good, mbpp))[1]["accepted"] is True


ADD = "def add(a, b):\n    return a + b\n"
PUBLISHED = {
    "mbpp": {"id": 11, "content": "Add.", "labels": {"test_setup_code": "ZERO = 0"}, "canonical_solution": ADD,
             "test_list": ["assert set([add(1, 2)]) == {3}", "assert add(ZERO, 1) == 1"]},
    "mbpp, JSON in strings": {"id": 11, "content": "Add.", "labels": json.dumps({"test_setup_code": ""}),
                              "test_list": json.dumps(["assert add(1, 2) == 3", "assert (add(0, 1)) == 1"])},
    "humaneval": {"task_id": "HumanEval/x", "prompt": "def add(a, b):\n    'Add.'\n",
                  "canonical_solution": "    return a + b\n", "entry_point": "add",
                  "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n"},
    "humaneval, labelled": {"id": 0, "content": "def add(a, b):\n    'Add.'\n", "labels": '{"entry_point":"add"}',
                            "test": "import numpy\ndef check(candidate):\n    assert candidate(1, 2) == numpy.int8(3)"},
}  # fmt: skip


@pytest.mark.parametrize("row", PUBLISHED.values(), ids=PUBLISHED)
def test_submit_takes_rows_of_sandbox_fusions_own_data_sets(running: Running, row: dict[str, Any]) -> None:
    form = {"dataset": "any", "id": row.get("id", row.get("task_id"))}
    other = {**row, "id": 99, "task_id": "other", "test": "assert False", "test_list": ["assert False"]}
    for data, code, accepted in (
        (row, ADD, True),
        ([other, {**row, "task_id": row.get("task_id")}], ADD, True),
        (row, "def add(a, b):\n    return a - b", False),
        (row, "import os; os._exit(0)", False),
    ):
        config = {"provided_data": data}
        status, answer, _ = running.post("/submit", {**form, "completion": f"```python\n{code}\n```", "config": config})
        assert (status, answer.get("accepted")) == (200, accepted), answer


def test_a_row_with_many_names_is_read_in_linear_time(quickly: Any) -> None:
    """Which function is tested is looked for among all calls, on the loop that serves everybody."""
    text = " ".join(f"a{i}(" for i in range(20_000)) + " b( b("
    solution = "\n".join(f"def c{i}(): pass" for i in range(20_000))
    row = {"test": text, "canonical_solution": solution}
    assert quickly(1.0, lambda: published(row))["entry_point"] == "b"


def test_a_submission_in_another_language_is_refused(running: Running) -> None:
    form = submission(RIGHT, MBPP)
    form["config"]["language"] = "cpp"
    status, answer, _ = running.post("/submit", form)
    assert status == 422 and answer["detail"].startswith("config.language: 'cpp'"), answer
    form["config"]["language"] = "python"
    assert running.post("/submit", form)[1]["accepted"] is True
