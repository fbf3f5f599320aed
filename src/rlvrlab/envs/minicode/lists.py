"""Levels 1 to 3: straight-line programs over a list of digits. 16 operations, 42 atoms, four ends.

The wordings and the missing blanks are what a policy of 0.64 million parameters was measured to learn in minutes.
"""

from __future__ import annotations

from rlvrlab.envs.minicode.grammar import Atom, Pool, once, operation

LISTS = Pool(
    (
        once("sort", "x=sorted(x)", "sort|ascending|order", lambda x, y: sorted(x)),
        once("rev", "x=x[::-1]", "reverse|flip|backwards", lambda x, y: x[::-1]),
        once("uniq", "x=sorted(set(x))", "unique|distinct|dedupe", lambda x, y: sorted(set(x))),
        once("rot", "x=x[1:]+x[:1]", "rotate|cycle|first to end", lambda x, y: x[1:] + x[:1]),
        once("step", "x=x[::2]", "every other|alternate|step 2", lambda x, y: x[::2]),
        once("even", "x=[v for v in x if v%2==0]", "evens|keep even|no odd", lambda x, y: [v for v in x if v % 2 == 0]),
        once("odd", "x=[v for v in x if v%2==1]", "odds|keep odd|no even", lambda x, y: [v for v in x if v % 2 == 1]),
        operation("drop", (1, 2, 3), "x=x[K:]", "drop K|skip K|without first K", lambda k: lambda x, y: x[k:]),
        operation("take", (1, 2, 3, 4), "x=x[:K]", "take K|first K|head K", lambda k: lambda x, y: x[:k]),
        operation("last", (1, 2, 3), "x=x[-K:]", "last K|tail K|final K", lambda k: lambda x, y: x[-k:]),
        operation("add", (1, 2, 3, 4, 5), "x=[v+K for v in x]", "add K|plus K|increase K",
            lambda k: lambda x, y: [v + k for v in x]),
        operation("mul", (2, 3), "x=[v*K for v in x]", "times K|multiply K|scale K",
            lambda k: lambda x, y: [v * k for v in x]),
        operation("above", (2, 3, 4, 5, 6), "x=[v for v in x if v>K]", "above K|more than K|keep >K",
            lambda k: lambda x, y: [v for v in x if v > k]),
        operation("below", (3, 4, 5, 6, 7), "x=[v for v in x if v<K]", "below K|less than K|keep <K",
            lambda k: lambda x, y: [v for v in x if v < k]),
        operation("push", (0, 1, 5, 9), "x=x+[K]", "push K|append K|end with K", lambda k: lambda x, y: [*x, k]),
        operation("lead", (0, 1, 5, 9), "x=[K]+x", "lead K|prepend K|start with K", lambda k: lambda x, y: [k, *x]),
    )
)  # fmt: skip

LIST_ENDS: tuple[Atom, ...] = (
    *once("x", "return x", "", lambda x, y: x),
    *once("sum", "return sum(x)", "sum|total|add up", lambda x, y: sum(x)),
    *once("len", "return len(x)", "count|size|how many", lambda x, y: len(x)),
    *once("max", "return max(x+[0])", "max|largest|biggest", lambda x, y: max([*x, 0])),
)  # fmt: skip
