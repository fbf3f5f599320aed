"""Keep the small part of finished runs beside a study: what was asked, what came out, the curve.

    python studies/keep_results.py studies/countdown_gsm8k/results NAME=RUN_FOLDER …

For each run NAME.json: command, machine, recipe (what differs from the defaults), cards (metrics of each phase, and the
outcomes as one string of 0 and 1 in the order of the problem ids), and the columns of the metrics a reader looks at.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from rlvrlab.record.run import read_config, read_info, read_metrics
from rlvrlab.train.card import Card, card_table, read_cards

COLUMNS = (
    "step", "phase", "train/acc", "critic/rewards/mean", "actor/entropy", "actor/grad_norm", "groups/zero_variance",
    "response_length/mean", "time/step_s",
)  # fmt: skip
WHERE_THERE = (
    "agent/turns", "agent/calls", "agent/failed_calls", "surgery/cosine/python/sql",
    "credit/steps", "credit/known", "credit/nonzero",
)  # fmt: skip
"""Columns of runs with tools, and of credit; left out where no step has them."""


def small(folder: Path) -> dict:
    """One run as plain data of a few kilobytes."""
    info, config, rows = read_info(folder), read_config(folder), read_metrics(folder)
    validation = [key for key in rows[-1] if key.startswith("val-core/") and key.endswith(("/acc", "_low", "_high"))]
    more = [key for key in WHERE_THERE if any(key in row for row in rows)]
    columns = [*COLUMNS, *more, *validation]
    return {
        "command": [_portable(word) for word in info.get("command", ())],
        "machine": info.get("machine"),
        "packages": info.get("packages"),
        "data": info.get("data"),
        "recipe": {k: _portable(v["value"]) for k, v in config["changed"].items() if k != "output_dir"},
        "cards": [_card(card) for card in read_cards(folder)],
        "columns": columns,
        "rows": [[_short(row.get(key)) for key in columns] for row in rows],
    }


def _card(card: Card) -> dict:
    outcomes = "".join("1" if card.outcomes[key] else "0" for key in sorted(card.outcomes))
    return {**card._asdict(), "outcomes": outcomes, "metrics": {k: _short(v) for k, v in card.metrics.items()}}


def _portable(value: object) -> object:
    """Folders of the machine it ran on mean nothing elsewhere."""
    return re.sub(r"(^|=)/\S*/(?=\S)", r"\1", value) if isinstance(value, str) else value


def _short(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    """Write the files and show the tables."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for argument in sys.argv[2:]:
        name, _, folder = argument.partition("=")
        kept = small(Path(folder))
        lines = ",\n".join(json.dumps(row) for row in kept.pop("rows"))
        head = json.dumps(kept, indent=1)[:-2]
        (target / f"{name}.json").write_text(f'{head},\n "rows": [\n{lines}\n]\n}}\n')
        heads, table = card_table(read_cards(Path(folder)))
        print(f"{name}: {' | '.join(heads[1:])}: {' | '.join(cell.split(chr(10))[0] for cell in table[0][1:])}")


if __name__ == "__main__":
    main()
