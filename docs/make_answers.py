"""Write docs/answers.md: real answers of a 1.5B code model before and after training, from the kept results of a study.

    python docs/make_answers.py [ANSWERS.jsonl] [PAGE.md]

The pairs were chosen by a hash of the problem's id, among those short enough to show, in
studies/coding_five_phase/keep_qwen.py; so were the programs with the statement that is blamed
(studies/paper_a_credit_assignment/qwen_where.py) and the traces of graph tasks (studies/npg_muse/keep_answers.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = ROOT / "studies/coding_five_phase/results/qwen_answers.jsonl"
PAGE = ROOT / "docs/answers.md"
BLAMED = ROOT / "studies/paper_a_credit_assignment/results/qwen_where.json"
TRACES = ROOT / "studies/npg_muse/results/qwen_traces_held_answers.jsonl"
Facts = dict[str, Any]
HEAD = """# Real answers

What Qwen2.5-Coder-1.5B-Instruct answered to test problems of MBPP before and after the five phases of
[its study](../studies/coding_five_phase/README.md), seed 0, greedy. Nobody chose the pairs: of each kind they are the
first by a hash of the problem's id, among those short enough to show. The problems are not repeated here (look them up
by their number in MBPP), nor are the examples that an answer copied from its prompt: they stand as `assert …`. After
GRPO this policy ends most programs with the example it was given; a wrong program then fails by its own assertion,
which is why fewer of its programs run to their end. Below them: [which statement is blamed](#credit-over-code), and
[traces of graph tasks](#graph-tasks-wrong-after-sft-right-after-grpo). `python docs/make_answers.py` writes this page.
"""
CREDIT = """## Credit over code

Failed programs of the same model on MBPP, with the statement that blame by execution (`credit.type = "trace"`) picks:
there a program first differs in what it does from a right one to the same problem. {blamed} programs were blamed,
{returns} of them for a `return`
([where blame lands](../studies/paper_a_credit_assignment/rounds/10_mbpp.md)); shown are the first
{shown} by a hash, of short ones. A report shows the same for a run's own answers ([report](report.md))."""
HELD = "../studies/npg_muse/rounds/11_three_new_seeds.md"
GRAPHS = f"""Six NP-hard tasks on graphs of 4 to 9 nodes, [solver traces](graphs.md#solver-traces), seed 3 of
[three]({HELD}): after SFT 30.8 % right, after GRPO 41.9.
The first by a hash of the problem's id, each task once. **A right answer is not a right trace**: the verifier reads the
answer behind the trace alone, and the tour that became right follows from nothing above it."""
KINDS = {
    "became right": ("Wrong before training, right after GRPO", ("Before", "After GRPO")),
    "became wrong": ("Right before training, wrong after GRPO", ("Before", "After GRPO")),
    "mended": ("Mended: the second try was told what went wrong, after the repair phase", ("First try", "Second try")),
    "not mended": ("Not mended", ("First try", "Second try")),
}
"""Kind of pair -> heading, and what its two answers are called."""
GRAPH_KINDS = {
    "became right": "Graph tasks: wrong after SFT, right after GRPO",
    "became wrong": "Graph tasks: right after SFT, wrong after GRPO",
}


def fenced(text: str) -> str:
    """A block that holds blocks."""
    return f"````\n{text.strip()}\n````"


def verdict(row: Facts) -> str:
    """What the judge found."""
    if row["correct"]:
        return "accepted"
    passed = f", {row['passed']} of {row['total']} tests passed" if row.get("total") else ""
    detail = f", {row['detail']}" if row.get("detail") else ""
    return f"refused: {row['error']}{passed}{detail}"


def pair(row: Facts, names: tuple[str, str]) -> list[str]:
    """One problem with both answers."""
    lines = [f"### {row['problem']}", *([fenced(row["question"])] if "question" in row else [])]
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
    return "\n\n".join([*parts, *blamed(), *graphs()]) + "\n"


def blamed() -> Iterator[str]:
    """Programs with an arrow at the statement that is blamed."""
    made = json.loads(BLAMED.read_text(encoding="utf-8"))
    returns = sum(kind == "return" for kind, *_ in made["blamed"])
    yield CREDIT.format(shown=len(made["examples"]), blamed=len(made["blamed"]), returns=returns)
    for one in made["examples"]:
        lines = [f"{line}    # <- blamed" if i == one["blamed"] else line for i, line in enumerate(one["lines"])]
        yield f"### {one['problem']}, {one['policy']}"
        yield fenced("\n".join(lines))


def graphs() -> Iterator[str]:
    """Traces of problems that changed sides, with their questions."""
    rows = rows_of(TRACES)
    for kind, heading in GRAPH_KINDS.items():
        some = [row for row in rows if row["kind"] == kind]
        yield f"## {heading}"
        if kind == "became right":
            yield GRAPHS
        yield f"{len(some)} of {some[0]['of']}."
        for row in some:
            yield from pair(row, ("After SFT", "After GRPO"))


def rows_of(path: Path) -> list[Facts]:
    """Pairs that were kept."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Write it."""
    source, target = (Path(word) for word in (*sys.argv[1:], *(str(ANSWERS), str(PAGE))[len(sys.argv) - 1 :]))
    rows = rows_of(source)
    target.write_text(page(rows), encoding="utf-8")
    print(f"{target}: {len(rows)} pairs")


if __name__ == "__main__":
    main()
