"""What the rows of mathematical data sets look like, and what each says: a question, its answer, perhaps choices.

The shape is told by the columns, so one loader reads them all: MATH, MATH-500, AIME, AMC, Minerva, OlympiadBench,
College Math, Gaokao, CMATH, CARP, LiveMathBench, SVAMP, ASDiv, MAWPS, TabMWP, and the multiple-choice sets AQuA, SAT
and MMLU-STEM. A row that has no answer cannot be judged and is left out.

    {"question": …, "options": ["A)5", "B)6"], "correct": "A"}     aqua
    {"question": …, "choices": ["11%", "18%"], "answer": 1}        mmlu_stem
    {"problem": …, "solution": "… \\\\boxed{1.6} …"}                 minerva_math
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rlvrlab.envs.answers import Row
from rlvrlab.envs.mathematics.equality import letters
from rlvrlab.judge.extract import boxed

LETTERS = "ABCDEFGHIJ"
UNIT_NOTE = re.compile(r"\s*\([^()]*\)\s*$")
CHOICE_MARK = re.compile(r"^\s*\(?[A-J]\s*[).:]\s*")


class Item(NamedTuple):
    """One question."""

    question: str
    gold: str
    choices: int
    """How many choices there are to pick from by letter; 0: the answer is mathematics."""


def item_of(row: Row) -> Item | None:
    """Read a row of any known shape; a KeyError or ValueError says what is missing."""
    for columns, read in SHAPES:
        if columns <= row.keys():
            item = read(row)
            return _checked(item) if item.question.strip() and item.gold.strip() else None
    raise ValueError(f"columns {sorted(row)} are none of the known shapes; needed: question and answer")


def _checked(item: Item) -> Item:
    if not item.choices:
        return item
    gold = letters(item.gold)
    if gold is None or not set(gold) <= set(LETTERS[: item.choices]):
        raise ValueError(f"the answer {item.gold!r} is none of {item.choices} choices")
    return item._replace(gold=gold)


def _lettered(question: str, choices: Iterable[str], gold: str) -> Item:
    texts = [CHOICE_MARK.sub("", str(text)) for text in choices]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, texts, strict=False))
    return Item(f"{question}\n{listed}", gold.strip().upper(), len(texts))


def _aqua(row: Row) -> Item:
    return _lettered(row["question"], row["options"], row["correct"])


def _mmlu(row: Row) -> Item:
    return _lettered(row["question"], row["choices"], LETTERS[int(row["answer"])])


def _sat(row: Row) -> Item:
    return Item(f"{row['question']}\n{row['options']}", row["Answer"].strip(), 4)


def _agieval(row: Row) -> Item:
    if row["label"] is None:
        return Item(row["question"], row["answer"], 0)
    options: Any = row["options"]
    return _lettered(row["question"], options.values() if isinstance(options, dict) else options, row["label"])


def _choice_beside(row: Row) -> Item:
    letter = row["choice_answer"]
    return Item(row["question"], letter or row["answer"], 4 if letter else 0)


def _gaokao(row: Row) -> Item:
    return Item(row["question"], row["answer"], 4 if row["type"] in ("single", "multi") else 0)


def _tabmwp(row: Row) -> Item:
    question = f"{row['table']}\n{row['question']}"
    if not row["choices"]:
        return Item(question, str(row["answer"]), 0)
    return _lettered(question, row["choices"], LETTERS[row["choices"].index(row["answer"])])


def _olympiad(row: Row) -> Item:
    question = "\n".join(filter(None, (row.get("context"), row["question"])))
    return Item(question, ", ".join(row["final_answer"]), 0)


def _svamp(row: Row) -> Item:
    return Item(f"{row['Body'].rstrip('. ')}. {row['Question']}", str(row["Answer"]), 0)


def _asdiv(row: Row) -> Item:
    return Item(f"{row['body']} {row['question']}", UNIT_NOTE.sub("", row["answer"]), 0)


def _mawps(row: Row) -> Item:
    return Item(row["input"], str(row["target"]), 0)


def _answered(row: Row) -> Item:
    question = row.get("problem") or row.get("question") or row.get("content") or row["question"]
    # GSM8K keeps its number at the end of a worked solution.
    return Item(question, str(row["answer"]).rpartition("####")[2].strip(), 0)


def _boxed(row: Row) -> Item:
    gold = boxed(row["solution"])
    if gold is None:
        raise ValueError("column 'solution' has no closed \\boxed{…}")
    return Item(row["problem"], gold, 0)


SHAPES: tuple[tuple[set[str], Callable[[Row], Item]], ...] = (
    ({"question", "options", "correct"}, _aqua),
    ({"question", "options", "Answer"}, _sat),
    ({"question", "label"}, _agieval),
    ({"question", "table", "choices", "answer"}, _tabmwp),
    ({"question", "choices", "answer"}, _mmlu),
    ({"question", "choice_answer"}, _choice_beside),
    ({"question", "answer", "type"}, _gaokao),
    ({"question", "final_answer"}, _olympiad),
    ({"Body", "Question", "Answer"}, _svamp),
    ({"body", "question", "answer"}, _asdiv),
    ({"input", "target"}, _mawps),
    ({"problem", "answer"}, _answered),
    ({"question", "answer"}, _answered),
    ({"content", "answer"}, _answered),
    ({"problem", "solution"}, _boxed),
)
"""The first shape whose columns are all there is the row's."""
