"""Keep the small part of the runs on solver traces: python studies/npg_muse/keep_traces.py RAW NAME [JOB=ARM …]

RAW/runs/JOB holds one run each and RAW/jobs/JOB.json how it was started and whether time cut it; without words they are
graphs0=s0, graphs1=s1 and graphs2=s2, three seeds. Written is results/NAME.json, which exam_tables.py and
traces_tables.py read: outcomes, curves, kinds of errors, how many neighbours the traces name, and the shares of answers
drawn at T = 1 where a card has them (`eval.test_n`), but no answer.
Seconds are those of the updates; examinations are not in them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "coding_five_phase"))
from keep_qwen import Part, kept, lines_of, save  # noqa: E402

AGAINST = [("base", "sft"), ("sft", "grpo"), ("more_sft", "grpo"), ("sft", "more_sft")]
PHASES = ("sft", "more_sft", "grpo")
SEEDS = [f"graphs{seed}=s{seed}" for seed in range(3)]
LISTED = re.compile(
    r"""^(?: [^:\n]+:[ ]([^=\n]+)[ ]=[ ]\d+           # a user or an author (MCP, MIS, MVC): names and their count
        | \d+(?:[ ][A-Z][a-z]?)?(?::[ ](\d[\d, ]*))?  # an atom (GED, MCS): numbers, or none at all
        )$""",
    re.MULTILINE | re.VERBOSE,
)
"""A line of a trace that names a node's neighbours."""


def neighbours_named(answers: list[dict[str, Any]]) -> dict[str, float]:
    """By task, the mean number of neighbours in a line that lists them."""
    found: dict[str, list[int]] = {}
    for answer in answers:
        lists = ("".join(groups) for groups in LISTED.findall(answer["answer"]))
        counts = [named.count(",") + 1 if named else 0 for named in lists]
        found.setdefault(answer["problem"].split(":")[0], []).extend(counts)
    return {task: round(sum(counts) / len(counts), 3) for task, counts in sorted(found.items()) if counts}


def drawn(card: dict[str, Any]) -> dict[str, float]:
    """Of answers drawn at T = 1: how many a problem, the share right, and of problems that any of them solves."""
    metrics = card["metrics"]
    most = max((int(key[5:]) for key in metrics if re.fullmatch(r"pass@\d+", key)), default=0)
    return {"n": most, "mean": metrics["mean_at_n"], "any": metrics[f"pass@{most}"]} if "mean_at_n" in metrics else {}


def parts_of_job(raw: Path, name: str, arm: str) -> Iterator[Part]:
    """Every phase of one run with its card; the card before training comes as `base`."""
    job = json.loads((raw / f"jobs/{name}.json").read_text(encoding="utf-8"))
    run = raw / "runs" / job["folder"]
    info = json.loads((run / "run_info.json").read_text(encoding="utf-8"))
    rows = [row for row in lines_of(run / "logs/metrics.jsonl") if row["phase_step"]]
    facts = {key: job[key] for key in ("code", "device", "torch", "memory_gb")}
    facts |= {"started": datetime.fromisoformat(info["started"]).timestamp(), "card_s": 0.0}
    for path in sorted((run / "analysis/cards").glob("?_*.json")):
        card, answers = json.loads(path.read_text(encoding="utf-8")), lines_of(path.with_suffix(".answers.jsonl"))
        phase = card["phase"]
        own = [row for row in rows if row["phase"] == phase] if phase in PHASES else []
        drawn = phase == "grpo"
        facts |= {"steps": len(own), "answers": job["answers"] if drawn else 0, "cut": job["cut"] if drawn else ""}
        facts |= {"seconds": sum(row["time/step_s"] for row in own)}
        yield Part("base" if phase == "baseline" else f"{phase}_{arm}", dict(facts), card, answers, own)


def main() -> None:
    """Write the file."""
    jobs = [word.split("=") for word in sys.argv[3:] or SEEDS]
    parts = [part for name, arm in jobs for part in parts_of_job(Path(sys.argv[1]), name, arm)]
    made = kept(parts, {}, AGAINST)
    for part in parts:
        made["arms"][part.name] |= {"neighbours": neighbours_named(part.answers), "drawn": drawn(part.card)}
    shared = sorted(set.intersection(*(set(part.card["outcomes"]) for part in parts)))
    made["levels"] = {"np": [int(name.split(":")[1]) for name in shared]}
    save(HERE / "results" / f"{sys.argv[2]}.json", made)


if __name__ == "__main__":
    main()
