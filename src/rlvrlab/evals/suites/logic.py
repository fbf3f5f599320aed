"""Logic grids and textbook algorithms: made here, and the published ones."""

from __future__ import annotations

from rlvrlab.evals.suites.base import Member, Suite, published, test_file

LONG = 8192

LOGIC = Suite(
    "logic",
    "zebra puzzles and CLRS algorithms",
    (
        Member("zebra", "zebra", 200, 20, {"style": "plain", "levels": [1, 2, 3, 4]}, max_tokens=LONG, group="made"),
        published("zebralogic", 1000, 40, keys={"style": "plain"}, max_tokens=LONG, group="published"),
        Member("clrs", "clrs", 260, 52, group="made"),
        published(
            "clrs_text", 1000, 60, preset="clrs_test", group="published",
            files=(*test_file("clrs_test"), *test_file("clrs_text"), "clrs_text_sample.jsonl"),
        ),
    ),
)  # fmt: skip
