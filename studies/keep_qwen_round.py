"""Keep the small part of one round of Qwen2.5-Coder: python studies/keep_qwen_round.py RAW [TARGET]

RAW/results is what coding_five_phase/keep_qwen.py reads; the first word of an arm says which study it belongs to. One
file is written for each study that was run, into its results/ or, where TARGET is given, all of them there. Nothing of
the data sets is kept, and no answer. `python studies/exam_tables.py FILE` prints the tables of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "coding_five_phase"))
from keep_qwen import kept, parts_of, sampled_of, save  # noqa: E402

GUARDS = ("l2", "kl", "skill_safe", "average")
REWARDS = ("ratio_quality_format_repeat", "complicated", "curriculum", "binary_format", "binary_format_repeat")
STUDIES: dict[str, tuple[tuple[str, ...], list[tuple[str, str]]]] = {
    "countdown_gsm8k/results/qwen_gsm8k.json": (
        ("gsm8k",), [("base", "grpo"), ("base", "random"), ("random", "grpo")],
    ),
    "interference/results/qwen_skills.json": (
        ("skills",), [("base", "code"), ("code", "plain"), *(("plain", guard) for guard in GUARDS)],
    ),
    "coding_five_phase/results/qwen_pass_ratio.json": (
        ("phases",), [
            ("base", "rft"), ("rft", "dpo"), ("dpo", "grpo"), ("dpo", "pass_ratio"), ("grpo", "pass_ratio"),
            ("rft", "no_dpo"), ("no_dpo", "grpo"), ("base", "grpo"), ("grpo", "repair"), ("base", "repair"),
        ],
    ),
    "npg_muse/results/qwen_rewards.json": (
        ("graphs",), [("sft", "binary"), *(("binary", reward) for reward in REWARDS)],
    ),
    "paper_a_credit_assignment/results/qwen_mbpp.json": (
        ("second", "credit"), [("base", "grpo"), ("base", "trace"), ("grpo", "trace"), ("grpo", "repair")],
    ),
}  # fmt: skip
"""File -> first words of the arms that belong into it, and which kinds of arms are compared there."""


def main() -> None:
    """Write the files."""
    raw = Path(sys.argv[1])
    parts, sampled = list(parts_of(raw)), sampled_of(raw)
    for file, (words, against) in STUDIES.items():
        if own := [part for part in parts if part.facts["arm"].startswith(words)]:
            drawn = sampled if words == ("gsm8k",) else {}  # nothing else was sampled
            path = Path(sys.argv[2]) / Path(file).name if len(sys.argv) > 2 else HERE / file
            save(path, kept(own, drawn, against))


if __name__ == "__main__":
    main()
