"""Levels 4 and 5: conditionals and loops over a list."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, groupby, pairwise, takewhile
from typing import Any

from rlvrlab.envs.minicode.grammar import Atom, Meaning, Pool, once, operation
from rlvrlab.envs.minicode.lists import LISTS

List = list[int]
Condition = tuple[str, tuple[str, ...], Callable[[List], bool]]
"""Text, wordings, meaning."""

CONDITIONS: tuple[Condition, ...] = (
    *(
        (f"len(x)>{k}", (f"if longer than {k}", f"if over {k} long", f"if size>{k}"), lambda x, k=k: len(x) > k)
        for k in (4, 5, 6)
    ),
    *((f"{k} in x", (f"if has {k}", f"if {k} in it", f"if there is {k}"), lambda x, k=k: k in x) for k in (1, 3, 5, 7)),
    *(
        (f"sum(x)>{k}", (f"if sum>{k}", f"if total over {k}", f"if adds up over {k}"), lambda x, k=k: sum(x) > k)
        for k in (20, 25, 30)
    ),
    ("sum(x)%2==0", ("if even sum", "if sum is even", "if total even"), lambda x: sum(x) % 2 == 0),
)  # fmt: skip


def _branch(condition: Condition, then: Atom, otherwise: Atom | None) -> Atom:
    test, words, holds = condition
    text = f"if {test}:{then.text}" + (f"\nelse:{otherwise.text}" if otherwise else "")
    said = [f"{word}:{then.words[i]}" for i, word in enumerate(words)]
    if otherwise:
        said = [f"{one} else {otherwise.words[i]}" for i, one in enumerate(said)]

    def run(x: List, y: Any) -> Any:
        if holds(x):
            return then.run(x, y)
        return otherwise.run(x, y) if otherwise else x

    return Atom("branch", text, tuple(said), run)


OTHERS = (*LISTS.atoms[11:], *LISTS.atoms[:11])
BRANCHES = Pool(
    (
        # Each atom alone under the condition, and against one other: not all pairs, which would be 20,000 atoms.
        *(
            (
                *(_branch(condition, atom, None) for atom in LISTS.atoms),
                *(_branch(condition, atom, other) for atom, other in zip(LISTS.atoms, OTHERS, strict=True)),
            )
            for condition in CONDITIONS
        ),
        operation("double", (3, 4, 5, 6), "x=[v*2 if v>K else v for v in x]", "double above K|twice if >K|x2 over K",
            lambda k: lambda x, y: [v * 2 if v > k else v for v in x]),
        operation("zero", (4, 5, 6, 7), "x=[v if v<K else 0 for v in x]", "zero from K|clear >=K|blank from K",
            lambda k: lambda x, y: [v if v < k else 0 for v in x]),
        operation("mark", (0, 5, 9), "x=[K if v%2 else v for v in x]", "odds become K|odd to K|put K for odd",
            lambda k: lambda x, y: [k if v % 2 else v for v in x]),
    )
)  # fmt: skip


def _shrink(k: int) -> Meaning:
    def run(x: List, y: Any) -> List:
        start, total = 0, sum(x)
        while total > k:
            total -= x[start]
            start += 1
        return x[start:]

    return run


def _fill(k: int) -> Meaning:
    def run(x: List, y: Any) -> List:
        left, kept = k, []
        for v in x:
            if v <= left:
                left -= v
                kept.append(v)
        return kept

    return run


LOOPS = Pool(
    (
        once("running", "r=[]\nt=0\nfor v in x:\n t+=v\n r+=[t]\nx=r", "running sum|cumulative|prefix sums",
            lambda x, y: list(accumulate(x))),
        once("record", "r=[]\nt=0\nfor v in x:\n t=max(t,v)\n r+=[t]\nx=r", "running max|record|highest so far",
            lambda x, y: list(accumulate(x, max, initial=0))[1:]),
        operation("until", (3, 4, 5, 6), "r=[]\nfor v in x:\n if v>K:break\n r+=[v]\nx=r",
            "until above K|stop over K|while <=K", lambda k: lambda x, y: list(takewhile(lambda v: v <= k, x))),
        once("squash", "r=[]\nfor v in x:\n if r[-1:]!=[v]:r+=[v]\nx=r", "squash repeats|no doubles|merge equal",
            lambda x, y: [v for v, _ in groupby(x)]),
        operation("repeat", (2, 3), "r=[]\nfor v in x:\n r+=[v]*K\nx=r", "each K times|repeat K|K of each",
            lambda k: lambda x, y: [v for v in x for _ in range(k)]),
        once("gaps", "r=[]\nfor i in range(1,len(x)):\n r+=[x[i]-x[i-1]]\nx=r", "differences|gaps|steps between",
            lambda x, y: [b - a for a, b in pairwise(x)]),
        once("pairs", "r=[]\nfor i in range(1,len(x)):\n r+=[x[i]+x[i-1]]\nx=r", "pair sums|add next|neighbours",
            lambda x, y: [a + b for a, b in pairwise(x)]),
        operation("shrink", (10, 15, 20), "while sum(x)>K:x=x[1:]", "shrink to K|drop until K|fit sum K", _shrink),
        operation("fill", (10, 12, 15, 20), "r=[]\nt=K\nfor v in x:\n if v<=t:\n  t-=v\n  r+=[v]\nx=r",
            "fill K|pack K|greedy K", _fill),
    )
)  # fmt: skip
