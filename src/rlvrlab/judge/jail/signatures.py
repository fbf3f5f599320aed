"""How a function is written where its shape is asked for: `solve(xs, k)`, `g(x, *, y)`, `f(self, *a, **o)`."""

from __future__ import annotations

import ast

Function = ast.FunctionDef | ast.AsyncFunctionDef


def signature(name: str, function: Function) -> str:
    """Name and parameters without defaults and types; what stands behind a star cannot be given by its place."""
    given = function.args
    stars = [f"*{given.vararg.arg}"] if given.vararg else ["*"] if given.kwonlyargs else []
    rest = [f"**{given.kwarg.arg}"] if given.kwarg else []
    by_place, by_name = ([one.arg for one in some] for some in ([*given.posonlyargs, *given.args], given.kwonlyargs))
    return f"{name}({', '.join([*by_place, *stars, *by_name, *rest])})"
