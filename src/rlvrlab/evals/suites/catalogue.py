"""The suites by name, and the members of one or several of them.

rlvr suite graphs --tier fast --models experiments/
"""

from __future__ import annotations

from rlvrlab.errors import UnknownName
from rlvrlab.evals.suites.base import Member, Suite
from rlvrlab.evals.suites.coding import CODING
from rlvrlab.evals.suites.graphs import GRAPHS
from rlvrlab.evals.suites.logic import LOGIC
from rlvrlab.evals.suites.mathematics import MATHEMATICS

SUITES: dict[str, Suite] = {suite.name: suite for suite in (GRAPHS, MATHEMATICS, LOGIC, CODING)}


def members_of(names: str) -> list[Member]:
    """The members of one suite, of several (`graphs,math`) or of `all`; what is in two of them comes once."""
    chosen = list(SUITES) if names == "all" else [name.strip() for name in names.split(",")]
    members: dict[str, Member] = {}
    for name in chosen:
        if name not in SUITES:
            raise UnknownName("suite", name, [*SUITES, "all"])
        for member in SUITES[name].members:
            members.setdefault(member.name, member)
    return list(members.values())
