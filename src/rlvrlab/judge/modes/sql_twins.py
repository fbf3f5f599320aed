"""Twins of a database: same schema, other contents, so that a query which matches by accident stops matching.

Rows are thinned out and the values of every column that is no key are drawn anew from the same column, with
repetition; keys and references stay, so joins still find their partners. Done when data is prepared, on trusted files.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from rlvrlab.randomness import generator

KEPT_SHARE = 0.8


def make_twin(database: str | Path, target: str | Path, seed: int) -> Path:
    """Write one perturbed copy; the same seed gives the same twin."""
    target = Path(target)
    target.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as twin,
    ):
        twin.text_factory = source.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        source.backup(twin)
        twin.execute("PRAGMA foreign_keys=OFF")
        names = [
            row[0]
            for row in twin.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'")
        ]
        for table in sorted(names):
            _perturb_table(twin, table, generator(seed, "twin", Path(database).name, table))
        twin.commit()
        twin.execute("VACUUM")
    return target


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _perturb_table(twin: sqlite3.Connection, table: str, random: np.random.Generator) -> None:
    name = _quoted(table)
    try:
        ids = [row[0] for row in twin.execute(f"SELECT rowid FROM {name} ORDER BY rowid")]  # noqa: S608 - quoted
    except sqlite3.OperationalError:  # WITHOUT ROWID
        return
    for rowid in ids:
        if len(ids) > 2 and random.random() > KEPT_SHARE:
            twin.execute(f"DELETE FROM {name} WHERE rowid=?", (rowid,))  # noqa: S608
    kept = [row[0] for row in twin.execute(f"SELECT rowid FROM {name} ORDER BY rowid")]  # noqa: S608
    for column in map(_quoted, _free_columns(twin, table)):
        values = [row[0] for row in twin.execute(f"SELECT {column} FROM {name} ORDER BY rowid")]  # noqa: S608
        drawn = [values[i] for i in random.integers(0, len(values), len(values))] if values else []
        twin.executemany(f"UPDATE OR IGNORE {name} SET {column}=? WHERE rowid=?", zip(drawn, kept, strict=True))  # noqa: S608


def _free_columns(twin: sqlite3.Connection, table: str) -> list[str]:
    """Columns that are neither keys nor references, by declaration or by name."""
    info = list(twin.execute(f"PRAGMA table_info({_quoted(table)})"))
    references = {row[3] for row in twin.execute(f"PRAGMA foreign_key_list({_quoted(table)})")}
    unique = {
        column[2]
        for index in twin.execute(f"PRAGMA index_list({_quoted(table)})")
        if index[2]
        for column in twin.execute(f"PRAGMA index_info({_quoted(index[1])})")
    }
    keys = {row[1] for row in info if row[5]} | references | unique
    return [row[1] for row in info if row[1] not in keys and not row[1].lower().endswith("id")]
