"""What a 1.5B code model loses while solutions of Countdown are shown: python studies/interference/qwen_shown_tables.py

The sixth round of QWEN_DECLARATION.md, from results/qwen_skills_6.json: SFT from the untrained model at three rates and
two lengths, examined before and after on the 120 problems of each skill of the earlier rounds. Scores are in %,
differences in points; intervals are for problems only.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, label, markdown
from qwen_skills_tables import SKILLS, between, right

from rlvrlab.evals.statistics import Difference, compare, holm, p_told, wilson

ROUND = Path(__file__).parent / "results" / "qwen_skills_6.json"
ARMS = {"shown_2e-4": "2e-4, 60", "shown_5e-4": "5e-4, 60", "shown_1e-3": "1e-3, 60", "shown_long": "2e-4, 240"}
"""Rate and updates of each arm."""
SEEDS = (0, 1)
EARLIER = ("mbpp", "sql")
LEVEL = 0.05
KINDS = ("none", "format", "syntax", "runtime", "timeout", "wrong_answer")
FIRST, LAST = 3, 5
"""Updates at both ends of a training that are told."""


def trained() -> list[tuple[str, str, int]]:
    """Name, what it is and seed of every arm, in the order of the tables."""
    return [(f"{arm}_s{seed}", told, seed) for arm, told in ARMS.items() for seed in SEEDS]


def share(marks: list[float]) -> str:
    """Right in %, with its interval."""
    low, high = wilson(int(sum(marks)), len(marks))
    return f"{100 * np.mean(marks):.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def scores(exams: Exams) -> str:
    """Every skill before, and at the end of each training."""
    rows = [
        [told, seed, *(share(right(exams, name, data)) for data in SKILLS), str(formless(exams, name))]
        for name, told, seed in (("base", "before", "–"), *((name, told, str(seed)) for name, told, seed in trained()))
    ]
    return markdown(["rate, updates", "seed", *SKILLS.values(), "not in form, of 360"], rows)


def formless(exams: Exams, name: str) -> int:
    """How many of the first answers are not in the demanded form."""
    return sum(count for error, count in exams.arms[name]["errors"].items() if error.endswith(": format"))


def changes(exams: Exams, seed: int) -> dict[tuple[str, str], Difference]:
    """By arm and skill: after minus before, on the same problems."""
    return {
        (arm, data): compare(right(exams, "base", data), right(exams, f"{arm}_s{seed}", data))
        for arm in ARMS for data in SKILLS
    }  # fmt: skip


def adjusted(exams: Exams) -> dict[tuple[str, str], float]:
    """p of the eight comparisons of seed 0, by Holm."""
    found = {pair: one for pair, one in changes(exams, 0).items() if pair[1] in EARLIER}
    return dict(zip(found, holm([one.p or 0.0 for one in found.values()]), strict=True))


def differences(exams: Exams, seed: int) -> str:
    """What every training did to every skill; p of seed 0 alone, as declared."""
    found, family = changes(exams, seed), adjusted(exams) if seed == 0 else {}
    rows = [
        [told, *(between(found[arm, data]) + (f", {p_told(family[arm, data])}" if (arm, data) in family else "")
                 for data in SKILLS)]
        for arm, told in ARMS.items()
    ]  # fmt: skip
    return markdown(["rate, updates", *(f"{skill}: after − before" for skill in SKILLS.values())], rows)


def is_whole(exams: Exams, name: str) -> bool:
    """More than half of all answers in form, and Countdown above its start."""
    ends, began = (sum(right(exams, one, "countdown")) for one in (name, "base"))
    asked = sum(len(right(exams, name, data)) for data in SKILLS)
    return 2 * (asked - formless(exams, name)) > asked and ends > began


def verdicts(exams: Exams) -> str:
    """The declared rule: lost in seed 0 after Holm, lost in seed 1, and the policy of both is whole."""
    family, rows = adjusted(exams), []
    by_seed = {seed: changes(exams, seed) for seed in SEEDS}
    for arm, told in ARMS.items():
        whole = all(is_whole(exams, f"{arm}_s{seed}") for seed in SEEDS)
        for data in EARLIER:
            first, second = (by_seed[seed][arm, data].high < 0 for seed in SEEDS)
            lost = (first and family[arm, data] < LEVEL, second)
            verdict = verdict_of(whole, *lost)
            rows.append([told, SKILLS[data], *("yes" if one else "no" for one in (*lost, whole)), verdict])
    heads = ["rate, updates", "skill", "lost in seed 0, after Holm", "lost in seed 1", "whole in both"]
    return markdown([*heads, "by the declared rule"], rows)


def verdict_of(whole: bool, first: bool, second: bool) -> str:
    """What the rule calls losses in seed 0 and seed 1; one of them alone has no name of its own in it."""
    if not whole:
        return "broken"
    alone = "" if first == second else f" (lost in seed {0 if first else 1} alone)"
    return "forgotten" if first and second else f"not shown{alone}"


def kinds(exams: Exams) -> str:
    """What the first answers to programs and SQL were, by how they were judged."""
    rows = []
    for name in ("base", *(name for name, _, _ in trained())):
        for data in EARLIER:
            errors = exams.arms[name]["errors"]
            counts = [str(errors.get(f"{data}: {kind}", 0)) for kind in KINDS]
            rows.append([told_of(name), SKILLS[data], *counts])
    heads = ["right", "not in form", "wrong syntax", "does not run", "no end", "wrong result"]
    return markdown(["policy", "skill", *heads], rows)


def told_of(name: str) -> str:
    """shown_2e-4_s0 -> shown_2e-4 0; the untrained model is `before`."""
    return "before" if name == "base" else label(name)


def closed(exams: Exams) -> str:
    """SQL once more where a fence behind the query's last line is moved to a line of its own; nobody declared this."""
    before, rows = right(exams, "base", "sql"), []
    for name, told, seed in trained():
        facts = exams.arms[name]["closed"]
        marks = moved(exams, name)
        mended = between(compare(before, marks))
        counts = [str(facts["formless"]), str(facts["glued"])]
        rows.append([told, str(seed), *counts, share(right(exams, name, "sql")), share(marks), mended])
    heads = ["queries not in form", "fence on the query's line", "sql as judged", "sql, fence moved"]
    return markdown(["rate, updates", "seed", *heads, "fence moved − before"], rows)


def moved(exams: Exams, name: str) -> list[float]:
    """Whether each query is right once its fence has a line of its own."""
    return [float(mark) for mark in exams.arms[name]["closed"]["marks"]]


def long_beside_short(exams: Exams) -> str:
    """With the fence moved, 240 updates against the first 60 of the same seed; not declared and not corrected."""
    rows = []
    for seed in SEEDS:
        short, long = (moved(exams, f"{arm}_s{seed}") for arm in ("shown_2e-4", "shown_long"))
        won = sum(late > early for early, late in zip(short, long, strict=True))
        lost = sum(late < early for early, late in zip(short, long, strict=True))
        rows.append([str(seed), share(short), share(long), between(compare(short, long)), str(won), str(lost)])
    return markdown(["seed", "60 updates", "240 updates", "240 − 60", "won", "lost"], rows)


def formless_before(exams: Exams) -> str:
    """With the fence moved: right queries more than before, and how many of them answer what had no query in form."""
    in_form = exams.arms["base"]["closed"]["in_form"]
    rows = []
    for name, told, seed in trained():
        if not is_whole(exams, name):
            continue
        marks, before = moved(exams, name), right(exams, "base", "sql")
        parts = [
            sum(late - early for early, late, form in zip(before, marks, in_form, strict=True) if form == kind)
            for kind in "01"
        ]
        rows.append([told, str(seed), *(f"{count:+.0f}".replace("-", "−") for count in (sum(parts), *parts))])
    without = f"of {in_form.count('0')} without a query in form before"
    return markdown(["rate, updates", "seed", "right, of 120", without, f"of the other {in_form.count('1')}"], rows)


def training(exams: Exams) -> str:
    """Loss of the references, entropy and seconds: mean of the first updates → of the last."""
    rows = []
    for name, told, seed in trained():
        losses, forms = exams.arms[name]["losses"], {"nll": "{:.3f}", "entropy": "{:.2f}", "step_s": "{:.2f}"}
        cells = [
            f"{form.format(np.mean(losses[key][:FIRST]))} → {form.format(np.mean(losses[key][-LAST:]))}"
            for key, form in forms.items()
        ]
        rows.append([told, str(seed), *cells, f"{exams.arms[name]['train_s']:.0f}"])
    heads = ["loss per token", "entropy", "seconds per update", "seconds of training"]
    return markdown(["rate, updates", "seed", *heads], rows)


def main() -> None:
    """Print them."""
    exams = Exams(ROUND)
    for title, table in (
        ("Every skill before and after, in %", scores(exams)),
        *((f"After − before, seed {seed}, in points", differences(exams, seed)) for seed in SEEDS),
        ("The declared rule", verdicts(exams)),
        ("How programs and queries were judged", kinds(exams)),
        ("SQL where the closing fence is moved to its own line", closed(exams)),
        ("The same: 240 updates beside their first 60", long_beside_short(exams)),
        ("The same: right queries more than before, by the form of what was there", formless_before(exams)),
        ("During training", training(exams)),
    ):
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
