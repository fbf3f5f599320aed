"""Queries that only lack a line break: python studies/interference/closed_fences.py RAW FILE.json sql_test.jsonl

RAW and FILE are those of `studies/keep_exams.py RAW FILE.json shown`, and sql_test.jsonl is what `rlvr data make sql
--size 120 --role test -o sql_test.jsonl` writes. Of the queries of a card that are not in form, how many close their
block on the query's last line, and how many of these are right once the fence has a line of its own. They are judged
again as the card's were, in the jail. FILE gets the marks of every arm as `closed`, and which queries were in form
before anything was moved.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "coding_five_phase"))
from keep_qwen import save

from rlvrlab.data.loading import load
from rlvrlab.envs.sql import Sql
from rlvrlab.record.files import read_lines
from rlvrlab.types import Problem

GLUED = re.compile(r"(?<=[^\s`])[ \t]*```\s*\Z")
"""A fence at the end, behind something else on its line."""


def on_its_own_line(answer: str) -> str:
    """The same answer with a line break before such a fence."""
    return GLUED.sub("\n```", answer)


def closed_marks(rows: Iterable[Mapping[str, Any]], problems: Mapping[str, Problem]) -> dict[str, Any]:
    """How many first queries are not in form and how many of them are glued, and who is right once these are mended."""
    env, found, glued = Sql(), {}, []
    for row in rows:
        name = row["problem"].partition("/")[2]
        if row["turn"] == 0 and name in problems:
            found[name] = row
            if row["error"] == "format" and GLUED.search(row["answer"]):
                glued.append(name)
    verdicts = env.verify_many([(problems[name], on_its_own_line(found[name]["answer"])) for name in glued])
    right = {name: row["correct"] is True for name, row in found.items()}
    right |= {name: verdict.correct is True for name, verdict in zip(glued, verdicts, strict=True)}
    names = sorted(right)
    return {
        "formless": sum(row["error"] == "format" for row in found.values()), "glued": len(glued),
        "marks": "".join(str(int(right[name])) for name in names),
        "in_form": "".join(str(int(found[name]["error"] != "format")) for name in names),
    }  # fmt: skip


def main() -> None:
    """Add them to the file, and print the counts."""
    raw, path = Path(sys.argv[1]), Path(sys.argv[2])
    problems = {one.id: one for one in load(Path(sys.argv[3]), "evaluate", Sql(), None, 0).problems}
    made = json.loads(path.read_text(encoding="utf-8"))
    for name, facts in made["arms"].items():
        folder, card = (raw / name, "1_sft") if name != "base" else (min(raw.glob("shown_*")), "0_baseline")
        rows = read_lines(folder / "analysis/cards" / f"{card}.answers.jsonl", answers=True)
        facts["closed"] = closed_marks(rows, problems)
        print(name, {key: told.count("1") if isinstance(told, str) else told for key, told in facts["closed"].items()})
    save(path, made)


if __name__ == "__main__":
    main()
