"""Bugs made on purpose: one small change to a right program, as people make them. Nothing here runs anything.

A change is only a candidate: whether a test notices it is found out in the jail (`CodeRepair.bad_tasks`). Every change
of a program is listed once, in an order given by the key, kinds in turn, so that two bugs of one program differ in kind
where they can.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from itertools import islice, zip_longest

from rlvrlab.envs.python_trees import NOT_PYTHON, parsed
from rlvrlab.randomness import shuffled

MOST = 8
"""Candidates of one program: more than are ever wanted, few enough to try."""
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv,
    ast.Div: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
TWINS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "append": "extend", "lower": "upper", "upper": "lower",
}  # fmt: skip
"""Names that are taken for each other."""
DROPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.If)
"""Statements that are forgotten without leaving a program that cannot even start."""

Change = Callable[[ast.AST], bool]
"""Changes a node in place; False where it has nothing to change there."""


def bugs(program: str, *key: object) -> list[str]:
    """Programs that differ from a right one by one change each; none where there is nothing to change."""
    try:
        tree = parsed(program)
    except NOT_PYTHON:
        return []
    nodes = list(ast.walk(tree))
    kinds = [
        [(change, place) for place, node in enumerate(nodes) if change(_loose_copy(node))]
        for change in shuffled(CHANGES, *key)
    ]
    in_turn = zip_longest(*(shuffled(places, *key, number) for number, places in enumerate(kinds)))
    chosen = [one for turn in in_turn for one in turn if one is not None][:MOST]
    plain = ast.unparse(tree)
    return [text for text in dict.fromkeys(_changed(tree, *one) for one in chosen) if text.strip() != plain.strip()]


def _changed(tree: ast.Module, change: Change, place: int) -> str:
    """The program with the change at one place, counted in the order of ast.walk."""
    mutant = copy.deepcopy(tree)
    change(next(islice(ast.walk(mutant), place, None)))
    return ast.unparse(ast.fix_missing_locations(mutant)) + "\n"


def _loose_copy(node: ast.AST) -> ast.AST:
    """A copy on which a change can be tried: what hangs below is shared, and no change reaches that far."""
    loose = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(loose, name, list(value))
    return loose


def _comparison(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARISONS:
        return False
    node.ops[0] = COMPARISONS[type(node.ops[0])]()
    return True


def _operator(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp | ast.AugAssign) or type(node.op) not in OPERATORS:
        return False
    node.op = OPERATORS[type(node.op)]()
    return True


def _off_by_one(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return False
    node.value += 1
    return True


def _other_end(node: ast.AST) -> bool:
    """`range(n)` ends one early."""
    match node:
        case ast.Call(ast.Name("range"), [_, *rest] as arguments):
            end = 1 if rest else 0
            arguments[end] = ast.BinOp(arguments[end], ast.Sub(), ast.Constant(1))
            return True
    return False


def _either_way(node: ast.AST) -> bool:
    """`and` for `or`, a condition turned round."""
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return True
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.Constant):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    return False


def _twin(node: ast.AST) -> bool:
    if isinstance(node, ast.Name) and node.id in TWINS and isinstance(node.ctx, ast.Load):
        node.id = TWINS[node.id]
        return True
    if isinstance(node, ast.Attribute) and node.attr in TWINS:
        node.attr = TWINS[node.attr]
        return True
    return False


def _forgotten(node: ast.AST) -> bool:
    """A statement in the middle of a block is left out; never the last one, never the only one."""
    block = node.body if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If) else []
    droppable = [i for i, one in enumerate(block[:-1]) if isinstance(one, DROPPED)]
    if not droppable or len(block) < 3:
        return False
    del block[droppable[-1]]
    return True


CHANGES: tuple[Change, ...] = (_comparison, _operator, _off_by_one, _other_end, _either_way, _twin, _forgotten)
