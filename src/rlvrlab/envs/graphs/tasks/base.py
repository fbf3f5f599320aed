"""What a graph task is: it draws an instance, solves it with a proof, asks, reads an answer and measures it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, NamedTuple

from rlvrlab.envs.graphs.answers import read_indices, read_names
from rlvrlab.envs.graphs.graph import Graph, shape
from rlvrlab.randomness import key_bits

Suite = Literal["grapharena", "graphwiz", "learning"]
Bands = tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]
SMALL: Bands = ((4, 7), (8, 9), (10, 12), (13, 15), (16, 20))
"""Nodes per level where the search space grows fastest; GraphArena's small ends at level 2."""
MEDIUM: Bands = ((4, 9), (10, 14), (15, 19), (20, 24), (25, 30))
WIDE: Bands = ((4, 12), (13, 19), (20, 29), (30, 39), (40, 50))


class Infeasible(Exception):
    """The answer can be read and breaks the task's rules."""


class Duplicates(Infeasible):
    """A node is given twice: malformed, whatever the rest is worth."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One question: its graphs, the names of their nodes and what else the prompt says."""

    graphs: tuple[Graph, ...]
    """One graph, or two to compare."""
    names: tuple[str, ...] = ()
    """Node names of the first graph as printed; empty means numbers."""
    query: tuple[int, ...] = ()
    """The nodes a question names."""
    words: tuple[str, ...] = ()
    """Whatever else the prompt prints: a relation per edge, a topic per node."""
    choices: tuple[str, ...] = ()
    """What may be answered, where the question lists it."""
    hint: tuple[int, ...] = ()
    """What the generator knows and the policy does not, e.g. planted edits; never part of the reference."""

    @property
    def shape(self) -> int:
        """Equal for instances that differ in names and numbering only."""
        return key_bits(*sorted(shape(graph, self.query if i == 0 else ()) for i, graph in enumerate(self.graphs)))

    def as_plain(self) -> dict[str, Any]:
        """Plain data for a reference; the hint stays out of it."""
        plain: dict[str, Any] = {"graphs": [graph.as_plain() for graph in self.graphs]}
        if self.names:
            plain["names"] = list(self.names)
        if self.query:
            plain["query"] = list(self.query)
        if self.choices:
            plain["choices"] = list(self.choices)
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Instance:
        """The instance that `as_plain` wrote into a reference."""
        return Instance(
            tuple([Graph.from_plain(graph) for graph in plain["graphs"]]),
            tuple(plain.get("names", ())),
            tuple(plain.get("query", ())),
            choices=tuple(plain.get("choices", ())),
        )


class Solution(NamedTuple):
    """A proved answer."""

    optimum: Any
    """The best value, or the right answer where there is only one."""
    witness: Any
    """An answer that reaches it, as the task's `show` wants it."""
    solver: str
    proof: str
    """Why nothing better exists."""

    def facts(self) -> dict[str, Any]:
        """What a problem's meta says of it."""
        return {"solver": self.solver, "proof": self.proof, "bound": self.optimum}


class Task(ABC):
    """One kind of question about graphs."""

    name: str
    suite: Suite
    sense: Literal["max", "min", "exact"]
    """exact: there is one right answer, and no partial credit."""
    bands: Bands
    """Fewest and most nodes at each of the five levels."""
    balanced: bool = False
    """Whether yes and no are to come equally often."""
    least: int = 0
    """The smallest optimum that is worth asking for; 0 asks for any."""

    @abstractmethod
    def draw(self, random: Random, size: int) -> Instance | None:
        """A random instance of about that size; None when this draw came to nothing."""

    @abstractmethod
    def solve(self, instance: Instance) -> Solution | None:
        """The proved solution; None when it could not be proved."""

    def worth_asking(self, instance: Instance, solution: Solution) -> bool:
        """Whether an instance that was drawn here is handed out; published ones are asked as they are."""
        return not self.least or bool(solution.optimum >= self.least)

    @abstractmethod
    def ask(self, instance: Instance) -> str:
        """The question with everything needed to answer it and the form of the answer."""

    @abstractmethod
    def read(self, instance: Instance, text: str, alone: bool) -> Any:
        """The answer in a text; raises Unreadable. `alone`: the text is known to hold nothing else."""

    @abstractmethod
    def measure(self, instance: Instance, answer: Any) -> Any:
        """What the answer is worth; raises Infeasible."""

    @abstractmethod
    def show(self, instance: Instance, witness: Any) -> str:
        """The witness written as the answer that the question asks for."""

    def reference(self, instance: Instance, solution: Solution) -> dict[str, Any]:
        """What a problem keeps for its judge: the instance, the proved optimum and an answer that reaches it."""
        answer = self.show(instance, solution.witness)
        return {"task": self.name, **instance.as_plain(), "optimum": solution.optimum, "answer": answer}

    def quality(self, value: Any, optimum: Any) -> float:
        """1 for the optimum, less for anything worse; above 1 would mean that the optimum is wrong."""
        if self.sense == "exact" or value == optimum:
            return float(value == optimum)
        if self.sense == "min":
            return float(optimum / value if optimum and value else 1 / (1 + value))
        return float(value / optimum if optimum else 1 + value)

    def better(self, value: Any, optimum: Any) -> bool:
        """Whether a value beats the optimum, which a proved one does not allow."""
        return bool((self.sense == "max" and value > optimum) or (self.sense == "min" and value < optimum))


class NamedList(Task):
    """A question answered by a list of named nodes: `[Ada Abbott, Rosa Costa]`."""

    suite = "grapharena"

    def read(self, instance: Instance, text: str, alone: bool) -> tuple[int, ...]:
        """The only list of names in the text."""
        return read_names(text, instance.names)

    def show(self, instance: Instance, witness: Sequence[int]) -> str:
        """The names of the nodes in brackets."""
        return bracketed([instance.names[v] for v in witness])


class NumberedList(Task):
    """A question answered by a list of all nodes by number: `### [0, 2, 1]`."""

    def read(self, instance: Instance, text: str, alone: bool) -> tuple[int, ...]:
        """The only list of as many numbers as there are nodes."""
        return read_indices(text, instance.graphs[0].n, instance.graphs[0].n)

    def show(self, instance: Instance, witness: Sequence[int]) -> str:
        """The numbers in brackets after the mark."""
        return f"### {bracketed(witness)}"


class Marked(Task):
    """A question with one right answer, a word or number after ###."""

    sense = "exact"

    def measure(self, instance: Instance, answer: Any) -> Any:
        """The answer itself, which is right or wrong."""
        return answer

    def show(self, instance: Instance, witness: Any) -> str:
        """The answer after the mark."""
        return f"### {witness}"


def asked(opening: str, *lines: str) -> str:
    """A question in GraphArena's layout: what is wanted, then the problem."""
    return "\n".join([opening, "\n**Problem to Solve**\n", *lines])


def no_duplicates(nodes: tuple[int, ...]) -> None:
    """Refuse a list that names a node twice."""
    if len(set(nodes)) < len(nodes):
        raise Duplicates(f"{len(nodes) - len(set(nodes))} nodes are given twice")


def bracketed(items: Any) -> str:
    """The items as a list in brackets: `[A, B]`."""
    return f"[{', '.join(map(str, items))}]"
