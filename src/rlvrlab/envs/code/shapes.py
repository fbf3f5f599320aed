"""The shapes of data sets in wide use.

    humaneval     task_id prompt entry_point test [canonical_solution]; also evalplus/humanevalplus
    evalplus      HumanEval+ and MBPP+, as released and as on the hub, see evalplus.py
    mbpp          task_id text|prompt code test_list [test_setup_code test_imports]
    codecontests  name description public_tests private_tests generated_tests [solutions]
    apps          problem_id|id question input_output [solutions starter_code]
    humanevalfix  as humaneval, with buggy_solution
    quixbugs      name buggy_program solution tests [docstring]; also the folder of its authors, see quixbugs.py
Every shape may have a column `split`. Traps: HumanEval's check() may call helpers that only the prompt defines; MBPP
names its function in the tests alone; some tests pass classes of the solution, which cannot leave its process.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from typing import Any

from rlvrlab.envs.code.evalplus import counted, humanevalplus, mbppplus, release, same_shape, strictly
from rlvrlab.envs.code.quixbugs import from_folder
from rlvrlab.envs.code.rows import BadColumn, CodeRow, Columns, Shape
from rlvrlab.envs.python_trees import cannot_cross, doctests, imports, parses, tested

PYTHON3 = 3
"""CodeContests' number for the language."""


def humaneval(columns: Columns) -> CodeRow:
    """openai_humaneval and everything made like it."""
    if columns.has("plus_input"):
        raise BadColumn("plus_input", 'a release of EvalPlus, whose plus tests only shape = "evalplus" reads')
    prompt, name = columns.text("prompt"), columns.text("entry_point")
    test = columns.text("test")
    tree = columns.program("test", test)
    if not test.rstrip().endswith(f"check({name})"):
        test += "\ncheck(candidate)"
    solution = columns.text("canonical_solution", default="")
    setup = prompt if parses(prompt) else f"{prompt.rstrip()}\n    pass\n"
    inputs = counted(tree)
    return CodeRow(
        id=columns.name("task_id"),
        text=prompt,
        tests=(strictly(test) if inputs else test,),
        examples=doctests(setup, name),
        entry_point=name,
        begun=prompt,
        setup=f"{setup}\n{same_shape()}" if inputs else setup,
        solution=prompt + solution if solution else None,
        counted=inputs,
    )


def evalplus(columns: Columns) -> CodeRow:
    """HumanEval+ or MBPP+ in either form; rows without plus tests are refused."""
    if columns.has("plus_input"):
        return release(columns)
    row = mbppplus(columns) if columns.has("test_list") else humanevalplus(humaneval(columns))
    if not row.counted:
        raise BadColumn("test", "no list of EvalPlus' inputs in it: these are base tests")
    return row


def mbpp(columns: Columns) -> CodeRow:
    """MBPP, full or sanitized."""
    if columns.has("test"):
        raise BadColumn("test", 'rows of MBPP+, whose plus tests only shape = "evalplus" reads')
    code, tests = columns.text("code"), columns.texts("test_list")
    if not tests:
        raise BadColumn("test_list", "no test")
    trees, solution = [columns.program("test_list", test) for test in tests], columns.program("code", code)
    name = tested(solution, trees)
    if name is None:
        raise BadColumn("test_list", "no test calls a function of the code")
    setup = "\n".join((*columns.texts("test_imports", ()), columns.text("test_setup_code", default="")))
    trees.append(columns.program("test_setup_code", setup))
    return CodeRow(
        id=f"MBPP/{columns.name('task_id')}",
        text=columns.text("text", "prompt"),
        tests=tests,
        examples=tests[:1],
        entry_point=name,
        setup="\n".join((*imports(solution, trees), setup)).strip(),
        solution=code,
        inprocess=cannot_cross(trees, solution, name),
    )


def codecontests(columns: Columns) -> CodeRow:
    """deepmind/code_contests: programs that read and print."""
    public = _pairs(columns, "public_tests")
    hidden = [*_pairs(columns, "private_tests"), *_pairs(columns, "generated_tests")]
    if not public and not hidden:
        raise BadColumn("private_tests", "no test")
    solutions = columns.row.get("solutions")
    known = solutions if isinstance(solutions, dict) else {}
    programs = zip(known.get("language") or [], known.get("solution") or [], strict=False)
    return CodeRow(
        id=columns.name("name"),
        text=columns.text("description"),
        tests=(*hidden, *public),
        examples=tuple(public),
        solution=_solution(next((text for language, text in programs if language in (PYTHON3, "PYTHON3")), None)),
    )


def apps(columns: Columns) -> CodeRow:
    """codeparrot/apps: tests as JSON text, of a program or, where they have `fn_name`, of a function."""
    tests = _json(columns, "input_output")
    if not isinstance(tests, dict):
        raise BadColumn("input_output", "an object with inputs and outputs was expected")
    solutions = _json(columns, "solutions") if columns.has("solutions") and columns.row["solutions"] else []
    row = CodeRow(
        id=f"APPS/{columns.name('problem_id', 'id')}",
        text=columns.text("question"),
        tests=(),
        solution=_solution(solutions[0] if isinstance(solutions, list) and solutions else None),
    )
    if "fn_name" in tests:
        return _apps_function(columns, row, tests)
    pairs = _zip(tests.get("inputs"), tests.get("outputs"), "input_output")
    if not pairs:
        raise BadColumn("input_output", "no test")
    return replace(row, tests=tuple(pairs))


AS_LISTS = """
def as_lists(value):
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value
"""
"""Setup code of APPS tests: results are compared with tuples as lists, because the expected values come from JSON."""


def _apps_function(columns: Columns, row: CodeRow, tests: dict[str, Any]) -> CodeRow:
    """Some rows wrap each result in a list and do not say so: where all are lists of one item, the item will do too."""
    name, inputs, outputs = tests["fn_name"], tests.get("inputs", []), tests.get("outputs", [])
    if not isinstance(name, str) or not name.isidentifier():
        raise BadColumn("input_output", "fn_name must name a function")
    lists = isinstance(inputs, list) and isinstance(outputs, list) and len(inputs) == len(outputs) > 0
    if not lists or not all(isinstance(arguments, list) for arguments in inputs):
        raise BadColumn("input_output", "inputs must be lists of arguments, and as many as outputs")
    wrapped = all(isinstance(want, list) and len(want) == 1 for want in outputs)
    calls = [f"{name}({', '.join(map(repr, arguments))})" for arguments in inputs]
    wanted = [f"in ({want[0]!r}, {want!r})" if wrapped else f"== {want!r}" for want in outputs]
    pieces = [f"assert as_lists({call}) {want}" for call, want in zip(calls, wanted, strict=True)]
    columns.program("input_output", "\n".join(pieces))
    starter = columns.text("starter_code", default="")
    return replace(
        row,
        text=f"{row.text.rstrip()}\n\n{starter.rstrip()}" if starter.strip() else row.text,
        tests=tuple(pieces),
        examples=(f"assert {calls[0]} {wanted[0]}",),
        entry_point=name,
        setup=AS_LISTS,
        left_out="calls a method" if "class Solution" in starter + (row.solution or "") else "",
    )


def humanevalfix(columns: Columns) -> CodeRow:
    """bigcode/humanevalpack: HumanEval with a bug."""
    row = humaneval(columns)
    return CodeRow(**{**row.__dict__, "buggy": row.begun + columns.text("buggy_solution")})


def quixbugs(columns: Columns) -> CodeRow:
    """QuixBugs: one-line bugs in classic algorithms; a file with a row each, or the publisher's folder."""
    if not columns.has("tests"):
        return from_folder(columns)
    name, tests = columns.name("name"), columns.text("tests")
    tree = columns.program("tests", tests)
    solution = columns.text("solution")
    simple = all(isinstance(node, ast.Assert | ast.Import | ast.ImportFrom) for node in tree.body)
    pieces = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assert)]
    needed = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    crossing = cannot_cross([tree], columns.program("solution", solution), name)
    return CodeRow(
        id=f"QuixBugs/{name}",
        text=columns.text("docstring", default="").strip().strip('"').strip(),
        tests=tuple(pieces) if simple and pieces else (tests,),
        entry_point=name,
        setup="\n".join(needed) if simple else "",
        solution=solution,
        buggy=columns.text("buggy_program"),
        inprocess=crossing,
    )


GENERATION: dict[str, Shape] = {
    "humaneval": humaneval, "evalplus": evalplus, "mbpp": mbpp, "codecontests": codecontests, "apps": apps,
}  # fmt: skip
REPAIR: dict[str, Shape] = {"humanevalfix": humanevalfix, "quixbugs": quixbugs, "mbpp": mbpp, "humaneval": humaneval}
"""Rows of the last two are right programs, of which bugs are made when data is prepared."""


def _pairs(columns: Columns, column: str) -> list[tuple[str, str]]:
    if not columns.has(column):
        return []
    value = columns.any(column)
    if not isinstance(value, dict):
        raise BadColumn(column, "an object with input and output was expected")
    return _zip(value.get("input"), value.get("output"), column)


def _zip(inputs: Any, outputs: Any, column: str) -> list[tuple[str, str]]:
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise BadColumn(column, "inputs and outputs must be lists of one length")
    if not all(isinstance(text, str) for text in (*inputs, *outputs)):
        raise BadColumn(column, "inputs and outputs must be strings")
    return list(zip(inputs, outputs, strict=True))


def _json(columns: Columns, column: str) -> Any:
    value = columns.any(column)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadColumn(column, f"not JSON: {error}") from None


def _solution(program: Any) -> str | None:
    if program is None or isinstance(program, str):
        return program
    raise BadColumn("solutions", f"a program as a string was expected, not {type(program).__name__}")
