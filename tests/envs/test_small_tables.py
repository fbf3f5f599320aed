"""Questions about tables for tiny policies: short enough to be learnt, and answered by nothing but their query."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from rlvrlab.envs.agent.environment import Agent
from rlvrlab.envs.sql.databases import filled
from rlvrlab.types import Problem

BARE = Agent(style="bare", levels=(1,))
FORM = re.compile(r"(?:count|sum|max) [a-f] of [t-w] where [a-f] [<>] \d\d\n")
LONGEST_CALL = len("sql: SELECT COUNT(b) FROM t WHERE c > 41")


def tables(role: str, size: int) -> list[Problem]:
    return [problem for problem in BARE.problems(role, 2 * size, 0) if problem.meta["tool"] == "sql"]  # type: ignore[arg-type]


def value(problem: Problem, query: str) -> str:
    with closing(sqlite3.connect(":memory:")) as connection:
        database = filled(connection, problem.reference["schema"], problem.reference["contents"])
        return str(database.execute(query).fetchone()[0])


def test_a_tiny_policy_has_little_to_read_and_to_copy() -> None:
    for problem in tables("train", 200):
        assert FORM.fullmatch(problem.prompt), problem.prompt
        assert len(BARE.gold_turns(problem)[0]) <= LONGEST_CALL


def test_the_answer_is_what_the_query_returns_and_needs_its_condition() -> None:
    for problem in tables("train", 200):
        [[tool, query]] = problem.reference["calls"]
        assert tool == "sql" and value(problem, query) == problem.reference["answer"] != "0"
        assert value(problem, query.partition(" WHERE")[0]) != problem.reference["answer"]
        assert BARE.verify(problem, f"### {problem.reference['answer']}").correct


def test_queries_are_distinct_within_a_role_and_between_roles() -> None:
    asked = [problem.prompt for role in ("train", "dev", "test") for problem in tables(role, 200)]
    assert len(set(asked)) == len(asked) == 600
    assert [p.id for p in BARE.problems("train", 40, 0)] == [p.id for p in BARE.problems("train", 80, 0)][:40]


def test_other_styles_ask_about_whole_schemas() -> None:
    for style in ("chat", "fence"):
        question = Agent(style=style, tools=("sql",)).problems("train", 1, 0)[0].prompt  # type: ignore[arg-type]
        assert question.count("CREATE TABLE") == 2
