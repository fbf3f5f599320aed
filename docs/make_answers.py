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

What Qwen2.5-Coder-1.5B-Instruct answered to test problems of MBPP (CC BY 4.0) and HumanEval (MIT) before and after the
five phases of [its study](../studies/coding_five_phase/README.md), seed 0, greedy. Nobody chose the pairs: of each kind
they are the first by a hash of the problem's id, among those short enough to show. Hidden tests are not shown.
`python docs/make_answers.py` writes this page.
"""
KINDS = {
    "became right": ("Wrong before training, right after GRPO", ("Before", "After GRPO")),
    "became wrong": ("Right before training, wrong after GRPO", ("Before", "After GRPO")),
    "mended": ("Mended: the second try was told what went wrong, after the repair phase", ("First try", "Second try")),
    "not mended": ("Not mended", ("First try", "Second try")),
}
"""Kind of pair -> heading, and what its two answers are called."""
SHOWN_TEST = " It must pass this test:"


def question(prompt: str) -> str:
    """The problem's own words: of MBPP the sentence, of HumanEval the function that was begun."""
    sentence, found, _ = prompt.partition(SHOWN_TEST)
    return f"> {sentence.strip()}" if found else fenced(inside(prompt) or prompt.strip(), "python")


def inside(text: str) -> str:
    """What stands in the first block of a text."""
    _, _, rest = text.partition("```python\n")
    return rest.partition("```")[0].rstrip()


def fenced(text: str, language: str = "") -> str:
    """A block that holds blocks."""
    return f"````{language}\n{text.strip()}\n````"


def told(prompt: str) -> str:
    """What a second try was told, behind the answer it was shown."""
    return " ".join(prompt.rpartition("```")[2].split())


def verdict(row: Facts) -> str:
    """What the judge found."""
    if row["correct"]:
        return "accepted"
    passed = f", {row['passed']} of {row['total']} tests passed" if row["total"] else ""
    return f"refused: {row['error']}{passed}"


def pair(row: Facts, names: tuple[str, str]) -> list[str]:
    """One problem with both answers."""
    first, second = row["answers"]
    lines = [
        f"### {row['problem']}",
        question(first["prompt"]),
        f"{names[0]} ({verdict(first)}):",
        fenced(first["answer"]),
    ]
    if second["prompt"] != first["prompt"]:
        lines.append(f"It was told: *{told(second['prompt'])}*")
    return [*lines, f"{names[1]} ({verdict(second)}):", fenced(second["answer"])]


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
