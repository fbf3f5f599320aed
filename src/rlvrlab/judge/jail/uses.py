"""Do tests use anything that might make code of a text, beyond what is known to treat values as data?

    import sympy; sympy.expand(candidate())         flagged: SymPy makes code of texts, and is not in data_modules.py
    import pandas as pd; df.query(candidate())      flagged: pandas is, this method is not
    import json; json.codecs.open(candidate(), "w") flagged: so is json, but not what it has imported itself
    import numpy as np; np.allclose(candidate(), 2) data

The question is asked the other way round than in evaluating.py, for evaluators have no end: what is used of an imported
module must be known (data_modules.py). Code is read by its words alone, and a name means the same everywhere in it.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rlvrlab.judge.jail.data_modules import DUNDERS, METHODS, MODULES, RICH, WHOLE

UNKNOWN = ""
"""The module of a name that is imported from one of which nothing is known."""
LOOKS = re.compile(r"\bimport\b|__\w|\bhelp\b")
"""Texts without any of these words use nothing of the kind."""
STARS = {
    "builtins": frozenset[str](),
    "io": frozenset(io.__all__) - MODULES["io"] - set(dir(builtins)),
    "sys": frozenset(name for name in dir(sys) if not name.startswith("_")) - MODULES["sys"] - set(dir(builtins)),
}
"""What `import *` brings of these modules that is not known; contest programs begin with a list of such imports."""
OWN_NAMES = frozenset(("__name__", "__file__", "__doc__", "__debug__"))
"""Names between two underlines that a module has by itself, and that are texts."""
ASKS = frozenset(("list", "tuple", "set", "sum", "len", "sorted", "min", "max", "abs", "str", "repr", "all", "any"))
"""Built-in functions that call nothing that they are given as their first argument."""
SHOWS_NAMES = frozenset(("exec", "len", "sorted", "list", "set", "str", "repr", "bool"))
"""Functions to which a `__dict__` may be given: none of them looks a name up that is not written in the tests."""


def uses_unknown(nodes: Sequence[ast.AST]) -> bool:
    """Is anything used there that is not known to treat values as data? `nodes` as nodes_of gives them."""
    return _Uses(nodes).found()


class _Uses:
    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._nodes = nodes
        self._modules: dict[str, set[str]] = defaultdict(set)
        self._bound = {name for node in nodes for name in _bound_by(node)}
        self._starred, self._brought = False, set[str]()
        for node in nodes:
            self._import(node)
        self._rich = any(isinstance(node, ast.Import | ast.ImportFrom) and RICH & set(_heads(node)) for node in nodes)
        self._own = {name for node in nodes for name in _fields_of(node)} if self._rich else set()
        interesting = (ast.Attribute, ast.Name)
        self._above = {
            id(part): node for node in nodes for part in ast.iter_child_nodes(node) if isinstance(part, interesting)
        }
        calls = [node for node in nodes if isinstance(node, ast.Call) and _is_constant(node)]
        self._fixed = {id(node.func) for node in calls}
        dropped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        self._done = {id(part) for node in calls if id(node) in dropped for part in _chain(node.func)}

    def found(self) -> bool:
        return self._starred or any(
            self._by_name(node) if isinstance(node, ast.Name) else self._by_attribute(node)
            for node in self._nodes
            if isinstance(node, ast.Name | ast.Attribute)
        )

    def _import(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names):
                for one in names:
                    module = one.name if one.asname else one.name.partition(".")[0]
                    self._modules[one.asname or module].add(module if _is_known(module) else UNKNOWN)
            case ast.ImportFrom(module, names, level):
                for one in names:
                    part = f"{module}.{one.name}"
                    if one.name == "*" and not level and module in STARS:
                        self._brought |= STARS[module]
                    elif one.name == "*":
                        self._starred |= bool(level) or module not in WHOLE
                    elif not level and _is_known(part):
                        self._modules[one.asname or one.name].add(part)
                    elif level or one.name not in MODULES.get(str(module), ()):
                        self._modules[one.asname or one.name].add(UNKNOWN)
                    else:
                        self._bound.add(one.asname or one.name)

    def _by_name(self, node: ast.Name) -> bool:
        name, above = node.id, self._above.get(id(node))
        if not isinstance(node.ctx, ast.Load) or id(node) in self._done:
            return False
        if modules := self._modules.get(name):
            if not isinstance(above, ast.Attribute):
                return not (name in self._bound and modules <= WHOLE)
            return not all(self._is_data(module, above) for module in modules)
        if name in self._bound:
            return False
        return name == "help" or name in self._brought or _is_hidden(name)

    def _is_data(self, module: str, node: ast.Attribute) -> bool:
        """Is what is used of that module known? Of a module in a module, what is used of that one."""
        part, above = f"{module}.{node.attr}", self._above.get(id(node))
        if module and node.attr in MODULES.get(module, ()):
            return True
        if module and _is_known(part):
            return isinstance(above, ast.Attribute) and self._is_data(part, above)
        root = _chain(node)[-1]
        return isinstance(root, ast.Name) and root.id in self._bound and module in WHOLE and node.attr in METHODS

    def _by_attribute(self, node: ast.Attribute) -> bool:
        name, above = node.attr, self._above.get(id(node))
        if name == "__dict__":
            return not self._is_shown(node, above)
        if name.startswith("__") and name.endswith("__"):
            return name not in DUNDERS
        if not self._rich or id(node) in self._done or name in METHODS or name in self._own:
            return False
        if id(node) in self._fixed or not isinstance(node.ctx, ast.Load):
            return False
        root = _chain(node)[-1]
        if isinstance(root, ast.Name) and root.id in self._modules:
            return False  # `_by_name` has asked for it
        return not _is_read(node, above)

    def _is_shown(self, node: ast.Attribute, above: ast.AST | None) -> bool:
        match above:
            case ast.Subscript():  # evaluating.py asks what stands in the brackets
                return above.value is node
            case ast.Call(ast.Name(name)):
                return name in SHOWS_NAMES
        return isinstance(above, ast.Compare)


def _is_hidden(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in OWN_NAMES


def _is_read(node: ast.AST, above: ast.AST | None) -> bool:
    """Is it looked at where a function would be of no use? `df.a == 1`, `df.a[0]`, `sum(df.a)`, `df.a.tolist()`."""
    match above:
        case ast.Subscript() | ast.Attribute():
            return above.value is node
        case ast.Call(ast.Name(name), [*given]):
            return name in ASKS and any(one is node for one in given)
    return isinstance(above, ast.Compare | ast.BinOp | ast.UnaryOp | ast.FormattedValue | ast.Assert)


def _is_known(module: str) -> bool:
    return module in MODULES or any(name.startswith(f"{module}.") for name in MODULES)


def _is_constant(call: ast.Call) -> bool:
    given = [*call.args, *(word.value for word in call.keywords)]
    return all(isinstance(one, ast.Constant) for one in given)


def _chain(node: ast.AST) -> list[ast.AST]:
    """`a.b.c`, `a.b` and `a`."""
    found = [node]
    while isinstance(node, ast.Attribute):
        node = node.value
        found.append(node)
    return found


def _heads(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The packages that are imported from."""
    if isinstance(node, ast.ImportFrom):
        yield (node.module or "").partition(".")[0]
    else:
        yield from (one.name.partition(".")[0] for one in node.names)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Names that get a value there other than by an import."""
    match node:
        case ast.Name(name) if not isinstance(node.ctx, ast.Load):
            yield name
        case ast.arg(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name


def _fields_of(node: ast.AST) -> Iterator[str]:
    """Names of what the classes of the tests have, and of what they set."""
    match node:
        case ast.Attribute(attr=name) if not isinstance(node.ctx, ast.Load):
            yield name
        case ast.ClassDef(body=body):
            yield from (name for part in body for one in ast.walk(part) for name in _bound_by(one))
