"""Recorded answers as columns over one table of texts: small in the file, quick to filter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from rlvrlab.data.rows import read_problems
from rlvrlab.errors import LabError
from rlvrlab.evals.answering import BLIND
from rlvrlab.record.evaluation import PROBLEMS, SAMPLES
from rlvrlab.record.run import rollout_files
from rlvrlab.report.reading import STRANGE, Folder, Line, Section, rounded, section, words

MOST = 5000
"""Answers on a page."""
CHARACTERS = 12_000_000
"""Length of all texts on a page together, so that it stays small however long answers are."""
LONGEST = 20_000
"""Longest text that is shown in full; the rest is in the file it names."""
COLUMNS = ("id", "side", "step", "problem", "skill", "prompt", "reference", "completion", "previous", "change",
           "reward", "correct", "error", "detail", "finish", "flags", "tokens", "turn", "parts", "file",
           "line")  # fmt: skip
Credited = tuple[dict[str, Any], str, int, int | None]
"""(what credit needs of a stored answer, its file, its line, its step)."""
OF_CREDIT = ("id", "problem", "correct", "reward", "completion", "steps")
_AS_TEXT = json.JSONEncoder(ensure_ascii=False, default=str).encode
MENDED, MENDED_BLIND = "mended", "mended blind"
"""What a right second try did; it was made because the first one failed, and was told why, or was told nothing."""
SIGNS = {True: 1, False: 0, None: -1}


class Answers:
    """Answers added one by one and kept as columns; equal texts are stored once."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self.texts: list[str] = []
        self.cut: dict[int, int] = {}
        self.characters = 0
        self.notes: list[str] = []
        self.incomplete: set[int | None] = set()
        """Steps of which only the first groups are shown, so that nothing may be counted over their answers."""
        self.credited: list[Credited] = []
        """The answers whose steps have credit."""
        self._index: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.columns["id"])

    @property
    def full(self) -> bool:
        """Whether no more answers fit on the page."""
        return len(self) >= MOST or self.characters >= CHARACTERS

    def text(self, value: Any) -> int:
        """The index of a value in the table of texts, where it is added if need be; −1 for nothing."""
        if value is None or value == "":
            return -1
        whole = value if isinstance(value, str) else _AS_TEXT(value)
        shown = whole[:LONGEST]
        index = self._index.get(shown)
        if index is None or (len(whole) > LONGEST) != (index in self.cut):
            index = self._index[shown] = len(self.texts)
            self.texts.append(shown)
            self.characters += len(shown)
            if len(whole) > LONGEST:
                self.cut[index] = len(whole)
        return index

    def add(
        self, row: dict[str, Any], file: str, line: int, side: str = "", step: int | None = None, change: str = ""
    ) -> None:
        """Add one stored answer, of a training step or of an evaluation; `change` is what became of the one before."""
        tokens, flags = row.get("tokens"), row.get("flags")
        count = row.get("gen_tokens", len(tokens) if isinstance(tokens, list) else None)
        correct, turn = row.get("correct"), row.get("turn")
        turn = turn if isinstance(turn, int) else 0
        first = name_of(side, row.get("problem"), row.get("sample", 0))
        if turn and correct is True:
            change = MENDED_BLIND if turn == BLIND else MENDED
        values = {
            "id": words(row.get("id") or f"{first}{_try(turn)}", 300),
            "step": step,
            "reward": rounded(row.get("reward", row.get("score"))),
            "correct": SIGNS.get(correct, -1) if isinstance(correct, bool | None) else -1,
            "flags": [words(flag, 60) for flag in flags] if isinstance(flags, list) else [],
            "tokens": count if isinstance(count, int) else None,
            "turn": turn,
            "change": self.text(change),
            "side": self.text(side),
            "file": self.text(file),
            "line": line,
        }
        for key in ("problem", "skill", "prompt", "reference", "completion", "error", "detail", "finish"):
            values[key] = self.text(row.get(key))
        values["previous"] = self.text(row.get("previous") or (first if turn else None))
        parts = row.get("parts")
        values["parts"] = self.text(parts if isinstance(parts, dict) and parts else None)
        for key, column in self.columns.items():
            column.append(values[key])
        if isinstance(row.get("steps"), list) and row["steps"]:
            self.credited.append(({key: row.get(key) for key in OF_CREDIT}, file, line, step))

    def section(self, title: str = "Rollouts", source: str = "rollouts/") -> Section | None:
        """The answers as a section; None where there are none."""
        if not len(self):
            return None
        data = {"texts": self.texts, "cut": self.cut, "columns": self.columns, "notes": self.notes}
        note = "j and k walk through the answers, / searches, c compares two answers to one problem, ? shows all keys."
        return section("rollouts", "rollouts", title, data, source, note)


def training_answers(folder: Folder, answers: Answers, side: str = "", most: int = MOST) -> None:
    """Add answers of rollouts/: the first and the last step, then those between, while whole steps fit on the page.

    Of steps that are each larger than the page, the first is shown as far as its groups fit.
    """
    files = {step: f"rollouts/{path.name}" for step, path in rollout_files(folder.root).items()}
    if not files:
        folder.miss("rollouts/", "no answers are recorded (record.rollouts)")
        return
    steps = list(files)
    read: dict[int, list[Line]] = {}
    characters, room, part = 0, min(most, MOST - len(answers)), ""
    for index in spread(len(steps)):
        if room <= 0 or characters >= CHARACTERS - answers.characters:
            break
        lines = folder.lines(files[steps[index]])
        if len(lines) > room:
            if read:
                break
            answers.incomplete.add(steps[index])
            lines, part = _first_groups(lines, room), " (the first groups of it)"
        characters += sum(len(str(line.row.get("completion", ""))) for line in lines)
        room -= len(lines)
        read[steps[index]] = lines
    for step in sorted(read):
        for line in read[step]:
            answers.add(line.row, files[step], line.number, side, step)
    if part or len(read) < len(steps):
        shown = f"{len(read)} of {len(steps)} recorded steps are shown{part}"
        answers.notes.append(f"{side}{side and ': '}{shown}, evenly spread; all are in rollouts/.")


def _first_groups(lines: Sequence[Line], room: int) -> list[Line]:
    """The lines of the first problems that fit whole; of a single larger one as many as fit."""
    whole = room
    while whole and lines[whole].row.get("problem") == lines[whole - 1].row.get("problem"):
        whole -= 1
    return list(lines[: whole or room])


def evaluation_answers(folder: Folder, answers: Answers, side: str, below: str = "", most: int = MOST) -> None:
    """Add the answers of an evaluation, with their prompts from problems.jsonl."""
    prompts: dict[str, tuple[str, Any]] = {}
    try:
        problems = read_problems(folder.root / below / PROBLEMS)
        prompts = {problem.id: (problem.prompt, problem.reference) for problem in problems}
    except (LabError, OSError, *STRANGE) as error:
        folder.miss(PROBLEMS, f"prompts cannot be shown ({words(str(error), 100)})")
    name = f"{below}{SAMPLES}"
    last = {}
    for line in folder.lines(name, "no answer has been judged yet"):
        last[(str(line.row.get("problem")), line.row.get("sample"), line.row.get("turn", 0))] = line
    kept = [line for line in last.values() if not line.row.get("void")]
    for line in kept[:most]:
        prompt, reference = prompts.get(str(line.row.get("problem")), ("", None))
        answers.add({"prompt": prompt, "reference": reference, **line.row}, name, line.number, side)
    if len(kept) > most:
        answers.notes.append(f"{side}: {most} of {len(kept)} answers are shown; all are in {name}.")


def name_of(side: str, problem: Any, sample: Any = 0) -> str:
    """The id on the page of a first answer that has none of its own."""
    return words(f"{side}/{problem}/{sample}", 280)


def _try(turn: int) -> str:
    return "" if not turn else "/blind try" if turn == BLIND else f"/try {turn + 1}"


def spread(count: int) -> Iterable[int]:
    """0, the last, the middle, the quarters, …: every prefix is spread over the whole."""
    halvings = range(count.bit_length() + 2) if count else ()
    spots = (k * (count - 1) >> halving for halving in halvings for k in range(2**halving + 1))
    return dict.fromkeys(chain(spots, range(count)))
