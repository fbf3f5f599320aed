"""Which faults of tests does every answer meet? Read from their text, once for a task, whatever was answered.

    assert f(1) == 2; assert f(lambda x: x) == 4    every answer comes there, and no function crosses the wall
    assert f(1) == 2; assert decode(f(2)) == 2      a name that is said nowhere else, and is nobody's
    if f(1) != 2: import fallback                   only some answers come there

A task is blamed for nothing but these few shapes. How a result finds its way into a later step has no end (aliases,
methods, frames, modules), so no values are followed: a step counts where it is CERTAIN, that is in straight code behind
no condition, and where its text alone shows that it fails: by a word that is SAID nowhere else, or by the kind of what
is passed. Everything else counts against the answer.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.evaluating import WRITING, may_bind_by_name, nodes_of

HOLDING = (ast.List, ast.Tuple, ast.Set, ast.Dict)
"""What holds other values, which may be exchanged once it has a name."""
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
BOUND_IN = ("name", "asname", "rest")
"""Fields of a syntax tree that give a name a value: functions, classes, `except … as`, patterns."""
ITERATORS = ("object", "iter", "map", "filter", "zip", "enumerate")
"""Built-in functions whose results never cross."""
SOLUTION = "solution"
"""The module that an answer is, for tests beside it."""
MAKES_A_TEMPORARY_FILE = "import tempfile\ntempfile.gettempdir()"
TEMPORARY = ("TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "mkdtemp", "mkstemp")
FINDERS = ("path", "meta_path", "path_hooks", "modules")
"""What decides in `sys` which modules there are."""
WORD = re.compile(r"\w+")
IN_PROCESS = "judge this task in process"
"""What helps where tests need more of an answer than what crosses the wall."""


class Blame:
    """What the tests of a task show about themselves; RecursionError where they are too deep to be read.

    `above` is the text that runs before the answer. All its words count as said, for in process they may be.
    """

    def __init__(self, texts: Sequence[str], entry_point: str, above: str = "") -> None:
        trees = [ast.parse(text) for text in texts]
        self._nodes = nodes_of(trees)
        self._bindings = _bindings(self._nodes)
        assigned = [node for node in self._nodes if isinstance(node, ast.Assign)]
        self._values = {id(target): node.value for node in assigned for target in node.targets}
        self._uses = Counter(node.id for node in self._nodes if isinstance(node, ast.Name))
        self._said = {*_said(self._nodes), *WORD.findall(above)}
        self._says_anything = may_bind_by_name((*texts, above)) or "*" in self._bindings
        self._named = {"candidate", entry_point.rpartition(".")[2]}
        self._candidates = self._named - self._bindings.keys()
        self._certain = [node for tree in trees for node in self._straight(tree.body)]

    def imports(self) -> Iterator[str]:
        """Imports that run for every answer, of modules that the tests do not define: they may be tried alone."""
        if self._says_anything or any(map(_is_a_finder, self._nodes)):
            return
        for node in self._certain:
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                parts = {part for name in (module, *(one.name for one in node.names)) for part in name.split(".")}
                if not self._said & parts and SOLUTION not in parts:
                    yield ast.unparse(node)

    def writes(self) -> Iterator[str]:
        """What makes a file as calls do that every answer comes to: it may be tried alone."""
        for node in self._certain:
            match node:
                case ast.Call(ast.Name("open"), [ast.Constant(), ast.Constant(str(mode))], []) if WRITING & set(mode):
                    if self._is_built_in("open"):
                        yield ast.unparse(node)
                case ast.Call(ast.Attribute(ast.Name("tempfile" as module), name) | ast.Name(name as module)):
                    if name in TEMPORARY and isinstance(self._only_meaning(module), ast.alias):
                        yield MAKES_A_TEMPORARY_FILE

    def fault(self) -> str:
        """What no answer in another process can mend, in words; empty where nothing is shown to be that."""
        if self._says_anything:
            return ""
        for node in self._certain:
            if isinstance(node, ast.Name) and self._is_nobodys(node):
                return f"name {node.id!r} is not defined: the tests use other names of the solution; {IN_PROCESS}"
            if isinstance(node, ast.Call) and self._is_candidate(node.func) and not self._said & self._named:
                given = [*node.args, *(word.value for word in node.keywords)]
                if any(map(self._never_crosses, given)):
                    return f"the tests pass something to the candidate that is no plain data; {IN_PROCESS}"
        return ""

    def _is_nobodys(self, node: ast.Name) -> bool:
        """Is this name read, and never given a value by any means?"""
        name = node.id
        known = name in self._bindings or name in self._said or name in self._named or hasattr(builtins, name)
        return isinstance(node.ctx, ast.Load) and not known and not name.startswith("__")

    def _is_built_in(self, name: str) -> bool:
        given = name in self._bindings or name in self._said or name in self._named
        return hasattr(builtins, name) and not given

    def _is_candidate(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self._candidates

    def _only_meaning(self, name: str) -> ast.AST | None:
        """What gives the name its value, where one step does and no other means are in sight."""
        match self._bindings.get(name):
            case [only] if name not in self._said and name not in self._named:
                return only
        return None

    def _never_crosses(self, value: ast.AST) -> bool:
        """Is it, for certain, of a kind that is no plain data?"""
        match value:
            case ast.Lambda() | ast.GeneratorExp():
                return True
            case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts) | ast.Dict(values=parts):
                return any(map(self._never_crosses, parts))
            case ast.Call(ast.Name(name)):
                return self._makes_objects(name)
            case ast.Name(name) if self._is_built_in(name):
                return type(getattr(builtins, name)) not in plain.ENCODERS
            case ast.Name(name):
                return self._means_no_data(self._only_meaning(name))
        return False

    def _makes_objects(self, name: str) -> bool:
        match self._only_meaning(name):
            case ast.ClassDef(bases=[], keywords=[], decorator_list=[]):
                return "__new__" not in self._bindings and "__new__" not in self._said
        return name in ITERATORS and self._is_built_in(name)

    def _means_no_data(self, meaning: ast.AST | None) -> bool:
        match meaning:
            case ast.FunctionDef(decorator_list=[]) | ast.ClassDef(keywords=[], decorator_list=[]):
                return True
            case ast.Name():
                value = self._values.get(id(meaning))
                return value is not None and not isinstance(value, HOLDING) and self._never_crosses(value)
        return False

    def _straight(self, body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        """What is done there whatever the answers are, up to the first statement that may leave."""
        for statement in body:
            yield from self._done(statement)
            if any(isinstance(node, LEAVING) for node in ast.walk(statement)) and not isinstance(
                statement, ast.FunctionDef | ast.ClassDef
            ):
                return

    def _done(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for part in _always(node):
            yield from self._done(part)
        match node:
            case ast.ClassDef(body=body):
                yield from self._straight(body)
            case ast.For(iter=source, body=body) if self._has_items(source):
                yield from self._straight(body)
            case ast.Call(ast.Name(name), given, []) if function := self._called_once(name):
                for parameter, argument in zip(function.args.args, given, strict=False):
                    if self._hands_on(argument, parameter, given):
                        self._candidates.add(parameter.arg)
                yield from self._straight(function.body)

    def _hands_on(self, argument: ast.expr, parameter: ast.arg, given: Sequence[ast.expr]) -> bool:
        """Is that parameter the candidate, and nothing else? `check(candidate)` may call it by the same name."""
        same = isinstance(argument, ast.Name) and argument.id == parameter.arg and argument.id in self._named
        handed = (same or self._is_candidate(argument)) and self._bindings[parameter.arg] == [parameter]
        return handed and not any(isinstance(one, ast.Starred) for one in given)

    def _has_items(self, source: ast.expr) -> bool:
        """Does a loop over that begin, whatever happens?"""
        match source:
            case ast.List([first, *_]) | ast.Tuple([first, *_]):
                return not isinstance(first, ast.Starred)
            case ast.Call(ast.Name("range"), [ast.Constant(int(times))], []):
                return times > 0 and self._is_built_in("range")
        return False

    def _called_once(self, name: str) -> ast.FunctionDef | None:
        """A plain function of the tests that is named once more, where it is called: its body may stand there."""
        match self._only_meaning(name):
            case ast.FunctionDef(decorator_list=[]) as function if self._uses[name] == 1:
                yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
                return None if yields else function
        return None


def _always(node: ast.AST) -> Sequence[ast.AST]:
    """The parts of a step that are done whenever it is; what stands behind a condition or is caught is not."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return [node.test]
        case ast.For():
            return [node.iter]
        case ast.With():
            return [item.context_expr for item in node.items[:1]]
        case ast.Match():
            return [node.subject]
        case ast.BoolOp():
            return node.values[:1]
        case ast.Compare():
            return [node.left, node.comparators[0]]
        case ast.AnnAssign():
            return [node.value] if node.value else []
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node.generators[0].iter]
        case ast.FunctionDef():
            return [*node.decorator_list, *node.args.defaults]
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases]
        case ast.Try() | ast.TryStar() | ast.AsyncFunctionDef() | ast.AsyncFor() | ast.AsyncWith() | ast.Lambda():
            return []
    return list(ast.iter_child_nodes(node))


def _bindings(nodes: Sequence[ast.AST]) -> dict[str, list[ast.AST]]:
    """By name, all that gives it a value or takes it away."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        match node:
            case ast.Name(name) if not isinstance(node.ctx, ast.Load):
                found[name].append(node)
            case ast.arg(name):
                found[name].append(node)
            case ast.Global(names) | ast.Nonlocal(names):
                for name in names:
                    found[name].append(node)
            case ast.alias(name, other):
                found[other or name.partition(".")[0]].append(node)
            case _:
                for value in (getattr(node, field, None) for field in BOUND_IN):
                    if isinstance(value, str):
                        found[value].append(node)
    return dict(found)


def _said(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Words by which tests may give something a value without binding it: texts, keywords, attributes that are set.

    `builtins.decode = …`, `frame.f_globals["decode"] = …`, `names.update(decode=…)`, `exec("decode = …")`. What a
    failed assert says, and what stands alone, gives nothing a value.
    """
    messages = {id(node.msg) for node in nodes if isinstance(node, ast.Assert)}
    for node in nodes:
        match node:
            case ast.keyword(str(name)):
                yield name
            case ast.Attribute(attr=name) if not isinstance(node.ctx, ast.Load):
                yield name
        if not isinstance(node, ast.Assert | ast.Expr) and id(node) not in messages:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes):
                    yield from WORD.findall(str(part.value))


def _is_a_finder(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value, name) if name in FINDERS:
            return not (isinstance(value, ast.Name) and value.id == "os")
        case ast.ImportFrom("sys", names):
            return any(one.name in FINDERS for one in names)
    return False
