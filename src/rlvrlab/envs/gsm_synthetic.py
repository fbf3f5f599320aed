"""Word problems in the manner of GSM8K, made here: a chain of small events around one quantity.

    Mia has 12 apples. She buys 3 bags of 5 apples each. She gives 4 apples to Tom. How many apples does Mia have now?

Every value on the way is a whole number, at least 1 and at most LARGEST. The role belongs to the arithmetic and not to
the wording, so a chain of numbers never crosses roles under other names; that leaves level 1 with a few thousand
distinct chains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlvrlab.envs.answers import Draws
from rlvrlab.envs.split import role_of
from rlvrlab.randomness import generator
from rlvrlab.types import Role

MOST_STEPS = 8
LARGEST = 5000
FRUITLESS = 5000
PEOPLE = (
    ("Mia", "She"), ("Tom", "He"), ("Ana", "She"), ("Omar", "He"), ("Lena", "She"), ("Ravi", "He"), ("Yuki", "She"),
    ("Paul", "He"), ("Zoe", "She"), ("Ivan", "He"), ("Nora", "She"), ("Chen", "He"),
)  # fmt: skip
THINGS = ("apples", "marbles", "stickers", "coins", "cards", "beads", "shells", "pencils", "stamps", "buttons")
PACKS = ("bags", "boxes", "packs", "jars")
SENTENCES = {
    "gain": "{she} finds {many} more {thing}.",
    "lose": "{she} gives {many} {thing} to {friend}.",
    "packs": "{she} buys {many} {pack} with {each} {thing} in each.",
    "sell": "{she} sells {many} {pack} with {each} {thing} in each.",
    "times": "{friend} then gives presents until {her} {thing} are {many} times as many.",
    "share": "{she} splits all {thing} evenly into {many} heaps and keeps only one heap.",
}
SIGNS = {"gain": "+", "packs": "+", "lose": "-", "sell": "-", "times": "*", "share": "/"}


class Story(NamedTuple):
    """A question with its worked solution."""

    question: str
    solution: str
    answer: str
    level: int


class Event(NamedTuple):
    """One step: what happens, in words and in numbers."""

    kind: str
    numbers: tuple[int, ...]
    after: int


def stories(steps: int, role: Role, seed: int) -> Iterator[Story]:
    """Distinct stories of a role in keyed order; ends when nothing new turns up for long."""
    random = generator(seed, "gsm_synthetic", steps, role)
    draws = Draws(FRUITLESS)
    for _ in draws:
        value = start = int(random.integers(2, 60))
        chain: list[Event] = []
        while len(chain) < steps:
            event = _event(value, random)
            # Two multiplications or divisions in a row read badly, and the second often undoes the first.
            if event and not (chain and chain[-1].kind == event.kind and event.kind in ("share", "times")):
                chain.append(event)
                value = event.after
        content = (start, tuple((event.kind, event.numbers) for event in chain))
        if role_of("gsm_synthetic", content) == role and draws.is_new(content):
            yield _told(start, chain, random)


def _event(value: int, random: np.random.Generator) -> Event | None:
    kind = tuple(SENTENCES)[int(random.integers(len(SENTENCES)))]
    if kind in ("gain", "lose"):
        many = int(random.integers(2, 50))
        after = value + many if kind == "gain" else value - many
        numbers: tuple[int, ...] = (many,)
    elif kind in ("packs", "sell"):
        packs, each = (int(n) for n in random.integers((2, 2), (10, 13)))
        after = value + packs * each if kind == "packs" else value - packs * each
        numbers = (packs, each)
    else:
        many = int(random.integers(2, 6))
        if kind == "share" and value % many:
            return None
        after = value * many if kind == "times" else value // many
        numbers = (many,)
    return Event(kind, numbers, after) if 1 <= after <= LARGEST else None


def _told(start: int, chain: list[Event], random: np.random.Generator) -> Story:
    (name, she), (friend, _) = (PEOPLE[i] for i in random.choice(len(PEOPLE), 2, replace=False))
    thing, pack = THINGS[int(random.integers(len(THINGS)))], PACKS[int(random.integers(len(PACKS)))]
    lines, worked, value = [f"{name} has {start} {thing}."], list[str](), start
    words = {"she": she, "her": "her" if she == "She" else "his", "friend": friend, "thing": thing, "pack": pack}
    for event in chain:
        many, each = event.numbers[0], event.numbers[-1]
        lines.append(SENTENCES[event.kind].format(**words, many=many, each=each))
        if len(event.numbers) == 2:
            worked.append(f"That is {many} * {each} = <<{many}*{each}={many * each}>>{many * each} {thing}.")
            many *= each
        sign, now = SIGNS[event.kind], event.after
        worked.append(f"{she} now has {value} {sign} {many} = <<{value}{sign}{many}={now}>>{now} {thing}.")
        value = now
    question = f"{' '.join(lines)} How many {thing} does {name} have now?"
    return Story(question, "\n".join(worked), str(value), len(chain))
