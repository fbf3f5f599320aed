"""The environment `answers`: columns, matchers, styles, roles, and every kind of bad file as one line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.own_data import STYLES, Answers
from rlvrlab.errors import UserError
from rlvrlab.own_code import accepting
from rlvrlab.registry import find
from rlvrlab.types import ErrorKind, Problem


@pytest.fixture(autouse=True)
def own_files() -> Iterator[None]:
    """Files that a test has written are looked up as the user's own."""
    with accepting():
        yield


ROWS = [{"question": f"Colour of thing {i}?", "answer": ("red", "blue")[i % 2]} for i in range(60)]


def write(folder: Path, rows: list[dict[str, Any]], name: str = "own.jsonl") -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / name)


def one(matcher: str, answer: Any, folder: Path, **more: Any) -> tuple[Answers, Problem]:
    """An environment with one question, and its problem."""
    keys = {key: more.pop(key) for key in ("style", "choices") if key in more}
    path = write(folder, [{"question": "Which?", "answer": answer, "split": "train", **more}], "train.jsonl")
    env = Answers(path=path, matcher=matcher, **keys).beside(folder)
    by_role = [env.read_row(row).problems("train") for row in [{"question": "Which?", "answer": answer, **more}]]
    return env, by_role[0][0]


@pytest.mark.parametrize(
    ("matcher", "gold", "right", "wrong"),
    [
        ("exact", "Paris", ["Paris", " Paris "], ["paris", "Paris!", "Paris or Rome", ""]),
        ("text", "New York", ["new  york.", "NEW YORK"], ["york", "New York, Rome"]),
        ("number", "1,080", ["1080", "$1,080", "1080.0"], ["1081", "1080 or 1081", "ten", "1e400", ""]),
        ("number", "so 3*4\n#### 12", ["12"], ["3"]),
        ("choice", "B", ["B", "(B)"], ["A", "A B C D", "B or A", "the answer is B"]),
        ("mathematics", "\\frac{1}{2}", ["0.5", "1/2"], ["0.6", "0.5 or 0.6", "1=0.5"]),
        ("json", {"a": [1, True]}, ['{"a": [1, true]}', '{"a":[1.0,true]}'],
         ['{"a": [1, 1]}', '{"a": [1, true], "a": [1, true]}', "NaN", "[" * 3000, '{"a": [true, 1]}']),
    ],
)  # fmt: skip
def test_matchers(tmp_path: Path, matcher: str, gold: Any, right: list[str], wrong: list[str]) -> None:
    env, problem = one(matcher, gold, tmp_path)
    assert all(env.verify(problem, f"<answer>{text}</answer>").correct for text in right)
    assert [env.verify(problem, f"<answer>{text}</answer>").correct for text in wrong] == [False] * len(wrong)
    assert env.verify(problem, right[0]).error is ErrorKind.FORMAT  # not in tags


def test_a_regular_expression_cannot_hang_the_judge(tmp_path: Path) -> None:
    env, problem = one("regex", "(a+)+b|yes", tmp_path, style="bare")
    judged = env.verify_many([(problem, "yes"), (problem, "aaab"), (problem, "no"), (problem, "a" * 60)])
    assert [verdict.correct for verdict in judged] == [True, True, False, False]
    assert judged[3].error is ErrorKind.TIMEOUT and judged[3].answer == "a" * 60


def test_code_and_sql_are_run(tmp_path: Path) -> None:
    env, problem = one("code", ["assert twice(2) == 4", "assert twice(-1) == -2"], tmp_path)
    programs = ["def twice(x):\n    return 2 * x", "def twice(x):\n    return 4"]
    assert [env.verify(problem, f"```python\n{p}\n```").correct for p in programs] == [True, False]
    with sqlite3.connect(tmp_path / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE item (name TEXT, price INTEGER)")
        shop.executemany("INSERT INTO item VALUES (?, ?)", [("pen", 2), ("bag", 20), ("cup", 5), ("hat", 9)])
    gold = "SELECT name FROM item WHERE price > 6"
    env, problem = one("sql", gold, tmp_path, database="shop.sqlite")
    queries = ["SELECT name FROM item WHERE price >= 7", "SELECT 'bag' UNION SELECT 'hat'"]
    assert [env.verify(problem, f"```sql\n{q}\n```").correct for q in queries] == [True, False]


@pytest.mark.parametrize("style", list(STYLES))
def test_every_style_reads_what_it_writes_and_refuses_cheats(tmp_path: Path, style: Any) -> None:
    env = Answers(path=write(tmp_path, ROWS), style=style)
    checks = env.self_check()
    assert {check.name for check in checks} >= {"gold", "cheat: wrong", "cheat: hedge", "cheat: prompt echoed"}
    assert [check for check in checks if not check.ok] == []


def test_templates_system_choices_and_skills(tmp_path: Path) -> None:
    row = {"who": "Ada", "what": "{what}", "options": ["tea", "milk"], "answer": "milk", "kind": "drinks"}
    env = Answers(prompt="{who} drinks {what}, {{so}}", matcher="choice", choices="options", skill="kind",
                  system="Be brief.")  # fmt: skip
    (problem,) = env.read_row(row).problems("train")
    assert problem.prompt.startswith("Be brief.\n\nAda drinks {what}, {so}\nA) tea\nB) milk\nPut the letter")
    assert (problem.reference, problem.skill, problem.meta["who"]) == ("B", "drinks", "Ada")
    (by_index,) = env.read_row(row | {"answer": 0}).problems("train")
    assert by_index.reference == "A"


def test_a_function_of_the_user_is_a_matcher(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def near(problem, answer): return 1.0 if answer[:2] == problem.reference[:2] else 0.4\n"
        "def bug(problem, answer): return answer.nothing\n"
        "def odd(problem, answer): return 'yes'\n"
    )
    env, problem = one("mine.py:near", "Paris", tmp_path, style="bare")
    assert env.verify_many([(problem, "Pa")])[0].correct
    partial = env.verify_many([(problem, "Rome")])[0]
    assert partial.correct is False and partial.score == 0.4
    with pytest.raises(UserError, match="raised on all 2 answers: AttributeError"):
        env_of(env, tmp_path, "bug").verify_many([(problem, "a"), (problem, "b")])
    with pytest.raises(UserError, match="gave 'yes' for problem"):
        env_of(env, tmp_path, "odd").verify_many([(problem, "a")])
    (tmp_path / "mine.py").write_text("def near(problem, answer): return True\n")
    with pytest.raises(UserError, match="is not what it was"):
        env.beside(tmp_path)


def env_of(env: Answers, folder: Path, function: str) -> Answers:
    return Answers(path=env.path, matcher=f"mine.py:{function}", style="bare").beside(folder)


def test_roles_by_content_by_column_and_by_files(tmp_path: Path) -> None:
    def sizes(path: str, **keys: Any) -> tuple[int, ...]:
        return tuple(len(Answers(path=path, **keys).problems(role, 1000, 0)) for role in ("train", "dev", "test"))

    by_content = sizes(write(tmp_path, ROWS))
    assert sum(by_content) == len(ROWS) and by_content[0] > 40
    told = [row | {"part": ("train", "validation", "test")[i % 3]} for i, row in enumerate(ROWS)]
    assert sizes(write(tmp_path, told, "told.jsonl"), split="part") == (20, 20, 20)
    write(tmp_path, ROWS[:50], "set/train.jsonl")
    write(tmp_path, ROWS[40:], "set/test.jsonl")  # ten questions stand in both: they are test alone
    train, dev, test = sizes(str(tmp_path / "set"))
    assert (train + dev, test) == (40, 20) and 0 < dev < 12


def test_a_path_is_looked_for_beside_the_recipe_then_in_the_data_folder_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("recipe", "data", "here"):
        write(tmp_path, ROWS, f"{name}/own.jsonl")
    monkeypatch.setenv("RLVRLAB_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "here")
    kinds = [Answers, *(find("env", name) for name in ("gsm8k", "math", "zebra", "clrs", "sql", "code"))]
    for name in ("recipe", "data", "here"):
        found = [kind(path="own.jsonl").beside(tmp_path / "recipe").path for kind in kinds]
        assert set(found) == {str(tmp_path / name / "own.jsonl")}
        (tmp_path / name / "own.jsonl").unlink()


@pytest.mark.parametrize(
    ("content", "keys", "said"),
    [
        (
            '{"question": "a", "answer": "b"}\n{"question": oops}\n', {},
            "own.jsonl:2: not JSON (Expecting value, column 14)",
        ),
        ('{"question": "a"}\n', {}, "own.jsonl:1: column 'answer' is missing; there are: question"),
        ("", {}, "own.jsonl: no rows"),
        (b'{"question": "caf\xe9", "answer": "b"}\n', {}, "own.jsonl:1: byte 0xe9 at position 18 is not UTF-8"),
        ('{"question": "a", "answer": "b"}\n', {"prompt": "{text}: {question}"}, "1: column 'text' is missing"),
        ('{"question": "a", "answer": "b"}\n', {"prompt": "{question"}, "own.jsonl:1: template '{question'"),
        ('{"question": "a", "answer": null}\n', {}, "own.jsonl:1: column 'answer' is empty"),
        ('{"question": " ", "answer": "b"}\n', {}, "own.jsonl:1: column 'question' is empty"),
        ('{"question": "a", "answer": "many"}\n', {"matcher": "number"}, "1: column 'answer': 'many' is no number"),
        ('{"question": "a", "answer": "("}\n', {"matcher": "regex"}, "'(' is no regular expression"),
        ('{"question": "a", "answer": "."}\n', {"matcher": "text"}, "1: column 'answer': '.' has no words"),
        ('{"question": "a", "answer": "NaN"}\n', {"matcher": "json"}, "'NaN' is not JSON (NaN is no value)"),
        ('{"question": "a", "answer": "1e400"}\n', {"matcher": "json"}, "Infinity is no value"),
        ('{"question": "a", "answer": "{\\"b\\":1,\\"b\\":2}"}\n', {"matcher": "json"}, "a key stands there twice"),
        ('{"question": "a", "answer": "0.30000000000000000001"}\n', {"matcher": "json"}, "more digits than are kept"),
        ('{"question": "a", "answer": "b", "split": "huh"}\n', {}, "own.jsonl:1: column 'split': 'huh' is no role"),
        ('{"question": "a", "answer": "b"}\n{"question": "a", "answer": "c"}\n', {},
         "own.jsonl:2: asks the same as"),
        ('{"question": "a", "answer": "b", "split": "test"}\n', {}, "no train rows (0 train, 0 dev, 1 test); add rows"),
    ],
)  # fmt: skip
def test_bad_files_are_one_line(tmp_path: Path, content: str | bytes, keys: dict[str, str], said: str) -> None:
    (tmp_path / "own.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as raised:
        Answers(path=str(tmp_path / "own.jsonl"), **keys).problems("train", 5, 0)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_an_unknown_matcher_or_style_names_what_is_allowed() -> None:
    with pytest.raises(UserError, match=r"matcher = 'exakt': unknown; did you mean 'exact'\?"):
        Answers(matcher="exakt")
    with pytest.raises(UserError, match="style = 'loud' with matcher 'exact': allowed: tags, box, ####"):
        Answers(style="loud")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the answer stands in a block"):
        Answers(matcher="sql", style="tags")
