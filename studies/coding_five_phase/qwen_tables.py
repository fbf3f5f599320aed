"""The tables of the five phases of Qwen2.5-Coder: python studies/coding_five_phase/qwen_tables.py [FILE [WORD]]

What each phase was for, second tries beside blind ones, what became right and wrong, what DECLARATION.md decides; arms
and differences are those of studies/exam_tables.py. Scores are in %, differences in points.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, label, markdown, over_seeds, points, tables

from rlvrlab.evals.statistics import Difference, compare, compare_seeds
from rlvrlab.student import t_tails

RESULTS = Path(__file__).parent / "results" / "qwen_coder.json"
SHARES = {
    "accepted_at_1": "accepted@1", "pass_ratio_mean": "pass_ratio", "exec_success_rate": "exec_success",
    "syntax_error_rate": "syntax errors", "zero_reward_rate": "zero reward", "recovery_rate": "recovery_rate",
    "blind_recovery_rate": "blind resample",
}  # fmt: skip
PHASES = ("base", "rft_s0", "dpo_s0", "grpo_s0", "repair_s0", "more_sft_s0", "no_dpo_s0", "pass_ratio_s0", "random_s0")
"""The five phases of seed 0, then what stands beside them."""
GOALS = (
    ("SFT: exec_success up", "base", "rft_s0", "exec_success_rate", +1),
    ("SFT: syntax errors down", "base", "rft_s0", "syntax_error_rate", -1),
    ("DPO: pass_ratio up", "rft_s0", "dpo_s0", "pass_ratio_mean", +1),
    ("DPO: zero reward down", "rft_s0", "dpo_s0", "zero_reward_rate", -1),
)
"""Goal, the phase's start and end, the share, and which way it should go."""
LEAST_GAIN = 0.08
ONLINE = (("dpo", "grpo"), ("dpo", "random"), ("random", "grpo"))
"""GRPO and its control against their start, and against each other."""
FLIPS = (
    ("base", "rft_s0"), ("rft_s0", "dpo_s0"), ("dpo_s0", "grpo_s0"), ("grpo_s0", "repair_s0"), ("base", "grpo_s0"),
    ("base", "grpo_s1"), ("base", "grpo_s2"), ("base", "repair_s0"),
)  # fmt: skip
"""Between which policies problems are counted that changed sides."""


def between(found: Difference) -> str:
    """A difference with its interval."""
    return f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"


def goal_table(exams: Exams, data: str) -> str:
    """Every share that a phase is meant to move, phase by phase; intervals are for new problems."""
    rows = []
    for arm in (one for one in PHASES if one in exams.arms):
        goals = exams.arms[arm]["goals"][data]
        cells = []
        for key in SHARES:
            low, high = goals.get(f"{key}_low"), goals.get(f"{key}_high")
            bounds = "" if low is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
            cells.append("–" if goals.get(key) is None else f"{100 * goals[key]:.1f}{bounds}")
        cut = " (cut by time)" if exams.arms[arm].get("cut") else ""
        rows.append([f"{label(arm)}{cut}", *cells])
    return markdown([data, *SHARES.values()], rows)


def reached_table(exams: Exams) -> str:
    """The goals of SFT and DPO by themselves: shares of one run before and after, without an interval."""
    rows = []
    for what, before, after, key, sign in GOALS:
        if before in exams.arms and after in exams.arms:
            for data in exams.outcomes:
                old, new = (exams.arms[arm]["goals"][data].get(key) for arm in (before, after))
                if old is not None and new is not None:
                    rows.append(
                        [what, data, f"{100 * old:.1f} → {100 * new:.1f}", "yes" if sign * (new - old) > 0 else "no"]
                    )
    return markdown(["goal", "data", "seed 0", "that way"], rows)


def second_table(exams: Exams) -> str:
    """Second tries that were told what went wrong beside blind ones, on the same failed problems."""
    rows = []
    for arm, facts in exams.arms.items():
        for data, marks in facts["second"].items():
            told, blind = ([float(one) for one in marks[key]] for key in ("told", "blind"))
            if told:
                shares = [f"{100 * np.mean(one):.1f}" for one in (told, blind)]
                rows.append([label(arm), data, str(len(told)), *shares, between(compare(blind, told))])
    heads = ["arm", "data", "failed first", "mended when told", "mended blind", "difference [95 %, problems only]"]
    return markdown(heads, rows)


def flip_table(exams: Exams) -> str:
    """How many problems changed sides."""
    rows = []
    for before, after in FLIPS:
        for data in exams.outcomes:
            old, new = (exams.scores(data, "greedy", arm) for arm in (before, after))
            if old is not None and new is not None:
                counts = [int(((old == a) & (new == b)).sum()) for a, b in ((0, 1), (1, 0), (1, 1), (0, 0))]
                rows.append([f"{label(before)} → {label(after)}", data, *map(str, counts)])
    return markdown(["", "data", "became right", "became wrong", "stayed right", "stayed wrong"], rows)


def seed_table(exams: Exams) -> str:
    """GRPO and its control against their start, every seed by itself: intervals are for new problems."""
    rows = []
    for before, after in ONLINE:
        for arm in exams.whole(after):
            start = arm.replace(after, before)
            for data in exams.outcomes:
                old, new = (exams.scores(data, "greedy", one) for one in (start, arm))
                if old is not None and new is not None:
                    rows.append([f"{label(arm)} − {label(start)}", data, between(compare(old, new))])
    return markdown(["difference", "data", "greedy [95 %, problems only]"], rows)


def decisions(exams: Exams) -> str:
    """What DECLARATION.md says counts, in its order; what was not run is said to be missing."""
    return markdown(["declared", "found", "so"], [_gain(exams), _verifier(exams), _elsewhere(exams), _feedback(exams)])


def _gain(exams: Exams) -> list[str]:
    what = f"1. grpo − start on MBPP: above zero in each of three seeds, mean at least {points(LEAST_GAIN)}"
    found = over_seeds(exams, "mbpp", "greedy", "dpo", "grpo")
    if found is None:
        return [what, "not run", "open"]
    pairs = [(exams.scores("mbpp", "greedy", arm.replace("grpo", "dpo")), exams.scores("mbpp", "greedy", arm))
             for arm in exams.whole("grpo")]  # fmt: skip
    above = sum(compare(old, new).low > 0 for old, new in pairs if old is not None and new is not None)
    enough = above == 3 and float(np.mean(found.per_seed)) >= LEAST_GAIN
    told = f"{found.t}; above zero in {above} of {len(found.per_seed)}"
    return [what, told, "yes" if enough else "no" if len(found.per_seed) == 3 else "too few seeds"]


def _verifier(exams: Exams) -> list[str]:
    what = "2. random − start below half of grpo − start, and grpo − random above zero by t over three seeds, MBPP"
    parts = [over_seeds(exams, "mbpp", "greedy", *pair) for pair in ONLINE]
    if any(one is None or len(one.per_seed) < 3 for one in parts):
        return [what, "; ".join("not run" if one is None else one.t for one in parts), "too few seeds"]
    grpo, random, both = (np.array(one.per_seed) for one in parts if one is not None)
    error = float(both.std(ddof=1)) / 3**0.5
    p = t_tails(float(both.mean()) / error, 2) if error else float(both.mean() == 0)
    half = float(random.mean()) < float(grpo.mean()) / 2
    told = f"{points(random.mean())} of {points(grpo.mean())}; {parts[2].t if parts[2] else ''}, p = {p:.2g}"
    return [what, told, "yes" if half and both.mean() > 0 and p < 0.05 else "no"]


def _elsewhere(exams: Exams) -> list[str]:
    what = "3. grpo − base on HumanEval is not below zero (new seeds and problems)"
    runs = [one for arm in exams.whole("grpo") if (one := exams.scores("humaneval", "greedy", arm)) is not None]
    base = exams.scores("humaneval", "greedy", "base")
    if not runs or base is None:
        return [what, "not run", "open"]
    found = compare_seeds(base, np.array(runs))
    so = "lower" if found.high < 0 else "higher" if found.low > 0 else "neither shown"
    return [what, between(found), so if len(runs) == 3 else f"{so} (problems only, {len(runs)} seeds)"]


def _feedback(exams: Exams) -> list[str]:
    what = "4. after repair, told − blind on the same failed problems is above zero (both sets, problems only)"
    marks = exams.arms.get("repair_s0", {}).get("second", {}).values()
    told, blind = ([float(one) for each in marks for one in each[key]] for key in ("told", "blind"))
    if not told:
        return [what, "not run", "open"]
    found = compare(blind, told)
    return [what, between(found), "yes" if found.low > 0 else "no"]


def every_table(exams: Exams) -> Iterator[tuple[str, str]]:
    """Title and lines of all of them."""
    yield "What was declared", decisions(exams)
    for data in exams.outcomes:
        yield f"Phases and what they are for, {data}, in %", goal_table(exams, data)
    yield "Goals of SFT and DPO", reached_table(exams)
    yield "Second tries, in %", second_table(exams)
    yield "Every seed by itself, in points", seed_table(exams)
    yield "Problems that changed sides", flip_table(exams)
    yield from tables(exams)


def main() -> None:
    """Print them, or those whose titles begin with the second word given."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    for title, table in every_table(Exams(path)):
        if title.startswith(wanted):
            print(f"### {title}\n\n{table}\n")


if __name__ == "__main__":
    main()
