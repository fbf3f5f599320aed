"""Evaluations of several data sets in one folder: each shows the shares that tell something of its answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rlvrlab.report.gather.suite import gather_suite

MEASURED = {
    "code": {"exec_success_rate": 0.5, "syntax_error_rate": 0.25, "format_rate": 1.0},
    "words": {"syntax_error_rate": 0.0, "format_rate": 0.75},
}


def test_every_data_set_has_the_shares_that_tell_of_its_answers(records: Path, tmp_path: Path) -> None:
    for name, shares in MEASURED.items():
        folder = tmp_path / "evaluations" / name
        shutil.copytree(records / "base", folder)
        kept = json.loads((folder / "metrics.json").read_text())
        (data,) = kept
        (folder / "metrics.json").write_text(json.dumps({data: {"problems": 4, "accepted_at_1": 0.5, **shares}}))
    found = gather_suite(tmp_path)
    assert found["title"] == tmp_path.name and found["missing"] == []
    (grid,) = [one["data"] for one in found["sections"] if one["view"] == "grid"]
    assert grid["columns"] == ["accepted@1", "ran to the end", "syntax errors", "in the demanded form"]
    assert [[cell["value"] for cell in row] for row in grid["cells"]] == [
        [0.5, 0.5, 0.25, None],
        [0.5, None, None, 0.75],
    ]
    assert all(row.endswith("(4)") for row in grid["rows"])
