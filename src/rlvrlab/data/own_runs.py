"""A run's own judged answers as training data: right ones for SFT, right against wrong ones for preferences.

    sft         {"prompt": [{"role": "user", …}], "completion": [{"role": "assistant", …}], "extra_info": {…}}
    preference  {"prompt": […], "chosen": […], "rejected": […], "extra_info": {…}}
Both are TRL's shapes. What was cut off, flagged (an exploit may have been judged right) or not judged is never used.
An answer to a problem that is not for training, by its role or by a manifest that calls it test, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.envs.data_files import Row, read_rows
from rlvrlab.envs.split import refuse_roles
from rlvrlab.errors import UserError
from rlvrlab.rollout.pairs import By, right_pairs, score_pairs
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
    scores: dict[str, float] = field(default_factory=dict)
    """Text -> the share of tests it passed."""

    def pairs(self, by: By, margin: float) -> Iterator[tuple[str, str]]:
        """(chosen, rejected) texts, by the rule of rollout/pairs.py."""
        if by == "score":
            return score_pairs([(self.scores[text], text) for text in (*self.right, *self.wrong)], margin)
        return right_pairs(list(self.right), list(self.wrong))


def is_run(folder: Path) -> bool:
    """Does it look like a run folder with stored answers?"""
    return (folder / "config.json").is_file() and (folder / "rollouts").is_dir()


def rows_from_run(
    folder: Path, shape: Shape, per_problem: int, protected: Mapping[str, str], by: By = "right", margin: float = 0.0
) -> list[Row]:
    """Training rows; `protected` are hashes of prompts that must not be trained on, see loading.py.

    `by` and `margin` say which answers become a preference pair, see rollout/pairs.py.
    """
    answers = _collected(folder, shape, protected)
    rows: list[Row] = []
    for problem, answered in answers.items():
        asked = {"prompt": [{"role": "user", "content": answered.prompt}]}
        extra = {"problem": problem, "run": folder.name}
        if shape == "sft":
            rows += [
                {**asked, "completion": _said(text), "extra_info": {**extra, "id": name}}
                for text, name in islice(answered.right.items(), per_problem)
            ]
            continue
        known = answered.right | answered.wrong
        for chosen, rejected in islice(answered.pairs(by, margin), per_problem):
            ids = {"chosen_id": known[chosen], "rejected_id": known[rejected]}
            scores = {"chosen_score": answered.scores[chosen], "rejected_score": answered.scores[rejected]}
            pair = {"chosen": _said(chosen), "rejected": _said(rejected)}
            rows.append({**asked, **pair, "extra_info": {**extra, **ids, **scores}})
    if not rows:
        apart = "answers whose scores differ enough" if by == "score" else "both accepted and rejected answers"
        needed = "accepted answer" if shape == "sft" else f"problem with {apart}"
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
            own.scores.setdefault(row["completion"], float(row.get("score", not reason)))
    refuse_roles(list(forbidden.items()), shape, str(folder))
    return answers


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]
