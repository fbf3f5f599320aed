"""How well the twins of given databases tell right queries from wrong ones.

    python benchmarks/sql_twins.py SPIDER [CHINOOK]
    SPIDER   a folder of Spider-shaped data            CHINOOK   the file Chinook_Sqlite.sqlite

For every question that can be judged: gold itself, its result on the shown database as literals, its mutants (one small
change each) and the gold queries of other questions on the same database. An answer counts as wrong when it differs
from gold on the shown database or on twins that the judge never sees. Reported are the wrong answers that are paid.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.databases import rows_of
from rlvrlab.envs.sql.spider import asked_by_role, asked_of, database_of
from rlvrlab.judge.modes.sql_blueprint import blueprint_of
from rlvrlab.judge.modes.sql_mutants import mutants
from rlvrlab.judge.modes.sql_separation import gold_on, result_on, tells_apart
from rlvrlab.judge.modes.sql_twins import drawn_twin
from rlvrlab.types import Problem

UNSEEN_SEEDS = range(1000, 1024)
MOST_LITERALS = 60
NEIGHBOURS = 6
CHINOOK = [
    "SELECT Name FROM Artist WHERE ArtistId NOT IN (SELECT ArtistId FROM Album) ORDER BY Name",
    "SELECT DISTINCT BillingCountry FROM Invoice WHERE Total > 10",
    "SELECT BillingCountry, sum(Total) FROM Invoice GROUP BY BillingCountry ORDER BY sum(Total) DESC LIMIT 5",
    "SELECT g.Name, count(*) FROM Genre g JOIN Track t ON t.GenreId = g.GenreId GROUP BY g.GenreId "
    "HAVING count(*) >= 74",
    "SELECT max(Milliseconds) FROM Track",
    "SELECT count(*) FROM Customer WHERE Company IS NULL",
    "SELECT a.Title FROM Album a JOIN Artist r ON a.ArtistId = r.ArtistId WHERE r.Name = 'AC/DC'",
    "SELECT e.LastName, count(c.CustomerId) FROM Employee e LEFT JOIN Customer c ON c.SupportRepId = e.EmployeeId "
    "GROUP BY e.EmployeeId",
    "SELECT Country FROM Customer GROUP BY Country HAVING count(*) > 3 ORDER BY count(*) DESC",
    "SELECT avg(UnitPrice) FROM Track WHERE MediaTypeId = 3",
    "SELECT FirstName, LastName FROM Customer WHERE Country = 'Brazil' AND SupportRepId >= 4",
    "SELECT Name FROM Track WHERE Milliseconds BETWEEN 200000 AND 201000",
    "SELECT City FROM Customer WHERE Country = 'USA' UNION SELECT BillingCity FROM Invoice WHERE Total >= 20",
    "SELECT p.Name, sum(t.Milliseconds) FROM Playlist p JOIN PlaylistTrack pt ON p.PlaylistId = pt.PlaylistId "
    "JOIN Track t ON t.TrackId = pt.TrackId GROUP BY p.PlaylistId ORDER BY p.Name",
]


class Answer(NamedTuple):
    """An answer to a question: its kind and the query."""

    kind: str
    problem: Problem
    query: str


def literals(rows: list[Any]) -> str:
    """The shown result, written out."""

    def written(value: Any) -> str:
        if value is None or isinstance(value, int | float):
            return "NULL" if value is None else repr(value)
        return "'" + str(value).replace("'", "''") + "'"

    return " UNION ALL ".join(f"SELECT {', '.join(map(written, row))}" for row in rows)


def wrong_among(database: Path, gold: str, queries: list[str]) -> list[bool]:
    """Which queries run but differ from gold, on the database or on unseen twins."""
    found = [False] * len(queries)
    with ExitStack() as stack:
        shown = stack.enter_context(closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)))
        databases = [shown] + [
            stack.enter_context(closing(drawn_twin(blueprint_of(database), seed, gold))) for seed in UNSEEN_SEEDS
        ]
        for one in databases:
            allowed = gold_on(one, gold)
            if allowed is not None:
                found = [f or tells_apart(one, query, allowed) for f, query in zip(found, queries, strict=True)]
        runs = [result_on(databases[1], query) is not None for query in queries]
    return [differs and can_run for differs, can_run in zip(found, runs, strict=True)]


def answers_to(folder: Path, problem: Problem, others: list[str]) -> list[Answer]:
    database, gold = database_of(folder, problem.reference["database"]), problem.reference["gold"]
    rows = rows_of(str(database), gold)
    found = [Answer("gold", problem, gold)]
    if len(rows) <= MOST_LITERALS:
        found.append(Answer("literals", problem, literals(rows)))
    changed = [(f"mutant: {mutant.change}", mutant.query) for mutant in mutants(gold)]
    changed += [("neighbour", query) for query in others]
    wrong = wrong_among(database, gold, [query for _, query in changed])
    return found + [Answer(kind, problem, query) for (kind, query), bad in zip(changed, wrong, strict=True) if bad]


def examined(folder: Path) -> tuple[list[Answer], dict[str, int]]:
    """All answers to the questions of a folder, and how many questions there are."""
    by_role = Sql(path=str(folder)).problems_in_folder()
    problems = {(p.reference["database"], p.reference["gold"]): p for some in by_role.values() for p in some}
    rows = [asked_of(row) for name in ("dev.json",) for row in json.loads((folder / name).read_text())]
    sound = {(row.database, row.gold) for some in asked_by_role(folder.resolve()).values() for row in some}
    golds = sorted(problems)
    found = []
    for i, (name, gold) in enumerate(golds):
        others = [other for database, other in golds[i + 1 :] + golds[:i] if database == name][:NEIGHBOURS]
        found += answers_to(folder.resolve(), problems[name, gold], others)
    facts = {
        "gold_queries": len({(row.database, row.gold) for row in rows}),
        "fail_or_empty": len({(row.database, row.gold) for row in rows}) - len(sound),
        "same_on_every_twin": len(sound) - len(golds),
        "judged": len(golds),
        "with_unseparated_changes": sum(bool(p.meta["unseparated"]) for p in problems.values()),
    }
    return found, facts


def report(folder: Path, save: Path | None) -> None:
    start = time.process_time()
    answers, facts = examined(folder)
    env = Sql(path=str(folder))
    verdicts = env.verify_many([(answer.problem, f"```sql\n{answer.query}\n```") for answer in answers])
    print(json.dumps(facts), f"prepared in {time.process_time() - start:.1f} CPU s")
    asked: Counter[str] = Counter()
    paid: Counter[str] = Counter()
    for answer, verdict in zip(answers, verdicts, strict=True):
        for kind in {answer.kind, answer.kind.partition(":")[0]}:
            asked[kind] += 1
            paid[kind] += verdict.correct is True
    for kind in sorted(asked, key=lambda kind: (":" in kind, -paid[kind])):
        if ":" not in kind or paid[kind]:
            print(f"  {kind:32} {paid[kind]:5} of {asked[kind]:5} paid")
    if save:
        rows = [[a.kind, a.problem.reference["database"], a.problem.reference["gold"], a.query] for a in answers]
        save.write_text(json.dumps(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spider", type=Path)
    parser.add_argument("chinook", type=Path, nargs="?")
    parser.add_argument("--save", type=Path, help="write the answers to Spider's questions here")
    given = parser.parse_args()
    print("Spider")
    report(given.spider, given.save)
    if given.chinook:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "database").mkdir()
            shutil.copy(given.chinook, folder / "database" / "chinook.sqlite")
            rows = [{"db_id": "chinook", "question": gold, "query": gold} for gold in CHINOOK]
            (folder / "dev.json").write_text(json.dumps(rows))
            print("Chinook")
            report(folder, None)


if __name__ == "__main__":
    main()
