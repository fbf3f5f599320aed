"""Tables of the pilots that looked for a GRPO that adds more to the graph study's first command.

python studies/npg_muse/rows_pilots.py studies/npg_muse/rows_results/pilots.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Numbers = dict[str, Any]


def asked(found: Numbers | None) -> str:
    """Greedy answers to the training-role problems, in %, where they were asked."""
    return f"{found['all']:.1f}" if found else "–"


def pilot_row(pilot: Numbers) -> str:
    """One pilot: dev problems before and after, drawn training answers, and training-role problems after."""
    dev, drawn = pilot["dev_greedy"], pilot["drawn_first_and_last_ten_steps"]
    before_and_after = f"{dev[0][1]:.1f} → {dev[-1][1]:.1f}" + (f" (step {dev[-1][0]})" * (dev[-1][0] < pilot["steps"]))
    rest = f"{drawn[0]:.1f} → {drawn[1]:.1f} | {asked(pilot['asked_720_training_problems_greedy'])}"
    return f"| `{pilot['name']}` | {pilot['steps']} | {before_and_after} | {rest} |"


def task_row(task: Numbers) -> str:
    """What the policy after SFT draws for one task."""
    shares = " | ".join(f"{task[key]:.1f}" for key in ("right", "pass_at_8", "live", "share_of_trained_tokens"))
    return f"| {task['task']} | {task['problems']} | {task['tokens']:.1f} | {shares} |"


def main(path: Path) -> None:
    """Print both tables."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    print("| task | problems | tokens per answer | right, % | pass@8 | live groups, % | of all trained tokens, % |")
    print("\n".join(map(task_row, kept["drawn_after_sft"])))
    print("\n| pilot | steps | dev, greedy | drawn training answers right | training-role problems, greedy |")
    for name, found in kept["asked_720_training_problems_greedy"].items():
        print(f"| {name} | – | – | – | {asked(found)} |")
    print("\n".join(map(pilot_row, kept["pilots"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
