"""Questions about a part of a published network: the class of one node, or whether two nodes are linked.

    published node_classification   … What is the class of node 7? …        ### Theory
    published link_prediction       … Are nodes 3 and 7 linked? …           ### No

The answer is what was published, not what the part would prove: nobody may be able to know it from what is shown, and
rules that look at neighbours alone are told beside (network_questions.py). Nodes are numbered anew in every question,
so that names known by heart are of no use.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from random import Random

from rlvrlab.envs.graphs.answers import WRAPPING, bare, read_marked
from rlvrlab.envs.graphs.tasks.base import Instance, Solution
from rlvrlab.envs.graphs.tasks.decisions import pairs
from rlvrlab.envs.graphs.tasks.learning import LinkPrediction, NodeClassification

UNKNOWN = "?"
"""In place of a class that is asked for, held out, or not published."""
PART = "This is a part of a larger network; (i,j) means that nodes i and j are linked. "


class HiddenClass(NodeClassification):
    """The class of one node, from those of the nodes around it."""

    name = "published node_classification"

    def draw(self, random: Random, size: int) -> Instance | None:
        return None  # they come from files

    def solve(self, instance: Instance) -> Solution | None:
        return None  # nothing proves what was published

    def ask(self, instance: Instance) -> str:
        graph, (asked,) = instance.graphs[0], instance.query
        known = "; ".join(f"{v}: {label}" for v, label in enumerate(graph.labels) if label != UNKNOWN)
        return (
            f"{PART}Every node has one class. Q: The nodes are numbered from 0 to {graph.n - 1}, and the links are: "
            f"{pairs(graph)}. These classes are known: {known}. What is the class of node {asked}? It is one of: "
            f"{'; '.join(instance.choices)}. Finish with ### followed by the class alone."
        )

    def read(self, instance: Instance, text: str, alone: bool) -> str:
        """As read_marked leaves a token, so that a class with marks around its name is found as well."""
        classes: dict[str, str | None] = {}
        for name in instance.choices:
            key = bare(name).removesuffix(".").strip(WRAPPING).casefold()
            classes[key] = None if key in classes else name
        return read_marked(text, alone, lambda token: classes.get(token.casefold()))


class HiddenLink(LinkPrediction):
    """Whether two nodes are linked in the network, where the part does not say it."""

    name = "published link_prediction"

    def draw(self, random: Random, size: int) -> Instance | None:
        return None

    def solve(self, instance: Instance) -> Solution | None:
        return None

    def ask(self, instance: Instance) -> str:
        graph, (a, b) = instance.graphs[0], instance.query
        return (
            f"{PART}Some links were left out. Q: The nodes are numbered from 0 to {graph.n - 1}, and the links are: "
            f"{pairs(graph)}. In the whole network, are nodes {a} and {b} linked? "
            "Finish with ### followed by Yes or No."
        )
