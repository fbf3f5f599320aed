"""What comes along, put in order by what somebody may want it for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rlvrlab.recipe.shipped import Shipped
from rlvrlab.registry import find

FOLDERS = {
    "coding_five_phase": "SFT, DPO, GRPO and repair of code models, phase by phase",
    "countdown_gsm8k": "Countdown and word problems, beside a random reward",
    "entropy": "what holds the entropy of a tiny model up, and whether it keeps more ways to solve a problem",
    "interference": "what is forgotten while other skills are trained, and what keeps it",
    "npg_muse": "NP-hard graph tasks: volume, schedule, reward, solver traces",
    "paper_a_credit_assignment": "which step of an answer earned the reward",
    "paper_b_conflict_aware": "skills whose gradients disagree, and surgery",
    "plans": "chains for a cluster that nobody has run yet",
    "qwen_coder_mbpp": "GRPO on MBPP with a 1.5B model, and the fall of its entropy",
}
"""Folder of studies -> what it is about."""
TINY = "nano"
MANY = 10
"""So many recipes of one engine have lines of their own."""


class Group(NamedTuple):
    """Recipes for one purpose."""

    title: str
    rows: Sequence[Shipped]
    word: str = ""
    """What `rlvr recipes` is asked for to see them; empty where each has its own line."""


def groups(every: Iterable[Shipped]) -> list[Group]:
    """Those outside the studies' folders by what they run on, engines without needs first; many have one line."""
    alone = [one for one in every if "/" not in one.name]
    engines = {name: find("engine", name) for name in {one.engine for one in alone}}
    found = []
    for name in sorted(engines, key=lambda name: (bool(engines[name].needs), name)):
        own = [one for one in alone if one.engine == name]
        tiny = [one for one in own if one.name.startswith(TINY)]
        if tiny:
            found.append(Group("A tiny language model, minutes on two CPU cores", tiny))
        rest = [one for one in own if one not in tiny]
        found.append(Group(engines[name].machines, rest, name if len(rest) > MANY else ""))
    return found


def folders(every: Iterable[Shipped]) -> dict[str, list[Shipped]]:
    """Folder -> the recipes and studies in it."""
    found: dict[str, list[Shipped]] = {}
    for one in every:
        if "/" in one.name:
            found.setdefault(one.name.partition("/")[0], []).append(one)
    return found


def fitting(every: Iterable[Shipped], words: Sequence[str]) -> list[Shipped]:
    """Those that have all the words in their name, kind, engine, question or description."""

    def says(one: Shipped) -> str:
        return " ".join((one.name, one.kind, one.engine, one.question, one.about)).lower()

    return [one for one in every if all(word.lower() in says(one) for word in words)]
