"""node_classification, link_prediction: what graph learning asks, on planted groups, so that the answer is known.

    node_classification   … What is the topic of paper 7?                ### Biology
    link_prediction       … Do papers 3 and 7 cite each other?           ### Yes

A planted partition has many edges inside its groups and few across. A question is only asked when the graph decides
it: the topic must be the one most probable by Bayes' rule given all other topics, by a clear margin, and the planted
one; a hidden link must have at least two common neighbours, an absent one must lie across groups and have none.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

import math
from random import Random

from rlvrlab.envs.graphs.answers import read_marked
from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.sampling import planted
from rlvrlab.envs.graphs.tasks.base import Bands, Instance, Marked, Solution
from rlvrlab.envs.graphs.tasks.decisions import Decision, pairs

TOPICS = ("Biology", "Chemistry", "Economics", "Geology", "History")
INSIDE, ACROSS = 0.6, 0.08
MARGIN = math.log(20)
LEARNING: Bands = ((10, 14), (15, 19), (20, 29), (30, 39), (40, 50))


class NodeClassification(Marked):
    """The topic of one paper, from the topics of those it is linked with."""

    name = "node_classification"
    suite = "learning"
    bands = LEARNING

    def draw(self, random: Random, size: int) -> Instance | None:
        graph, group = _groups(random, size)
        topics = random.sample(TOPICS, max(group) + 1)
        asked = random.randrange(size)
        labels = tuple(["?" if v == asked else topics[g] for v, g in enumerate(group)])
        return Instance((graph._replace(labels=labels),), query=(asked,), hint=(TOPICS.index(topics[group[asked]]),))

    def solve(self, instance: Instance) -> Solution | None:
        graph, (asked,) = instance.graphs[0], instance.query
        linked = set(members(graph.adjacency()[asked]))
        scores = dict.fromkeys(set(graph.labels) - {"?"}, 0.0)
        for topic in scores:  # how probable the links of the paper are if it has this topic
            for v, label in enumerate(graph.labels):
                if v != asked:
                    chance = INSIDE if label == topic else ACROSS
                    scores[topic] += math.log(chance if v in linked else 1 - chance)
        best, second = sorted(scores, key=lambda topic: (-scores[topic], topic))[:2]
        if scores[best] - scores[second] < MARGIN or best != TOPICS[instance.hint[0]]:
            return None
        odds = math.exp(min(50.0, scores[best] - scores[second]))
        return Solution(best, best, "Bayes' rule", f"planted, and {odds:.0f} times as probable as the next topic")

    def ask(self, instance: Instance) -> str:
        graph, (asked,) = instance.graphs[0], instance.query
        known = ", ".join(f"{v}: {label}" for v, label in enumerate(graph.labels) if v != asked)
        return (
            "Papers of one topic cite each other much more often than papers of different topics. (i,j) means that "
            f"papers i and j are linked by a citation. Q: The papers are numbered from 0 to {graph.n - 1}, their "
            f"topics are: {known}, and the links are: {pairs(graph)}. What is the topic of paper {asked}? "
            "Finish with ### followed by the topic alone."
        )

    def read(self, instance: Instance, text: str, alone: bool) -> str:
        topics = {topic.casefold(): topic for topic in set(instance.graphs[0].labels) - {"?"}}
        return read_marked(text, alone, lambda token: topics.get(token.casefold()))


class LinkPrediction(Decision):
    """Whether a link was hidden between two papers."""

    name = "link_prediction"
    suite = "learning"
    bands = LEARNING

    def draw(self, random: Random, size: int) -> Instance | None:
        graph, group = _groups(random, size)
        a, b = sorted(random.sample(range(size), 2))
        linked = (a, b) in graph.edges
        if linked != (group[a] == group[b]):
            return None
        shown = graph._replace(edges=tuple([edge for edge in graph.edges if edge != (a, b)]))
        return Instance((shown,), query=(a, b), hint=(int(linked),))

    def solve(self, instance: Instance) -> Solution | None:
        adjacency, (a, b) = instance.graphs[0].adjacency(), instance.query
        shared = (adjacency[a] & adjacency[b]).bit_count()
        linked = bool(instance.hint[0])
        if (linked and shared < 2) or (not linked and shared):
            return None
        return Solution(linked, linked, "planted groups", f"{shared} common neighbours")

    def ask(self, instance: Instance) -> str:
        graph, (a, b) = instance.graphs[0], instance.query
        return (
            "Papers fall into topics, which are not shown; papers of one topic cite each other much more often than "
            "papers of different topics. (i,j) means that papers i and j are linked by a citation. One pair was left "
            f"out. Q: The papers are numbered from 0 to {graph.n - 1}, and the links are: {pairs(graph)}. "
            f"Are papers {a} and {b} linked? Finish with ### followed by Yes or No."
        )


def _groups(random: Random, size: int) -> tuple[Graph, list[int]]:
    count = random.randint(2, min(4, size // 5))
    sizes = [size // count + (g < size % count) for g in range(count)]
    return planted(random, sizes, INSIDE, ACROSS)
