"""Keep some answers of a run on solver traces for docs/make_answers.py.

    python studies/npg_muse/keep_answers.py RUN TARGET

RUN is a run's folder with the cards after SFT and after GRPO. Of each kind the first by a hash of the problem's id are
taken, of those short enough to show; a task is shown once in a kind. The questions are the environment's own and are
kept too. Written is TARGET, one pair of answers a line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "coding_five_phase"))
from keep_qwen import in_hash_order, lines_of

Facts = dict[str, Any]
WANTED = {"became right": 3, "became wrong": 2}
LONGEST = 900
"""Characters of an answer, and of a question."""
ASKED = "**Problem to Solve**"
"""Behind it stands the graph; the words before it are the same for every problem of a task."""


def told(row: Facts) -> Facts:
    """An answer with its verdict."""
    return {key: row[key] for key in ("answer", "correct", "error", "detail")}


def pairs(before: list[Facts], after: list[Facts]) -> Iterator[Facts]:
    """Both answers to problems that changed sides."""
    first, last = ({row["problem"]: row for row in rows} for rows in (before, after))
    for kind, became in (("became right", True), ("became wrong", False)):
        changed = [name for name in first if first[name]["correct"] != last[name]["correct"] == became]
        tasks: set[str] = set()
        for name in in_hash_order(changed):
            rows, task = (first[name], last[name]), name.split(":")[0]
            question = rows[0]["prompt"].partition(ASKED)[2].strip()
            short = max(len(text) for text in (question, rows[0]["answer"], rows[1]["answer"])) <= LONGEST
            if short and task not in tasks and len(tasks) < WANTED[kind]:
                tasks.add(task)
                yield {"kind": kind, "of": len(changed), "problem": name, "question": question,
                       "answers": [told(row) for row in rows]}  # fmt: skip


def main() -> None:
    """Write the file."""
    cards = Path(sys.argv[1]) / "analysis/cards"
    kept = pairs(*(lines_of(cards / f"{name}.answers.jsonl") for name in ("1_sft", "2_grpo")))
    Path(sys.argv[2]).write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept), encoding="utf-8")


if __name__ == "__main__":
    main()
