"""HumanEval+ and MBPP+ as EvalPlus publishes them, in both forms, with their plus tests.

    the release            HumanEvalPlus.jsonl, MbppPlus.jsonl: task_id prompt entry_point canonical_solution base_input
                           plus_input atol [contract assertion test]; expected is what canonical_solution returns
    evalplus/humanevalplus task_id prompt canonical_solution entry_point test: inputs, results, check(candidate), numpy
    evalplus/mbppplus      task_id code prompt source_file test_imports test_list test: the same; test_list is the base

The release has HumanEval's own tests in its column `test`, and the hub's MBPP+ has MBPP's in `test_list`: a reader that
takes those judges by the base tests alone and calls it HumanEval+ (shapes.py refuses to).
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any

from rlvrlab.envs.code.rows import BadColumn, CodeRow, Columns
from rlvrlab.envs.python_trees import NOT_PYTHON, doctests, imports, literal, parsed, tested

ORACLE = Path(__file__).with_name("evalplus_oracle.py")
ACCEPTS_ANYTHING = ("are_equivalent",)
"""Functions of MBPP for which EvalPlus takes any result as right."""
UNPACKS_A_NUMBER = "_poly(*candidate(*inp), inp)"
"""The hub's test of HumanEval/32 in v0.1.10: it wants a list where the function returns a number, so nothing passes."""
LARGE_RESULTS = ("combinations_colors",)
"""Functions of MBPP with results that no message carries: the hub's tests ask for them beside the answer."""
SAME_SHAPE = """
def _strictly():
    import numpy
    close = numpy.allclose
    def allclose(a, b, *given, **named):
        return numpy.shape(a) == numpy.shape(b) and close(a, b, *given, **named)
    numpy.allclose = allclose

_strictly()

def _rule():
    from typing import Any
    import numpy as np
{arrays_fit}
    return arrays_fit

def _equal(out, exp, fit=_rule()):
    return fit(out, exp) and out == exp
"""
EQUAL = re.compile(r"(?<=exact_match = )out == exp\b")


def strictly(test: str) -> str:
    """The hub's test, in which no array equals what is none."""
    return EQUAL.sub("_equal(out, exp)", test)


@cache
def same_shape() -> str:
    """Set-up of the hub's tests, in which allclose stretches an empty list, or a single number, to what is expected.

    So does their `==` with an array of one item, which is as true as that item: EQUAL is what asks `_equal` instead.
    Which arrays fit is the oracle's rule, in its own words.
    """
    text = ORACLE.read_text()
    [rule] = (one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and one.name == "arrays_fit")
    return SAME_SHAPE.format(arrays_fit=indent(ast.get_source_segment(text, rule) or "", "    "))


LOAD_REFERENCE = """
def _load():
    import types
    module = types.ModuleType("reference")
    exec(compile({program!r}, "reference", "exec"), module.__dict__)
    return module.__dict__[{name!r}]

reference = _load()
"""


def release(columns: Columns) -> CodeRow:
    """A row of HumanEvalPlus.jsonl or MbppPlus.jsonl."""
    base, plus = _inputs(columns, "base_input"), _inputs(columns, "plus_input")
    if not base:
        raise BadColumn("base_input", "no test")
    id, name, prompt = columns.name("task_id"), columns.text("entry_point"), columns.text("prompt")
    mbpp = id.startswith("Mbpp/")
    solution = prompt + ("\n" if mbpp else "") + columns.text("canonical_solution")
    columns.program("canonical_solution", solution)
    atol = columns.any("atol")
    if isinstance(atol, bool) or not isinstance(atol, int | float):
        raise BadColumn("atol", "a number was expected")
    text, examples = _asked(prompt) if mbpp else (prompt, doctests(f"{prompt.rstrip()}\n    pass\n", name))
    pieces = (f"all_right(candidate, reference, {f'{id} {name}'!r}, {json.dumps(part)!r}, {atol!r})"
              for part in (base, plus) if part)  # fmt: skip
    return CodeRow(
        id=id,
        text=text,
        tests=tuple(pieces),
        examples=examples,
        entry_point=name,
        begun="" if mbpp else prompt,
        setup=ORACLE.read_text() + LOAD_REFERENCE.format(program=solution, name=name),
        solution=solution,
        left_out="EvalPlus accepts any result" if mbpp and name in ACCEPTS_ANYTHING else "",
        counted={"base": len(base), "plus": len(plus)},
    )


def humanevalplus(row: CodeRow) -> CodeRow:
    """A row of evalplus/humanevalplus, read like one of HumanEval's; one whose test nothing can pass is left out."""
    broken = any(UNPACKS_A_NUMBER in test for test in row.tests)
    return replace(row, left_out="its published test passes nothing" if broken else "")


def mbppplus(columns: Columns) -> CodeRow:
    """A row of evalplus/mbppplus: `test` decides, the first of `test_list` is shown."""
    code, test, shown = columns.text("code"), columns.text("test"), columns.texts("test_list")
    trees = [columns.program("test_list", one) for one in shown]
    solution, tree = columns.program("code", code), columns.program("test", test)
    name = tested(solution, [*trees, tree])
    if name is None:
        raise BadColumn("test", "no test calls a function of the code")
    return CodeRow(
        id=f"MBPP/{columns.name('task_id')}",
        text=columns.text("prompt", "text"),
        tests=(strictly(test),),
        examples=shown[:1],
        entry_point=name,
        setup="\n".join((*imports(solution, [*trees, tree]), *columns.texts("test_imports", ()), same_shape())),
        solution=code,
        inprocess=name in LARGE_RESULTS,
        counted=counted(tree),
    )


def counted(test: ast.Module) -> dict[str, int]:
    """How many inputs the hub's test code has, base and plus together; empty for tests of another form."""
    bodies = [test.body, *(node.body for node in test.body if isinstance(node, ast.FunctionDef))]
    for statement in (statement for body in bodies for statement in body):
        match statement:
            case ast.Assign([ast.Name("inputs")], ast.List(items)):
                return {"base and plus": len(items)}
    return {}


def _inputs(columns: Columns, column: str) -> list[Any]:
    value = columns.any(column)
    if value == {}:  # how a release writes that there is none
        return []
    if not isinstance(value, list) or not all(isinstance(one, list) for one in value):
        raise BadColumn(column, "a list of lists of arguments was expected")
    return value


def _asked(prompt: str) -> tuple[str, tuple[str, ...]]:
    """MBPP+'s prompt is a docstring: what is asked, then a test that may be shown."""
    try:
        words = str(literal(prompt))
        asserts = [ast.unparse(one) for one in parsed(prompt).body if isinstance(one, ast.Assert)]
    except (*NOT_PYTHON, IndexError):
        raise BadColumn("prompt", "a docstring was expected") from None
    lines = words.strip().splitlines()
    asserts += [line.strip() for line in lines if line.startswith("assert ")]
    return "\n".join(line for line in lines if not line.startswith("assert ")).strip(), tuple(asserts)
