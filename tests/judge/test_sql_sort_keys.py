"""What a gold query sorts by, however it is written: a key that is a constant elsewhere must not make all rows tie."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_text import Item

ROWS = [(1, 1, 5, "ann"), (2, 1, 2, "Bob"), (3, 2, 2, "cat"), (4, 2, 5, "Dan"), (5, 3, 1, "eve"), (6, 3, 4, "Ann")]
TIES_TURNED = "SELECT id, b FROM t ORDER BY b, id DESC"
UPSIDE_DOWN = "SELECT id, b FROM t ORDER BY b DESC"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, n TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        connection.commit()
    return path


@pytest.mark.parametrize(
    "gold",
    [
        "SELECT id, b FROM t ORDER BY (2)", "SELECT id, b FROM t ORDER BY +2", "SELECT id, b FROM t ORDER BY 0x2",
        "SELECT id, b FROM t ORDER BY 2 COLLATE NOCASE", "SELECT id, b FROM t ORDER BY 2 /* b */",
        "SELECT id, b FROM t ORDER BY 2 -- b", 'SELECT id, b "order" FROM t ORDER BY "order"',
        "SELECT id, b 'order' FROM t ORDER BY \"order\"", 'SELECT id, b k FROM t ORDER BY "k"',
        'SELECT id, b + 0 AS "k" FROM t ORDER BY "K"', "SELECT id, b k FROM t ORDER BY k",
        "SELECT id, b a FROM t ORDER BY a", "SELECT id, (b) k FROM t ORDER BY k",
    ],
)  # fmt: skip
def test_rows_that_tie_come_in_any_order_and_others_in_none(judge: Judge, database: Path, gold: str) -> None:
    """The engine itself says what the key means: its rows are those that are sorted by b."""
    with closing(sqlite3.connect(database)) as connection:
        returned = [b for _, b in connection.execute(gold)]
    assert returned == sorted(returned)
    verdicts = judge.verify_many([(SqlTask(str(database), gold), text) for text in (TIES_TURNED, UPSIDE_DOWN)])
    assert [verdict.correct for verdict in verdicts] == [True, False]


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        ("SELECT * FROM t ORDER BY 3", "SELECT * FROM t ORDER BY b, id DESC", "SELECT * FROM t"),
        ("SELECT * FROM t ORDER BY 3 LIMIT 1", "SELECT 5, 3, 1, 'eve'", "SELECT * FROM t WHERE id = 1"),
        ("SELECT t.*, 0 FROM t ORDER BY 3 LIMIT 1", "SELECT 5, 3, 1, 'eve', 0", "SELECT *, 0 FROM t WHERE id = 1"),
        (
            'SELECT *, a - b AS "k" FROM t ORDER BY "k" LIMIT 1',
            "SELECT *, a - b FROM t WHERE id = 1",
            "SELECT *, a - b FROM t WHERE id = 5",
        ),
        (
            "SELECT *, a - a AS k FROM t ORDER BY k LIMIT 1",
            "SELECT *, 0 FROM t WHERE id = 6",
            "SELECT *, 1 FROM t WHERE id = 6",
        ),
        ("SELECT a, count(*) c FROM t GROUP BY a ORDER BY c DESC LIMIT 1", "SELECT 3, 2", "SELECT 3, 1"),
        ('SELECT a, sum(b) AS "s" FROM t GROUP BY a ORDER BY -"s" LIMIT 1', "SELECT 1, 7", "SELECT 3, 5"),
        ('SELECT a, sum(b) AS "s" FROM t GROUP BY a ORDER BY abs("s") LIMIT 1', "SELECT 3, 5", "SELECT 1, 7"),
    ],
)
def test_a_star_and_new_names_in_quotes(judge: Judge, database: Path, gold: str, right: str, wrong: str) -> None:
    verdicts = judge.verify_many([(SqlTask(str(database), gold), text) for text in (gold, right, wrong)])
    assert [verdict.correct for verdict in verdicts] == [True, True, False]


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (  # a new name that is a column's, too, under a collation or in brackets: it is the new one that is sorted by
            "SELECT n AS a FROM t ORDER BY a COLLATE NOCASE LIMIT 1",
            "SELECT 'Ann'",
            "SELECT 'Bob'",
        ),
        ("SELECT n AS a FROM t ORDER BY (a) LIMIT 1", "SELECT 'Ann'", "SELECT 'ann'"),
        ("SELECT n AS a FROM t ORDER BY ((a) COLLATE NOCASE) LIMIT 1", "SELECT 'Ann'", "SELECT 'Bob'"),
        (
            "SELECT id, n AS k FROM t ORDER BY k COLLATE NOCASE",
            "SELECT id, n FROM t ORDER BY lower(n), id DESC",
            "SELECT id, n FROM t ORDER BY id",
        ),
        (
            "SELECT 0, n AS k FROM t UNION SELECT 1, 'ANN' ORDER BY k COLLATE NOCASE LIMIT 3",
            "SELECT 0, 'Ann' UNION ALL SELECT 1, 'ANN' UNION ALL SELECT 0, 'ann'",
            "SELECT 0, 'Ann' UNION ALL SELECT 0, 'Bob' UNION ALL SELECT 0, 'ann'",
        ),
        (  # a + b is no column that is called b
            "SELECT a + b, n AS b FROM t WHERE a = 3 UNION SELECT 4, 'zed' ORDER BY b",
            "SELECT a + b, n FROM t WHERE a = 3 UNION SELECT 4, 'zed' ORDER BY 2",
            "SELECT a + b, n FROM t WHERE a = 3 UNION SELECT 4, 'zed' ORDER BY 1, 2 DESC",
        ),
        (  # what it is sorted by is not its own: a row that is there once has several ranks
            "SELECT DISTINCT a FROM t ORDER BY b LIMIT 2",
            "SELECT DISTINCT a FROM t ORDER BY b LIMIT 2",
            "SELECT a FROM (SELECT 3 AS a UNION ALL SELECT 3)",
        ),
        (
            "SELECT DISTINCT b FROM t ORDER BY b % 2, b LIMIT 2",
            "SELECT 2 UNION ALL SELECT 4",
            "SELECT 2 UNION ALL SELECT 2",
        ),
    ],
)  # fmt: skip
def test_new_names_under_a_collation_and_distinct_rows(
    judge: Judge, database: Path, gold: str, right: str, wrong: str
) -> None:
    verdicts = judge.verify_many([(SqlTask(str(database), gold), text) for text in (gold, right, wrong)])
    assert [verdict.correct for verdict in verdicts] == [True, True, False]


def test_distinct_rows_of_duckdb(judge: Judge, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b INTEGER)")
        connection.execute("INSERT INTO t VALUES ('x', 1), ('x', 2), ('y', 2), ('y', 3), ('z', 9)")
    task = SqlTask(str(path), "SELECT DISTINCT a FROM t ORDER BY b LIMIT 2", engine="duckdb")
    answers = (task.gold, "SELECT a FROM t ORDER BY b LIMIT 2")
    assert [verdict.correct for verdict in judge.verify_many([(task, one) for one in answers])] == [True, False]


@pytest.mark.parametrize(
    ("text", "alias", "expression"),
    [
        ("count(*) c", "c", "count(*)"), ("t.name", "name", "t.name"), ("t.name n", "n", "t.name"),
        ('t."one two"', "one two", 't."one two"'), ("a + b", "", "a + b"), ("-a", "", "-a"), ("NOT a", "", "NOT a"),
        ("CASE WHEN a THEN 1 END", "", "CASE WHEN a THEN 1 END"),
        ("CASE WHEN a THEN 1 END k", "k", "CASE WHEN a THEN 1 END"), ("n COLLATE NOCASE", "", "n COLLATE NOCASE"),
        ("a IS NOT NULL", "", "a IS NOT NULL"), ('1 "one two"', "one two", "1"), ("a AS b", "b", "a"),
        ("sum(a) OVER w", "", "sum(a) OVER w"), ("'x' y", "y", "'x'"), ("a", "a", "a"), ("*", "*", "*"),
    ],
)  # fmt: skip
def test_the_name_of_a_selected_column(text: str, alias: str, expression: str) -> None:
    assert Item.read(text) == Item(text, alias, expression)
