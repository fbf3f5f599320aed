"""Tables of the runs whose tool calls are plain text: python studies/agents/fence_tables.py

Reads fence_results beside this file: runs kept by keep_results.py, and counts.json, in which answers and credited turns
are counted without their texts. `python studies/agents/fence_tables.py keep UNTRAINED_ANSWERS CREDITED_STEPS` writes it
from analysis/cards/0_baseline.answers.jsonl of the run with SFT and credited_steps.jsonl of the run with credit.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "fence_results"
BARE_CALL = re.compile(r"tool\n(\{.*\})")
"""What the untrained model writes instead of the fenced block: its label and the call, without the backticks."""


def is_call(text: str) -> bool:
    """Whether an answer begins with the JSON of a call that a fence would have made valid."""
    found = BARE_CALL.match(text)
    try:
        return found is not None and set(json.loads(found[1])) == {"name", "arguments"}
    except ValueError:
        return False


def forms(answers: list[str]) -> dict[str, int]:
    """How untrained answers miss the demanded form."""
    return {
        "answers": len(answers),
        "with three backticks anywhere": sum("`" * 3 in text for text in answers),
        "beginning with the word tool and a line break": sum(text.startswith("tool\n") for text in answers),
        "the JSON behind it is a sound call": sum(is_call(text) for text in answers),
        "with a tool's answer that no tool gave": sum("<tool_response>" in text for text in answers),
    }


def credited(episodes: list[dict[str, Any]]) -> dict[str, int]:
    """How many turns have a credit that is not zero, by kind, and what the calls of failed episodes have."""
    steps = [(step, episode["correct"]) for episode in episodes for step in episode["steps"]]
    known = Counter(step["kind"] for step, _ in steps if step["credit"] is not None)
    given = Counter((step["kind"], step["credit"] > 0) for step, _ in steps if step["credit"])
    return {
        "episodes": len(episodes),
        "turns": len(steps),
        "turns with a call, credit known": known["turn"],
        "last turns, credit known": known["final"],
        "turns with a call, credit above zero": given["turn", True],
        "turns with a call, credit below zero": given["turn", False],
        "last turns, credit above zero": given["final", True],
        "last turns, credit below zero": given["final", False],
        "groups with credit": len({one["group"] for one in episodes if any(step["credit"] for step in one["steps"])}),
        "credit below zero in an episode that is right": sum(
            right for step, right in steps if (step["credit"] or 0) < 0
        ),
    }


def keep(untrained: Path, steps: Path) -> None:
    """Write counts.json."""
    answers, episodes = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in (untrained, steps)
    )
    made = {"untrained": forms([row["answer"] for row in answers]), "credit": credited(episodes)}
    (RESULTS / "counts.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def by_tool(runs: dict[str, dict[str, Any]]) -> list[str]:
    """Right answers by tool; outcomes stand in the order of ids, which begin with the tool, half of each."""
    lines = ["| after | sums (Python) | questions about databases (SQL) |", "| --- | --- | --- |"]
    for name, words in (("hf_agent_sft", "nothing"), ("hf_agent", "SFT"), ("hf_agent", "GRPO")):
        marks = runs[name]["cards"][-1 if words == "GRPO" else 0]["outcomes"]
        half = len(marks) // 2
        cells = [f"{part.count('1')} of {half}" for part in (marks[:half], marks[half:])]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def training(run: dict[str, Any]) -> list[str]:
    """GRPO's own episodes, update by update."""
    heads = ["update", "right, %", "dead groups, %", "turns", "failed calls, %", "cosine Python/SQL", "tokens",
             "entropy", "gradient norm"]  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "| " + " | ".join(["---"] * len(heads)) + " |"]
    for values in run["rows"]:
        row = dict(zip(run["columns"], values, strict=True))
        if row["train/acc"] is None:
            continue
        forms = (
            ("train/acc", 100, 1), ("groups/zero_variance", 100, 0), ("agent/turns", 1, 2),
            ("agent/failed_calls", 100, 1), ("surgery/cosine/python/sql", 1, 2), ("response_length/mean", 1, 0),
            ("actor/entropy", 1, 2), ("actor/grad_norm", 1, 2),
        )  # fmt: skip
        cells = ["–" if row[key] is None else f"{scale * row[key]:.{digits}f}" for key, scale, digits in forms]
        lines.append(f"| {row['step']} | {' | '.join(cells)} |")
    return lines


def cosines(run: dict[str, Any]) -> str:
    """How often the tools' gradients pointed against each other."""
    column = run["columns"].index("surgery/cosine/python/sql")
    found = [row[column] for row in run["rows"] if row[column] is not None]
    below = [one for one in found if one < 0]
    return (
        f"cosine between the tools: {len(found)} updates, {len(below)} below zero, "
        f"{min(found):.2f} to {max(found):.2f}, mean {sum(found) / len(found):.2f}"
    )


def main() -> None:
    """Print the tables, and the counts as lines."""
    if sys.argv[1:2] == ["keep"]:
        keep(*map(Path, sys.argv[2:]))
        return
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("hf_*.json"))}
    counts = json.loads((RESULTS / "counts.json").read_text(encoding="utf-8"))
    print("\n".join([*by_tool(runs), "", *training(runs["hf_agent"]), "", cosines(runs["hf_agent"])]))
    for name, found in counts.items():
        print(f"{name}: " + "; ".join(f"{words} {count}" for words, count in found.items()))


if __name__ == "__main__":
    main()
