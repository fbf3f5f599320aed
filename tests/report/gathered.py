"""How tests read a gathered document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlvrlab.record.files import to_json


def sections(document: dict[str, Any]) -> dict[str, Any]:
    assert json.loads(to_json(document)) is not None
    assert len({one["id"] for one in document["sections"]}) == len(document["sections"]), "addresses are unique"
    return {one["id"]: one["data"] for one in document["sections"]}


def line_of(folder: Path, source: dict[str, Any]) -> dict[str, Any]:
    return json.loads((folder / source["file"]).read_text().splitlines()[source["line"] - 1])
