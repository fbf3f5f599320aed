"""Tiny programs as data: a program is a pipeline of atoms, and an atom is a statement together with its meaning.

    Atom "drop 2"   text  x=x[2:]      words  drop 2 | skip 2 | without first 2      run  x, y -> x[2:]

Text and meaning are written side by side, so a program is computed here without running any text: the judge runs text,
and only in its jail. That both agree is tested on every atom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

Kind = Literal["list", "text", "dict", "number"]
Meaning = Callable[[Any, Any], Any]
"""x and the second argument (None where there is none) to the new x; never changes its arguments."""


@dataclass(frozen=True, eq=False, slots=True)
class Atom:
    """A statement with its parameter filled in; two atoms are the same only when they are one object."""

    operation: str
    """Name shared by the atoms that differ in the parameter alone."""
    text: str
    """Lines of Python, without the function's own indent."""
    words: tuple[str, ...]
    """Ways to say it; empty when it goes without saying (return x)."""
    run: Meaning
    takes: Kind = "list"
    gives: Kind = "list"
    parameter: Any = None


@dataclass(frozen=True, eq=False)
class Pool:
    """Atoms to draw from, by operation."""

    operations: tuple[tuple[Atom, ...], ...]

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of all operations in one tuple."""
        return tuple(atom for atoms in self.operations for atom in atoms)


def operation(
    name: str, parameters: Sequence[Any], text: str, words: str, make: Callable[[Any], Meaning],
    gives: Kind | None = None, takes: Kind = "list",
) -> tuple[Atom, ...]:  # fmt: skip
    """One atom per parameter; K in text and words stands for it, | separates the wordings."""
    return tuple(
        Atom(
            operation=name,
            text=text.replace("K", str(k)),
            words=tuple(words.replace("K", str(k)).split("|")) if words else (),
            run=make(k),
            takes=takes,
            gives=gives or takes,
            parameter=k,
        )
        for k in parameters
    )


def once(
    name: str, text: str, words: str, run: Meaning, gives: Kind | None = None, takes: Kind = "list"
) -> tuple[Atom, ...]:
    """The only atom of an operation without a parameter."""
    return operation(name, (None,), text, words, lambda _: run, gives, takes)


class Program(NamedTuple):
    """A function of one or two arguments."""

    arguments: tuple[Kind, ...]
    atoms: tuple[Atom, ...]
    end: Atom

    @property
    def header(self) -> str:
        """`def f(x):` or `def f(x,y):`, with its newline."""
        return header(self.arguments)

    @property
    def body(self) -> str:
        """The reference solution as text."""
        return body([*(atom.text for atom in self.atoms), self.end.text])

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The result, computed by meaning."""
        x = arguments[0]
        y = arguments[1] if len(arguments) > 1 else None
        for atom in self.atoms:
            x = atom.run(x, y)
        return self.end.run(x, y)


def results(statements: Sequence[Atom], first: list[Any], second: list[Any]) -> list[Any]:
    """Many inputs at once: statement by statement, which is quicker than input by input."""
    for atom in statements:
        first = list(map(atom.run, first, second))
    return first


def header(arguments: Sequence[Kind]) -> str:
    """The line that every answer continues."""
    return "def f(x,y):\n" if len(arguments) > 1 else "def f(x):\n"


def body(statements: Sequence[str]) -> str:
    """Statements as the body of the function, indented by one blank to save tokens."""
    return "".join(f" {line}\n" for statement in statements for line in statement.split("\n"))


def show(value: Any) -> str:
    """A value as prompts show it: Python's own form without blanks, dictionaries by key."""
    if type(value) is dict:
        value = dict(sorted(value.items()))
    return repr(value).replace(" ", "")


def shown(values: Sequence[Any]) -> list[str]:
    """Many values of one kind, as `show` shows each."""
    if type(values[0]) is dict:
        return [show(value) for value in values]
    return [repr(value).replace(" ", "") for value in values]
