"""What is said of one wrong key of a recipe: its place, what is wrong with it, and a remedy that was tried.

Imported with the first mistake. What a value may have been meant as stands in remedies.py, what a key in meant.py.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from rlvrlab.errors import RecipeError, UserError, cut
from rlvrlab.recipe.meant import nearest_key, said_of
from rlvrlab.recipe.parse import MORE, Tree, flatten, line_of
from rlvrlab.recipe.remedies import (
    TYPES,
    allowed_for,
    guesses,
    in_toml,
    keys_below,
    of_keys,
    of_table,
    on_command_line,
    words_of,
)
from rlvrlab.recipe.schema import PLUGIN_TABLES, sections
from rlvrlab.registry import names

OF_UNIONS = ("str", "list[str]")
"""What pydantic adds to the place of a value that may be of several types: the type that it tried."""
EXAMPLES = {"engine.model": "nano"}
"""A value that is on hand everywhere, for keys that have no default."""
MOST_TRIALS = 40


@dataclass
class Trials:
    """Whether a recipe would have less wrong with it if one value was another one."""

    tree: Tree
    attempt: Callable[[Tree], object]
    """Checks such a recipe, and looks for no remedies."""
    left: int = MOST_TRIALS

    def accepted(self, place_of: Sequence[str | int], value: Any) -> bool:
        """Try it; None takes the key out. A recipe with very many mistakes is not tried without end."""
        self.left -= 1
        if self.left < 0:
            return False
        tree = copy.deepcopy(self.tree)
        *above, last = place_of
        table: Any = tree
        for part in above:
            table = table[part]
        if value is None:
            table.pop(last)
        else:
            table[last] = value
        return self._wrong(tree) < self._before

    def value_at(self, place_of: Sequence[str | int]) -> Any:
        """What stands there now."""
        found: Any = self.tree
        for part in place_of:
            found = found[part]
        return found

    @cached_property
    def _before(self) -> frozenset[str]:
        return self._wrong(self.tree)

    def _wrong(self, tree: Tree) -> frozenset[str]:
        try:
            self.attempt(tree)
        except RecipeError as error:
            return frozenset(error.problems)
        except UserError as error:
            return frozenset([str(error), "more than one recipe has wrong"])
        return frozenset()


@dataclass
class Wording:
    """Says what is wrong with the keys of one recipe."""

    where: Callable[[str], str]
    """A key with its place, as `Report.where` tells it."""
    sources: Mapping[str, str]
    """Texts of the recipe's files, by path."""
    trials: Trials | None
    """None where nobody looks for remedies."""

    def of_tables(
        self, error: ValidationError, prefix: str, known: Sequence[str], cls: type[Any] | None = None
    ) -> Iterator[str]:
        """A line for each mistake that pydantic found in the core's tables, or in a plug-in's below `prefix`."""
        for place_of, items in _by_place(error):
            item = items[0]
            key = (prefix + ".".join(str(part) for part in place_of if isinstance(part, str))).strip(".")
            if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                below = dict(flatten(item["input"], f"{key}.")) if isinstance(item["input"], dict) else {}
                near = (
                    difflib.get_close_matches(key, [*PLUGIN_TABLES, *sections(), *names("phase")], n=1)
                    if len(below) > 1
                    else []
                )
                if near:  # one line for the whole of a table whose name is mistyped
                    has = f"its keys ({', '.join(leaf.removeprefix(f'{key}.') for leaf in below)}) are not read"
                    yield f"{self.where(key)}: unknown table; {has}; did you mean [{near[0]}]?"
                    continue
                yield from (f"{self.where(leaf)}: unknown key{nearest_key(leaf, known)}" for leaf in below or [key])
            elif isinstance(more := item["input"], str) and MORE.fullmatch(more):
                remedy = f"`rlvr train --resume RUN {key}={more}`; for a new one write {key}={more.lstrip('+')}"
                yield f"{self.where(key)}: {more} lengthens a run that there is, {remedy}"
            elif item["type"] == "missing":
                yield self._missing(key, prefix.rstrip("."), cls)
            elif prefix or key not in PLUGIN_TABLES:  # plug-ins in the core's place are told where they are built
                yield self._wrong(key, (*prefix.strip(".").split(".")[: bool(prefix)], *place_of), items)

    def _missing(self, key: str, table: str, cls: type[Any] | None) -> str:
        """A key without a default, with a value that would do if one is known."""
        leaf = key.rpartition(".")[2]
        usual = EXAMPLES.get(key)
        known = usual is not None and self.trials is not None and self.trials.accepted((table, leaf), usual)
        value = usual if known else leaf.upper()
        ways = f"write {key}={value} on a command line, {leaf} = {json.dumps(value)} below [{table}] of a file"
        return f"{self.where(key)}: has no default; {ways}{said_of(cls, key)}"

    def _wrong(self, key: str, place_of: Sequence[str | int], items: Sequence[Any]) -> str:
        """A value that is not of the type or not within the limits, with one that would be accepted."""
        kinds, value = [item["type"] for item in items], items[0]["input"]
        allowed = re.findall(r"'([^']*)'", str(items[0].get("ctx", {}).get("expected", "")))
        if "model_type" in kinds:
            return self.of_no_table(key, value, None, keys_below(key, sections()))
        words, got = words_of(kinds, items[0]["msg"]), cut(json.dumps(value, default=str), 80)
        wanted = [TYPES[kind] for kind in kinds if kind in TYPES]
        remedy = next((self._written(key, one) for one in self._tried(key, place_of, value, wanted, allowed)), "")
        return f"{self.where(key)}: {words}, got {got}{remedy or allowed_for(key)}"

    def _tried(
        self, key: str, place_of: Sequence[str | int], value: Any, wanted: Sequence[str], allowed: Sequence[str]
    ) -> Iterator[Any]:
        """Values of the key that would be accepted; of a list with a wrong item, the whole list."""
        if self.trials is None:
            return
        inside = next((at for at, part in enumerate(place_of) if isinstance(part, int)), None)
        if inside is None:
            yield from (one for one in guesses(key, value, wanted, allowed) if self.trials.accepted(place_of, one))
            return
        if inside != len(place_of) - 1:  # a table within a list
            return
        whole = self.trials.value_at(place_of[:inside])
        items = [next(guesses(key, one, wanted, allowed), one) for one in whole]
        if self.trials.accepted(place_of[:inside], items):
            yield items

    def _written(self, key: str, value: Any) -> str:
        """`; write …`, as it is written where the wrong value came from."""
        if self.where(key).startswith("override "):
            return f"; write {on_command_line(key, value)}"
        if value is None:
            return "; leave the line out"
        lines = [text.split("\n")[line - 1] for text in self.sources.values() if (line := line_of(text, key))]
        leaf = key.rpartition(".")[2]
        own = lines[0].partition("=")[0].strip() if lines else leaf
        return f"; write `{own if own.endswith(leaf) else leaf} = {in_toml(value)}`"

    def of_no_table(self, key: str, value: Any, kind: str | None, keys: Sequence[str]) -> str:
        """A value in the place of a table: which of its keys was meant, else those it has."""
        needed = {full.rpartition(".")[2]: one for full, one in EXAMPLES.items() if full.startswith(f"{key}.")}
        tables = [{leaf: guess} for leaf, guess in of_table(value, kind, keys)]
        tried = (table for table in (*tables, *({**one, **needed} for one in tables if needed)))
        table = next((one for one in tried if self.trials and self.trials.accepted((key,), one)), None)
        remedy = f"; write {of_keys(key, kind, keys)}"
        if table is not None and self.where(key).startswith("override "):
            remedy = f"; write {' '.join(on_command_line(f'{key}.{leaf}', one) for leaf, one in table.items())}"
        elif table is not None:
            remedy = f"; write {' and '.join(f'`{key}.{leaf} = {in_toml(one)}`' for leaf, one in table.items())}"
        return f"{self.where(key)}: is a table, got {cut(json.dumps(value, default=str), 80)}{remedy}"


def _by_place(error: ValidationError) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    """The mistakes by their key, each with its place in the tables: of several in one list, those of the first item.

    Where a key takes one of several types, it is wrong for each of them.
    """
    found: dict[tuple[str, ...], list[tuple[tuple[str | int, ...], Any]]] = {}
    for item in error.errors(include_url=False):
        place_of = tuple(part for part in item["loc"] if part not in OF_UNIONS)
        found.setdefault(tuple(part for part in place_of if isinstance(part, str)), []).append((place_of, item))
    for mistakes in found.values():
        deepest = max((place_of for place_of, _ in mistakes), key=len)
        yield deepest, [item for place_of, item in mistakes if place_of == deepest]
