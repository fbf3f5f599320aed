"""SandboxFusion's protocol: our server under raw requests, the real PyPI client and verl's reward code."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import socket
import sys
import threading
import time
import types
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from judge_server import ADDS, CONTEST, NO_TEXTS, Running, submission

from rlvrlab.errors import UserError
from rlvrlab.judge.fusion.datasets import Datasets
from rlvrlab.judge.fusion.server import JudgeServer
from rlvrlab.judge.fusion.wire import deadline_s, limits_of, task_to_wire
from rlvrlab.judge.jail import plain
from rlvrlab.judge.task_forms import task_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.written import Written
from rlvrlab.types import Problem


def test_run_code(running: Running) -> None:
    status, answer, headers = running.post("/run_code", {"code": "print(input())", "language": "python", "stdin": "hi"})
    assert (status, answer["status"]) == (200, "Success")
    assert answer["run_result"]["stdout"] == "hi\n" and answer["run_result"]["return_code"] == 0
    assert answer["isolation"] == "landlock" and "x-rlvrlab-judge" in {name.lower() for name in headers}


@pytest.mark.parametrize(
    ("code", "run_status", "return_code"),
    [
        ("import sys; sys.exit(3)", "Finished", 3),
        ("1 / 0", "Finished", 1),
        ("def f(:", "Finished", 1),
        ("while True: pass", "TimeLimitExceeded", None),
        ("import time; time.sleep(60)", "TimeLimitExceeded", None),
        ("open('/etc/passwd')", "Finished", 1),
    ],
)
def test_failures(running: Running, code: str, run_status: str, return_code: int | None) -> None:
    request = {"code": code, "language": "python", "run_timeout": 0.3 if run_status == "TimeLimitExceeded" else 30}
    until = time.monotonic() + 60
    _, answer, _ = running.post("/run_code", request)
    while answer["status"] == "SandboxError" and time.monotonic() < until:  # a busy machine gave it no time: no verdict
        _, answer, _ = running.post("/run_code", request)
    assert answer["status"] == "Failed"
    assert (answer["run_result"]["status"], answer["run_result"]["return_code"]) == (run_status, return_code)


def test_large_output_is_complete(running: Running) -> None:
    _, answer, _ = running.post("/run_code", {"code": "print('x' * 2_000_000)", "language": "python"})
    assert len(answer["run_result"]["stdout"]) == 2_000_001


def test_files_travel_both_ways(running: Running) -> None:
    code = (
        "import os\nopen('out.bin', 'wb').write(open('d/in.txt', 'rb').read()[::-1])\nos.symlink('/etc/passwd', 'trap')"
    )
    files = {"d/in.txt": base64.b64encode(b"abc").decode()}
    request = {"code": code, "language": "python", "files": files, "fetch_files": ["out.bin", "missing"]}
    _, answer, _ = running.post("/run_code", request)
    assert answer["files"] == {"out.bin": base64.b64encode(b"cba").decode()}
    _, trapped, _ = running.post("/run_code", {**request, "fetch_files": ["trap"]})
    assert (trapped["status"], trapped["files"]) == ("Success", {})  # the program did nothing wrong


FRACTION = ["tuple", [["tuple", [["Fraction", "1e3000"]]], 1, ["dict", []]]]
STDIO: dict[str, Any] = {"kind": "stdio", "tests": [["", ""]]}


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/run_code", b"not json", 400),
        ("/run_code", b"[" * 100_000, 400),
        ("/run_code", [], 422),
        ("/run_code", {"language": "python"}, 422),
        ("/run_code", {"code": "x", "language": "cobol"}, 422),
        ("/judge", {"items": 3}, 422),
        ("/judge", {"items": [{"code": "x", "task": {"kind": "nonsense"}}]}, 422),
        ("/judge", {"items": [{"code": "x", "task": {"kind": "calls"}}]}, 422),
        *(
            ("/judge", {"items": [{"code": "x", "task": {**task, **odd}}]}, 422)
            for task, odd in (
                (STDIO, {"tests": [[1, 2]]}),
                (STDIO, {"checker": 5}),
                (STDIO, {"limits": {"memory_mb": 100.5}}),
                (STDIO, {"comparison": {"kind": "float", "abs_tol": "1"}}),
                ({"kind": "tests", "entry_point": "f", "tests": [1]}, {}),
                ({"kind": "tests", "entry_point": None, "tests": ["assert f()"]}, {}),
                ({"kind": "tests", "entry_point": "f", "tests": ["assert f()"]}, {"setup": 5}),
                ({"kind": "calls", "entry_point": "f"}, {"calls": [{"plain": FRACTION}]}),
                ({"kind": "syntax"}, {"functions": [5]}),
                ({"kind": "syntax"}, {"longest_line": "x"}),
            )
        ),
        ("/judge", {"items": [{"code": "", "task": {"kind": "syntax"}}] * 10_001}, 422),
        ("/submit", submission(ADDS, CONTEST, extra={"comparison": {"kind": "python"}}), 422),
        ("/submit", {"id": 1, "completion": "x", "config": {}}, 422),
        ("/submit", {"id": 1, "completion": "x", "config": [1]}, 422),
        ("/submit", submission(ADDS, {"id": 1, "test": [{"input": "1 2"}]}), 422),
        ("/submit", submission(ADDS, {"id": 1, "test": [{"output": {"stdout": 3}}]}), 422),
        ("/submit", submission(ADDS, CONTEST, extra={"comparison": {"kind": "nonsense"}}), 422),
        ("/submit", submission(ADDS, {"id": 1, "test_list": 3, "entry_point": "f"}), 422),
        *(
            ("/submit", submission(ADDS, {"id": 1, "entry_point": "f", **tests}), 422)
            for tests in ({}, {"test": None}, {"test": 5}, {"test": {"a": 1}})
        ),
        ("/nowhere", {}, 404),
    ],
)
def test_bad_requests_are_named(running: Running, path: str, content: Any, status: int) -> None:
    found, answer, _ = running.post(path, content)
    assert (found, "detail" in answer) == (status, True)


@pytest.mark.parametrize("nothing", [None, *NO_TEXTS], ids=repr)
def test_what_is_no_text_is_a_broken_request_and_no_wrong_answer(running: Running, nothing: Any) -> None:
    syntax = {"code": "x = 1", "task": {"kind": "syntax"}}
    for path, content, field in (
        ("/judge", {"items": [syntax, {**syntax, "code": nothing}]}, "items[1].code"),
        ("/run_code", {"code": nothing, "language": "python"}, "code"),
        ("/submit", submission(ADDS, CONTEST) | {"completion": nothing}, "completion"),
    ):
        status, answer, _ = running.post(path, content)
        assert status == 422 and answer["detail"].startswith(f"{field}: ") and "a string is needed" in answer["detail"]
    status, answer, _ = running.post("/judge", {"items": [{"task": {"kind": "syntax"}}]})
    assert status == 422 and answer["detail"].startswith("items[0].code: None")


@pytest.mark.parametrize("field", ["stdin", "files", "fetch_files"])
@pytest.mark.parametrize("value", [0, 5, False, 0.5, {"a": 5}, [5]], ids=repr)
def test_parts_of_a_run_are_held_to_their_types(running: Running, field: str, value: Any) -> None:
    status, answer, _ = running.post("/run_code", {"code": "x = 1", "language": "python", field: value})
    assert status == 422 and field in answer["detail"]


def test_reading_a_batch_keeps_nobody_else_waiting(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def noted(form: Any) -> Any:
        readers.append(threading.current_thread())
        return task_of(form)

    monkeypatch.setattr("rlvrlab.judge.fusion.server.task_of", noted)
    status, _, _ = running.post("/judge", {"items": [{"code": "x = 1", "task": {"kind": "syntax"}}]})
    assert status == 200 and len(readers) == 1 and readers[0] is not running.thread


def test_a_refusal_does_not_send_the_request_back(running: Running) -> None:
    much = "x" * 100_000
    for path, content in (
        ("/run_code", {"code": "x", "language": much}),
        ("/judge", {"items": [{"code": "x", "task": {"kind": much}}]}),
        ("/judge", {"items": [{"code": "x", "task": {**STDIO, "comparison": {"kind": much}}}]}),
    ):
        status, answer, _ = running.post(path, content)
        assert status == 422 and len(answer["detail"]) < 1000


def test_data_sets_that_it_keeps_are_listed_asked_for_and_judged_by_id() -> None:
    assert Datasets().names() == ["HumanEvalDataset", "MBPPDataset", "CommonOJDataset"], "never an empty list"
    reference = {"entry_point": "add", "tests": ["assert add(1, 2) == 3"], "setup": "", "begun": ""}
    contest = {"entry_point": "", "tests": [["1 2", "3"]], "setup": "", "begun": ""}
    problems = [Problem("MBPP/1", "code", "code", "Add.", reference), Problem("C/1", "code", "code", "Sum.", contest)]
    running = Running(datasets=Datasets({"mine": problems}))
    try:
        with urllib.request.urlopen(f"{running.url}/list_datasets") as answer:
            assert json.load(answer) == ["mine"]
        assert running.post("/list_ids", {"dataset": "mine"})[1] == ["MBPP/1", "C/1"]
        [first, _] = running.post("/get_prompts", {"dataset": "mine"})[1]
        assert first == {"id": "MBPP/1", "prompt": "Add.", "labels": {"split": "train"}}, "and no tests"
        assert running.post("/get_prompt_by_id", {"dataset": "mine", "id": "C/1"})[1]["prompt"] == "Sum."
        good = {"MBPP/1": "```python\ndef add(a, b): return a + b\n```",
                "C/1": "```python\nprint(sum(map(int, input().split())))\n```"}  # fmt: skip
        for name, text in good.items():
            form = {"dataset": "mine", "id": name, "completion": text}
            assert running.post("/submit", form)[1]["accepted"] is True
            assert running.post("/submit", {**form, "completion": "```python\npass\n```"})[1]["accepted"] is False
        status, answer, _ = running.post("/submit", {"dataset": "mine", "id": "no", "completion": ""})
        assert status == 422 and "/list_ids" in json.dumps(answer)
    finally:
        running.close()


def test_batch_judge(running: Running) -> None:
    task = {"kind": "calls", "entry_point": "add", "calls": [{"arguments": [1, 2], "expected": 3}]}
    items = [{"code": "def add(a, b): return a + b", "task": task}, {"code": "def add(a, b): return 0", "task": task}]
    _, answer, _ = running.post("/judge", {"items": items})
    assert [verdict["correct"] for verdict in answer["verdicts"]] == [True, False]


def test_overload_is_told_and_not_endured() -> None:
    one = Running(queue=2)
    try:
        run, gate = one.server.pool.run, asyncio.Event()

        async def held(order: Order) -> Ran:
            """Not before everyone has asked, however long that takes."""
            await gate.wait()
            return await run(order)

        one.server.pool.run = held  # type: ignore[method-assign]
        slow = {"code": "print(1)", "language": "python"}
        answers: list[tuple[int, Any, dict[str, str]]] = []
        threads = [threading.Thread(target=lambda: answers.append(one.post("/run_code", slow))) for _ in range(6)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        while len(answers) < 4 and time.monotonic() < until:
            time.sleep(0.01)
        one.loop.call_soon_threadsafe(gate.set)
        for thread in threads:
            thread.join()
        assert sorted(status for status, _, _ in answers) == [200] * 2 + [429] * 4
        refused = [headers for status, _, headers in answers if status == 429]
        assert len(refused) == 4 and all(headers["Retry-After"] == "1" for headers in refused)
    finally:
        one.close()


def test_doors() -> None:
    with pytest.raises(UserError, match="token"):
        JudgeServer(Pool(size=1), host="0.0.0.0")
    one = Running(token="secret")
    try:
        request = {"code": "print(1)", "language": "python"}
        assert one.post("/run_code", request)[0] == 401
        assert one.post("/run_code", request, Authorization="Bearer wrong")[0] == 401
        assert one.post("/run_code", request, Authorization="Bearer secret")[0] == 200
        assert one.post("/run_code", request, Authorization="Bearer secret", Host="evil.example")[0] == 403
        with socket.create_connection(("127.0.0.1", one.server.port), 60) as door:
            door.sendall(b"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n")  # and no body
            assert b" 401 " in door.recv(1000)
    finally:
        one.close()


@pytest.mark.parametrize(
    "task",
    [
        StdioTask((("a", "b"),), checker="pass"),
        CallsTask("f", (Call((1, [2]), {"k": 3}, {"n": 1}),)),
        TestsTask("f", ("assert f()",), setup="x = 1", inprocess=True),
        SyntaxTask(functions=("f(x)",), forbidden=("eval",), longest_line=80),
    ],
)
def test_tasks_survive_the_wire(task: Any) -> None:
    sent = json.dumps(task_to_wire(task))
    assert json.dumps(task_to_wire(task_of(json.loads(sent)))) == sent


MERSENNE = 2**61 - 1
"""Its multiples all have the hash 0."""


def exact_call(expected: Any, *arguments: Any) -> dict[str, Any]:
    call = {"plain": ["tuple", [["tuple", list(arguments)], expected]]}
    return {"kind": "calls", "entry_point": "f", "calls": [call]}


def anti_table(size: int) -> list[int]:
    """Numbers with different hashes that meet in a table all the same: every step of a search finds a place taken."""
    mask = (1 << size.bit_length() + 1) - 1
    chain = [1]
    while len(chain) < size // 2:
        chain.append((5 * chain[-1] + 1) & mask)
    return chain + [chain[0] + (at << 56) for at in range(1, 16)] + [(at << 40) + 1 for at in range(1, size // 2)]


@pytest.mark.slow
def test_keys_that_share_a_hash_are_refused_before_a_table_is_made_of_them(quickly: Any) -> None:
    alike = [["int", hex(i * MERSENNE)] for i in range(1, 20_000)]
    pairs = [["tuple", [key, 1]] for key in alike]
    nested: Any = ["frozenset", list(range(20_000))]
    for _ in range(90):
        nested = ["frozenset", [nested]]
    tables = [
        table for keys in (alike, pairs)
        for table in (["set", keys], ["frozenset", keys], ["dict", [[key, 1] for key in keys]])
    ]  # fmt: skip
    elsewhere = [exact_call(1, tables[0]), exact_call(["list", [["dict", [[1, tables[0]]]]]])]
    for form in (*map(exact_call, tables), *elsewhere):
        with pytest.raises(UserError, match="same hash"):
            quickly(2.0, lambda form=form: task_of(form))
    for fine in (["set", list(range(20_000))], ["set", anti_table(20_000)], nested):
        quickly(2.0, lambda fine=fine: task_of(exact_call(fine)))


def test_no_table_of_a_callers_numbers_is_made_in_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("a table is made in the judge")

    for tag in ("set", "frozenset", "dict", "Counter", "OrderedDict", "defaultdict"):
        monkeypatch.setitem(plain.DECODERS, tag, never)
    for value in ({1, 2}, {3: {4: frozenset({5})}}, Counter([1, 1]), [{(1, frozenset({2})): 3}]):
        task = CallsTask("f", (Call((value,), value, {"named": value}),))
        sent = json.dumps(task_to_wire(task))
        assert json.dumps(task_to_wire(task_of(json.loads(sent)))) == sent


def test_values_are_read_as_our_own_encoder_writes_them() -> None:
    for given, wanted in (
        (["int", "0x1"], 1), (["float", "1.5"], 1.5), (["Fraction", [2, 4]], ["Fraction", [1, 2]]),
        (["bytes", "FF"], ["bytes", "ff"]), (["complex", ["1", "2"]], ["complex", ["1.0", "2.0"]]),
        (["set", [["int", "-0x7"], ["tuple", [["int", "0x0"]]]]], ["set", [-7, ["tuple", [0]]]]),
    ):  # fmt: skip
        assert task_of(exact_call(given, given)).calls == (Call((Written(wanted),), Written(wanted)),)


@pytest.mark.parametrize(
    "form",
    [
        ["set", [1, 1]], ["set", [1, True]], ["set", [1, ["Decimal", "1.0"]]], ["dict", [[1, 2], [1.0, 3]]],
        ["set", [["tuple", [1]], ["tuple", [True]]]], ["set", [["list", []]]], ["set", [["tuple", [["set", []]]]]],
        ["set", [["Decimal", "sNaN"]]], ["set", 5], ["set", [["frozenset", 5]]], ["dict", [[1]]], ["dict", {"a": 1}],
        {"a": 1}, ["list", [{"a": 1}]], ["range", [1, 2, 0]], ["Fraction", [1, 0]], ["list"], ["nothing", []], [[], []],
    ],
    ids=str,
)  # fmt: skip
def test_what_the_jail_could_not_decode_is_refused_when_a_task_is_read(form: Any) -> None:
    for task in (exact_call(form), exact_call(1, form)):
        with pytest.raises(UserError, match="allowed: plain data"):
            task_of(task)


def test_tables_of_numbers_that_share_a_hash_are_judged(running: Running) -> None:
    table = ["set", [["int", hex(i * MERSENNE)] for i in range(10**3)]]
    items = [
        {"code": f"def f(): return {{i * {MERSENNE} for i in range({many})}}", "task": exact_call(table)}
        for many in (1000, 999)
    ]
    code = f"def f(): return {{i * {MERSENNE}: 1 for i in range(2000)}}"
    tests = {"kind": "tests", "entry_point": "f", "tests": ["assert len(f()) > 1999 and sum(f().values()) == 2000"]}
    status, answer, _ = running.post("/judge", {"items": [*items, {"code": code, "task": tests}]})
    assert status == 200 and [verdict["correct"] for verdict in answer["verdicts"]] == [True, False, True]


def test_the_real_client_works_unchanged(running: Running) -> None:
    fusion = pytest.importorskip("sandbox_fusion", reason="needs the PyPI package sandbox-fusion")
    request = fusion.RunCodeRequest(code="print(6 * 7)", language="python", stdin="")
    answer = fusion.run_code(request, endpoint=running.url, max_attempts=1)
    assert answer.status == "Success" and answer.run_result.stdout == "42\n"
    failed = fusion.run_code(fusion.RunCodeRequest(code="1/0", language="python"), endpoint=running.url, max_attempts=1)
    assert failed.status == "Failed" and failed.run_result.return_code == 1
    form = submission(ADDS, CONTEST)
    form["config"] = fusion.TestConfig(**form["config"])
    result = fusion.submit(fusion.SubmitRequest(**form), endpoint=running.url, max_attempts=1)
    assert result.accepted is True and len(result.tests) == 2


def verl_reward() -> Any:
    """verl's own file, loaded without the package around it (which wants torch and ray)."""
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs verl: pip install --no-deps verl")
    folder = Path(found.submodule_search_locations[0]) / "utils" / "reward_score" / "sandbox_fusion"
    package = types.ModuleType("verl_sandbox_fusion")
    package.__path__ = [str(folder)]
    sys.modules["verl_sandbox_fusion"] = package
    spec = importlib.util.spec_from_file_location(
        "verl_sandbox_fusion", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["verl_sandbox_fusion"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # ten seconds of CPU; the real client above is the quick proof
def test_verls_reward_code_works_unchanged(running: Running) -> None:
    verl = verl_reward()
    cases = {"inputs": ["1 2", "5 5"], "outputs": ["3", "10"]}
    gate = threading.Semaphore(4)
    score, _ = verl.compute_score(f"{running.url}/run_code", gate, 1024, ADDS, cases)
    assert score == 1.0
    score, details = verl.compute_score(f"{running.url}/run_code", gate, 1024, "```python\nprint(3)\n```", cases)
    assert score == 0.5
    score, details = verl.compute_score(
        f"{running.url}/run_code", gate, 1024, "```python\nwhile 1: pass\n```", cases, timeout=1
    )
    assert score == 0.0 and details[0]["status"] == "timeout"
    calls = {"inputs": ["[1, 2]\n3"], "outputs": ["[1, 2, 3]"], "fn_name": "put"}
    score, details = verl.compute_score(
        f"{running.url}/run_code", gate, 1024, "```python\ndef put(xs, x): return xs + [x]\n```", calls
    )
    assert score == 1.0, details


def test_a_timeout_beyond_all_numbers_is_the_callers_mistake() -> None:
    for name in ("run_timeout", "compile_timeout"):
        with pytest.raises(UserError, match=name):
            deadline_s({name: 10**400}, limits_of({name: 10**400}))


@pytest.mark.parametrize(
    "files",
    [
        {"a": "aGk"}, {"a": "!!!"}, {"a": "aGk=\n"}, {"a": 5}, {"a": ["aGk="]}, {"../x": "aGk="}, {"": "aGk="},
        {"/x": "aGk="}, {"a/": "aGk="},
        {"a//b": "aGk="}, {".": "aGk="}, {"a\0": "aGk="}, {"\ud800": "aGk="}, {"a" * 300: "aGk="},
        {"a": "aGk=", "a/b": "aGk="}, {"big": "eHh4" * 1_500_000}, {f"f{i}": "" for i in range(5000)},
    ],
    ids=range(17),
)  # fmt: skip
def test_files_that_are_none_are_the_requests_fault(running: Running, files: dict[str, Any]) -> None:
    """Otherwise they would be told as the program's failure, or be left out without a word."""
    status, answer, _ = running.post("/run_code", {"code": "print(1)", "language": "python", "files": files})
    assert status == 422 and answer["detail"].startswith("files"), answer


def test_the_name_of_a_file_to_be_fetched_is_a_text(running: Running) -> None:
    request = {"code": "print(1)", "language": "python", "fetch_files": ["a", 5]}
    status, answer, _ = running.post("/run_code", request)
    assert status == 422 and answer["detail"].startswith("fetch_files[1]: 5"), answer


@pytest.mark.parametrize("name", ["/etc/passwd", "../../etc/passwd", "", ".", "a//b", "a\0", "\ud800", "a" * 300])
def test_a_file_elsewhere_cannot_be_fetched_and_asking_is_the_requests_fault(running: Running, name: str) -> None:
    request = {"code": "print(1)", "language": "python", "fetch_files": ["a", name]}
    status, answer, _ = running.post("/run_code", request)
    assert status == 422 and answer["detail"].startswith("fetch_files[1]"), answer


def test_files_are_fetched_beside_the_program_wherever_it_has_gone(running: Running) -> None:
    code = "import os\nopen('out.txt', 'w').write('x')\nos.mkdir('d')\nos.chdir('d')\nprint(1)"
    request = {"code": code, "language": "python", "fetch_files": ["out.txt", "d"]}
    _, answer, _ = running.post("/run_code", request)
    assert (answer["run_result"]["stdout"], answer["files"]) == ("1\n", {"out.txt": "eA=="})


def test_a_program_imports_the_files_beside_it(running: Running) -> None:
    files = {"helper.py": b"def twice(x):\n    return 2 * x\n", "pack/__init__.py": b"from .inner import ONE\n",
             "pack/inner.py": b"ONE = 1\n"}  # fmt: skip
    code = "import sys, os\nimport helper\nfrom pack import ONE\nprint(helper.twice(ONE), sys.path[0] == os.getcwd())"
    request = {"code": code, "language": "python", "files": {n: base64.b64encode(c).decode() for n, c in files.items()}}
    _, answer, _ = running.post("/run_code", request)
    assert answer["run_result"]["stdout"] == "2 True\n", answer
