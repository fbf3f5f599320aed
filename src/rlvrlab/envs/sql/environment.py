"""SQL: answer a question by a query; its result decides, on the database and on perturbed twins.

    id         sql:3:9b74c9897bac770f
    prompt     Given the SQLite database CREATE TABLE customer (…); … answer by one query: For each city …
    completion <think>…</think>\\n```sql\\nSELECT city, COUNT(*) FROM customer GROUP BY city\\n```
    reference  {"gold": "SELECT …", "schema": ["CREATE TABLE …"], "contents": [{"customer": [[1, "Ada", …]]}, …]}
               or, from data,  {"gold": "SELECT …", "database": "concert_singer"}
    meta       {"level": 3, "question": "For each city …"}; from data also
               "unseparated": ["LEFT JOIN"]  changes of gold that no twin tells from it

Without `path`, schema, contents, question and gold are made here (levels 1 filter, 2 aggregate, 3 group, 4 join,
5 nested and ordered); with it they are read from Spider-shaped data (spider.py). Where the query stands in a
completion: judge/extract.py.

Traps: comparing sets ignores duplicates and order; running the prediction on gold's connection lets `DELETE FROM t`
or a temporary table of the same name win; `SELECT 42` matches a count by luck; a result that is empty matches any
other empty one; a scalar function never reaches the progress handler. Here the judge keeps gold and prediction apart
and compares bags of rows on several databases; docs/sql_math_logic.md has the verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Gt, Le

from rlvrlab.envs.answers import KEPT, in_turn
from rlvrlab.envs.code.judged import Jobs, JudgedEnvironment
from rlvrlab.envs.data_files import LocatedPath
from rlvrlab.envs.sql import spider
from rlvrlab.envs.sql.cheats import bombs, query_cheats, text_cheats
from rlvrlab.envs.sql.databases import prepared, rows_of, schema_of, stored
from rlvrlab.envs.sql.made import made_problems
from rlvrlab.envs.sql.questions import LEVELS
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import query_in
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_separation import BadQuestion
from rlvrlab.randomness import problem_name, shuffled
from rlvrlab.registry import register
from rlvrlab.types import Check, ErrorKind, Problem, Role, Verdict, unjudged

PROMPT = (
    "Given the SQLite database\n\n{schema}\n\nanswer this question by one SQL query:\n{question}\n\n"
    "{think}Give the query alone in a block ```sql … ```."
)
THINK = "Think first, inside <think> </think>. "


@register("env", "sql")
@dataclass(frozen=True)
class Sql(JudgedEnvironment, LocatedPath):
    """Questions answered by a query on SQLite."""

    path: str = ""
    """Folder of Spider-shaped data; empty: problems are made here."""
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    """Levels of made problems; several alternate evenly. Not used with path."""
    style: Literal["plain", "think"] = "plain"
    """think: the reasoning stands in <think> tags, the query after them."""
    timeout_s: Annotated[float, Gt(0), Le(60)] = 1.0
    """CPU seconds a query may take on one database."""

    version = "2"

    def __post_init__(self) -> None:
        self.refuse_other("levels", LEVELS, f"give distinct levels from 1 to {max(LEVELS)}")
        self.refuse_other("style", ("plain", "think"))
        if not 0 < self.timeout_s <= 60:
            raise UserError(f"sql: timeout_s = {self.timeout_s}: need more than 0 and at most 60")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct problems; a shorter list of the same seed is the beginning of a longer one."""
        chosen: list[Problem] = []
        reference: dict[str, object]
        if self.path:
            chosen = list(islice(self._given(role, seed), size))
        else:
            streams = [made_problems(level, role, seed) for level in self.levels]
            for made in in_turn(streams, size):
                contents = [dict(one) for one in made.contents]
                reference = {"gold": made.question.gold, "schema": made.schema, "contents": contents}
                schema = ";\n".join(made.schema) + ";"
                chosen.append(self._problem(made.level, schema, made.question.text, reference, role))
        if len(chosen) < size:
            source = self.path or f"the generator at levels {list(self.levels)}"
            raise UserError(f"sql: {size} {role} problems asked for, {source} has {len(chosen)}")
        return chosen

    def _given(self, role: Role, seed: int) -> Iterator[Problem]:
        """The questions of the folder that can be judged; what no twin tells from a literal is left out."""
        folder = self._folder()
        for row in shuffled(spider.asked_by_role(folder)[role], seed, "sql", role):
            database = spider.database_of(folder, row.database)
            found = prepared(database, row.gold)
            if not found.refused:
                reference = {"gold": row.gold, "database": row.database}
                problem = self._problem(0, schema_of(database), row.question, reference, role)
                yield replace(problem, meta={**problem.meta, "unseparated": list(found.unseparated)})

    def _folder(self) -> Path:
        return Path(self.path).resolve()

    def problems_in_folder(self) -> dict[Role, list[Problem]]:
        """Every usable question of the folder."""
        given = {role: list(self._given(role, seed=0)) for role in spider.asked_by_role(self._folder())}
        return {role: problems for role, problems in given.items() if problems}

    def gold(self, problem: Problem) -> str | None:
        """The gold query in a block."""
        return self._complete(problem.reference["gold"])

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Find the query and hand it to the judge."""
        query = query_in(text, must_think=self.style == "think").code
        if query is None:
            parts = {"format": 0.0, "runs": 0.0, "correct": 0.0}
            return Verdict(False, 0.0, ErrorKind.FORMAT, parts, detail="no query where it belongs")
        try:
            return ((self._task(problem), query),)
        except BadQuestion as error:
            return unjudged(f"bad task: {error}", flags=("bad_task",))
        except Exception as error:  # the problem is to blame, not the answer
            return unjudged(f"sql: {problem.id}: {type(error).__name__}: {error}")

    def conclude(self, verdicts: Sequence[Verdict], program: str) -> Verdict:
        """Right on the shown database alone is luck, so there is no partial score."""
        [verdict] = verdicts
        if verdict.correct is None:
            return replace(verdict, answer=program[:KEPT])
        runs = verdict.error in (ErrorKind.NONE, ErrorKind.WRONG)
        parts = {"format": 1.0, "runs": float(runs), "correct": float(verdict.correct)}
        return replace(verdict, score=float(verdict.correct), parts=parts, answer=program[:KEPT])

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Queries and texts that must never be judged correct."""
        gold, task = problem.reference["gold"], self._task(problem)
        table = next(iter(re.findall(r"(?i)\bFROM\s+(\w+)", gold)), "sqlite_master")
        queries = query_cheats(gold, rows_of(task.database, gold), table)
        return {name: self._complete(query) for name, query in queries.items()} | text_cheats(gold, problem.prompt)

    def self_check(self) -> list[Check]:
        """As for every environment; the queries that never end are tried once, with less patience."""
        quick = replace(self, timeout_s=min(self.timeout_s, 0.3))
        [problem] = self.sample(1)
        endless = bombs("sqlite_master" if self.path else problem.reference["schema"][0].split()[2])
        tried = {f"cheat: {name}": self._complete(query) for name, query in endless.items()}
        verdicts = quick.verify_many([(problem, text) for text in tried.values()])
        checks = [Check(name, text, False, v) for (name, text), v in zip(tried.items(), verdicts, strict=True)]
        return super(Sql, quick).self_check() + checks

    def _task(self, problem: Problem) -> SqlTask:
        reference = problem.reference
        limits = Limits(cpu_s=self.seconds(problem, self.timeout_s), output_mb=16)
        if "database" in reference:
            row = spider.Asked(reference["database"], "", reference["gold"])
            return replace(spider.task_of(self._folder(), row), limits=limits)
        first, *twins = (stored(reference["schema"], contents) for contents in reference["contents"])
        return SqlTask(first, reference["gold"], tuple(twins), limits=limits)

    def _complete(self, query: str) -> str:
        thought = "<think>I read the schema.</think>\n" if self.style == "think" else ""
        return f"{thought}```sql\n{query}\n```"

    def _problem(self, level: int, schema: str, question: str, reference: Mapping[str, object], role: Role) -> Problem:
        return Problem(
            id=problem_name(f"sql:{level}", schema, question, reference["gold"]),
            source="sql",
            skill="sql",
            prompt=PROMPT.format(schema=schema, question=question, think=THINK if self.style == "think" else ""),
            reference=dict(reference),
            meta={"level": level, "question": question},
            role=role,
        )
