"""A second reader of the expression grammar that shares nothing with the first: ast, a white list and Fractions."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

from rlvrlab.envs.arithmetic import MAX_LENGTH

BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


class Undefined(Exception):
    """Division by zero."""


def oracle(text: str) -> tuple[Fraction | None, list[int]] | None:
    """Value (None for a division by zero) and numbers, or None when it is no expression of the grammar."""
    text = text.replace("×", "*").replace("÷", "/").replace("−", "-")
    if len(text) > MAX_LENGTH or not re.fullmatch(r"[0-9+\-*/() ]*", text) or re.search(r"(?<![0-9])00", text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
        numbers: list[int] = []
        value_of(tree, numbers, check_only=True)
        try:
            return value_of(tree, [], check_only=False), numbers
        except ZeroDivisionError:
            return None, numbers
    except (SyntaxError, Undefined):
        return None


def value_of(node: ast.AST, numbers: list[int], check_only: bool) -> Fraction:
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        left, right = value_of(node.left, numbers, check_only), value_of(node.right, numbers, check_only)
        return Fraction(0) if check_only else BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        numbers.append(node.value)
        return Fraction(node.value)
    raise Undefined


expressions = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map("".join),
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({' '.join(parts)})"),
    ),
    max_leaves=12,
)
