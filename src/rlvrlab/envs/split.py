"""The split by content: which role a problem has is decided by what it asks, never by a seed, a setting or a file.

    share of the keys    0 … held_out-1   held_out … 2*held_out-1   the rest      (of TENTHS)
    role                 test             dev                       train

Every environment and every data set goes through these functions, so equal content is never in two roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlvrlab.envs.answers import as_seen, squeezed
from rlvrlab.errors import UserError
from rlvrlab.randomness import key_bits
from rlvrlab.types import Problem, Role

TENTHS = 10
ROLES: tuple[Role, ...] = ("test", "dev", "train")
"""In the order in which they claim a question."""


def role_of(*content: object) -> Role:
    """The role of some plain content: one tenth test, one tenth dev, the rest train."""
    return role_of_key(key_bits(*content))


def role_of_question(question: str) -> Role:
    """The role of a question of the user's own; case and blanks do not count, so near copies stay together."""
    return role_of(squeezed(question))


def role_of_key(key: int, held_out: int = 1) -> Role:
    """The role of content that is already hashed; `held_out` tenths are test, and as many dev."""
    share = key % TENTHS
    return "test" if share < held_out else "dev" if share < 2 * held_out else "train"


def role_in_training_set(by_content: Role) -> Role:
    """The role of a row of a published training set without a dev set: dev where its content says so, else train."""
    return "dev" if by_content == "dev" else "train"


class Asked(NamedTuple):
    """A row of the user's own table."""

    where: str
    """How the row is named in messages."""
    question: str
    """What the policy sees; two rows that share it, apart from blanks around it, are one problem."""
    problem: Problem


def each_once(rows: Sequence[Asked], table: str = "") -> list[Problem]:
    """The problems in the order of their rows, each question once: test keeps it before dev, dev before train.

    Rows that ask the same and want another answer are refused: nobody could answer both. `table` begins the message.
    A question that another role has in another spelling is left out; in one role both stay, for the spelling may
    decide the answer (`In capitals? a`, `In capitals? A`).
    """
    claimed: dict[str, list[Asked]] = {}
    kept: list[int] = []
    for index in sorted(range(len(rows)), key=lambda index: ROLES.index(rows[index].problem.role)):
        row = rows[index]
        before = claimed.setdefault(as_seen(row.question), [])
        if not [one for one in before if _is_twin(one, row, table)]:
            before.append(row)
            kept.append(index)
    return [rows[index].problem for index in sorted(kept)]


def _is_twin(before: Asked, row: Asked, table: str) -> bool:
    """Whether a row is one too many beside another that is spelt like it, or nearly."""
    if before.question.strip() != row.question.strip():
        return before.problem.role != row.problem.role
    (what, one), (_, other) = _decisive(before.problem), _decisive(row.problem)
    if one != other:
        twins = f"{row.where}: asks the same as {before.where} with another {what}"
        raise UserError(f"{table}{twins} ({one!r:.40} there, {other!r:.40} here); keep one")
    return True


def _decisive(problem: Problem) -> tuple[str, object]:
    """What an answer is held against, with its name: without a reference, whatever else the row has."""
    return ("answer", problem.reference) if problem.reference is not None else ("content", dict(problem.meta))
