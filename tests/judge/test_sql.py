"""The SQL judge: what counts as the same result, and what a query cannot do."""

from __future__ import annotations

import importlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlvrlab.judge.jail.limits import MEGABYTE, Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_text import ending_of
from rlvrlab.judge.modes.sql_twins import make_twin
from rlvrlab.types import ErrorKind

ROWS = [(1, "ann", 1.5), (2, "bob", None), (3, "cat", 2.5), (4, "bob", 2.5)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "some people.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, height REAL)")
        connection.executemany("INSERT INTO person VALUES (?, ?, ?)", ROWS)
        connection.commit()
    return path


def correct(judge: Judge, database: Path, gold: str, query: str) -> bool | None:
    return judge.verify(SqlTask(str(database), gold), query).correct


@pytest.mark.parametrize(
    ("gold", "query", "right"),
    [
        ("SELECT name FROM person", "SELECT name FROM person ORDER BY name DESC", True),
        ("SELECT name FROM person", "SELECT DISTINCT name FROM person", False),
        ("SELECT name FROM person", "SELECT name, id FROM person", False),
        ("SELECT name FROM person ORDER BY id", "SELECT name FROM person ORDER BY id DESC", False),
        ("SELECT id FROM person ORDER BY name", "SELECT id FROM person ORDER BY name, id DESC", True),
        ("SELECT id FROM person ORDER BY name", "SELECT id FROM person ORDER BY id", False),
        ("SELECT name, id FROM person ORDER BY 1", "SELECT name, id FROM person ORDER BY name, id DESC", True),
        ("SELECT height FROM person WHERE id = 2", "SELECT NULL", True),
        ("SELECT height FROM person WHERE id = 2", "SELECT ''", False),
        ("SELECT 1", "SELECT 1.0", True),
        ("SELECT 1", "SELECT '1'", False),
        ("SELECT 0.3", "SELECT 0.1 + 0.2", True),
        ("SELECT 0.3", "SELECT 0.31", False),
        ("SELECT 3 UNION ALL SELECT 0.1*3*10", "SELECT 3 UNION ALL SELECT 3.0", True),
        ("SELECT 3 UNION ALL SELECT 0.1*3*10", "SELECT 3.0 UNION ALL SELECT 3.0", True),
        ("SELECT 3 UNION ALL SELECT 0.1*3*10", "SELECT 3.0 UNION ALL SELECT 0.1*3*10", True),
        ("SELECT 3 UNION ALL SELECT 0.1*3*10", "SELECT 3 UNION ALL SELECT 3", False),
        ("SELECT 3, 'a' UNION ALL SELECT 0.1*3*10, 'b'", "SELECT 3.0, 'b' UNION ALL SELECT 3.0, 'a'", True),
        ("SELECT 3, 'a' UNION ALL SELECT 0.1*3*10, 'b'", "SELECT 0.1*3*10, 'a' UNION ALL SELECT 3.0, 'b'", False),
        ("SELECT 1", "SELECT 1;;", True),
        ("SELECT 1;;", "SELECT 1; ;\n", True),
        ("SELECT 1", "SELECT 1; SELECT 1;", False),
        ("SELECT sum(id) + 10000000 FROM person", "SELECT sum(id) + 10000001.0 FROM person", False),
        ("SELECT value FROM json_each('[3, 4]')", "SELECT value FROM json_each('[4, 3]')", True),
        ("SELECT count(*) FROM person", "SELECT count(*) FROM pragma_table_info('person')", False),
        (
            "WITH p AS (SELECT * FROM person) SELECT id FROM p ORDER BY name",
            "SELECT id FROM person ORDER BY name, id DESC",
            True,
        ),
        (
            "WITH p AS (SELECT * FROM person) SELECT id FROM p ORDER BY name",
            "SELECT id FROM person ORDER BY id DESC",
            False,
        ),
        (
            "SELECT DISTINCT name, height FROM person ORDER BY name",
            "SELECT name, height FROM person ORDER BY name, height DESC",
            True,
        ),
        (
            "SELECT DISTINCT name, height FROM person ORDER BY length(name)",
            "SELECT name, height FROM person ORDER BY name, height DESC",
            True,
        ),
        (
            "SELECT DISTINCT name, height FROM person ORDER BY name",
            "SELECT name, height FROM person ORDER BY height, name",
            False,
        ),
        (
            "SELECT name, count(*) AS n FROM person GROUP BY name ORDER BY n",
            "SELECT name, count(*) FROM person GROUP BY name ORDER BY 2, 1 DESC",
            True,
        ),
        (
            "SELECT name, count(*) AS n FROM person GROUP BY name ORDER BY n",
            "SELECT name, count(*) FROM person GROUP BY name ORDER BY 2 DESC",
            False,
        ),
        (
            "SELECT name, id FROM person UNION SELECT name, id FROM person ORDER BY name",
            "SELECT name, id FROM person ORDER BY name, id DESC",
            True,
        ),
        (
            "SELECT name, id FROM person UNION SELECT name, id FROM person ORDER BY 1",
            "SELECT name, id FROM person ORDER BY id",
            False,
        ),
        (
            "SELECT id FROM (SELECT * FROM person ORDER BY id) ORDER BY name",
            "SELECT id FROM person ORDER BY name, id DESC",
            True,
        ),
        (
            "SELECT upper(name) || id FROM person ORDER BY substr(name, 1, 0) COLLATE NOCASE",
            "SELECT upper(name) || id FROM person ORDER BY id DESC",
            True,
        ),
        ("SELECT id FROM person", "SELECT id FROM person;; ", True),
        ("SELECT id FROM person", "SELECT id FROM person; SELECT 1", False),
        (
            "SELECT id FROM person ORDER BY name DESC LIMIT 2",
            "SELECT id FROM person WHERE id IN (3, 4) ORDER BY id",
            True,
        ),
        (
            "SELECT id FROM person ORDER BY name DESC LIMIT 2",
            "SELECT id FROM person WHERE id IN (1, 3) ORDER BY id DESC",
            False,
        ),
        ("SELECT id FROM person ORDER BY name DESC LIMIT 2", "SELECT id FROM person ORDER BY name DESC LIMIT 3", False),
        ("SELECT id FROM person ORDER BY name LIMIT 1 OFFSET 1", "SELECT 4", True),
        ("SELECT id FROM person ORDER BY name LIMIT 1 OFFSET 1", "SELECT 3", False),
        (
            "SELECT id FROM person ORDER BY name LIMIT 1, 2",
            "SELECT id FROM person WHERE name = 'bob' ORDER BY id DESC",
            True,
        ),
        ("SELECT id FROM person LIMIT 2", "SELECT id FROM person WHERE id > 2", True),
        ("SELECT id FROM person LIMIT 2", "SELECT 3 UNION ALL SELECT 3", False),
        (
            "SELECT name FROM person UNION ALL SELECT name FROM person ORDER BY name LIMIT 3 -- of six",
            "SELECT name FROM person WHERE id IN (1, 2) UNION ALL SELECT 'ann' ORDER BY 1",
            True,
        ),
        ("SELECT id FROM person WHERE 0", "SELECT name FROM person WHERE 0", True),
        ("SELECT id FROM person WHERE 0", "SELECT name, id FROM person WHERE 0", False),
        ("SELECT count(*) FROM person", "SELECT count(*) FROM person -- done\n;", True),
        (
            "SELECT id FROM person WHERE id IN (SELECT id FROM person ORDER BY id)",
            "SELECT id FROM person ORDER BY id DESC",
            True,
        ),
    ],
)
def test_same_result(judge: Judge, database: Path, gold: str, query: str, right: bool) -> None:
    assert correct(judge, database, gold, query) is right


COUNTED = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)"
MANY = f"{COUNTED} SELECT (x * 7919) % 200003 AS y FROM c"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "value"),
    [
        (f"SELECT y FROM ({MANY}) ORDER BY y DESC LIMIT 1 OFFSET 150000", None),
        (f"SELECT max(y) FROM (SELECT y FROM ({MANY}) UNION SELECT y + 1 FROM ({MANY}))", 200003),
    ],
)
def test_what_does_not_fit_into_the_cache_needs_no_file(
    judge: Judge, database: Path, query: str, value: int | None
) -> None:
    """There is no folder for temporary files in the jail: such queries are run again in memory."""
    gold = query if value is None else f"SELECT {value}"
    assert judge.verify(SqlTask(str(database), gold), query).detail == "accepted"


def test_gold_queries_of_a_cold_batch_share_children(database: Path) -> None:
    tasks = [
        SqlTask(str(database), f"SELECT name, {i} FROM person WHERE id = {i % 4 + 1} ORDER BY id") for i in range(40)
    ]
    tasks += [SqlTask(str(database), "SELECT nothing FROM nowhere")]
    with Judge(workers=1) as judge:
        verdicts = judge.verify_many([(task, task.gold) for task in tasks])
        assert [verdict.correct for verdict in verdicts] == [True] * 40 + [None]
        (worker,) = judge.pools["sqlite"]._workers
        assert worker.count <= 2 * 41 // 16 + 6  # gold with its keys, predictions, and the bad one twice


def test_a_failed_query_leaves_its_neighbours_a_clean_connection(judge: Judge, database: Path) -> None:
    task = SqlTask(str(database), "SELECT count(*) FROM person")
    bad = ["SELECT * FROM nowhere", "DELETE FROM person", "SELECT 1; SELECT 2", "PRAGMA query_only = 0"]
    answers = [answer for query in bad for answer in (query, task.gold)]
    assert [judge.verify(task, answer).correct for answer in answers] == [False, True] * len(bad)
    assert [verdict.correct for verdict in judge.verify_many([(task, f"{answer} ") for answer in answers])] == [
        False,
        True,
    ] * len(bad)


def test_what_a_neighbour_writes_does_not_count(judge: Judge, database: Path) -> None:
    """Both fit the limit of output, together they do not."""
    many = "SELECT hex(zeroblob(300000)) FROM person"
    task = SqlTask(str(database), many, limits=Limits(output_mb=1 + len(ROWS) * 600_000 // MEGABYTE))
    answers = [f"{many} WHERE {i} > 0" for i in range(1, 4)]
    assert [verdict.correct for verdict in judge.verify_many([(task, answer) for answer in answers])] == [True] * 3


HOSTILE = [
    "DELETE FROM person",
    "UPDATE person SET height = 0",
    "INSERT INTO person VALUES (9, 'x', 1)",
    "DROP TABLE person",
    "CREATE TEMP TABLE person AS SELECT 1",
    "ATTACH '/etc/passwd' AS x",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = 1",
    "VACUUM INTO '/tmp/judge_attack.db'",
    "SELECT load_extension('x')",
    "SELECT 4; SELECT 4",
    "SELECT 4; DELETE FROM person",
    "SELECT hex(zeroblob(2000000000))",
    "SELECT length(randomblob(1000000000))",
    "SELECT " + "(" * 2000 + "4" + ")" * 2000,
    "SELECT json('" + "[" * 100000 + "')",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "SELECT count(*) FROM " + ", ".join(f"person p{i}" for i in range(20)),
    "SELECT printf('%.*c', 1500000000, 'x')",
    "",
    "nonsense",
    "SELECT no_such_column FROM person",
    "SELECT '\0'",
    "-- nothing",
]


@pytest.mark.slow
def test_hostile_queries_get_a_verdict_and_change_nothing(judge: Judge, database: Path) -> None:
    content = database.read_bytes()
    task = SqlTask(str(database), "SELECT count(*) FROM person", limits=Limits(cpu_s=0.3, output_mb=16))
    verdicts = judge.verify_many([(task, query) for query in HOSTILE])
    assert [query for query, verdict in zip(HOSTILE, verdicts, strict=True) if verdict.correct is not False] == []
    assert {ErrorKind.TIMEOUT, ErrorKind.OUTPUT, ErrorKind.SYNTAX, ErrorKind.RUNTIME} <= {v.error for v in verdicts}
    assert database.read_bytes() == content
    assert sorted(path.name for path in database.parent.iterdir()) == [database.name]
    assert judge.verify(task, "SELECT 4").correct is True


def test_a_slow_query_does_not_take_its_neighbours_down(judge: Judge, database: Path) -> None:
    task = SqlTask(str(database), "SELECT 4", limits=Limits(cpu_s=0.2, output_mb=16))
    queries = ["SELECT 4", "SELECT printf('%.*c', 1500000000, 'x')", "SELECT 4 -- again", "SELECT 5"]
    verdicts = judge.verify_many([(task, query) for query in queries])
    assert [verdict.correct for verdict in verdicts] == [True, False, True, False]
    assert verdicts[1].error is ErrorKind.TIMEOUT


def test_a_gold_query_too_long_to_be_read_is_the_tasks_fault(judge: Judge, database: Path) -> None:
    verdict = judge.verify(SqlTask(str(database), "SELECT 1" + " " * 100_000), "SELECT 1")
    assert (verdict.correct, verdict.error) == (None, ErrorKind.BAD_TASK) and "100,008" in verdict.detail


def test_numbers_that_count_nothing_are_no_rows_and_no_columns() -> None:
    assert ending_of(f"SELECT a FROM t ORDER BY {'9' * 5000}", 9).columns is None
    assert ending_of("SELECT a FROM t LIMIT 1 OFFSET ²", 9).offset is None


def test_missing_database_and_bad_gold(judge: Judge, database: Path) -> None:
    missing = judge.verify(SqlTask(str(database.parent / "none.sqlite"), "SELECT 1"), "SELECT 1")
    assert missing.correct is not True and "none.sqlite" in missing.detail
    bad = judge.verify(SqlTask(str(database), "SELEC 1"), "SELECT 1")
    assert bad.correct is None and "gold" in bad.detail


def test_twins_catch_the_accidental_match(judge: Judge, database: Path, tmp_path: Path) -> None:
    gold, lucky = "SELECT count(*) FROM person WHERE name = 'bob'", "SELECT 2"
    assert correct(judge, database, gold, lucky) is True
    twins = tuple(str(make_twin(database, tmp_path / f"{seed}.sqlite", seed)) for seed in range(4))
    assert judge.verify(SqlTask(str(database), gold, twins), lucky).correct is False
    assert judge.verify(SqlTask(str(database), gold, twins), gold + " ").correct is True


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT a FROM t", ()),
        ("SELECT a FROM t WHERE b = 'order by c'", ()),
        ('SELECT "order by" FROM t -- order by x', ()),
        ("SELECT a FROM (SELECT b FROM u ORDER BY b)", ()),
        ("SELECT rank() OVER (ORDER BY b) FROM t", ()),
        ("SELECT a FROM t order  by b desc, f(c, d) ASC limit 3", ("b", "f(c, d)")),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1;", ("1",)),
        ("SELECT a /* order by */ FROM t ORDER BY b COLLATE nocase DESC NULLS LAST", ("b COLLATE nocase",)),
    ],
)
def test_what_a_query_sorts_by(query: str, keys: tuple[str, ...]) -> None:
    assert ending_of(query, 9).keys == keys


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="needs duckdb: pip install 'rlvrlab[duckdb]'")
@pytest.mark.parametrize(
    ("gold", "query", "right"),
    [
        ("SELECT sum(price) FROM ware", "SELECT sum(price::DOUBLE) FROM ware", True),
        ("SELECT sum(price::DOUBLE) FROM ware", "SELECT sum(price) FROM ware", True),
        ("SELECT sum(price) FROM ware", "SELECT sum(price) + 0.01 FROM ware", False),
        ("SELECT count(*) FROM ware", "SELECT count(*)::DECIMAL(9, 2) FROM ware", True),
        ("SELECT bought FROM ware", "SELECT bought::TIMESTAMP FROM ware", True),
        ("SELECT bought FROM ware", "SELECT bought::VARCHAR FROM ware", False),
        ("SELECT price > 2 FROM ware", "SELECT (price > 2)::INTEGER FROM ware", True),
        ("SELECT 'a'::BLOB, NULL", "SELECT 'a'::BLOB, NULL", True),
        ("SELECT name, id FROM ware ORDER BY name", "SELECT name, id FROM ware ORDER BY name, id DESC", True),
        ("SELECT DISTINCT name, id FROM ware ORDER BY name", "SELECT name, id FROM ware ORDER BY name, id DESC", True),
        ("SELECT name, id FROM ware ORDER BY name", "SELECT name, id FROM ware ORDER BY id", False),
        ("SELECT list(price ORDER BY id) FROM ware", "SELECT list(price::DOUBLE ORDER BY id) FROM ware", True),
        ("SELECT '2020-01-01 00:00:00.000000001'::TIMESTAMP_NS", "SELECT '2020-01-01'::TIMESTAMP_NS", False),
        ("SELECT 'infinity'::DATE", "SELECT DATE '9999-12-31'", False),
        ("SELECT 'infinity'::TIMESTAMP", "SELECT TIMESTAMP '9999-12-31 23:59:59.999999'", False),
        ("SELECT 'infinity'::DATE", "SELECT 'infinity'::TIMESTAMP", True),
        ("SELECT DATE '290000-01-01'", "SELECT DATE '290000-01-01'", True),
        ("SELECT '101'::BIT", "SELECT '101'", False),
        ("SELECT MAP {'a': 1}", "SELECT {'a': 1}", False),
        ("SELECT [MAP {'a': 1}]", "SELECT [{'a': 1}]", False),
        ("SELECT {'a': bought} FROM ware", "SELECT {'a': bought + 0} FROM ware", True),
        ("SELECT TIMESTAMPTZ '2020-01-01 00:00+02'", "SELECT TIMESTAMPTZ '2019-12-31 22:00+00'", True),
        ("SELECT TIMESTAMPTZ '2020-01-01 00:00+02'", "SELECT TIMESTAMPTZ '2020-01-01 00:00+01'", False),
        ("SELECT bought FROM ware ORDER BY bought", "SELECT bought FROM ware ORDER BY bought DESC", False),
        ("SELECT bought, bought FROM ware", "SELECT bought, bought FROM ware -- twice", True),
    ],
)
def test_values_and_ties_of_duckdb(judge: Judge, wares: Path, gold: str, query: str, right: bool) -> None:
    limits = Limits(cpu_s=1.0, memory_mb=1024, output_mb=16)
    verdict = judge.verify(SqlTask(str(wares), gold, engine="duckdb", limits=limits), query)
    assert verdict.correct is right, verdict.detail


@pytest.fixture(scope="module")
def wares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "wares.duckdb"
    with importlib.import_module("duckdb").connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE ware AS SELECT i AS id, 'n' || (i % 3) AS name, (i * 1.1)::DECIMAL(9, 2) AS price, "
            "DATE '2020-01-01' + i::INTEGER AS bought FROM range(9) r(i)"
        )
    return path


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="needs duckdb: pip install 'rlvrlab[duckdb]'")
def test_duckdb_is_read_only_too(judge: Judge, tmp_path: Path) -> None:
    engine = importlib.import_module("duckdb")
    database = tmp_path / "people.duckdb"
    with engine.connect(str(database)) as connection:
        connection.execute("CREATE TABLE person AS SELECT i AS id, 'n' || (i % 3) AS name FROM range(9) r(i)")
    content = database.read_bytes()
    limits = Limits(cpu_s=1.0, memory_mb=1024, output_mb=16)
    task = SqlTask(str(database), "SELECT name, count(*) FROM person GROUP BY name", engine="duckdb", limits=limits)
    hostile = [
        "DROP TABLE person",
        "DELETE FROM person",
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY person TO '/tmp/judge_attack.csv'",
        "ATTACH '/tmp/judge_attack.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "CREATE TEMP TABLE copied AS SELECT * FROM person",
        "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c",
        "nonsense",
    ]
    verdicts = judge.verify_many(
        [(task, query) for query in ["SELECT name, count(id) FROM person GROUP BY ALL", *hostile]]
    )
    assert [verdict.correct for verdict in verdicts] == [True] + [False] * len(hostile)
    counted = SqlTask(str(database), "SELECT count(*) FROM person", engine="duckdb", limits=limits)
    assert judge.verify(counted, "CREATE TEMP TABLE copied AS SELECT * FROM person").correct is False
    assert database.read_bytes() == content


CHANGING = ["SELECT random()", "SELECT hex(randomblob(4))", "SELECT strftime('%s', 'now')", "SELECT CURRENT_TIMESTAMP"]
CONSTANT = [
    "SELECT 1 WHERE random() < 9e18 + 1e18",
    "SELECT strftime('%Y', 'now') > '2000'",
    "SELECT date('2024-01-01')",
]


@pytest.mark.parametrize("gold", [*CHANGING, *CONSTANT])
def test_a_gold_query_must_return_the_same_each_time(judge: Judge, database: Path, gold: str) -> None:
    verdict = judge.verify(SqlTask(str(database), gold), gold)
    assert verdict.error is (ErrorKind.BAD_TASK if gold in CHANGING else ErrorKind.NONE), verdict.detail


def test_a_row_of_close_reals_leads_from_no_value_to_another(judge: Judge, tmp_path: Path) -> None:
    """Of a Julian day the tolerance is 3.5 minutes: by steps of a minute any moment was the same as any other."""
    path = tmp_path / "moments.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (a TEXT)")
        made.executemany("INSERT INTO t VALUES (?)", [(f"2024-01-01 00:{i:02d}:00",) for i in range(60)])
        made.commit()
    gold = "SELECT julianday(a) FROM t"
    assert correct(judge, path, gold, "SELECT julianday(a) + 1e-9 FROM t ORDER BY a DESC") is True
    for wrong in ("julianday('2024-01-01')", "(SELECT max(julianday(a)) FROM t)", "julianday(a, '+5 minutes')"):
        assert correct(judge, path, gold, f"SELECT {wrong} FROM t") is False
    assert correct(judge, path, f"{gold} ORDER BY a", f"{gold} ORDER BY a DESC") is False
