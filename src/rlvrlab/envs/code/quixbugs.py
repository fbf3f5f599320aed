"""QuixBugs as its authors publish it: their programs, their cases and their own comparisons (quixbugs_folder.py).

The programs on graphs take objects of python_testcases/node.py, and two return generators: neither can cross to another
process, so these are judged beside their tests (`inprocess = true`) or left out, by name. The publisher's tests leave
two cases out that take minutes; so do we.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from rlvrlab.envs.code.rows import BadColumn, CodeRow, Columns
from rlvrlab.envs.python_trees import cannot_cross, is_generator
from rlvrlab.errors import quoted

HARNESS = Path(__file__).with_name("quixbugs_harness.py")
NO_CASES = 'CASES: Any = json.loads("null")'
NO_TEST_FILE = """
def as_lists(value):
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value

@pytest.mark.parametrize("input_data,expected", CASES)
def test_case(input_data, expected):
    assert as_lists({name}(*input_data)) == expected
"""


def from_folder(columns: Columns) -> CodeRow:
    """A row of `folder_rows`."""
    name, cases = columns.name("name"), _cases(columns)
    buggy, described = _without_description(columns, "buggy_program")
    solution, _ = _without_description(columns, "solution")
    if not cases and not columns.has("test_file"):
        return CodeRow(f"QuixBugs/{name}", described, (), left_out="no json_testcases and no python_testcases")
    text = columns.text("test_file", default=NO_TEST_FILE.format(name=name)).replace(f"{name}.__name__", repr(name))
    tree = columns.program("test_file", text)
    # Without its imports: what it imports is there already, and the function is another's.
    chosen = [node for node in tree.body if isinstance(node, ast.If) and "use_correct" in ast.unparse(node.test)]
    tree.body = [node for node in tree.body if node not in chosen and not isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    each = [f"run_test({one}, {case})" for one in functions for case in (range(len(cases)) if cases else [None])]
    harness = HARNESS.read_text().replace(NO_CASES, f"CASES = json.loads({json.dumps(cases)!r})")
    program = columns.program("solution", solution)
    return CodeRow(
        id=f"QuixBugs/{name}",
        text=described,
        tests=tuple(each),
        entry_point=name,
        setup="\n".join((harness, columns.text("node", default=""), ast.unparse(tree))),
        solution=solution,
        buggy=buggy,
        inprocess=columns.has("node") or is_generator(program, name) or cannot_cross([tree], program, name),
        counted={"cases": len(each)},
    )


def _cases(columns: Columns) -> list[Any]:
    found = []
    for line in columns.text("cases", default="").splitlines():
        try:
            given, result = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            raise BadColumn("cases", f"a line [arguments, result] was expected, not {quoted(line)}") from None
        found.append([given if isinstance(given, list) else [given], result])
    return found


def _without_description(columns: Columns, column: str) -> tuple[str, str]:
    """The program, and the words in the string behind it."""
    text = columns.text(column)
    match columns.program(column, text).body:
        case []:
            raise BadColumn(column, "not Python: no statement in it")
        case [_, *_, ast.Expr(ast.Constant(str(words))) as last]:
            lines = text.splitlines(keepends=True)
            return "".join(lines[: last.lineno - 1]).strip("\n") + "\n", words.strip()
    return text, ""
