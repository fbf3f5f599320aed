"""Real problems: every reference solution accepted, every buggy one rejected, gold queries accepted, mutants not."""

from __future__ import annotations

import ast
import gzip
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.databases import rows_of
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import TestsTask

pytestmark = pytest.mark.slow
ROOMY = Limits(cpu_s=15, job_cpu_s=15)

INPROCESS = {
    367: "the tests build Node objects, a class of the solution",
    533: "the tests pass a type to the function",
    596: "the tests use the module sys, which only the solution imports",
    601: "the tests build Pair objects, a class of the solution",
    927: "the tests build Node objects, a class of the solution",
}
"""MBPP problems that cannot be split, with the reason."""


def json_lines(path: Path) -> list[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def human_eval_task(row: dict[str, Any]) -> TestsTask:
    test = (
        row["test"]
        if row["test"].rstrip().endswith(f"check({row['entry_point']})")
        else row["test"] + "\ncheck(candidate)"
    )
    return TestsTask(row["entry_point"], (test,), setup=row["prompt"], limits=ROOMY)


def mbpp_task(row: dict[str, Any]) -> TestsTask:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data set's own escapes
        tree = ast.parse(row["code"])
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    called = [node.id for test in row["test_list"] for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)]
    name = max((one for one in called if one in defined), key=called.count)
    return TestsTask(
        name, tuple(row["test_list"]), setup=row["test_setup_code"], inprocess=row["task_id"] in INPROCESS, limits=ROOMY
    )


def test_human_eval_references_are_accepted_split(judge: Judge, data: Path) -> None:
    rows = json_lines(data / "humaneval" / "HumanEval.jsonl.gz")
    verdicts = judge.verify_many([(human_eval_task(row), row["prompt"] + row["canonical_solution"]) for row in rows])
    assert len(rows) == 164
    assert [
        f"{row['task_id']}: {v.detail}" for row, v in zip(rows, verdicts, strict=True) if v.correct is not True
    ] == []
    assert not any("integrity: weak" in verdict.flags for verdict in verdicts)


@pytest.mark.long
def test_mbpp_references_are_accepted_split(judge: Judge, data: Path) -> None:
    rows = json_lines(data / "mbpp" / "mbpp.jsonl.gz")
    verdicts = judge.verify_many([(mbpp_task(row), row["code"]) for row in rows])
    assert len(rows) == 974
    assert [
        f"{row['task_id']}: {v.detail}" for row, v in zip(rows, verdicts, strict=True) if v.correct is not True
    ] == []
    weak = {row["task_id"] for row, verdict in zip(rows, verdicts, strict=True) if "integrity: weak" in verdict.flags}
    assert weak == set(INPROCESS)


def test_mbpp_that_need_inprocess_say_so_when_split(judge: Judge, data: Path) -> None:
    rows = [row for row in json_lines(data / "mbpp" / "mbpp.jsonl.gz") if row["task_id"] in INPROCESS]
    for row in rows:
        split = TestsTask(mbpp_task(row).entry_point, tuple(row["test_list"]), setup=row["test_setup_code"])
        assert judge.verify(split, row["code"]).correct is not True


@pytest.mark.long
def test_human_eval_fix_bugs_are_rejected(judge: Judge, data: Path) -> None:
    rows = [row for row in json_lines(data / "humanevalpack" / "humanevalpack.jsonl.gz") if "Python" in row["task_id"]]
    buggy = judge.verify_many([(human_eval_task(row), row["prompt"] + row["buggy_solution"]) for row in rows])
    fixed = judge.verify_many([(human_eval_task(row), row["prompt"] + row["canonical_solution"]) for row in rows])
    assert len(rows) == 164
    assert [row["task_id"] for row, verdict in zip(rows, buggy, strict=True) if verdict.correct is not False] == []
    assert [row["task_id"] for row, verdict in zip(rows, fixed, strict=True) if verdict.correct is not True] == []


def mutated(query: str) -> list[str]:
    """Small mistakes a model makes."""
    swaps = [
        (r">=", "<"),
        (r"(?<![<>])=(?!=)", "!="),
        (r"(?i)\bdesc\b", "ASC"),
        (r"(?i)\bcount\b", "max"),
        (r"(?i)\bavg\b", "min"),
    ]
    found = [re.sub(pattern, new, query, count=1) for pattern, new in swaps]
    return [query + " LIMIT 0", *(one for one in found if one != query)]


def literal_of(value: object) -> str:
    """A value as it is written in a query."""
    if value is None or isinstance(value, int | float):
        return "NULL" if value is None else repr(value)
    return "'" + str(value).replace("'", "''") + "'"


@pytest.mark.long
def test_spider_gold_is_accepted_and_literals_and_mutants_are_not(data: Path) -> None:
    env = Sql(path=str(data / "spider"))
    problems = [problem for some in env.problems_in_folder().values() for problem in some]
    assert len(problems) > 500
    gold = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
    assert [p.prompt for p, verdict in zip(problems, gold, strict=True) if verdict.correct is not True] == []
    distinct = {(p.reference["database"], p.reference["gold"]): p for p in problems}
    literals, mutants = [], []
    for (name, query), problem in distinct.items():
        rows = rows_of(str(data / "spider" / "database" / f"{name}.sqlite"), query)
        if len(rows) <= 60:
            selected = " UNION ALL ".join(f"SELECT {', '.join(map(literal_of, row))}" for row in rows)
            literals.append((problem, f"```sql\n{selected}\n```"))
        mutants += [(problem, f"```sql\n{mutant}\n```") for mutant in mutated(query)]
    assert [
        text for (_, text), v in zip(literals, env.verify_many(literals), strict=True) if v.correct is not False
    ] == []
    verdicts = env.verify_many(mutants)
    accepted = [text for (_, text), verdict in zip(mutants, verdicts, strict=True) if verdict.correct is not False]
    # A mutant may mean the same; it must be rare.
    assert len(accepted) <= 0.02 * len(mutants), accepted
