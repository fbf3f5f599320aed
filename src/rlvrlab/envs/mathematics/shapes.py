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
from collections.abc import Iterable
from typing import NamedTuple

from rlvrlab.envs.data_files import Row
from rlvrlab.envs.mathematics.equality import letters
from rlvrlab.judge.extract import boxed

LETTERS = "ABCDEFGHIJ"
UNIT_NOTE = re.compile(r"\s*\([^()]*\)\s*$")
CHOICE_MARK = re.compile(r"^\s*\(?[A-J]\s*[).:]\s*")


class Item(NamedTuple):
    """One question with its answer."""

    question: str
    gold: str
    choices: int
    """How many choices there are to pick from by letter; 0: the answer is mathematics."""


def item_of(row: Row) -> Item | None:
    """Read a row of any known shape, None when it has no answer; a KeyError or ValueError says what is missing."""
    item = _lettered_item(row) or _plain_item(row)
    if not item.question.strip() or not item.gold.strip():
        return None
    if not item.choices:
        return item
    gold = letters(item.gold)
    if gold is None or not set(gold) <= set(LETTERS[: item.choices]):
        raise ValueError(f"the answer {item.gold!r} is none of {item.choices} choices")
    return item._replace(gold=gold)


def _joined(by: str, *parts: object) -> str:
    """Parts of a text; nothing, so that the row is left out, where one of them is null."""
    return "" if None in parts else by.join(map(str, parts))


def _lettered_item(row: Row) -> Item | None:
    """A row whose shape may offer choices; the first shape whose columns are all there is the row's."""
    match row:
        case {"question": question, "options": options, "correct": gold}:  # aqua
            return _with_choices(question, options, gold)
        case {"question": question, "options": options, "Answer": gold}:  # sat_math
            return Item(_joined("\n", question, options), gold.strip(), 4)
        case {"question": question, "label": None}:  # agieval without choices
            return Item(_joined("", question), _joined("", row["answer"]), 0)
        case {"question": question, "label": gold}:  # agieval
            options = row["options"]
            return _with_choices(question, options.values() if isinstance(options, dict) else options, gold)
        case {"question": question, "table": table, "choices": choices, "answer": gold}:  # tabmwp
            asked = _joined("\n", table, question)
            if not choices:
                return Item(asked, _joined("", gold), 0)
            return _with_choices(asked, choices, LETTERS[choices.index(gold)])
        case {"question": question, "choices": choices, "answer": index}:  # mmlu_stem
            return _with_choices(question, choices, LETTERS[int(index)])
        case {"question": question, "choice_answer": letter}:  # cn_middle_school
            return Item(question, letter or row["answer"], 4 if letter else 0)
        case {"question": question, "answer": gold, "type": kind}:  # gaokao
            return Item(question, gold, 4 if kind in ("single", "multi") else 0)
    return None


def _with_choices(question: str, choices: Iterable[str], gold: str) -> Item:
    texts = [CHOICE_MARK.sub("", _joined("", text)) for text in choices]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, texts, strict=False))
    return Item(_joined("\n", question, listed), gold.strip().upper(), len(texts))


def _plain_item(row: Row) -> Item:
    """A row whose answer is mathematics."""
    match row:
        case {"question": question, "final_answer": golds}:  # olympiadbench
            return Item("\n".join(filter(None, (row.get("context"), question))), ", ".join(golds), 0)
        case {"Body": body, "Question": question, "Answer": gold}:  # svamp
            return Item(_joined(". ", body.rstrip(". "), question), _joined("", gold), 0)
        case {"body": body, "question": question, "answer": gold}:  # asdiv
            return Item(_joined(" ", body, question), UNIT_NOTE.sub("", gold), 0)
        case {"input": question, "target": gold}:  # mawps
            return Item(_joined("", question), _joined("", gold), 0)
        case {"problem": _, "answer": gold} | {"question": _, "answer": gold} | {"content": _, "answer": gold}:
            question = row.get("problem") or row.get("question") or row.get("content") or row["question"]
            # GSM8K keeps its number at the end of a worked solution.
            return Item(_joined("", question), _joined("", gold).rpartition("####")[2].strip(), 0)
        case {"problem": question, "solution": solution}:  # minerva_math
            answer = boxed(solution)
            if answer is None:
                raise ValueError("column 'solution' has no closed \\boxed{…}")
            return Item(_joined("", question), answer, 0)
    raise ValueError(f"columns {sorted(row)} are none of the known shapes; needed: question and answer")
