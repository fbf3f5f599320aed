"""Level 8: programs of two arguments; y is a small number or another list, and never changes."""

from __future__ import annotations

from rlvrlab.envs.minicode.grammar import Pool, operation
from rlvrlab.envs.minicode.lists import ONCE

BY_NUMBER = Pool(
    (
        operation(
            "add", ONCE, "x=[v+y for v in x]", "add y|plus y|increase y", lambda _: lambda x, y: [v + y for v in x]
        ),
        operation(
            "mul", ONCE, "x=[v*y for v in x]", "times y|multiply y|scale y", lambda _: lambda x, y: [v * y for v in x]
        ),
        operation(
            "mod", ONCE, "x=[v%y for v in x]", "mod y|remainder y|rest by y", lambda _: lambda x, y: [v % y for v in x]
        ),
        operation(
            "above", ONCE, "x=[v for v in x if v>y]", "above y|more than y|keep >y",
            lambda _: lambda x, y: [v for v in x if v > y],
        ),
        operation(
            "below", ONCE, "x=[v for v in x if v<y]", "below y|less than y|keep <y",
            lambda _: lambda x, y: [v for v in x if v < y],
        ),
        operation(
            "without", ONCE, "x=[v for v in x if v!=y]", "without y|remove y|no y",
            lambda _: lambda x, y: [v for v in x if v != y],
        ),
        operation("drop", ONCE, "x=x[y:]", "drop y|skip y|without first y", lambda _: lambda x, y: x[y:]),
        operation("take", ONCE, "x=x[:y]", "take y|first y|head y", lambda _: lambda x, y: x[:y]),
        operation("last", ONCE, "x=x[-y:]", "last y|tail y|final y", lambda _: lambda x, y: x[-y:]),
        operation(
            "rot", ONCE, "x=x[y:]+x[:y]", "rotate y|cycle y|first y to end", lambda _: lambda x, y: x[y:] + x[:y]
        ),
        operation("step", ONCE, "x=x[::y]", "every y|step y|one in y", lambda _: lambda x, y: x[::y]),
        operation("push", ONCE, "x=x+[y]", "push y|append y|end with y", lambda _: lambda x, y: [*x, y]),
        operation("lead", ONCE, "x=[y]+x", "lead y|prepend y|start with y", lambda _: lambda x, y: [y, *x]),
    )
)  # fmt: skip

BY_LIST = Pool(
    (
        operation("join", ONCE, "x=x+y", "join y|then y|extend y", lambda _: lambda x, y: x + y),
        operation("after", ONCE, "x=y+x", "after y|y first|behind y", lambda _: lambda x, y: y + x),
        operation(
            "common", ONCE, "x=[v for v in x if v in y]", "common|also in y|shared with y",
            lambda _: lambda x, y: [v for v in x if v in y],
        ),
        operation(
            "missing", ONCE, "x=[v for v in x if v not in y]", "not in y|minus y|except y",
            lambda _: lambda x, y: [v for v in x if v not in y],
        ),
        operation(
            "sums", ONCE, "x=[a+b for a,b in zip(x,y)]", "add y|plus y|sum with y",
            lambda _: lambda x, y: [a + b for a, b in zip(x, y, strict=False)],
        ),
        operation(
            "products", ONCE, "x=[a*b for a,b in zip(x,y)]", "times y|multiply y|product with y",
            lambda _: lambda x, y: [a * b for a, b in zip(x, y, strict=False)],
        ),
        operation(
            "larger", ONCE, "x=[max(a,b) for a,b in zip(x,y)]", "larger of y|best with y|max with y",
            lambda _: lambda x, y: [max(a, b) for a, b in zip(x, y, strict=False)],
        ),
        operation("cut", ONCE, "x=x[:len(y)]", "cut to y|as long as y|trim to y", lambda _: lambda x, y: x[: len(y)]),
    )
)  # fmt: skip
