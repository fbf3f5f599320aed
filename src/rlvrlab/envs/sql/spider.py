"""Spider-shaped data: questions with gold queries on SQLite databases of your own.

    FOLDER/dev.json (train_spider.json, train_others.json)   [{"db_id": …, "question": …, "query": …}, …]
    FOLDER/database/NAME.sqlite   or   FOLDER/database/NAME/NAME.sqlite

Spider asks most questions twice in other words: the role belongs to database and query, so a paraphrase never crosses.
With a training file, dev.json is test; without one it is split. A question is left out when its gold query fails or
returns nothing, because an empty result would teach to answer anything that is empty, and when no twin of the database
makes it return something else, because a literal would do.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rlvrlab.envs.answers import squeezed
from rlvrlab.envs.code.shared_judge import judged, settled
from rlvrlab.envs.data_files import Row, read_each
from rlvrlab.envs.files_read import kept_with_files, was_read
from rlvrlab.envs.split import role_in_training_set, role_of
from rlvrlab.envs.sql.databases import prepared
from rlvrlab.errors import UserError
from rlvrlab.judge.keys import state_of
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_separation import BadQuestion
from rlvrlab.types import Role

TRAIN = ("train_spider.json", "train_others.json", "train.json")
HELD_OUT = ("dev.json", "test.json")


class Asked(NamedTuple):
    """A question about a database, and the query that answers it."""

    database: str
    question: str
    gold: str


def asked_of(row: Row) -> Asked:
    """Read a row; BIRD calls the query SQL."""
    return Asked(row["db_id"], row["question"].strip(), (row["SQL"] if "SQL" in row else row["query"]).strip())


def database_of(folder: Path, name: str) -> Path:
    """The file of a database, in either of Spider's two layouts."""
    for path in (folder / "database" / f"{name}.sqlite", folder / "database" / name / f"{name}.sqlite"):
        if path.is_file():
            was_read(path)
            return path
    raise UserError(f"sql: no database {name!r} in {folder / 'database'}")


def asked_by_role(folder: Path) -> dict[Role, list[Asked]]:
    """The rows whose gold query runs and returns something, by role."""
    files = [*(folder / name for name in TRAIN + HELD_OUT), *sorted((folder / "database").rglob("*.sqlite"))]
    return _asked_by_role(folder, tuple([(str(file), state_of(file)) for file in files]))


@kept_with_files(8)
def _asked_by_role(folder: Path, _: tuple[object, ...]) -> dict[Role, list[Asked]]:
    """The same, found out again only when a file has changed."""
    train = [row for name in TRAIN if (folder / name).is_file() for row in read_each(folder / name, asked_of)]
    held = [row for name in HELD_OUT if (folder / name).is_file() for row in read_each(folder / name, asked_of)]
    if not folder.is_dir():
        raise UserError(f"sql: path: no folder {folder}; a relative path counts from the current folder")
    if not train and not held:
        raise UserError(f"sql: {folder} has none of {', '.join(TRAIN + HELD_OUT)}")
    rows = list(dict.fromkeys(train + held))
    tasks = [SqlTask(str(database_of(folder, row.database)), row.gold) for row in rows]
    # Accepted only where gold runs and is empty itself; unjudged where gold fails.
    probes = judged([(task, f"SELECT * FROM ({task.gold.rstrip('; ')}) LIMIT 0") for task in tasks])  # noqa: S608
    by_role: dict[Role, list[Asked]] = {"train": [], "dev": [], "test": []}
    taken = {_content(row) for row in held} if train else set()
    for row, verdict in zip(rows, probes, strict=True):
        if settled(verdict, f"sql: the gold query of {row.question!r}").correct is not False:
            continue
        role = role_of("spider", *_content(row))
        if train:
            role = "test" if _content(row) in taken else role_in_training_set(role)
        by_role[role].append(row)
    return by_role


def _content(row: Asked) -> tuple[str, str]:
    return row.database, squeezed(row.gold.rstrip(";"))


def task_of(folder: Path, row: Asked) -> SqlTask:
    """The row as a task of the judge, with the twins that its query needs."""
    database = database_of(folder, row.database)
    found = prepared(database, row.gold)
    if found.refused:
        raise BadQuestion(found.refused)
    return SqlTask(str(database), row.gold, found.twins)
