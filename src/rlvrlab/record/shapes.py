"""What stored records look like, checked before their words mean anything.

    class Look(Record):
        time: str
        where: str
    refuse_other(Look, row, f"{path}:{number}")

Files are edited, copied in part and written by other versions; a record that is not what its reader takes it for is
refused with file, line and field. Fields that a record does not name are left alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rlvrlab.errors import RunError, cut
from rlvrlab.record.files import numbered_lines

MEND = "restore it"


class Record(BaseModel):
    """A stored table by its fields and their types."""

    model_config = ConfigDict(strict=True, extra="allow")


def refuse_other(kind: type[BaseModel], value: object, where: str, remedy: str = MEND) -> None:
    """Raise where a value is not such a record."""
    try:
        kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in (".".join(map(str, first["loc"])),) if part)
        found = cut(json.dumps(first["input"], default=str), 60) if first["type"] != "missing" else "nothing"
        words = f"{first['msg'][:1].lower()}{first['msg'][1:]}, found {found}"
        raise RunError(f"{where}: {place}{words}; {remedy}") from None


def read_records(path: Path, kind: type[Record], remedy: str = "remove the line") -> list[dict[str, Any]]:
    """Every line of a log, each of which is such a record."""
    rows = []
    for number, row in numbered_lines(path, answers=True):
        refuse_other(kind, row, f"{path}:{number}", remedy)
        rows.append(row)
    return rows
