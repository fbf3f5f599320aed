"""Keep the small part of the runs on solver traces: python studies/npg_muse/keep_traces.py RAW NAME

RAW/runs/graphsSEED holds one run of NAME.toml (qwen_traces, qwen_traces_small) each, RAW/jobs/graphsSEED.json how it
was started and whether time cut it. Written is results/NAME.json, which exam_tables.py and traces_tables.py read:
outcomes, curves and kinds of errors, but no answer. Seconds are those of the updates; examinations are not in them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "coding_five_phase"))
from keep_qwen import Part, kept, lines_of, save  # noqa: E402

AGAINST = [("base", "sft"), ("sft", "grpo"), ("more_sft", "grpo"), ("sft", "more_sft")]
PHASES = ("sft", "more_sft", "grpo")


def parts_of_seed(raw: Path, seed: int) -> Iterator[Part]:
    """Every phase of one run with its card; the card before training comes as `base`."""
    job = json.loads((raw / f"jobs/graphs{seed}.json").read_text(encoding="utf-8"))
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
        yield Part("base" if phase == "baseline" else f"{phase}_s{seed}", dict(facts), card, answers, own)


def main() -> None:
    """Write the file."""
    parts = [part for seed in range(3) for part in parts_of_seed(Path(sys.argv[1]), seed)]
    made = kept(parts, {}, AGAINST)
    shared = sorted(set.intersection(*(set(part.card["outcomes"]) for part in parts)))
    made["levels"] = {"np": [int(name.split(":")[1]) for name in shared]}
    save(HERE / "results" / f"{sys.argv[2]}.json", made)


if __name__ == "__main__":
    main()
