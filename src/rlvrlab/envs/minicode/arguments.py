"""Level 8: programs of two arguments; y is a small number or another list, and never changes."""

from __future__ import annotations

from rlvrlab.envs.minicode.grammar import Pool, once

BY_NUMBER = Pool(
    (
        once("add", "x=[v+y for v in x]", "add y|plus y|increase y", lambda x, y: [v + y for v in x]),
        once("mul", "x=[v*y for v in x]", "times y|multiply y|scale y", lambda x, y: [v * y for v in x]),
        once("mod", "x=[v%y for v in x]", "mod y|remainder y|rest by y", lambda x, y: [v % y for v in x]),
        once("above", "x=[v for v in x if v>y]", "above y|more than y|keep >y", lambda x, y: [v for v in x if v > y]),
        once("below", "x=[v for v in x if v<y]", "below y|less than y|keep <y", lambda x, y: [v for v in x if v < y]),
        once("without", "x=[v for v in x if v!=y]", "without y|remove y|no y", lambda x, y: [v for v in x if v != y]),
        once("drop", "x=x[y:]", "drop y|skip y|without first y", lambda x, y: x[y:]),
        once("take", "x=x[:y]", "take y|first y|head y", lambda x, y: x[:y]),
        once("last", "x=x[-y:]", "last y|tail y|final y", lambda x, y: x[-y:]),
        once("rot", "x=x[y:]+x[:y]", "rotate y|cycle y|first y to end", lambda x, y: x[y:] + x[:y]),
        once("step", "x=x[::y]", "every y|step y|one in y", lambda x, y: x[::y]),
        once("push", "x=x+[y]", "push y|append y|end with y", lambda x, y: [*x, y]),
        once("lead", "x=[y]+x", "lead y|prepend y|start with y", lambda x, y: [y, *x]),
    )
)  # fmt: skip

BY_LIST = Pool(
    (
        once("join", "x=x+y", "join y|then y|extend y", lambda x, y: x + y),
        once("after", "x=y+x", "after y|y first|behind y", lambda x, y: y + x),
        once("common", "x=[v for v in x if v in y]", "common|also in y|shared with y",
            lambda x, y: [v for v in x if v in y]),
        once("missing", "x=[v for v in x if v not in y]", "not in y|minus y|except y",
            lambda x, y: [v for v in x if v not in y]),
        once("sums", "x=[a+b for a,b in zip(x,y)]", "add y|plus y|sum with y",
            lambda x, y: [a + b for a, b in zip(x, y, strict=False)]),
        once("products", "x=[a*b for a,b in zip(x,y)]", "times y|multiply y|product with y",
            lambda x, y: [a * b for a, b in zip(x, y, strict=False)]),
        once("larger", "x=[max(a,b) for a,b in zip(x,y)]", "larger of y|best with y|max with y",
            lambda x, y: [max(a, b) for a, b in zip(x, y, strict=False)]),
        once("cut", "x=x[:len(y)]", "cut to y|as long as y|trim to y", lambda x, y: x[: len(y)]),
    )
)  # fmt: skip
