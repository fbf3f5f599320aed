"""Could the tests execute a text that the answer returns, or open it as a path?

    assert eval(candidate("2 + 3")) == 5        the answer returns what it likes, and the tester runs it
    getattr(box, candidate())()                 it chooses what is called
    open(candidate(), "w").write("done")        it chooses the file, which may be the judge's own channel

Only plain data crosses the wall, but tests can bring a text to life, and then they say whatever it says. Verdicts of
such tests are no stronger than those of tests beside the answer: `integrity: weak`. Read by its words alone: what is
called with nothing but constants is harmless, everything else of these names is not. Python's own evaluators are known
by name, here; of modules only what is known to treat values as data is trusted (uses.py).

Formats that the answer returns (`candidate().format(x)`) can read what they are given, and call nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from rlvrlab.judge.jail.uses import LOOKS, uses_unknown

ANYWHERE = {
    "eval", "exec", "__import__", "import_module", "run_path", "run_module", "sympify", "parse_expr", "lambdify",
    "Unpickler", "unsafe_load", "__builtins__", "__globals__", "f_globals", "f_locals", "f_builtins", "system",
    "popen", "get_type_hints", "ForwardRef", "singledispatch", "singledispatchmethod", "loadTestsFromName",
    "loadTestsFromNames", "evaluate_forward_ref",
}  # fmt: skip
"""Names that bring texts to life, alone or behind a dot."""
ALONE = {"compile", "globals", "locals", "vars", "loads", "timeit"}
"""Names that do so only without a module before them: `re.compile` and `json.loads` do not."""
BY_NAME = {"getattr", "setattr", "delattr", "attrgetter", "methodcaller"}
"""Functions that are given the name of what they use."""
MODULES = {
    "pickle": ("load",), "marshal": ("load",), "dill": ("load",), "cloudpickle": ("load",), "joblib": ("load",),
    "yaml": ("load",), "timeit": ("timeit", "repeat"), "builtins": ("compile",),
    "os": ("write", "open", "exec", "pwrite"),
}  # fmt: skip
"""How functions of these modules begin that bring bytes to life, or write to a descriptor."""
TEXT_FIRST = {"eval", "exec", "compile"}
"""Functions of which only the first argument is brought to life."""
WRITING = set("wax+")
SUSPICIOUS = re.compile(
    r"\b(?:"
    + "|".join(sorted((ANYWHERE | ALONE | BY_NAME | {"open", "__dict__"} | set(MODULES)) - {"builtins"}))
    + r"|builtins)\b"
)
"""Texts without any of these words need no closer look."""


def may_evaluate(texts: Sequence[str]) -> bool:
    """The same for texts, of which most have none of these words; what is no Python is somebody else's to refuse.

    What is nested too deeply to be read has such words, and may mean anything by them.
    """
    return any(SUSPICIOUS.search(text) or LOOKS.search(text) for text in texts) and _asked(evaluates, texts)


def may_bind_by_name(texts: Sequence[str]) -> bool:
    """Could texts that are run, or names that are looked up, give a name of the tests a value?"""
    return any(map(SUSPICIOUS.search, texts)) and _asked(brings_to_life, texts)


def _asked(question: Callable[[Sequence[ast.AST]], bool], texts: Sequence[str]) -> bool:
    try:
        return question(nodes_of([ast.parse(text) for text in texts]))
    except (SyntaxError, ValueError):
        return False
    except (RecursionError, MemoryError):  # nobody knows
        return True


def nodes_of(trees: Sequence[ast.AST]) -> list[ast.AST]:
    """All that is written in there but constants, of which tests may hold a million, and which do nothing."""
    nodes = list(trees)
    for node in nodes:  # it grows meanwhile
        nodes += [child for child in ast.iter_child_nodes(node) if type(child) is not ast.Constant]
    return nodes


def evaluates(nodes: Sequence[ast.AST]) -> bool:
    """Could any of them execute, look up or open a text that is not written in the tests themselves?"""
    return brings_to_life(nodes) or uses_unknown(nodes)


def brings_to_life(nodes: Sequence[ast.AST]) -> bool:
    """The same for what is known to do so by its name."""
    harmless = {id(node.func) for node in nodes if isinstance(node, ast.Call) and _is_harmless(node)}
    return any(id(node) not in harmless and _brings_to_life(node) for node in nodes)


def _is_harmless(node: ast.Call) -> bool:
    """What it uses is written in the tests."""
    name = next(iter(_names(node.func)), "")
    if name in ("getattr", "setattr", "delattr"):
        return len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
    if name == "open":
        modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
        reads = all(isinstance(mode, ast.Constant) and not WRITING & set(str(mode.value)) for mode in modes)
        return reads or isinstance(node.args[0] if node.args else None, ast.Constant)
    given = node.args if name in TEXT_FIRST else [*node.args, *(word.value for word in node.keywords)]
    match given[:1] if name in TEXT_FIRST else []:
        case [ast.Call(ast.Name("compile")) as made]:
            return _is_harmless(made)
        case [text]:
            return isinstance(text, ast.Constant)
    return bool(given) and all(isinstance(one, ast.Constant) for one in given)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _brings_to_life(node: ast.AST) -> bool:
    match node:
        case ast.Name(name):
            return name in ANYWHERE or name in ALONE or name in BY_NAME or name == "open"
        case ast.Attribute(ast.Name(module), name) if module in MODULES:
            return name in ANYWHERE or name.startswith(MODULES[module])
        case ast.Attribute(_, name):
            return name in ANYWHERE or name in BY_NAME
        case ast.Subscript(ast.Attribute(attr="__dict__"), key):
            return not isinstance(key, ast.Constant)
        case ast.ImportFrom(module=module, names=names):
            return module in MODULES and any(one.name.startswith(MODULES[module]) for one in names)
    return False
