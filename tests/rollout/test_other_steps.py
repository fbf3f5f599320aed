"""Queries, turns, prose and words in steps."""

from __future__ import annotations

import random
import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_python_steps import laws, without
from texts import any_text

from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import cut, swapped
from rlvrlab.rollout.sql_steps import canonical_sql

QUERY = (
    "WITH a AS (SELECT 1 AS i), b AS (SELECT 2 AS i, 'x, y' AS w) "
    "SELECT DISTINCT t.i, MAX(t.j) AS m, CASE WHEN t.j > 1 AND t.i THEN 2 END FROM t "
    "JOIN u ON t.i = u.i AND u.k > 0 LEFT OUTER JOIN b ON b.i = u.i "
    "WHERE t.j > 0 AND t.j BETWEEN 1 AND 9 AND (t.i = 1 OR t.i = 2) AND u.k IN (SELECT k FROM u WHERE k > 0 AND 1) "
    "GROUP BY t.i HAVING COUNT(*) > 0 AND m > 0 ORDER BY t.i DESC LIMIT 5 OFFSET 0;"
)


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t (i, j); CREATE TABLE u (i, k); INSERT INTO t VALUES (1, 2), (2, 3);")
    return connection


def test_the_clauses_of_a_query() -> None:
    segments = segment(QUERY)
    laws(segments)
    kinds = [step.kind for step in segments.steps]
    assert segments.kind == "sql"
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "cte": 2, "column": 3, "join": 2, "conjunct": 6, "clause": 4,
    }  # fmt: skip
    assert [s.text for s in segments.steps if s.kind == "conjunct"][1] == "AND t.j BETWEEN 1 AND 9"


def test_any_part_of_a_query_is_a_query_or_lacks_a_name() -> None:
    """The grammar never breaks; what a deleted step had defined may be missed."""
    segments, draw = segment(QUERY), random.Random(0)
    connection, fine = database(), 0
    for _ in range(200):
        kept = [draw.random() < 0.6 for _ in segments.steps]
        try:
            connection.execute(cut(segments, kept).text).fetchall()
            fine += 1
        except sqlite3.OperationalError as error:
            words = ("no such column", "no such table", "HAVING clause", "misuse of aggregate")
            offset_alone = 'near "OFFSET"' in str(error)
            assert offset_alone or any(word in str(error) for word in words), (error, cut(segments, kept).text)
    assert fine > 20
    empty = cut(segments, [False] * len(segments))
    assert connection.execute(empty.text).fetchall() and empty.validity == "repaired"


def test_null_and_reorder_of_a_query() -> None:
    segments, connection = segment(QUERY), database()
    for index, step in enumerate(segments.steps):
        if step.kind in ("conjunct", "cte"):
            null = cut(segments, [True] * len(segments), {index: segments.neutral[index]})
            connection.execute(null.text)
        other = swapped(segments, index)
        if other is not None and step.kind in ("column", "conjunct", "cte"):
            connection.execute(other.text)
            assert sorted(other.text.replace(",", " ").split()) == sorted(QUERY.replace(",", " ").split())


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("SELECT a FROM t WHERE x = 1 OR y = 2 AND z", [" a", " x = 1 OR y = 2 AND z"]),
        ("SELECT a FROM t UNION SELECT b FROM u WHERE c", [" a", "UNION SELECT b FROM u WHERE c"]),
        ("SELECT 'a, b -- c', d FROM t -- WHERE x\n", [" 'a, b -- c'", ", d"]),
        ("select\n  a\nfrom t\nlimit 3", ["\n  a", "limit 3"]),
        ("SELECT", []),
        ("SELECT (((", [" ((("]),
    ],
)
def test_odd_queries(query: str, texts: list[str]) -> None:
    segments = segment(query, "sql")
    laws(segments)
    assert [step.text for step in segments.steps if step.text.strip()] == texts


def test_a_query_in_a_block_and_its_canonical_form() -> None:
    segments = segment("So:\n```sql\nSELECT a,\n  b FROM t\n```\nok")
    assert [step.text for step in segments.steps] == [" a", ",\n  b"]
    assert without(segments, 0).text == "So:\n```sql\nSELECT\n  b FROM t\n```\nok"
    assert canonical_sql("SELECT  a\nFROM t;") == canonical_sql("SELECT a FROM t")
    assert canonical_sql("SELECT 'a  b'") != canonical_sql("SELECT 'a b'")


def test_a_turn_goes_with_its_tool_result() -> None:
    text = (
        "I look.\n<tool_call>ls</tool_call>\n<tool_response>a.py\n</tool_response>\n"
        "I read.\n<tool_call>cat</tool_call>\n<tool_response>x</tool_response>\nIt is x.\n"
    )
    segments = segment(text)
    laws(segments)
    assert segments.kind == "turns" and [step.kind for step in segments.steps] == ["turn", "turn", "final"]
    assert without(segments, 0).text == text[text.index("I read") :]
    null = cut(segments, [True] * 3, {1: segments.neutral[1]})
    assert "<tool_call>cat" in null.text and "x</tool_response>" not in null.text and "observation: none" in null.text


def test_turns_by_words() -> None:
    text = "Thought: a\nAction: b\nObservation: c\nmore\nThought: d\nFinal Answer: 3\n"
    assert [s.text for s in segment(text).steps] == [text[: text.index("Thought: d")], text[text.index("Thought: d") :]]


@pytest.mark.parametrize(
    ("text", "kind", "texts"),
    [
        ("One.\nstill\n\nTwo.\n", "paragraph", ["One.\nstill\n\n", "Two.\n"]),
        ("one\ntwo\n", "line", ["one\n", "two\n"]),
        ("It is 3.5. So yes! Done", "sentence", ["It is 3.5. ", "So yes! ", "Done"]),
        ("9*5-2", "sentence", ["9*5-2"]),
    ],
)
def test_prose(text: str, kind: str, texts: list[str]) -> None:
    segments = segment(text)
    laws(segments)
    assert segments.kind == "text" and segments.steps[0].kind == kind
    assert [step.text for step in segments.steps] == texts


def test_thoughts_and_the_answer() -> None:
    segments = segment("<think>First.\n\nThen.</think>\n<answer>4</answer>")
    assert [(s.kind, s.text) for s in segments.steps] == [
        ("paragraph", "First.\n\n"), ("paragraph", "Then."), ("answer", "<answer>4</answer>"),
    ]  # fmt: skip
    assert without(segments, 0, 1).text == "<think></think>\n<answer>4</answer>"


@pytest.mark.parametrize("text", ["", " \n", "\n\n\n"])
def test_nothing_has_no_steps(text: str) -> None:
    assert all(len(segment(text, kind)) == 0 for kind in ("auto", "text", "turns", "words", "python"))


@given(any_text(max_size=80), st.sampled_from(["auto", "python", "sql", "turns", "text", "words", "characters"]))
@settings(deadline=None)
def test_any_text_under_any_kind_keeps_the_laws(text: str, kind: str) -> None:
    segments = segment(text, kind)
    laws(segments)
    if len(segments):
        cut(segments, [False] * len(segments))


HOSTILE = {
    "statements on one line": ("python", "x='é';"),
    "one statement per line": ("python", "x = 1\n"),
    "joins": ("sql", "JOIN u ON a "),
    "clauses": ("sql", "ORDER BY a "),
    "arms": ("sql", "UNION SELECT a "),
    "queries": ("sql", "SELECT a; "),
    "spaces": ("text", " "),
    "carriage returns": ("text", "\r"),
    "blank lines": ("text", " " * 999 + "\n"),
    "answers": ("text", "<answer>"),
    "marks": ("auto", "`"),
    "brackets": ("auto", "("),
    "sentences": ("auto", "It is so. "),
    "line ends": ("auto", "\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_takes_about_four_times_as_long(name: str) -> None:
    """Quadratic work would take sixteen times, in each of three tries; short times say nothing and pass."""
    kind, unit = HOSTILE[name]

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        segment.cache_clear()
        started = time.thread_time()
        segment(text, kind)
        return time.thread_time() - started

    assert any(seconds(40_000) < 8 * seconds(10_000) + 0.05 for _ in range(3))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_takes_a_second(quickly, name: str) -> None:
    kind, unit = HOSTILE[name]
    text = unit * (10**6 // len(unit))

    def segmented() -> int:
        segment.cache_clear()
        return len(segment(text, kind))

    quickly(1, segmented)
