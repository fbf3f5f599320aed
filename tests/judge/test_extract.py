"""Finding the program, query or value in a completion: one table of completions, the same answer behind every door."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

import pytest
from click.testing import CliRunner

from rlvrlab.cli import credit as credit_command
from rlvrlab.cli import judge as judge_command
from rlvrlab.envs.code import Code, CodeReasoning
from rlvrlab.envs.minicode import Minicode
from rlvrlab.envs.sql import Sql
from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.extract import (
    Block,
    blocks,
    boxed,
    fenced,
    hashed,
    program_in,
    python_block,
    query_in,
    tagged,
    value_in,
)
from rlvrlab.judge.fusion.datasets import Datasets
from rlvrlab.judge.fusion.submissions import Executed, judge_submission
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.rollout.segment import segment
from rlvrlab.types import Problem, Verdict

Row = dict[str, Any]
ROWS: list[Row] = [
    json.loads(line) for line in Path(__file__).with_name("golden_answers.jsonl").read_text().splitlines()
]
HEADER = "def f(x):\n"
TASK = {"kind": "stdio", "tests": [["", ""]]}


def text_of(row: Row) -> str:
    """The completion; long ones are stored as [piece, times, piece, times, …]."""
    text = row["text"]
    return text if isinstance(text, str) else "".join(text[i] * text[i + 1] for i in range(0, len(text), 2))


def rows_of(kind: str) -> Any:
    rows = [row for row in ROWS if row["kind"] == kind]
    long = {row["what"]: pytest.mark.slow for row in rows if "without end" in row["what"]}
    return pytest.mark.parametrize(
        "row", [pytest.param(row, id=row["what"], marks=long.get(row["what"], ())) for row in rows]
    )


class Handed(Exception):
    """Raised in place of judging, with what was handed to the judge."""


class NoJudge:
    """Takes the place of the judge and ends the command as soon as it is handed a program."""

    def __init__(self, **settings: Any) -> None: ...

    def __enter__(self) -> NoJudge:
        return self

    def __exit__(self, *_: object) -> None: ...

    def verify(self, task: object, program: str) -> Never:
        raise Handed(program)

    def verify_many(self, items: list[tuple[object, str]]) -> Never:
        raise Handed(items[0][1])


def unindented(text: str) -> str:
    """Without the blanks before each line: those of a block in a list are its fence's, not the program's."""
    return re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE)


def read_by_reader(text: str, begun: str) -> str | None:
    found = program_in(text, "f" if begun else "", begun)
    written = text[slice(*found.span)].replace("\r\n", "\n")
    assert found.code is None or unindented(begun + written).endswith(unindented(found.code))
    assert (found.code is None) == bool(found.reason)
    return found.code


def read_by_training(text: str, begun: str) -> str | None:
    reference = {"entry_point": "f" if begun else "", "begun": begun, "tests": [], "setup": "", "inprocess": False}
    prepared = Code().prepare(Problem("p", "code", "code", "", reference), text)
    return None if isinstance(prepared, Verdict) else prepared[0][1]


def read_by_submit(text: str, begun: str) -> str | None:
    async def execute(form: Row) -> Executed:
        return Executed(b"", {"status": "Failed", "code": form["code"]})

    class NoWorkers(CodeJudge):
        async def judge(self, code: str, task: Any) -> Verdict:
            return Verdict(False, 0.0, detail=code)

    contest = {"test": [{"input": {"stdin": ""}, "output": {"stdout": ""}}]}
    row = {"test": "assert f(1)", "entry_point": "f", "prompt": begun} if begun else contest
    form = {"id": 1, "completion": text, "config": {"provided_data": row}}
    answer = asyncio.run(judge_submission(form, execute, NoWorkers(), Datasets()))
    if answer["extracted_type"] == "empty":
        return None
    info = answer["tests"][0]["exec_info"]
    assert (info["message"] if begun else info["code"]) == answer["extracted_code"]
    return str(answer["extracted_code"])


def read_by_command(command: Any, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    monkeypatch.setattr("rlvrlab.judge.judge.Judge", NoJudge)
    (folder / "task.json").write_text(json.dumps(TASK))
    (folder / "answer.md").write_bytes(text.encode("utf-8", "surrogateescape"))
    words = [str(folder / "answer.md"), "-p", str(folder / "task.json")]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    if isinstance(result.exception, Handed):
        return str(result.exception) or None
    assert result.exception is None and result.return_value == 1
    return None


@rows_of("program")
def test_every_door_reads_the_same_program(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, want, begun = text_of(row), row["want"], row.get("begun", "")
    assert read_by_reader(text, begun) == want
    assert read_by_training(text, begun) == want
    assert read_by_submit(text, begun) == want
    if begun or want is None or "\ndef f(" in f"\n{want}":
        problem = Problem("p", "minicode", "gen", "", {"header": HEADER, "skill": "gen", "hidden": []})
        assert Minicode(style="chat").program(problem, text) == want
    if not begun:
        for module in (judge_command, credit_command):
            assert read_by_command(module.command, text, tmp_path, monkeypatch) == want
    segments = segment(text, "python" if begun else "auto")
    if want is None and not begun:
        assert segments.kind != "python"
    elif want is not None:
        program = unindented(text[slice(*segments.region)].replace("\r\n", "\n"))
        assert segments.kind == "python" and not (segments.broken and "indented" in row["what"])
        assert program in (unindented(want), unindented(want.removeprefix(begun)))


@rows_of("query")
def test_every_door_reads_the_same_query(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    text, want = text_of(row), row["want"]
    handed: list[str] = []

    def record(_: Sql, tasks: list[tuple[object, str]], labels: list[str], **_options: object) -> list[Verdict]:
        handed.extend(query for _, query in tasks)
        return [Verdict(False, 0.0) for _ in tasks]

    monkeypatch.setattr(Sql, "judge", record)
    env = Sql()
    [problem] = env.problems("train", 1, seed=0)
    verdict = env.verify(problem, text)
    found = query_in(text)
    assert found.code == want and (found.code is None) == bool(found.reason)
    assert handed == ([] if want is None else [want])
    assert (verdict.error == "format") == (want is None)
    if want is not None:
        assert unindented(text[slice(*found.span)].replace("\r\n", "\n")) == unindented(want)
        segments = segment(text, "sql")
        assert segments.region == found.span
        assert segment(text).kind == ("python" if "```\n" + want in text else "sql")
    thoughtful = Sql(style="think").verify(problem, text)
    assert (thoughtful.error == "format") == (want is None or "</think>" not in text)


@rows_of("value")
def test_every_door_reads_the_same_value(row: Row) -> None:
    text, want = text_of(row), row["want"]
    assert value_in(text).code == want
    printed = Problem("p", "code_reasoning", "code_reasoning", "", {"kind": "printed", "result": "8"})
    predicted = Problem("p", "minicode", "out", "", {"skill": "out", "result": "8"})
    for verdict in (CodeReasoning().verify(printed, text), Minicode(style="chat").verify(predicted, text)):
        assert verdict.answer == want and (verdict.error == "format") == (want is None)


def test_the_table_is_large_and_has_answers_with_and_without_a_program() -> None:
    assert len(ROWS) >= 100 and len({(row["kind"], row["what"]) for row in ROWS}) == len(ROWS)
    for kind in ("program", "query", "value"):
        assert len([row for row in ROWS if row["kind"] == kind and row["want"] is None]) >= 5


def test_a_program_file_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = '"""Use it so:\n```python\nf(1)\n```\n"""\ndef f(x):\n    return x\n'
    monkeypatch.setattr("rlvrlab.judge.judge.Judge", NoJudge)
    (tmp_path / "task.json").write_text(json.dumps(TASK))
    (tmp_path / "answer.py").write_text(program)
    for module in (judge_command, credit_command):
        words = [str(tmp_path / "answer.py"), "-p", str(tmp_path / "task.json")]
        result = CliRunner().invoke(module.command, words, standalone_mode=False)
        assert isinstance(result.exception, Handed) and str(result.exception) == program


def test_blocks_close_with_their_own_kind_of_fence() -> None:
    assert blocks("````md\n```python\nx\n```\n````") == (Block("md", "```python\nx\n```\n", 7, 23),)
    assert blocks("~~~\n```\n~~~") == (Block("", "```\n", 4, 8),)
    assert blocks("```py\na") == (Block("py", "a", 6, 7, closed=False),)
    assert blocks("no fence, `one` ``two``") == ()


def test_a_written_program_is_read_back() -> None:
    assert program_in(python_block("x = 1\n\n")).code == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("so \\boxed{1} no \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{a", None),
        ("nothing", None),
        ("\\boxed{}", ""),
    ],
)
def test_the_last_box(text: str, inner: str | None) -> None:
    assert boxed(text) == inner


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("so <answer> 4\n</answer>.", "4"),
        ("<answer></answer>", ""),
        ("<answer>4</answer><answer>5</answer>", None),
        ("</answer>4<answer>", None),
        ("<answer>4", None),
        ("4", None),
    ],
)
def test_the_only_tag(text: str, inner: str | None) -> None:
    assert tagged(text) == inner


PIECES = ("```\n", "```python\n", "```a\n~~~b\n", "`", "``` ", " ", "\n", "\n ", "\r", "\r\n", "a,", "a, ", "x = 1\n",
          "  ```\n", " \t", "\t ```\n\t\t x\n", "1. ```\n", "<think>", "</think>", "<answer>", "\\boxed{", "####",
          "SELECT ", "{", " return")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES, ids=map(repr, PIECES))
@pytest.mark.parametrize(
    "read",
    [
        program_in,
        lambda text: program_in(text[:200_000], "f", HEADER),
        query_in,
        value_in,
        after_thinking,
        lambda text: fenced(text, ("json", "")),
        boxed,
        hashed,
        tagged,
    ],
    ids=["program", "longest program", "query", "value", "thinking", "fenced", "box", "hash", "tag"],
)
def test_no_megabyte_takes_a_second(quickly: Any, read: Callable[[str], object], piece: str) -> None:
    """What finds the blocks is most of the time of two readers."""
    text = piece * (1_000_000 // len(piece))
    quickly(1.0, lambda: read(text))
