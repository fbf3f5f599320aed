"""SQL: the table of verdicts, made problems and their soundness, Spider-shaped data."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.databases import filled, folder, stored
from rlvrlab.envs.sql.made import made_problems, trivial_queries
from rlvrlab.envs.sql.questions import LEVELS
from rlvrlab.envs.sql.schemas import THEMES
from rlvrlab.errors import UserError
from rlvrlab.judge.isolation import probe
from rlvrlab.types import ErrorKind, Problem, Verdict

ROWS = [json.loads(line) for line in Path(__file__).with_name("sql_answers.jsonl").read_text().splitlines()]
SCHEMA = ["CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, height REAL, city TEXT)"]
SHOWN = [[1, "ann", 1.5, "Rome"], [2, None, None, "Oslo"], [3, "cat", 2.5, ""], [4, "ann", 2.25, "Oslo"]]
TWINS = [
    [
        [1, "bob", 1.25, "Lima"],
        [2, "eli", 1.5, "Oslo"],
        [3, "dan", 3.5, "Bern"],
        [4, "cat", 2.0, "Rome"],
        [5, "bob", 1.0, "x"],
    ],
    [[1, "eva", 0.5, "Oslo"], [2, None, None, "Bern"], [3, "ann", 1.75, ""]],
]
pytestmark = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate queries")


def ask(gold: str) -> Problem:
    contents = [{"person": rows} for rows in (SHOWN, *TWINS)]
    return Problem("p", "sql", "sql", "", {"gold": gold, "schema": SCHEMA, "contents": contents})


def text_of(row: dict[str, Any]) -> str:
    if "query" in row:
        return f"```sql\n{row['query']}\n```"
    return row["raw"] if isinstance(row["raw"], str) else "".join(piece * times for piece, times in row["raw"])


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    before = {path: path.read_bytes() for path in folder().iterdir()}
    found = Sql(timeout_s=0.3).verify_many([(ask(row["gold"]), text_of(row)) for row in ROWS])
    assert all(path.read_bytes() == content for path, content in before.items())
    return {row["what"]: verdict for row, verdict in zip(ROWS, found, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row["what"] for row in ROWS])
def test_table_of_verdicts(row: dict[str, Any], verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[row["what"]]
    assert (verdict.correct, verdict.error.value) == (row["correct"], row["error"]), verdict.detail
    runs = float(row["error"] in ("none", "wrong_answer"))
    expected = {"format": float(row["error"] != "format"), "runs": runs, "correct": float(row["correct"])}
    assert dict(verdict.parts) == expected
    assert verdict.score == float(row["correct"])
    assert verdict.isolation == ("none" if row["error"] == "format" else "landlock")


def test_table_is_large_enough_and_its_names_differ() -> None:
    assert len({row["what"] for row in ROWS}) == len(ROWS) >= 70
    assert {row["error"] for row in ROWS} >= {
        "none",
        "format",
        "syntax",
        "runtime",
        "timeout",
        "output",
        "wrong_answer",
    }


@pytest.mark.slow
def test_databases_are_as_they_were(verdicts: dict[str, Verdict]) -> None:
    with closing(sqlite3.connect(stored(SCHEMA, {"person": SHOWN}))) as connection:
        assert [list(row) for row in connection.execute("SELECT * FROM person")] == SHOWN
    assert {path.suffix for path in folder().iterdir()} == {".sqlite"}


@pytest.mark.parametrize("level", LEVELS)
def test_made_problems_are_sound(level: int) -> None:
    stream = made_problems(level, "train", 2)
    for _ in range(25):
        made = next(stream)
        schema = next(theme for theme in THEMES if f"TABLE {theme.thing.name} " in made.schema[0])
        results, trivial = [], []
        for contents in made.contents:
            with closing(sqlite3.connect(":memory:")) as connection:
                filled(connection, made.schema, contents)
                results.append(connection.execute(made.question.gold).fetchall())
                trivial.append(_answers(connection, trivial_queries(schema)))
        assert all(rows and any(value is not None for row in rows for value in row) for rows in results)
        assert sorted(results[0], key=repr) != sorted(results[1], key=repr), "a literal would do"
        shared = set(trivial[0]) & set(trivial[1]) & set(trivial[2])
        for query in shared:
            same = all(sorted(t[query], key=repr) == sorted(r, key=repr) for t, r in zip(trivial, results, strict=True))
            assert not same, query


def _answers(connection: sqlite3.Connection, queries: list[str]) -> dict[str, list[Any]]:
    found = {}
    for query in queries:
        try:
            found[query] = connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # a column this schema left out
            continue
    return found


def test_gold_is_accepted_at_every_level_and_neighbours_gold_is_not() -> None:
    env = Sql()
    problems = env.problems("dev", 15, seed=4)
    assert [problem.meta["level"] for problem in problems] == [1, 2, 3, 4, 5] * 3
    assert [verdict.correct for verdict in env.verify_many([(p, env.gold(p) or "") for p in problems])] == [True] * 15
    pairs = list(zip(problems, problems[1:] + problems[:1], strict=True))
    crossed = env.verify_many([(one, env.gold(other) or "") for one, other in pairs])
    assert not any(verdict.correct for verdict in crossed)


def test_a_broken_problem_is_unjudged_and_leaves_its_neighbours_alone() -> None:
    nowhere = Problem("n", "sql", "sql", "", {"gold": "SELECT 1", "database": "nowhere"})
    bad_gold = ask("SELEC 1")
    answers = [(nowhere, "SELECT 1"), (bad_gold, "SELECT 1"), (ask("SELECT id FROM person"), "SELECT id FROM person")]
    assert [verdict.correct for verdict in Sql().verify_many(answers)] == [None, None, True]


def test_a_gold_query_never_crosses_roles() -> None:
    golds = {
        role: {p.reference["gold"] for seed in range(2) for p in Sql().problems(role, 25, seed)}  # type: ignore[arg-type]
        for role in ("train", "dev", "test")
    }
    assert not golds["train"] & golds["dev"] and not golds["train"] & golds["test"] and not golds["dev"] & golds["test"]


@pytest.mark.slow
def test_self_check() -> None:
    checks = Sql(levels=(2, 5)).self_check()
    assert [check for check in checks if not check.ok] == []
    assert len({check.name for check in checks if not check.expected}) >= 30
    assert {ErrorKind.TIMEOUT, ErrorKind.RUNTIME, ErrorKind.SYNTAX} <= {check.verdict.error for check in checks}


@pytest.fixture
def spider(tmp_path: Path) -> Path:
    """Data in Spider's shape: paraphrases, an empty gold, a broken gold."""
    (tmp_path / "database" / "people").mkdir(parents=True)
    rows = [{"db_id": "people", "question": f"{how} is person {i}?", "query": f"SELECT name FROM person WHERE id = {i}"}
            for i in (1, 3) for how in ("Who", "What name")]  # fmt: skip
    rows.append({"db_id": "people", "question": "Nobody?", "query": "SELECT name FROM person WHERE id = 99;"})
    rows.append({"db_id": "people", "question": "Broken?", "query": "SELEC name"})
    rows.append({"db_id": "people", "question": "All?", "query": "SELECT count(*) FROM person;"})
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    with closing(sqlite3.connect(tmp_path / "database" / "people" / "people.sqlite")) as connection:
        filled(connection, SCHEMA, {"person": SHOWN})
    return tmp_path


def test_spider_shaped_data(spider: Path) -> None:
    env = Sql(path=str(spider))
    found = {}
    for role in ("train", "dev", "test"):
        size = 0
        while True:
            try:
                found[role] = env.problems(role, size, 0)  # type: ignore[arg-type]
            except UserError:
                break
            size += 1
    questions = {problem.meta["question"]: role for role, problems in found.items() for problem in problems}
    assert set(questions) == {
        "Who is person 1?",
        "What name is person 1?",
        "Who is person 3?",
        "What name is person 3?",
        "All?",
    }
    assert questions["Who is person 1?"] == questions["What name is person 1?"], "paraphrases stay together"
    problems = [problem for role in found for problem in found[role]]
    assert all("CREATE TABLE person" in problem.prompt for problem in problems)
    golds = env.verify_many([(problem, env.gold(problem) or "") for problem in problems])
    assert [verdict.correct for verdict in golds] == [True] * 5
    assert {verdict.total for verdict in golds} <= {3, 4, 5, 6}, "the database and two to five twins"
    lucky = next(problem for problem in problems if problem.meta["question"] == "All?")
    assert env.verify(lucky, "SELECT 4").correct is False


def test_a_relative_path_counts_from_the_current_folder(spider: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spider.parent)
    by_role = Sql(path=spider.name).problems_in_folder()
    problems = [problem for some in by_role.values() for problem in some]
    assert sorted(p.id for p in problems) == sorted(
        p.id for some in Sql(path=str(spider)).problems_in_folder().values() for p in some
    )
    assert len(problems) == 5
    env = Sql(path=spider.name)
    assert all(v.correct for v in env.verify_many([(p, env.gold(p) or "") for p in problems]))
    with pytest.raises(UserError, match=r"no folder .*nowhere; a relative path counts from the current folder"):
        Sql(path="nowhere").problems("train", 1, 0)


def test_what_a_literal_answers_is_left_out_and_a_problem_of_it_is_bad(spider: Path) -> None:
    asked = {
        "Always?": "SELECT 7 FROM person LIMIT 1",
        "Cities?": "SELECT DISTINCT city FROM person WHERE height >= 1.5",
    }
    rows = [{"db_id": "people", "question": question, "query": gold} for question, gold in asked.items()]
    (spider / "dev.json").write_text(json.dumps(rows))
    env = Sql(path=str(spider))
    (problem,) = (problem for some in env.problems_in_folder().values() for problem in some)
    assert problem.meta["question"] == "Cities?"
    wrong = ["SELECT city FROM person WHERE height >= 1.5", "SELECT DISTINCT city FROM person WHERE height > 1.5"]
    assert [env.verify(problem, query).correct for query in wrong] == [False, False]
    always = Problem("a", "sql", "sql", "", {"gold": rows[0]["query"], "database": "people"})
    verdict = env.verify(always, "SELECT 7")
    assert verdict.correct is None and "bad_task" in verdict.flags and "literal" in verdict.detail


def test_made_twins_have_rows_at_the_borders() -> None:
    problem = next(p for p in Sql(levels=(1,)).problems("train", 40, 0) if " > " in p.reference["gold"])
    gold = problem.reference["gold"]
    assert Sql().verify(problem, gold.replace(" > ", " >= ")).correct is False


def test_bad_data_is_named(tmp_path: Path, spider: Path) -> None:
    with pytest.raises(UserError, match="has none of"):
        Sql(path=str(tmp_path / "database")).problems("train", 1, 0)
    other = tmp_path / "other"
    other.mkdir()
    (other / "dev.json").write_text('[{"db_id": "people", "question": "?"}]')
    with pytest.raises(UserError, match=r"dev\.json:1: column 'query' is missing"):
        Sql(path=str(other)).problems("train", 1, 0)
    (other / "train.json").write_text('[{"db_id": "none", "question": "?", "query": "SELECT 1"}]')
    (other / "dev.json").unlink()
    with pytest.raises(UserError, match="no database 'none'"):
        Sql(path=str(other)).problems("train", 1, 0)
