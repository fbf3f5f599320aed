"""What was measured of the untrained Qwen2.5-Coder-1.5B-Instruct beside what is published: python studies/published.py

Reads committed records in which the model was examined greedily on all of HumanEval, of MBPP's test problems, of
EvalPlus' files or on a part of CodeContests, before any training.
Of HumanEval's timed commands the first file alone is read. Intervals are Wilson's, for problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from exam_tables import markdown

from rlvrlab.evals.statistics import wilson

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = {"HumanEval": 70.7, "HumanEval+": 66.5, "MBPP (EvalPlus)": 69.2, "MBPP+": 59.4}
"""In %, of the instruct model: EvalPlus' columns of Qwen2.5-Coder's technical report (arXiv:2409.12186v3, table 16)."""
SETS = {"humaneval": "HumanEval", "mbpp": "MBPP, test split"}
COMPARABLE = "HumanEval"
EXAMINED = {
    "studies/coding_five_phase/results/qwen_coder.json": 384,
    "studies/paper_a_credit_assignment/results/qwen_mbpp.json": 384,
    "studies/paper_a_credit_assignment/results/qwen_mbpp_2.json": 384,
    "studies/paper_a_credit_assignment/results/qwen_mbpp_3.json": 384,
    "studies/coding_five_phase/results/qwen_pass_ratio_2.json": 384,
}
"""What exam_tables.py reads -> the most tokens of an answer."""
FIRST = {
    "studies/qwen_coder_mbpp/results/outcomes.json": 384,
    "studies/qwen_coder_mbpp/results/round2/outcomes.json": 384,
}
COMMAND = "benchmarks/results/h200_humaneval.json"
CONTESTS = "studies/coding_five_phase/results/qwen_codecontests.json"
PLUS = "studies/coding_five_phase/results/qwen_plus.json"
"""What keep_plus.py writes; not there before EvalPlus' files were examined."""
OF_PLUS = {
    "humaneval_base": "HumanEval", "humanevalplus": "HumanEval+",
    "mbpp_base": "MBPP (EvalPlus)", "mbppplus": "MBPP+",
}  # fmt: skip
"""Its sets, and what is published of them."""


class Seen(NamedTuple):
    """One examination."""

    data: str
    record: str
    tokens: int
    right: int
    problems: int


def examinations() -> Iterator[Seen]:
    """All of them, file by file."""
    for name, tokens in (FIRST | EXAMINED).items():
        made = read(name)
        for key, data in SETS.items():
            marks = (made["outcomes"] if name in EXAMINED else made)[key]["greedy"]["base"]
            yield Seen(data, name, tokens, sum(map(int, marks)), len(marks))
    for i, one in enumerate(read(COMMAND)["found"]):
        right = round(one["accepted_at_1"] * one["problems"])
        yield Seen(COMPARABLE, f"{COMMAND}, command {i + 1}", 512, right, one["problems"])
    contests = read(CONTESTS)["found"]
    right = round(contests["accepted_at_1"] * contests["problems"])
    yield Seen("CodeContests, a part", CONTESTS, 768, right, contests["problems"])
    for key, one in (read(PLUS) if (ROOT / PLUS).exists() else {}).items():
        marks = one["greedy"].replace("-", "")  # answers without a verdict are named in the record
        yield Seen(OF_PLUS[key], PLUS, one["tokens_at_most"], marks.count("1"), len(marks))


def read(name: str) -> Any:
    """A committed file."""
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def main() -> None:
    """Print the examinations, and beside each published number what there is of it."""
    seen = sorted(examinations(), key=lambda one: one.data)
    rows = []
    for one in seen:
        low, high = (100 * end for end in wilson(one.right, one.problems))
        told = PUBLISHED.get(one.data)
        within = "–" if told is None else f"{told}: {'yes' if low <= told <= high else 'no'}"
        share = f"{100 * one.right / one.problems:.1f} [{low:.1f}, {high:.1f}]"
        rows.append([one.data, one.record, str(one.tokens), f"{one.right} of {one.problems}", share, within])
    heads = ["problems", "record", "tokens at most", "right", "%, [95 %]", "published, inside"]
    print(markdown(heads, rows) + "\n")
    rows = [[data, str(told), measured([one for one in seen if one.data == data])] for data, told in PUBLISHED.items()]
    print(markdown(["set", "published, %", "here, %"], rows))


def measured(seen: list[Seen]) -> str:
    """What was found in all examinations of a set."""
    shares = sorted(100 * one.right / one.problems for one in seen)
    if len(shares) < 2:
        return f"{shares[0]:.1f}" if shares else "not run"
    return f"{shares[0]:.1f} to {shares[-1]:.1f} in {len(shares)} examinations"


if __name__ == "__main__":
    main()
