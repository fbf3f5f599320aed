"""The twins of a database for one gold query: a literal fails on them, and so does every small mistake that can.

Twins are drawn one after the other and kept when gold returns something new there, or when they tell a mutant from gold
that the earlier ones did not. A twin on which gold depends on the order of storage is never kept: a right answer
might fail there. Everything is bounded by counts, not by clocks, so that all machines find the same twins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rlvrlab.judge.jail import plain
from rlvrlab.judge.modes.sql_blueprint import Blueprint, blueprint_of
from rlvrlab.judge.modes.sql_gold import gold_of, gold_queries
from rlvrlab.judge.modes.sql_mutants import NO_LIMIT, Mutant, mutants, tokens
from rlvrlab.judge.modes.sql_rows import Gold, Result, literals_of, same_result
from rlvrlab.judge.modes.sql_text import Ending, ending_of
from rlvrlab.judge.modes.sql_twins import STYLES, drawn_twin

TOLERANCE = 1e-9
MOST_ROWS = 2000
CANDIDATES, MOST_CANDIDATES = 18, 54
"""Twins that are tried; more where a literal is right on all of them, as the largest of three values often is."""
PATIENCE = len(STYLES)
"""Twins in a row that tell nothing apart before the search ends: one of every style."""
LEAST_TWINS, MOST_TWINS = 2, 5
GROWN_CANDIDATES, LEAST_GROWN = 3, 8
"""Twins with ever more rows, beside those, that are tried where a LIMIT is not told from none."""
AS_MANY = "LIMIT as large as the result"
INSTRUCTIONS_BETWEEN_LOOKS, MOST_LOOKS = 10_000, 300
"""A query on a twin may take three million steps of SQLite's machine, about 0.1 s."""


class BadQuestion(Exception):
    """The question cannot be judged fairly; says why."""


@dataclass(frozen=True, slots=True)
class Separation:
    """Twins for one query."""

    twins: tuple[bytes, ...]
    """Contents of SQLite files."""
    unseparated: tuple[str, ...]
    """Changes of the query that no twin tells from it: most of them mean the same."""


def separate(database: Path, gold: str) -> Separation:
    """The twins for this gold query, or why there are none."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        shown = _all_results(connection, gold, ending_of(gold, MOST_ROWS), most_looks=100 * MOST_LOOKS)
    if shown is None:
        raise BadQuestion("the gold query fails or takes too long on the database")
    literals, many = literals_of(shown), len(shown.result.rows)
    blueprint = blueprint_of(database)
    left: list[Mutant] = list(mutants(gold))
    if 2 <= many < MOST_ROWS and not ending_of(gold, MOST_ROWS).limited:
        # With a LIMIT that cuts nothing off on the database, where it has none; LIMIT 1 is a mutant anyway.
        left.append(Mutant(AS_MANY, f"{gold.rstrip().rstrip(';')}\nLIMIT {many}"))
    kept: list[bytes] = []
    unstable = False
    fruitless = 0
    for seed in range(MOST_CANDIDATES):
        if seed >= CANDIDATES and not literals:
            break
        done = not left or fruitless >= PATIENCE
        if len(kept) == MOST_TWINS or (len(kept) >= LEAST_TWINS and not literals and done):
            break
        fruitless += 1
        with closing(drawn_twin(blueprint, seed, gold)) as twin:
            allowed = gold_on(twin, gold)
            if allowed is None:
                unstable = True
                continue
            remaining = [mutant for mutant in left if not tells_apart(twin, mutant.query, allowed)]
            passing = [literal for literal in literals if same_result(literal, allowed, TOLERANCE) == ""]
            progress = len(passing) < len(literals) or len(remaining) < len(left)
            last = len(kept) == MOST_TWINS - 1 and bool(passing)  # the last one must settle the literals
            if not last and (progress or len(kept) < LEAST_TWINS):
                kept.append(twin.serialize())
                fruitless = 0 if progress else fruitless
                left, literals = remaining, passing
    if literals:
        why = "depends on the order in which rows are stored" if unstable and not kept else "is the same on every twin"
        raise BadQuestion(f"the result of the gold query {why}, so no twin can tell a right answer from a literal")
    more, left = _grown(blueprint, gold, left, many)
    return Separation((*kept, *more), tuple(mutant.change for mutant in left))


def _grown(blueprint: Blueprint, gold: str, left: list[Mutant], many: int) -> tuple[list[bytes], list[Mutant]]:
    """A twin with more rows, where it takes more to tell the query from one with a larger LIMIT, or another one."""
    limits = [mutant for mutant in left if mutant.change in (AS_MANY, NO_LIMIT)]
    if not limits:
        return [], left
    words = [word.upper() for word in tokens(gold)]
    counts = [int(word) for before, word in pairwise(words) if before == "LIMIT" and word.isdigit() and len(word) < 5]
    # Of the numbers behind the word LIMIT, those that twins can have more rows than.
    target = max([many, *(count for count in counts if count < MOST_ROWS)])
    for seed in range(GROWN_CANDIDATES):
        with closing(drawn_twin(blueprint, seed, gold, LEAST_GROWN + (2 << seed) * target)) as twin:
            allowed = gold_on(twin, gold)
            if allowed is None or len(allowed.result.rows) >= MOST_ROWS:
                continue
            if any(tells_apart(twin, mutant.query, allowed) for mutant in limits):
                return [twin.serialize()], [one for one in left if not tells_apart(twin, one.query, allowed)]
    return [], left


def gold_on(twin: sqlite3.Connection, gold: str) -> Gold | None:
    """What gold may return on a twin; None when it fails there or when its result depends on the order of storage."""
    ending = ending_of(gold, MOST_ROWS)
    forward = _all_results(twin, gold, ending)
    twin.execute("PRAGMA reverse_unordered_selects = ON")
    backward = result_on(twin, gold)
    twin.execute("PRAGMA reverse_unordered_selects = OFF")
    if forward is None or backward is None or same_result(backward, forward, TOLERANCE):
        return None
    return forward


def _all_results(twin: sqlite3.Connection, gold: str, ending: Ending, most_looks: int = MOST_LOOKS) -> Gold | None:
    first, *more = (result_on(twin, query, most_looks) for query in gold_queries(gold, ending))
    return None if first is None else gold_of(ending, first, more[0] if more else None)


def tells_apart(twin: sqlite3.Connection, query: str, allowed: Gold) -> bool:
    """Does the query return something that gold may not return here? One that cannot run is told from any query."""
    result = result_on(twin, query)
    return result is None or same_result(result, allowed, TOLERANCE) != ""


def result_on(connection: sqlite3.Connection, query: str, most_looks: int = MOST_LOOKS) -> Result | None:
    """What a query returns; None when it fails or takes too long."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    looks: Iterable[int] = iter(range(most_looks))
    connection.set_progress_handler(lambda: next(looks, None) is None, INSTRUCTIONS_BETWEEN_LOOKS)  # type: ignore[call-overload]
    try:
        cursor = connection.execute(query)
        rows = [[plain.encode(value) for value in row] for row in cursor.fetchmany(MOST_ROWS)]
        return Result(len(cursor.description or ()), rows)
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError):
        return None
    finally:
        connection.set_progress_handler(None, 0)
