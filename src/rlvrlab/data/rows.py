"""Problems as rows in verl's shape, which verl, TRL exports and this laboratory read alike.

{"data_source": "countdown", "prompt": [{"role": "user", "content": "8 13 = 21\\n"}], "ability": "countdown",
 "reward_model": {"style": "rule", "ground_truth": "{…}"},
 "extra_info": {"id": "countdown:2:8,13=21", "split": "train", "key": "0f3c…", "index": 0, "meta": "{…}"}}

`ground_truth` and `meta` are JSON text: a Parquet column has one type, and environments keep different things in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from rlvrlab.errors import UserError
from rlvrlab.types import Problem, Role


def to_row(problem: Problem, index: int) -> dict[str, Any]:
    """One problem as a row."""
    return {
        "data_source": problem.source,
        "prompt": [{"role": "user", "content": problem.prompt}],
        "ability": problem.skill,
        "reward_model": {"style": "rule", "ground_truth": json.dumps(problem.reference, ensure_ascii=False)},
        "extra_info": {
            "id": problem.id,
            "split": problem.role,
            "key": problem.key,
            "index": index,
            "meta": json.dumps(dict(problem.meta), ensure_ascii=False),
        },
    }


def from_row(row: dict[str, Any], where: str) -> Problem:
    """Back to a problem; a row that is not one names its place and column. Its content must still have its key."""
    try:
        extra = row["extra_info"]
        role: Role = extra["split"]
        problem = Problem(
            id=extra["id"],
            source=row["data_source"],
            skill=row["ability"],
            prompt=row["prompt"][-1]["content"],
            reference=json.loads(row["reward_model"]["ground_truth"]),
            meta=json.loads(extra["meta"]),
            role=role,
        )
    except KeyError as error:
        raise UserError(f"{where}: column {error} is missing") from None
    except (TypeError, IndexError, ValueError) as error:
        raise UserError(f"{where}: not a problem row ({error})") from None
    if role not in get_args(Role):
        raise UserError(f"{where}: extra_info.split is {role!r}; allowed: {', '.join(get_args(Role))}")
    if problem.key != extra.get("key", problem.key):
        raise UserError(f"{where}: the content of {problem.id} is not what its key says; the file was changed")
    return problem


def write_problems(path: Path, problems: Iterable[Problem]) -> int:
    """Rows as .jsonl or .parquet, by the name's ending; returns how many."""
    rows = [to_row(problem, index) for index, problem in enumerate(problems)]
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".parquet":
        _parquet().write_table(_table(rows), path, compression="zstd")
    else:
        raise UserError(f"{path}: ends in {path.suffix or 'nothing'!r}; allowed: .jsonl, .parquet")
    return len(rows)


def read_problems(path: Path) -> Iterator[Problem]:
    """The problems of a file that write_problems made."""
    for number, row in enumerate(_rows(path), 1):
        yield from_row(row, f"{path}:{number}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        yield from _parquet().read_table(path).to_pylist()
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: not JSON ({error})") from None


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs `pip install 'rlvrlab[data]'`; .jsonl works without") from None
    return pyarrow.parquet


def _table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow

    return pyarrow.Table.from_pylist(rows)
