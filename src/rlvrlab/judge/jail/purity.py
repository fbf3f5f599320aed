"""Does a program's result depend on nothing but its text and its input?

What a second turn quotes of a run on public examples was written by a program that has also met hidden inputs, in other
runs. A pure program has no way to fetch what another run may have left: it names no file, clock, module or object
through which a system call could be made. Only of such programs is a result quoted; of any other, the kind of failure.
Nor does it reach the frames, the tracing or the report of the process that it runs in, so only such programs are
followed statement by statement (roles/trace.py).
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
import warnings

COMPUTING = (
    "abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float format frozenset hex "
    "input int isinstance issubclass iter len list map max min next oct ord pow print range repr reversed round set "
    "slice sorted str sum tuple zip staticmethod classmethod property NotImplemented Ellipsis"
)
"""Built-in functions that only compute; exceptions may be named as well."""
FUNCTIONS = frozenset(COMPUTING.split())
TYPES = "Any Callable Dict FrozenSet Generator Iterable Iterator List Optional Sequence Set Tuple Union"
MODULES: dict[str, frozenset[str] | None] = {
    "sys": frozenset({"stdin", "stdout", "setrecursionlimit", "maxsize"}),
    "functools": frozenset({"reduce", "lru_cache", "cache", "cmp_to_key", "partial"}),
    "typing": frozenset(TYPES.split()),
    **dict.fromkeys(("math", "itertools", "collections", "heapq", "bisect", "fractions", "decimal", "re")),
}
"""Modules that only compute, and the names that may be taken from them; None: any that is no module."""
INNER = ("_", "f_", "gi_", "cr_", "ag_", "tb_", "co_")
"""How attributes begin that lead to frames, code and other insides of the interpreter."""
DUNDER = {"__name__", "__init__"}
OWNER = "obj"
"""The attribute of an AttributeError that holds the object which was asked, and so a whole module."""
CODING = re.compile(r"^[ \t\f]*#.*?coding[:=]", re.MULTILINE)
"""A line that names an encoding, where it is one of the first two."""
READS_MEMORY = {"UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError"}
"""Exceptions that read at the positions they are given, without a check."""
POSITIONS = {"start", "end", "object", "encoding", "reason"}
"""Their attributes; a handler gets hold of such an exception without naming it (`except ValueError as e`)."""
WHERE_INSTALLED = "path"
"""The attribute of an ImportError that tells where Python is."""
OPENS_CLASSES = {"mro", "RegexFlag"}
"""Attributes that lead to a class by which classes with any method can be made."""
FIXED = {"math", "itertools", "heapq", "bisect", "sys", "functools"}
FIXED_NAMES = {"deque", "defaultdict"}
"""Modules, and names of others, whose classes nobody can change by setting an attribute."""
ANNOTATIONS = {"annotation", "returns"}
"""Fields of a syntax tree that hold annotations."""
LOOKS_INSIDE = re.compile(r"\{[^{}:!]*[.\[]")
"""A field of `str.format` that asks for an attribute or a member: `{0.__globals__}`."""


def is_pure(program: str) -> bool:
    """True only where every name, import and attribute of the program is known to compute and do nothing else.

    It has to be all that is run: a name that something above it imports would pass for one of the program's own. It is
    read as bytes, as it is compiled: a line that names another encoding can make other words of the same text.
    """
    if CODING.search(program):  # which of its lines are the first two, what stands above it decides
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(program.encode("utf-8", "surrogatepass"))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    nodes = list(ast.walk(tree))
    # A module is only ever asked for one of its names: held in a variable or passed on, it could be asked for any.
    named = sum(map(_is_module, nodes))
    asked = sum(isinstance(node, ast.Attribute) and _is_module(node.value) for node in nodes)
    if any(map(_sets_attribute, nodes)) and not _brings_nothing_to_change(nodes):
        return False
    if any(isinstance(node, ast.ExceptHandler) and node.name for node in nodes) and any(map(_turns_an_error, nodes)):
        return False
    return named == asked and all(_harmless(node) and _names_no_insides(node) for node in nodes)


def _sets_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _turns_an_error(node: ast.AST) -> bool:
    """Could this make an exception that was caught read memory, or tell about the machine?"""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == WHERE_INSTALLED or (node.attr in POSITIONS and _sets_attribute(node))


def _brings_nothing_to_change(nodes: list[ast.AST]) -> bool:
    """Is there nothing whose methods the program could replace? They are called when a result is read or followed.

    Names of typing pass a change on to the class that they stand for, so they may stand in annotations alone.
    """
    typed: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names) if not all(one.name in FIXED for one in names):
                return False
            case ast.ImportFrom("typing", names):
                typed |= {one.asname or one.name for one in names}
            case ast.ImportFrom(module, names):
                if module not in FIXED and not all(one.name in FIXED_NAMES for one in names):
                    return False
    roots = [value for node in nodes for name, value in ast.iter_fields(node) if name in ANNOTATIONS]
    inside = {id(node) for root in roots if isinstance(root, ast.AST) for node in ast.walk(root)}
    return all(id(node) in inside for node in nodes if isinstance(node, ast.Name) and node.id in typed)


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in MODULES


def _harmless(node: ast.AST) -> bool:
    match node:
        case ast.Name(name):
            own = not hasattr(builtins, name) or name in FUNCTIONS or _is_exception(name)
            return (own and name not in READS_MEMORY) or name in DUNDER
        case ast.ClassDef():  # what makes the class may be a function of the program's, and is given all names of it
            return not any(isinstance(inner, ast.Import) for inner in ast.walk(node))
        case ast.Attribute(ast.Name(module), attr, context) if module in MODULES:
            return isinstance(context, ast.Load) and _may_take(module, attr)
        case ast.Attribute(ast.Constant(str(template)), "format" | "format_map"):
            return not LOOKS_INSIDE.search(template)
        case ast.Attribute(_, "format" | "format_map"):
            return False
        case ast.Attribute(attr=attr):
            return _harmless_attribute(attr)
        case ast.Import(names):
            return all(one.name in MODULES and one.asname is None for one in names)
        case ast.ImportFrom(module, names, level):
            return not level and module in MODULES and all(_may_take(str(module), one.name) for one in names)
        case ast.MatchClass():  # its keywords are attributes
            return False
    return True


def _names_no_insides(node: ast.AST) -> bool:
    """No identifier begins with two underscores, wherever it is used or bound: `case __builtins__:` binds one too.

    None is a keyword either: written in other letters (`ｒeturn`), one may be a variable, which a trace would take for
    an end.
    """
    if isinstance(node, ast.Constant):
        return True
    for _, value in ast.iter_fields(node):
        names = value if isinstance(value, list) else [value]
        texts = [name for name in names if isinstance(name, str)]
        if any(keyword.iskeyword(name) or (name.startswith("__") and name not in DUNDER) for name in texts):
            return False
    return True


def _may_take(module: str, name: str) -> bool:
    taken = MODULES[module]
    return name in taken if taken is not None else name != "*" and _harmless_attribute(name)


def _harmless_attribute(name: str) -> bool:
    opens = name == OWNER or name in OPENS_CLASSES
    return name not in sys.stdlib_module_names and not name.startswith(INNER) and not opens


def _is_exception(name: str) -> bool:
    kind = vars(builtins)[name]
    return isinstance(kind, type) and issubclass(kind, BaseException)
