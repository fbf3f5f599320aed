"""Twins of a database, made for a gold query: they tell it from literals and from small mistakes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_separation import AS_MANY, BadQuestion, separate
from rlvrlab.judge.modes.sql_twins import STYLES, make_twin


@pytest.fixture(scope="module")
def concerts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "concerts.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, town TEXT)")
        connection.execute(
            "CREATE TABLE song (no INTEGER PRIMARY KEY, singer_id INTEGER REFERENCES singer(id), sales REAL)"
        )
        people = [(i, f"n{i}", 20 + 3 * i, None if i == 4 else f"t{i % 3}") for i in range(1, 9)]
        connection.executemany("INSERT INTO singer VALUES (?, ?, ?, ?)", people)
        connection.executemany("INSERT INTO song VALUES (?, ?, ?)", [(i, i % 8 + 1, 10.0 * i) for i in range(1, 17)])
        connection.commit()
    return path


def test_twins_are_reproducible_and_keep_keys_and_references(concerts: Path, tmp_path: Path) -> None:
    contents = []
    for seed in range(len(STYLES)):
        one, other = (make_twin(concerts, tmp_path / f"{name}.sqlite", seed) for name in "ab")
        assert one.read_bytes() == other.read_bytes()
        with closing(sqlite3.connect(one)) as twin:
            contents.append(twin.execute("SELECT * FROM singer").fetchall())
            assert contents[-1] and twin.execute("SELECT * FROM song").fetchall()
            assert not twin.execute("SELECT * FROM song WHERE singer_id NOT IN (SELECT id FROM singer)").fetchall()
            assert not twin.execute("SELECT * FROM singer WHERE age IS NULL").fetchall(), "no NULL where there was none"
    assert len({repr(rows) for rows in contents}) == len(STYLES)


@pytest.mark.parametrize(
    ("gold", "mistakes"),
    [
        ("SELECT DISTINCT town FROM singer", ["SELECT town FROM singer"]),
        ("SELECT town FROM singer", ["SELECT DISTINCT town FROM singer"]),
        (
            "SELECT name FROM singer WHERE age > 26",
            ["SELECT name FROM singer WHERE age >= 26", "SELECT name FROM singer WHERE age > 27"],
        ),
        ("SELECT max(age) FROM singer", ["SELECT 44", "SELECT age FROM singer ORDER BY id DESC LIMIT 1"]),
        (
            "SELECT name FROM singer ORDER BY age LIMIT 1",
            [
                "SELECT name FROM singer ORDER BY age DESC LIMIT 1",
                "SELECT 'n1'",
                "SELECT name FROM singer WHERE age = (SELECT min(age) FROM singer)",
            ],
        ),
        (
            "SELECT name FROM singer JOIN song ON singer.id = singer_id",
            ["SELECT name FROM singer LEFT JOIN song ON singer.id = singer_id"],
        ),
        (
            "SELECT town, count(*) FROM singer GROUP BY town HAVING count(*) > 1",
            [
                "SELECT town, count(*) FROM singer GROUP BY town HAVING count(*) >= 1",
                "SELECT town, count(*) FROM singer GROUP BY town HAVING count(*) > 2",
            ],
        ),
    ],
)
def test_twins_of_a_query_tell_mistakes_from_it(
    judge: Judge, concerts: Path, tmp_path: Path, gold: str, mistakes: list[str]
) -> None:
    found = separate(concerts, gold)
    assert found == separate(concerts, gold)
    twins = []
    for i, content in enumerate(found.twins):
        (tmp_path / f"{i}.sqlite").write_bytes(content)
        twins.append(str(tmp_path / f"{i}.sqlite"))
    task = SqlTask(str(concerts), gold, tuple(twins))
    verdicts = judge.verify_many([(task, query) for query in [gold + " ", *mistakes]])
    assert [verdict.correct for verdict in verdicts] == [True] + [False] * len(mistakes)


def test_what_cannot_be_told_apart_is_named_and_what_a_literal_answers_is_refused(
    judge: Judge, concerts: Path, tmp_path: Path
) -> None:
    assert separate(concerts, "SELECT count(*) FROM song").unseparated == ("DISTINCT", "LIMIT 1")
    for gold in ("SELECT 7", "SELECT count(*) FROM singer WHERE 0", "SELECT nothing FROM singer"):
        with pytest.raises(BadQuestion):
            separate(concerts, gold)
    twin = str(make_twin(concerts, tmp_path / "twin.sqlite", 1))
    # Of the second, every id is a right answer: whatever is on both databases would always pass.
    for gold in ("SELECT min(1) FROM singer", "SELECT id FROM singer ORDER BY 1 > 2 LIMIT 1"):
        verdict = judge.verify(SqlTask(str(concerts), gold, (twin,)), "SELECT 1")
        assert verdict.correct is None and verdict.flags == ("bad_task",) and "literal" in verdict.detail


def test_a_query_whose_result_depends_on_storage_has_no_twins(concerts: Path) -> None:
    with pytest.raises(BadQuestion, match="order in which rows are stored"):
        separate(concerts, "SELECT max(id) FROM (SELECT id FROM singer LIMIT 1)")


def test_a_relative_database_is_found(judge: Judge, concerts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(concerts.parent)
    assert judge.verify(SqlTask("concerts.sqlite", "SELECT count(*) FROM song"), "SELECT 16").correct is True


def test_the_largest_of_a_few_values_has_twins_too(tmp_path: Path) -> None:
    """Twins draw from the values there are, and the first 18 for this schema all hold the largest of three."""
    with closing(sqlite3.connect(tmp_path / "few.sqlite")) as connection:
        connection.execute("create table t(a integer primary key,b text,v real)")
        rows = [(1, "x", 1.5), (2, "y", 2.5), (3, "x", 2.5), (4, None, 0.0)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.execute("create table u(id integer primary key,a integer references t(a))")
        connection.executemany("INSERT INTO u VALUES (?, ?)", [(1, 1), (2, 1), (3, 3)])
        connection.commit()
    assert separate(tmp_path / "few.sqlite", "select max(v) from t").twins


def filed(contents: tuple[bytes, ...], folder: Path) -> tuple[str, ...]:
    for i, content in enumerate(contents):
        (folder / f"{i}.sqlite").write_bytes(content)
    return tuple(str(folder / f"{i}.sqlite") for i in range(len(contents)))


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More rows than any usual twin has."""
    path = tmp_path_factory.mktemp("sql") / "readings.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE reading (code TEXT PRIMARY KEY, place TEXT, value REAL)")
        rows = [(f"c{i}", f"p{i % 4}", i / 7) for i in range(150)]
        connection.executemany("INSERT INTO reading VALUES (?, ?, ?)", rows)
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("database", "gold", "wrong"),
    [
        ("concerts", "SELECT name FROM singer", [f"SELECT name FROM singer LIMIT {many}" for many in (8, 9, 10)]),
        ("concerts", "SELECT name FROM singer WHERE age > 30", ["SELECT name FROM singer WHERE age > 30 LIMIT 5"]),
        ("concerts", "SELECT age FROM singer ORDER BY age LIMIT 10", ["SELECT age FROM singer ORDER BY age"]),
        ("concerts", "SELECT age FROM singer ORDER BY age LIMIT 90", ["SELECT age FROM singer ORDER BY age"]),
        ("readings", "SELECT code FROM reading", ["SELECT code FROM reading LIMIT 150"]),
        ("readings", "SELECT value FROM reading WHERE place = 'p1'",
         ["SELECT value FROM reading WHERE place = 'p1' LIMIT 38"]),
        ("readings", "SELECT code, count(*) FROM reading GROUP BY code",
         ["SELECT code, count(*) FROM reading GROUP BY code LIMIT 160"]),
    ],
)  # fmt: skip
def test_a_limit_that_cuts_nothing_off_on_the_database_is_told_from_none(
    judge: Judge, tmp_path: Path, request: pytest.FixtureRequest, database: str, gold: str, wrong: list[str]
) -> None:
    path = request.getfixturevalue(database)
    found = separate(path, gold)
    assert found == separate(path, gold) and not {"no LIMIT", AS_MANY} & set(found.unseparated)
    task = SqlTask(str(path), gold, filed(found.twins, tmp_path))
    for query in wrong:
        assert judge.verify(SqlTask(str(path), gold), query).correct, "it agrees on the database"
    verdicts = judge.verify_many([(task, query) for query in [gold + " ", *wrong]])
    assert [verdict.correct for verdict in verdicts] == [True] + [False] * len(wrong)


def test_where_no_twin_can_have_more_rows_it_is_named(readings: Path) -> None:
    """Of the four places there are, which are words of the data, no more are made up: an answer may know them all."""
    assert AS_MANY in separate(readings, "SELECT place, count(*) FROM reading GROUP BY place").unseparated
    assert AS_MANY not in separate(readings, "SELECT count(*) FROM reading").unseparated
