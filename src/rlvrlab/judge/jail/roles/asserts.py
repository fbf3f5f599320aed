"""Reading assert code as data: `assert f(1, [2]) == 3` is a call and what it must equal.

Where every assert is of that kind there is nothing to run: the calls go to the candidate, the expected values to the
judge. Anything else (loops, tolerances, other functions) runs in a tester of its own, rewritten to go on after a failed
assert: from the calls that follow, the candidate must not learn whether its last answer was right.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.evaluating import evaluates, nodes_of


class NotData(Exception):
    """This piece of test code has to be run."""


NOTE_FAILURE = "__note_failure__"
"""What a failed assert calls in the tester."""
EQUAL = "__equal__"
"""What the tester asks for `==` between a result and what is expected, where that is all of an assert."""
STRETCHED: dict[type[ast.AST], str] = {ast.Eq: "__equals__", ast.NotEq: "__differs__", ast.Sub: "__difference__"}
"""What it asks for these between anything else in an assert, where there is numpy (jail/stretching.py)."""
CATCHING = ("raises", "assertRaises", "assertRaisesRegex", "suppress")
"""Contexts that catch the exceptions they are given."""
ALL_FAILURES = ("AssertionError", "Exception", "BaseException")
HANDED_ON = ("exception", "expectedFailure", "return_exceptions")
"""Words by which an exception is looked at as a result: of futures, unittest and asyncio."""
HARMLESS = ("open", "redirect_stdout", "redirect_stderr", "TemporaryDirectory", "catch_warnings", "errstate")
"""Contexts that catch nothing."""
ENDING = ("exit", "quit", "_exit", "fail")
"""Functions that end the tests."""
NOT_READ = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, plain.NotPlain)


def run(job: Job, report: Report) -> None:
    """One line with the calls of every piece, or with setup and tests as they are to be run, or that they stay."""
    names = {"candidate", job["entry_point"]}
    try:
        pieces = [_calls(ast.parse(piece).body, names) for piece in job["tests"]]
        calls = [[plain.encode(part) for part in call] for piece in pieces for call in piece]
        report("calls", calls, list(map(len, pieces)))
        return
    except (NotData, *NOT_READ):
        pass
    weak = True
    try:
        texts = (job["setup"], *job["tests"])
        trees = [ast.parse(text) for text in texts]
        nodes = nodes_of(trees)
        weak = evaluates(nodes)
        if any(map(_may_catch_a_failure, nodes)) or _speak_of_failures(nodes):
            report("stopping", weak)
        else:
            report(
                "going",
                weak,
                _steered_by_results(nodes, names),
                *(_going_on(*one, names) for one in zip(texts, trees, strict=True)),
            )
    except NOT_READ:  # no Python, or nested too deeply to be written again: they run as they are
        report("stopping", weak)


def _going_on(text: str, tree: ast.Module, names: set[str]) -> str:
    """The code that goes on after a failed assert; as it is where it has none."""
    if "assert" not in text:
        return text
    called = names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return ast.unparse(ast.fix_missing_locations(Going(called).visit(tree)))


def _may_catch_a_failure(node: ast.AST) -> bool:
    """Could a failed assert be caught here? Then it means something to the tests, and they run as they are."""
    match node:
        case ast.Try(handlers=handlers, finalbody=last) | ast.TryStar(handlers=handlers, finalbody=last):
            leaves = any(
                isinstance(one, ast.Return | ast.Break | ast.Continue) for part in last for one in ast.walk(part)
            )
            return leaves or not all(_is_another_exception(handler.type) for handler in handlers)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return not all(_lets_failures_pass(item.context_expr) for item in items)
    return False


def _speak_of_failures(nodes: Sequence[ast.AST]) -> bool:
    """Do the tests name a failed assert, or what it is a kind of, other than to raise, to catch or to inherit it?"""
    expected: set[int] = set()
    for node in nodes:
        match node:
            case ast.Raise(ast.Call(named)) | ast.Raise(named):
                expected.add(id(named))
            case ast.ExceptHandler(ast.Tuple(several)) | ast.ClassDef(bases=several):
                expected |= set(map(id, several))
            case ast.ExceptHandler(named):
                expected.add(id(named))
    return any(id(node) not in expected and _names_failures(node) for node in nodes)


def _names_failures(node: ast.AST) -> bool:
    match node:
        case ast.Name(name):
            return name in ALL_FAILURES or name in HANDED_ON
        case ast.Attribute(attr=name):
            return name in ALL_FAILURES or name in HANDED_ON
        case ast.keyword(name):
            return name in HANDED_ON
    return False


def _steered_by_results(nodes: Sequence[ast.AST], names: set[str]) -> bool:
    """May it depend on the candidate's last answer whether it is called again, though asserts end nothing?"""
    called = names | {node.arg for node in nodes if isinstance(node, ast.arg)}  # `check` calls what it is given
    return any(_steers(node, called) for node in nodes)


def _steers(node: ast.AST, called: set[str]) -> bool:
    match node:
        case ast.BoolOp(values=parts):
            return sum(_calls_one([part], called) for part in parts) > 1
        case ast.Compare(first, comparators=[second, *later]):
            return _calls_one([first, second], called) and _calls_one(later, called)
        case ast.IfExp(condition):
            return _calls_one([condition], called) and _calls_one([node.body, node.orelse], called)
        case ast.Call(ast.Name("all" | "any" | "next"), [ast.GeneratorExp(), *_]) | ast.While():
            return _calls_one([node], called)
        case ast.For():
            leaves = any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(node))
            return leaves and _calls_one([node], called)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in ENDING or (name.startswith("assert") and isinstance(node.func, ast.Attribute))
    return isinstance(node, ast.Raise)


def _calls_one(parts: Sequence[ast.AST], called: set[str]) -> bool:
    """Is anything of these names called in there?"""
    nodes = (node for part in parts for node in ast.walk(part))
    functions = (node.func for node in nodes if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id in called for function in functions)


def _is_another_exception(named: ast.expr | None) -> bool:
    """Is this the name of a built-in exception, or a tuple of such, that no failed assert belongs to?"""
    if isinstance(named, ast.Tuple):
        return all(map(_is_another_exception, named.elts))
    kind = getattr(builtins, named.id, None) if isinstance(named, ast.Name) else None
    return isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(AssertionError, kind)


def _lets_failures_pass(context: ast.expr) -> bool:
    match context:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=given):
            exceptions = given if name == "suppress" else given[:1]
            named = bool(exceptions) and all(map(_is_another_exception, exceptions))  # not as a keyword
            return name in HARMLESS or (name in CATCHING and named)
    return False


class Going(ast.NodeTransformer):
    """Turns `assert x, y` into `if not x: note(lambda: y)`, and in there `f(1) == z` into `equal(f(1), z)`."""

    def __init__(self, called: set[str]) -> None:
        self._called = called
        """What the candidate may be called."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """The same test; what it says is only asked for when it fails, and may itself go wrong."""
        match node.test:
            case ast.Compare(ast.Call(ast.Name(name)) as result, [ast.Eq()], [expected]) if name in self._called:
                node.test = ast.Call(ast.Name(EQUAL, ast.Load()), [result, expected], [])
        if "numpy" in sys.modules:
            node.test = _Unstretched().visit(node.test)
        nothing = ast.arguments([], [], None, [], [], None, [])
        message = ast.Lambda(nothing, node.msg or ast.Constant(""))
        note = ast.Expr(ast.Call(ast.Name(NOTE_FAILURE, ast.Load()), [message], []))
        return ast.If(ast.UnaryOp(ast.Not(), node.test), [note], [])


class _Unstretched(ast.NodeTransformer):
    """Turns `x == y`, `x != y` and `x - y` into calls of the functions of jail/stretching.py."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A chain of them stays as it is."""
        self.generic_visit(node)
        name = STRETCHED.get(type(node.ops[0])) if len(node.ops) == 1 else None
        return _asking(name, node.left, node.comparators[0]) if name else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Only a difference becomes small where nothing is left."""
        self.generic_visit(node)
        name = STRETCHED.get(type(node.op))
        return _asking(name, node.left, node.right) if name else node


def _asking(name: str, *given: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def _calls(body: list[ast.stmt], names: set[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    checks: dict[str, ast.FunctionDef] = {}
    for statement in body:
        match statement:
            case ast.Assert():
                found += _call(statement.test, names)
            case ast.FunctionDef(
                name="check", args=ast.arguments(args=[ast.arg()], defaults=[], kwonlyargs=[], vararg=None)
            ):
                checks["check"] = statement
            case ast.Expr(ast.Call(ast.Name("check"), [ast.Name(candidate)], [])) if candidate in names and checks:
                found += _calls(checks["check"].body, {checks["check"].args.args[0].arg})
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Assign([ast.Name("METADATA")], value):
                ast.literal_eval(value)
            case _:
                raise NotData
    return found


def _call(test: ast.expr, names: set[str]) -> list[tuple[Any, ...]]:
    match test:
        case ast.Constant(True):
            return []
        case ast.Compare(ast.Call(ast.Name(name), arguments, named), [operator], [expected]) if name in names:
            values = tuple(ast.literal_eval(argument) for argument in arguments)
            keywords = {word.arg: ast.literal_eval(word.value) for word in named if word.arg}
            if len(keywords) != len(named):
                raise NotData
            wanted = ast.literal_eval(expected)
            # numpy's True is True as a value, as which results are compared, and another object.
            singles = (type(None),) if "numpy" in sys.modules else (type(None), bool)
            if isinstance(operator, ast.Eq) or (isinstance(operator, ast.Is) and isinstance(wanted, singles)):
                return [(values, keywords, wanted, isinstance(operator, ast.Is))]
    raise NotData
