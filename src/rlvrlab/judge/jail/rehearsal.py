"""Before its first child a zygote plays every role itself, on harmless jobs.

What an interpreter fills in while it runs (specialised bytecode, method caches, interned names, typing's generics) is
then there when a child is forked, which shares it; a child that had to fill it in would copy the page it lies on. The
jobs are ours; nothing of them is left in sight of a candidate.
"""

from __future__ import annotations

import os
import sys
from _socket import SHUT_WR, socketpair
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import PEER, REPORT, Job, Role, act
from rlvrlab.judge.jail.frames import Frames
from rlvrlab.judge.jail.limits import LONGEST_S

TIMES = 12
"""An interpreter specialises code that it has met a few times."""
INPUT = b"1 2 3\n" * 64
PROGRAM = """
import sys, math
n, *rest = map(int, input().split())
print(sum(rest), *sorted(rest), sep=" ")
for line in sys.stdin:
    a = [int(x) for x in line.split()]
    print(max(a), min(a))
    break
"""
SOLUTION = '''
from typing import Any, Dict, List, Optional, Set, Tuple, Union
from collections import Counter, defaultdict, deque
import math, re, itertools, functools, heapq

def f(a: List[float], b: float = 0.5, *c: Any, **d: Any) -> bool:
    """A function like many."""
    seen: Dict[str, int] = {}
    for i, one in enumerate(a):
        for j, other in enumerate(a):
            if i != j and abs(one - other) < b:
                seen["x"] = seen.get("x", 0) + 1
    text = "".join(str(int(one)) for one in a if one % 2 == 0 or one > 3)
    while b > 1:
        b /= 2
    return len(seen) > 0 and not text.startswith("no") or sorted(a)[::-1] == a[:1] + a[1:]

def g(a: List[int], b: List[str], c: Dict[str, int], d: Optional[int] = None) -> Tuple[List[int], Set[int]]:
    try:
        return [x * x for x in a], {len(x) for x in b}
    except ValueError as error:
        raise KeyError(str(error))

class Thing:
    def __init__(self, x: int) -> None:
        self.x = x
    def double(self) -> List[str]:
        return [f"{self.x * 2:>4}"]

def h(x: Union[int, str], y: List[List[int]] = [], z: Set[str] = set(), w: List[bool] = []) -> Optional[str]:
    return Thing(1).double()[0] if x else None
'''
CHECK = """
def check(candidate):
    assert candidate([1.0, 2.0, 3.9], 0.3) == False
    assert candidate([1.0, 2.0, 5.9, 4.0], b=2.5) == True
check(candidate)
"""
CALLS = [
    [plain.encode(([1.0, 2.5, 3.0], 0.3)), plain.encode({})],
    [plain.encode(([1, 2], 1, "x", (True, None))), plain.encode({"word": "x", "n": {"a": [1]}})],
]


def rehearse(roles: dict[str, Role]) -> list[int]:
    """Play the roles that judge programs, then put everything back; the exit statuses of the last round."""
    loaded = {"code": SOLUTION, "entry_point": "f", "cpu_s": LONGEST_S}
    answers = ["ready", ["value", False], ["value", True]]
    jobs: list[tuple[Job, list[Any]]] = [
        ({"role": "program", "code": PROGRAM}, []),
        ({"role": "calls", **loaded, "calls": CALLS}, []),
        ({"role": "inprocess", **loaded}, [["", CHECK]]),
        ({"role": "candidate", **loaded}, [[*call, 1] for call in CALLS]),
        ({"role": "tester", **loaded, "setup": "", "tests": (CHECK,)}, answers),
    ]
    main, arguments, path = sys.modules["__main__"], sys.argv, sys.path[:]
    kept = [os.dup(number) for number in range(PEER + 1)]
    try:
        for _ in range(TIMES):
            statuses = [_play(roles, job, frames) for job, frames in jobs]
        return statuses
    finally:
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)
        sys.modules["__main__"], sys.argv, sys.path[:] = main, arguments, path
        for name in ("solution", "tests"):
            sys.modules.pop(name, None)


def _play(roles: dict[str, Role], job: Job, frames: list[Any]) -> int:
    """Run one role with its output discarded and all its partner's messages already waiting in the socket."""
    nowhere, given = os.open("/dev/null", os.O_RDWR), os.memfd_create("rehearsal")
    os.write(given, INPUT)
    os.lseek(given, 0, os.SEEK_SET)
    ours, theirs = socketpair()
    partner = Frames(ours.fileno())
    for frame in frames:
        partner.send(frame)
    ours.shutdown(SHUT_WR)
    for source, number in ((given, 0), (nowhere, 1), (nowhere, 2), (nowhere, REPORT), (theirs.fileno(), PEER)):
        os.dup2(source, number)
    os.close(given)
    os.close(nowhere)
    try:
        return act(roles[job["role"]], job)
    finally:
        ours.close()
        theirs.close()
