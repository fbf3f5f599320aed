"""A run's own judged answers as training data: right ones for SFT, right against wrong ones for preferences.

    sft         {"prompt": [{"role": "user", …}], "completion": [{"role": "assistant", …}], "extra_info": {…}}
    preference  {"prompt": […], "chosen": […], "rejected": […], "extra_info": {…}}
Both are TRL's shapes. What was cut off, flagged (an exploit may have been judged right) or not judged is never used.
An answer to a problem that is not for training, by its role or by a manifest that calls it test, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rlvrlab.data.manifest import prompt_sha256
from rlvrlab.data.roles import refuse_roles
from rlvrlab.envs.data_files import Row, read_rows
from rlvrlab.errors import UserError
from rlvrlab.rollout.trainable import why_not

Shape = Literal["sft", "preference"]
COLUMNS = ("problem", "prompt", "completion", "correct", "finish", "flags")


@dataclass
class Answers:
    """Usable answers to one problem, each text once, in the order they were given."""

    prompt: str
    right: dict[str, str] = field(default_factory=dict)
    """Text -> rollout id."""
    wrong: dict[str, str] = field(default_factory=dict)


def is_run(folder: Path) -> bool:
    """Does it look like a run folder with stored answers?"""
    return (folder / "config.json").is_file() and (folder / "rollouts").is_dir()


def rows_from_run(folder: Path, shape: Shape, per_problem: int, protected: Mapping[str, str]) -> list[Row]:
    """Training rows; `protected` are hashes of prompts that must not be trained on, see loading.py."""
    answers = _collected(folder, shape, protected)
    rows: list[Row] = []
    for problem, answered in answers.items():
        extra = {"problem": problem, "run": folder.name}
        right, wrong = list(answered.right), list(answered.wrong)
        if shape == "sft":
            for text in right[:per_problem]:
                rows.append(
                    {**_asked(answered), "completion": _said(text), "extra_info": {**extra, "id": answered.right[text]}}
                )
        elif right and wrong:
            for i in range(min(per_problem, max(len(right), len(wrong)))):
                chosen, rejected = right[i % len(right)], wrong[i % len(wrong)]
                ids = {"chosen_id": answered.right[chosen], "rejected_id": answered.wrong[rejected]}
                pair = {"chosen": _said(chosen), "rejected": _said(rejected)}
                rows.append({**_asked(answered), **pair, "extra_info": {**extra, **ids}})
    if not rows:
        needed = "accepted answer" if shape == "sft" else "problem with both accepted and rejected answers"
        raise UserError(f"{folder}: no {needed} among {len(answers)} problems; take a later or longer run")
    return rows


def _collected(folder: Path, shape: Shape, protected: Mapping[str, str]) -> dict[str, Answers]:
    """The usable answers to each problem of a run, read step by step."""
    paths = [path for path in (folder / "rollouts").glob("step_*.jsonl") if path.stem[5:].isdigit()]
    if not paths:
        raise UserError(f'{folder}: no stored answers under rollouts/; run with record.rollouts = "all"')
    answers: dict[str, Answers] = {}
    forbidden: dict[str, str] = {}
    in_order = sorted(paths, key=lambda path: int(path.stem[5:]))
    for where, row in ((f"{path}:{line}", row) for path in in_order for line, row in read_rows(path)):
        missing = [column for column in COLUMNS if column not in row]
        if missing:
            raise UserError(f"{where}: column {missing[0]!r} is missing")
        role, held = row.get("role", "train"), protected.get(prompt_sha256(row["prompt"]))
        if role != "train" or held:
            forbidden[row["problem"]] = role if role != "train" else f"test in {held}"
            continue
        if (reason := why_not(row)) in (None, "wrong"):
            own = answers.setdefault(row["problem"], Answers(row["prompt"]))
            (own.wrong if reason else own.right).setdefault(row["completion"], row.get("id", where))
    refuse_roles(list(forbidden.items()), shape, str(folder))
    return answers


def _asked(answered: Answers) -> Row:
    return {"prompt": [{"role": "user", "content": answered.prompt}]}


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]
