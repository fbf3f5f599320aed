"""How much of a gain on GSM8K is the demanded form: python studies/countdown_gsm8k/gsm8k_forms.py

It prints the tables. With `keep RAW DATA TOKENIZER` it reads the greedy answers under RAW/results again, with the test
problems of DATA and the model's tokenizer.json, and adds marks to results/qwen_gsm8k.json: whether an answer ended
before its tokens were spent, whether the verifier could read it, and whether the number it told is right in whatever
form: after ####, else in the last box, else the last number of the text; and how many of the samples at T = 1 were cut
off. No answer is kept. This reading was not declared; the scores that decide are the verifier's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "coding_five_phase"))
import numpy as np
from exam_tables import Exams, label, markdown, points
from keep_qwen import parts_of, sampled_of, save

from rlvrlab.batch import Floats
from rlvrlab.envs.amounts import amount
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.evals.statistics import compare_seeds, wilson
from rlvrlab.judge.extract import boxed, hashed

RESULTS = Path(__file__).parent / "results" / "qwen_gsm8k.json"
SET = "gsm8k"
MOST_TOKENS = 256
READABLE = ("none", "wrong_answer")
"""What the verifier says of an answer with one number after the only ####."""
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def number_told(text: str) -> Fraction | None:
    """The number that an answer ends with, whatever its form."""
    for place in (hashed(text), boxed(text), text):
        if place and (found := NUMBER.findall(place)):
            return amount(found[-1].rstrip(","))
    return None


def keep(raw: Path, data: Path, tokenizer: Path) -> None:
    """Add the marks to the results."""
    from tokenizers import Tokenizer

    tokens = Tokenizer.from_file(str(tokenizer))
    made = json.loads(RESULTS.read_text(encoding="utf-8"))
    count = len(made["skills"][SET])
    right = {one.id: amount(one.reference) for one in Gsm8k(path=str(data)).problems("test", count, 0)}
    found: dict[str, dict[str, str]] = {"ended": {}, "readable": {}, "told": {}}
    for part in parts_of(raw):
        if part.facts["arm"].startswith(SET):
            rows = sorted(part.answers, key=lambda row: row["problem"])
            marks = {
                "ended": [len(tokens.encode(row["answer"]).ids) < MOST_TOKENS for row in rows],
                "readable": [row["error"] in READABLE for row in rows],
                "told": [number_told(row["answer"]) == right[row["problem"]] for row in rows],
            }
            for what, each in marks.items():
                found[what][part.name] = "".join(str(int(mark)) for mark in each)
    made["outcomes"][SET] |= found
    made["samples_cut"] = {arm: facts["sets"][SET]["truncated"] for arm, facts in sampled_of(raw).items()}
    save(RESULTS, made)


def marks_of(exams: Exams, what: str, arm: str) -> Floats:
    """0 or 1 by problem."""
    return np.array([int(mark) for mark in exams.outcomes[SET][what][arm]], dtype=np.float64)


def share(right: float, of: float) -> str:
    """A share in % with its interval."""
    low, high = wilson(int(right), int(of))
    return f"{100 * right / of:.1f} [{100 * low:.1f}, {100 * high:.1f}]" if of else "–"


def form_table(exams: Exams) -> str:
    """What became of every arm's greedy answers."""
    rows = []
    for arm in exams.arms:
        greedy_P, ended_P, read_P, told_P = (marks_of(exams, w, arm) for w in ("greedy", "ended", "readable", "told"))
        cells = [f"{one:.0f}" for one in ((1 - ended_P).sum(), read_P.sum(), greedy_P.sum())]
        ended = share(ended_P @ told_P, ended_P.sum())
        rows.append([label(arm), *cells, share(greedy_P.sum(), read_P.sum()), share(told_P.sum(), len(told_P)), ended])
    heads = [f"not ended at {MOST_TOKENS} tokens", "readable", "right", "right of the readable, %"]
    return markdown(["arm", *heads, "number right in any form, %", "the same of those that ended, %"], rows)


def same_problems_table(exams: Exams) -> str:
    """The number told, in any form, on the problems that base answered readably, brought to an end, and did not."""
    ended_P, readable_P = (marks_of(exams, what, "base") > 0 for what in ("ended", "readable"))
    base_P = marks_of(exams, "told", "base")
    rows = []
    for kind in ("grpo", "random"):
        after_SP = np.array([marks_of(exams, "told", arm) for arm in exams.whole(kind)])
        for words, chosen_P in (("answered readably", readable_P), ("ended", ended_P), ("was cut off", ~ended_P)):
            before_SP, later_SP = base_P[None, chosen_P], after_SP[:, chosen_P]
            found = compare_seeds(before_SP, later_SP, paired=False)
            each = ", ".join(f"{100 * one:.1f}" for one in later_SP.mean(axis=1))
            gain = f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"
            rows.append([kind, f"{words} ({chosen_P.sum()})", f"{100 * before_SP.mean():.1f}", each, gain])
    heads = ["arm", "problems that base", "base, %", "by seed, %", "difference [95 %, new seeds and problems]"]
    return markdown(heads, rows)


def samples_table(exams: Exams, cut: dict[str, int]) -> str:
    """How many samples at T = 1 were cut off, and how many were right."""
    rows = []
    for arm, right in next(own for own in exams.outcomes.values() if "sampled" in own)["sampled"].items():
        total = exams.samples * len(right)
        rows.append([label(arm), f"{total:,}", f"{100 * cut[arm] / total:.1f}", f"{100 * sum(right) / total:.1f}"])
    return markdown(["arm", "samples at T = 1", f"not ended at {MOST_TOKENS} tokens, %", "right, %"], rows)


def parts_table(exams: Exams) -> str:
    """What the gain of grpo over base consists of, in points of all problems; the parts add up to it."""
    grpo = exams.whole("grpo")
    mean_P = {what: np.mean([marks_of(exams, what, arm) for arm in grpo], axis=0) for what in ("greedy", "told")}
    base_P = {what: marks_of(exams, what, "base") for what in ("greedy", "told")}
    ended_P = marks_of(exams, "ended", "base")
    gain_P = mean_P["told"] - base_P["told"]
    formless_P = base_P["told"] - base_P["greedy"]
    parts = {
        "base ended with the right number in another form": formless_P * ended_P,
        "base ended, other gains": gain_P * ended_P,
        "base was cut off, and the last number of its text was right": formless_P * (1 - ended_P),
        "base was cut off, other gains": gain_P * (1 - ended_P),
        "grpo told the right number in another form": mean_P["greedy"] - mean_P["told"],
        "all: grpo − base, greedy": mean_P["greedy"] - base_P["greedy"],
    }
    return markdown(["part of the gain", "points"], [[name, points(one.mean())] for name, one in parts.items()])


def every_table(exams: Exams) -> Iterator[tuple[str, str]]:
    """Title and lines of all of them."""
    yield f"Greedy answers by their form, {len(exams.skills[SET])} problems", form_table(exams)
    yield "Right numbers in any form", same_problems_table(exams)
    yield "What the gain consists of", parts_table(exams)
    cut = json.loads(RESULTS.read_text(encoding="utf-8"))["samples_cut"]
    yield "Samples that were cut off", samples_table(exams, cut)


def main() -> None:
    """Print the tables, or keep what they are made of."""
    if sys.argv[1:2] == ["keep"]:
        keep(*map(Path, sys.argv[2:5]))
        return
    for title, table in every_table(Exams(RESULTS)):
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
