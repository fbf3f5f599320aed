"""Write docs/answers.md: real answers of a 1.5B code model before and after training, from the kept results of a study.

    python docs/make_answers.py [ANSWERS.jsonl] [PAGE.md]

The pairs were chosen by a hash of the problem's id, among those short enough to show, in
studies/coding_five_phase/keep_qwen.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = ROOT / "studies/coding_five_phase/results/qwen_answers.jsonl"
PAGE = ROOT / "docs/answers.md"
Facts = dict[str, Any]
HEAD = """# Real answers

What Qwen2.5-Coder-1.5B-Instruct answered to test problems of MBPP before and after the five phases of
[its study](../studies/coding_five_phase/README.md), seed 0, greedy. Nobody chose the pairs: of each kind they are the
first by a hash of the problem's id, among those short enough to show. The problems are not repeated here (look them up
by their number in MBPP), nor are the examples that an answer copied from its prompt: they stand as `assert …`. After
GRPO this policy ends most programs with the example it was given; a wrong program then fails by its own assertion,
which is why fewer of its programs run to their end. `python docs/make_answers.py` writes this page.
"""
KINDS = {
    "became right": ("Wrong before training, right after GRPO", ("Before", "After GRPO")),
    "became wrong": ("Right before training, wrong after GRPO", ("Before", "After GRPO")),
    "mended": ("Mended: the second try was told what went wrong, after the repair phase", ("First try", "Second try")),
    "not mended": ("Not mended", ("First try", "Second try")),
}
"""Kind of pair -> heading, and what its two answers are called."""


def fenced(text: str) -> str:
    """A block that holds blocks."""
    return f"````\n{text.strip()}\n````"


def verdict(row: Facts) -> str:
    """What the judge found."""
    if row["correct"]:
        return "accepted"
    passed = f", {row['passed']} of {row['total']} tests passed" if row["total"] else ""
    return f"refused: {row['error']}{passed}"


def pair(row: Facts, names: tuple[str, str]) -> list[str]:
    """One problem with both answers."""
    lines = [f"### {row['problem']}"]
    for name, answer in zip(names, row["answers"], strict=True):
        lines += [f"{name} ({verdict(answer)}):", fenced(answer["answer"])]
    return lines


def page(rows: list[Facts]) -> str:
    """The whole page."""
    parts = [HEAD.strip()]
    for kind, (heading, names) in KINDS.items():
        some = [row for row in rows if row["kind"] == kind]
        if some:
            parts += [f"## {heading}", f"{len(some)} of {some[0]['of']}."]
            parts += [line for row in some for line in pair(row, names)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write it."""
    source, target = (Path(word) for word in (*sys.argv[1:], *(str(ANSWERS), str(PAGE))[len(sys.argv) - 1 :]))
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    target.write_text(page(rows), encoding="utf-8")
    print(f"{target}: {len(rows)} pairs")


if __name__ == "__main__":
    main()
