"""The verdicts of three other scorers, mistakes included: to compare with numbers they produced, never to train on.

A value above 0 counts as feasible, -2 as broken rules, -1 as no answer. What these scorers get wrong and why a policy
trained on them learns to cheat is listed in docs/graphs.md. Their regular expressions backtrack; the matching here is
the same and linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from rlvrlab.envs.graphs.graph import as_set, induced, members
from rlvrlab.envs.graphs.solvers.edits import mapping_cost
from rlvrlab.envs.graphs.solvers.isomorphism import isomorphic
from rlvrlab.envs.graphs.solvers.paths import components, distances
from rlvrlab.envs.graphs.solvers.tours import tour_length
from rlvrlab.envs.graphs.tasks.base import Instance, Task
from rlvrlab.envs.graphs.verdicts import ALARM, parts
from rlvrlab.rewards.repetition import tandem_period
from rlvrlab.types import ErrorKind, Verdict

Peer = Literal["grapharena", "npgmuse", "graphwiz"]
SUITE: dict[str, str] = {"grapharena": "grapharena", "npgmuse": "grapharena", "graphwiz": "graphwiz"}
BROKEN, MISSING = -2, -1
CODES = re.compile(r"\[([A-Z\s,]*)\]")
DIGITS = re.compile(r"\[([\d\s,]+)\]")


def peer_verdict(peer: Peer, task: Task, instance: Instance, optimum: Any, truth: str, text: str) -> Verdict:
    """The peer's verdict in our words; `format` is the peer's own format test."""
    repeat = float(tandem_period(text) > 0)
    if peer == "graphwiz":
        correct = _graphwiz(task.name, truth, text)
        error = ErrorKind.NONE if correct else ErrorKind.WRONG
        return Verdict(correct, float(correct), error, parts(1.0, 1.0, float(correct), correct, repeat))
    value = peer_value(peer, task.name, instance, text)
    correct = value == optimum
    # The ratio is not clamped: the original pays more than 1 for a "better" answer, and this mode repeats it.
    quality = 0.0 if value <= 0 else optimum / value if task.sense == "min" else value / optimum
    format = text.startswith("<think>\n") if peer == "npgmuse" else value != MISSING
    refused = ErrorKind.FORMAT if value == MISSING else ErrorKind.RULE if value <= 0 else ErrorKind.WRONG
    return Verdict(
        correct,
        min(1.0, quality),
        ErrorKind.NONE if correct else refused,
        parts(float(format), float(value > 0), quality, correct, repeat),
        answer=str(value),
        detail="" if correct else f"{peer} gives {value}, optimum {optimum}",
        flags=(ALARM,) if value > 0 and task.better(value, optimum) else (),
    )


def peer_value(peer: Peer, name: str, instance: Instance, text: str) -> int:
    """What GraphArena's or NPG-Muse's check_solution returns."""
    if name == "TSP":
        tours = CODES.findall(text)
        if not tours:
            return MISSING
        names, tokens = list(instance.names), _tokens(tours[-1])
        if len(tokens) != len(names) + 1 or set(tokens) != set(names) or tokens[0] != tokens[-1]:
            return BROKEN
        return tour_length(instance.graphs[0].matrix(), [names.index(token) for token in tokens[:-1]])
    if name in ("GED", "MCS"):
        lists = DIGITS.findall(text)
        return (_ged if name == "GED" else _mcs)(instance, lists, peer == "grapharena")
    lists = _bracketed(text)
    if not lists:
        return MISSING
    searches_back = peer == "grapharena" and name in ("Neighbor", "Distance", "Connected")
    for content in reversed(lists) if searches_back else lists[-1:]:
        nodes = [instance.names.index(token) if token in instance.names else None for token in _tokens(content)]
        known = [node for node in nodes if node is not None]
        if peer == "npgmuse" and (not known or (name in ("MVC", "Neighbor") and None in nodes)):
            return BROKEN
        if not known and name in ("Distance", "Diameter"):
            continue
        value = _list_value(name, instance, known)
        if value != BROKEN:
            return value
    return BROKEN


def _tokens(content: str) -> list[str]:
    return [token.strip() for token in content.split(",")]


def _bracketed(text: str) -> list[str]:
    """re.findall(r"\\[(.*?)\\]", text) without its quadratic search for a closing bracket."""
    contents = []
    for line in text.split("\n"):
        start = line.find("[")
        while start >= 0 and (end := line.find("]", start)) >= 0:
            contents.append(line[start + 1 : end])
            start = line.find("[", end)
    return contents


def _numbers(content: str) -> list[int]:
    return [int(token) for token in re.split(r"[\s,]+", content.strip())]


def _ged(instance: Instance, lists: list[str], searches_back: bool) -> int:
    if not lists:
        return MISSING
    first, second = instance.graphs
    for content in reversed(lists) if searches_back else lists[-1:]:
        try:
            nodes = _numbers(content)
        except ValueError:
            return BROKEN
        if sorted(nodes) == list(range(first.n)):
            return mapping_cost(first, second, nodes)
    return BROKEN


def _mcs(instance: Instance, lists: list[str], forgives: bool) -> int:
    if len(lists) < 2:
        return MISSING
    try:
        chosen = _numbers(lists[-2]), _numbers(lists[-1])
    except ValueError:
        return MISSING if forgives else BROKEN
    if len(chosen[0]) != len(chosen[1]):
        return BROKEN
    existing = [sorted({v for v in nodes if v < g.n}) for g, nodes in zip(instance.graphs, chosen, strict=True)]
    parts_chosen = [induced(g.adjacency(), nodes) for g, nodes in zip(instance.graphs, existing, strict=True)]
    return len(chosen[0]) if isomorphic(*parts_chosen) else BROKEN


def _list_value(name: str, instance: Instance, nodes: Sequence[int]) -> int:
    """The value of a list of nodes, with or without the rules that the peers forget to check."""
    graph, chosen = instance.graphs[0], as_set(nodes)
    adjacency, value = graph.adjacency(), len(nodes)
    linked = all(adjacency[u] >> v & 1 for u, v in pairwise(nodes))
    match name:
        case "MCP":
            edges = sum((adjacency[v] & chosen).bit_count() for v in members(chosen)) // 2
            kept = edges >= len(nodes) * (len(nodes) - 1) / 2
        case "MIS":
            kept = not any(adjacency[v] & chosen for v in members(chosen))
        case "MVC":
            kept = all(chosen >> u & 1 or chosen >> v & 1 for u, v in graph.edges)
        case "Neighbor":
            a, b = instance.query
            kept, value = not chosen & ~(adjacency[a] & adjacency[b]), len(set(nodes))
        case "Connected":
            pieces = components(adjacency)
            touched = {next(i for i, piece in enumerate(pieces) if piece >> v & 1) for v in nodes}
            kept = len(touched) == len(nodes)
        case "Distance":
            kept, value = linked and (nodes[0], nodes[-1]) == instance.query, len(nodes) - 1
        case _:  # Diameter
            value = len(nodes) - 1
            kept = linked and distances(adjacency, nodes[0])[nodes[-1]] == value
    return value if kept else BROKEN


def _graphwiz(name: str, truth: str, text: str) -> bool:
    """Substring tests on what follows the last ###."""
    last = text.split("###")[-1]
    if name in ("shortest", "flow", "triplet"):
        return abs(_last_number(truth) - _last_number(last)) < 1e-2
    if name == "topology":
        truth = truth.split("###")[-1]
        if "###" not in text:
            return any(token in text or token.strip(" ") in text for token in truth.split(","))
        truth, last = truth.strip(" "), last.strip(" ")
        return truth in last or last in truth
    right = "yes" if "yes" in truth.lower() else "no"
    if "###" in text:
        return right in last.lower()
    words = re.findall(r"yes|no", text, flags=re.IGNORECASE)
    return bool(words) and words[-1].lower() == right


def _last_number(text: str) -> float:
    numbers = re.findall(r"\d+(?:\.\d+)?", re.sub(r"(\d),(\d)", r"\1\2", text))
    return float(numbers[-1]) if numbers else 0.0
