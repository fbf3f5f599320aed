"""What a skill-safe step may cost: tables of the study in nano_epsilon.toml.

    rlvr study run studies/interference/nano_epsilon.toml
    python studies/interference/nano_epsilon.py keep experiments/studies/interference_nano_epsilon
    python studies/interference/nano_epsilon.py report              tables -> results/nano_epsilon.md

`keep` writes one line for each trial: success on both skills when a stage ends and, of every step of the second stage,
what the guard expected it to change (`guard/up/change`), how far the memory then was from its anchor
(`guard/up/surplus`) and whether the step was bent. The memory is measured before every step, so that the difference of
two lines is what a step really changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from opposites import SKILLS
from smollm2_report import mean_interval, t_test, told
from tables import table

from rlvrlab.report.run_record import RunRecord

sys.path.append(str(Path(__file__).parents[1]))
from job_lines import Row, rows_of

LINES = Path(__file__).parent / "results" / "nano_epsilon.jsonl"
OLD, NEW = SKILLS
WATCHED = {"change": f"guard/{OLD}/change", "surplus": f"guard/{OLD}/surplus", "bent": "guard/active"}
SWEEP = tuple(f"epsilon={value}" for value in ("0", "0.005", "0.01", "0.02", "0.04", "0.08"))
"""The tolerances, rising, without the one that only watches."""


def keep(folder: Path) -> list[Row]:
    """One line for each trial of the study, by arm and seed."""
    made = json.loads((folder / "study.json").read_text())
    [stage] = made["stages"]
    trials = [(arm["name"], made["trials"][trial]) for arm in stage["arms"] for trial in arm["trials"]]
    return [{"arm": arm, "seed": trial["seed"], **facts(RunRecord(folder / trial["run"]))} for arm, trial in trials]


def facts(run: RunRecord) -> Row:
    """Success after SFT and after each stage, and every guarded step."""
    success = {skill: [value for _, value, _ in run.series(key)] for skill, key in run.skill_keys}
    steps = {name: [round(value, 5) for _, value, _ in run.series(key)] for name, key in WATCHED.items()}
    return {"success": {skill: success[skill][-3:] for skill in SKILLS}, **steps}


class Kept(NamedTuple):
    """What a run did to both skills in the second stage."""

    before: float
    """Success on the old skill after its own stage."""
    forgotten: float
    learnt: float
    """What the new skill gained since then."""
    average: float
    """Of both skills at the end."""


def kept(row: Row) -> Kept:
    """From success when the first and the second stage ended."""
    (_, old, old_end), (_, new, new_end) = (row["success"][skill] for skill in SKILLS)
    return Kept(old, old - old_end, new_end - new, (old_end + new_end) / 2)


class Estimate(NamedTuple):
    """What the guard expected of its steps and what they changed, but of the last: nats per remembered token."""

    expected: float
    measured: float
    correlation: float
    missed: float
    """Mean of measured − expected over steps."""


def estimate(row: Row) -> Estimate:
    """The first-order estimate of each step against the memory measured before the next one."""
    expected, measured = np.array(row["change"][:-1]), np.diff(row["surplus"])
    correlation = float(np.corrcoef(expected, measured)[0, 1])
    return Estimate(float(expected.sum()), float(measured.sum()), correlation, float((measured - expected).mean()))


def by_arm(rows: Sequence[Row]) -> dict[str, dict[int, Row]]:
    """Arm -> seed -> line."""
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        found.setdefault(row["arm"], {})[row["seed"]] = row
    return found


def arms_table(found: dict[str, dict[int, Row]]) -> str:
    """Learnt, forgotten and bent by tolerance; differences are paired with plain training of the same seed."""
    plain = {seed: kept(row) for seed, row in found["plain"].items()}
    lines = []
    for arm, by_seed in found.items():
        own = {seed: kept(row) for seed, row in by_seed.items()}
        gaps = {
            name: [getattr(one, name) - getattr(plain[seed], name) for seed, one in own.items()]
            for name in ("forgotten", "learnt")
        }
        bent = [float(np.mean(row["bent"])) for row in by_seed.values() if row["bent"]]
        lines.append(
            [arm, *(told(mean_interval([getattr(one, name) for one in own.values()])) for name in Kept._fields[1:]),
             told(mean_interval(bent)) if bent else "–",
             *(told(mean_interval(gaps[name]), "+") if arm != "plain" else "" for name in gaps)]
        )  # fmt: skip
    heads = ["arm", f"`{OLD}` forgotten", f"`{NEW}` learnt", "average at the end", "steps bent, %",
             "forgotten − plain's", "learnt − plain's"]  # fmt: skip
    return table(heads, lines)


def slope(found: dict[str, dict[int, Row]], value: Callable[[Row], float]) -> list[float]:
    """By seed: change of a number from one tolerance to the next larger one, least squares over all."""
    seeds = sorted(found["plain"])
    return [float(np.polyfit(range(len(SWEEP)), [value(found[arm][seed]) for arm in SWEEP], 1)[0]) for seed in seeds]


def trend_table(found: dict[str, dict[int, Row]]) -> str:
    """Does a larger ε lose more, and teach more? One slope for each seed, so that every run counts."""
    values: dict[str, Callable[[Row], float]] = {
        f"`{OLD}` forgotten": lambda row: kept(row).forgotten,
        f"`{NEW}` learnt": lambda row: kept(row).learnt,
        "average at the end": lambda row: kept(row).average,
        "steps bent": lambda row: float(np.mean(row["bent"])),
    }
    slopes = {name: slope(found, value) for name, value in values.items()}
    lines = [[name, told(mean_interval(one), "+"), f"{t_test(one):.3f}"] for name, one in slopes.items()]
    return table(["number", "from one ε to the next, points", "p"], lines)


def estimates_table(found: dict[str, dict[int, Row]]) -> str:
    """Expected against measured, of the arms that have a guard."""
    lines = []
    for arm, by_seed in found.items():
        if all(row["change"] for row in by_seed.values()):
            own = [estimate(row) for row in by_seed.values()]
            columns = {name: mean_interval([getattr(one, name) for one in own]) for name in Estimate._fields}
            lines.append([arm, *(told(columns[name], "+", 1.0, 2) for name in ("expected", "measured")),
                          f"{columns['correlation'].value:.2f}", told(columns["missed"], "+", 1.0, 4)])  # fmt: skip
    heads = ["arm", "expected, all steps", "measured, all steps", "correlation", "measured − expected, per step"]
    return table(heads, lines)


def report(rows: Sequence[Row]) -> str:
    """Arms, trend over the tolerances, and the guard's estimate."""
    found = by_arm(rows)
    begun = list(zip(*[[row["success"][skill][1] for skill in SKILLS] for row in found["plain"].values()], strict=True))
    start = ", ".join(f"`{skill}` {told(mean_interval(own))}" for skill, own in zip(SKILLS, begun, strict=True))
    return (
        f"### {len(found['plain'])} seeds, in points; before the second stage {start}\n\n{arms_table(found)}\n"
        f"### Trend over the six tolerances\n\n{trend_table(found)}\n"
        f"### Expected and measured change of the remembered answers, nats per token\n\n{estimates_table(found)}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["keep", "report"])
    parser.add_argument("folder", nargs="?", type=Path, help="of the finished study, for `keep`")
    asked = parser.parse_args()
    if asked.what == "keep":
        LINES.write_text("".join(json.dumps(row) + "\n" for row in keep(asked.folder)))
    text = report(rows_of(LINES))
    LINES.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
