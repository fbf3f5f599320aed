"""Updates of a 1.5B model on one H200 with cuDNN's attention and without: python benchmarks/qwen_updates.py

    python benchmarks/qwen_updates.py keep ROUND=RAW …

`keep` reads the metrics, facts and, where they were kept, events of every part of each round (PART.metrics.jsonl or a
run's logs/metrics.jsonl) and writes benchmarks/results/h200_qwen_updates.json. Without it the tables are printed: an
update whose gradient is not finite is left out, and its norm is null in the metrics.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from exam_tables import markdown

RESULTS = Path(__file__).parent / "results" / "h200_qwen_updates.json"
NORM, SECONDS = "actor/grad_norm", "time/update_s"
EVENTS = {
    "gave its buffers back": "the sampler's buffers taken back", "micro-batches are halved": "micro-batches halved",
    "while sampling": "answers abreast halved while sampling",
}  # fmt: skip
"""Words of a memory event, and what it is called in the table."""


def part_of(path: Path) -> dict[str, Any]:
    """What one training's metrics, and the files beside them, say of its updates."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    updates = [row for row in rows if NORM in row]
    beside = path.with_name(path.name.replace(".metrics.jsonl", ".json"))
    facts = json.loads(beside.read_text()) if beside != path and beside.exists() else {}
    events = path.with_name(path.name.replace("metrics.jsonl", "events.jsonl"))
    told = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
    memory = [one["text"] for one in told if one["kind"] == "memory"]
    met = {name: count for words, name in EVENTS.items() if (count := sum(words in one for one in memory))}
    return {
        "updates": len(updates), "left_out": [row["step"] for row in updates if row[NORM] is None],
        "update_s": [round(row[SECONDS], 2) for row in updates], "gb": round(facts.get("memory_gb") or 0.0, 1),
        "limit_gb": facts.get("limit_gb", 0.0), "torch": facts.get("torch", ""), "code": facts.get("code", ""),
        "memory": met if events.exists() else None,
    }  # fmt: skip


def keep(asked: list[str]) -> None:
    """Write the file."""
    rounds: dict[str, dict[str, Any]] = {}
    for one in asked:
        name, _, folder = one.partition("=")
        for path in sorted(Path(folder).rglob("*metrics.jsonl")):
            of = path.relative_to(folder).parts
            part = f"{of[-2]}/{path.name.partition('.')[0]}" if path.name != "metrics.jsonl" else f"{of[0]}/{of[1]}"
            rounds.setdefault(name, {})[part] = part_of(path)
    lines = [
        f'"{name}": {{\n' + ",\n".join(f'  "{part}": {json.dumps(facts)}' for part, facts in parts.items()) + "\n}"
        for name, parts in rounds.items()
    ]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def left_out(rounds: dict[str, dict[str, Any]]) -> str:
    """Round by round: how many updates were left out, what was reserved, and what lack of memory was met."""
    rows = []
    for name, parts in rounds.items():
        known = all(one["memory"] is not None for one in parts.values())
        events = sum((Counter(one["memory"] or {}) for one in parts.values()), Counter[str]())
        reserved = [one["gb"] for one in parts.values() if one["gb"]]
        total, lost = (sum(map(count, parts.values())) for count in (updates_of, lost_of))
        rows.append([name, str(len(parts)), str(total), str(lost), f"{min(reserved):.0f} to {max(reserved):.0f}",
                     *(str(events[event]) if known else "–" for event in EVENTS.values())])  # fmt: skip
    return markdown(["attention", "trainings", "updates", "left out", "GB reserved", *EVENTS.values()], rows)


def updates_of(part: dict[str, Any]) -> int:
    """How many updates were tried."""
    return int(part["updates"])


def lost_of(part: dict[str, Any]) -> int:
    """How many of them were left out."""
    return len(part["left_out"])


def seconds(rounds: dict[str, dict[str, Any]]) -> str:
    """Of trainings that every round finished: the first two updates, and the median of all."""
    finished = [{part for part, facts in parts.items() if facts["gb"]} for parts in rounds.values()]
    rows = [
        [part, name, *(f"{one:.1f}" for one in facts["update_s"][:2]), f"{median(facts['update_s']):.2f}",
         f"{sum(facts['update_s']):.0f}", f"{facts['gb']:.0f}"]
        for part in sorted(set.intersection(*finished))
        for name, facts in ((name, parts[part]) for name, parts in rounds.items())
    ]  # fmt: skip
    heads = ["training", "attention", "first update, s", "second, s", "median, s", "all, s", "GB reserved"]
    return markdown(heads, rows)


def main() -> None:
    """Keep, or print."""
    if sys.argv[1:2] == ["keep"]:
        keep(sys.argv[2:])
    rounds = json.loads(RESULTS.read_text(encoding="utf-8"))
    print(f"{left_out(rounds)}\n\n{seconds(rounds)}")


if __name__ == "__main__":
    main()
