"""Problems as rows in verl's shape, which verl, TRL exports and this laboratory read alike.

{"data_source": "countdown", "prompt": [{"role": "user", "content": "8 13 = 21\\n"}], "ability": "countdown",
 "reward_model": {"style": "rule", "ground_truth": "{…}"},
 "extra_info": {"id": "countdown:2:8,13=21", "split": "train", "key": "0f3c…", "index": 0, "meta": "{…}"}}

`ground_truth` and `meta` are JSON text: a Parquet column has one type, and environments keep different things in them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from rlvrlab.data.files import to_json, write_bytes, write_lines
from rlvrlab.envs.data_files import Row, parquet, read_rows
from rlvrlab.errors import UserError, first_few
from rlvrlab.types import Problem, Role

WRITTEN = (".jsonl", ".parquet", ".jsonl.gz")


def to_row(problem: Problem, index: int) -> Row:
    """A problem in verl's row shape; `index` is its place in the file, from 0."""
    where = f"problem {index + 1} ({problem.id})"
    return {
        "data_source": problem.source,
        "prompt": [{"role": "user", "content": problem.prompt}],
        "ability": problem.skill,
        "reward_model": {"style": "rule", "ground_truth": to_json(problem.reference, f"{where}: reference")},
        "extra_info": {
            "id": problem.id,
            "split": problem.role,
            "key": problem.key,
            "index": index,
            "meta": to_json(dict(problem.meta), f"{where}: meta"),
        },
    }


def from_row(row: Row, where: str) -> Problem:
    """A row as a problem; errors name place and column. A row whose content no longer fits its key is refused."""
    role = _text(row, "extra_info.split", where)
    if role not in get_args(Role):
        raise UserError(f"{where}: extra_info.split is {role!r}; allowed: {', '.join(get_args(Role))}")
    messages = _cell(row, "prompt", where)
    if not isinstance(messages, list) or not messages:
        raise UserError(f"{where}: column 'prompt': a list of messages was expected, not {messages!r:.60}")
    problem = Problem(
        id=_text(row, "extra_info.id", where),
        source=_text(row, "data_source", where),
        skill=_text(row, "ability", where),
        prompt=_text({"prompt": messages[-1]}, "prompt.content", where),
        reference=_parsed(row, "reward_model.ground_truth", where),
        meta=_parsed(row, "extra_info.meta", where),
        role=cast(Role, role),
    )
    if not isinstance(problem.meta, dict):
        raise UserError(f"{where}: column 'extra_info.meta': a JSON object was expected, not {problem.meta!r:.60}")
    if problem.key != row["extra_info"].get("key", problem.key):
        raise UserError(f"{where}: the content of {problem.id} is not what its key says; the file was changed")
    return problem


def _cell(row: Row, column: str, where: str) -> Any:
    """What stands in a column, `table.key` for one of a nested table."""
    table, _, key = column.rpartition(".")
    found = _cell(row, table, where) if table else row
    if not isinstance(found, dict):
        raise UserError(f"{where}: column {table!r}: a table was expected, not {found!r:.60}")
    if key not in found:
        raise UserError(f"{where}: column {column!r} is missing")
    return found[key]


def _text(row: Row, column: str, where: str) -> str:
    value = _cell(row, column, where)
    if not isinstance(value, str):
        raise UserError(f"{where}: column {column!r}: a text was expected, not {value!r:.60}")
    return value


def _parsed(row: Row, column: str, where: str) -> Any:
    try:
        return json.loads(_text(row, column, where))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: column {column!r}: not JSON ({error})") from None


def is_problem_row(row: Row) -> bool:
    """Does it claim to be in this shape? Others write verl's columns too, with other facts in `extra_info`."""
    if not {"data_source", "prompt", "reward_model", "extra_info"} <= row.keys():
        return False
    extra = row["extra_info"]
    return not isinstance(extra, dict) or not extra.keys() >= {"graph", "problem_text"}


def refuse_ending(path: Path) -> None:
    """Say before the work is done that its result could not be written under this name."""
    if not path.name.endswith(WRITTEN):
        raise UserError(f"{path}: ends in {path.suffix or 'nothing'!r}; allowed: {', '.join(WRITTEN)}")


def write_problems(path: Path, problems: Iterable[Problem]) -> int:
    """Rows as .jsonl (also .gz) or .parquet, by the name's ending; returns how many."""
    refuse_ending(path)
    rows = [to_row(problem, index) for index, problem in enumerate(problems)]
    _refuse_twin_ids(path, [(number, row["extra_info"]["id"]) for number, row in enumerate(rows, 1)])
    if path.suffix == ".parquet":
        write_table(path, _table(rows))
    else:
        write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
    return len(rows)


def read_problems(path: Path) -> Iterator[Problem]:
    """The problems of a file that write_problems made; an id stands for one problem."""
    ids = []
    for number, row in read_rows(path):
        if not is_problem_row(row) and "extra_info" not in row:
            prepare = f"prepare it (`rlvr data prepare {path} --env ENV`, of a known set `… NAME --from {path}`)"
            remedy = f'{prepare}, or use it by [env] type = "answers" (`rlvr data preview {path}` shows how)'
            raise UserError(f"{path}:{number}: a raw row, not a prepared one (columns {', '.join(row)}); {remedy}")
        problem = from_row(row, f"{path}:{number}")
        ids.append((number, problem.id))
        yield problem
    _refuse_twin_ids(path, ids)


def _refuse_twin_ids(path: Path, ids: Sequence[tuple[int, str]]) -> None:
    first: dict[str, int] = {}
    twins = [f"{number} ({name})" for number, name in ids if first.setdefault(name, number) != number]
    if twins:
        raise UserError(f"{path}: ids are not unique, see rows {first_few(twins)}; give every problem an id of its own")


def write_table(path: Path, table: Any) -> None:
    """A table of pyarrow's as a Parquet file, whole or not at all."""
    buffer = io.BytesIO()
    parquet().write_table(table, buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())


def _table(rows: list[Row]) -> Any:
    parquet()
    import pyarrow

    text = pyarrow.string()
    extra = {"id": text, "split": text, "key": text, "index": pyarrow.int64(), "meta": text}
    columns = {
        "data_source": text,
        "prompt": pyarrow.list_(pyarrow.struct({"role": text, "content": text})),
        "ability": text,
        "reward_model": pyarrow.struct({"style": text, "ground_truth": text}),
        "extra_info": pyarrow.struct(extra),
    }
    try:
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))
    except UnicodeEncodeError as error:
        raise UserError(f"a lone surrogate cannot be written as UTF-8 ({error}); remove it") from None
