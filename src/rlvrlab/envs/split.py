"""The split by content: which role a problem has is decided by what it asks, never by a seed, a setting or a file.

    share of the keys    0 … held_out-1   held_out … 2*held_out-1   the rest      (of TENTHS)
    role                 test             dev                       train

Every environment and every data set goes through these functions, so equal content is never in two roles.

What a problem may be used for follows from its role, and is enforced where data is used:

| role  | train, sft, preference | tune (choose settings, checkpoints) | evaluate |
|-------|------------------------|-------------------------------------|----------|
| train | yes                    | no                                  | yes      |
| dev   | no                     | yes                                 | yes      |
| test  | no                     | no                                  | yes      |

Of data in files the role stands in each row and in the manifest. Some published sets are test whatever a file says of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from rlvrlab.envs.answers import as_seen, squeezed
from rlvrlab.errors import UserError, first_few
from rlvrlab.randomness import key_bits
from rlvrlab.types import Problem, Role

TENTHS = 10
ROLES: tuple[Role, ...] = ("test", "dev", "train")
"""In the order in which they claim a question."""
TEST_ONLY = ("HumanEval/", "Python/", "Mbpp/")
"""Ids of HumanEval, HumanEvalPack and EvalPlus' MBPP+: no setting makes them training data."""
Use = Literal["train", "sft", "preference", "tune", "evaluate"]
ALLOWED: dict[Use, tuple[Role, ...]] = {
    "train": ("train",),
    "sft": ("train",),
    "preference": ("train",),
    "tune": ("dev",),
    "evaluate": ("train", "dev", "test"),
}
WORDS: dict[Use, str] = {
    "train": "training",
    "sft": "SFT data",
    "preference": "preference pairs",
    "tune": "tuning",
    "evaluate": "evaluation",
}


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


def enforced_role(problem: Problem) -> Role:
    """The role it is held to: published test problems stay test under any label."""
    return "test" if problem.source.startswith("code") and problem.id.startswith(TEST_ONLY) else problem.role


def require(problems: Iterable[Problem], use: Use, where: str) -> None:
    """Refuse rows whose role forbids this use, by name."""
    allowed = ALLOWED[use]
    refuse_roles([(p.id, enforced_role(p)) for p in problems if enforced_role(p) not in allowed], use, where)


def refuse_roles(wrong: Sequence[tuple[str, str]], use: Use, where: str) -> None:
    """Say which rows may not be used, and for what."""
    if wrong:
        rows = first_few([f"{name} ({role})" for name, role in wrong])
        allowed = " or ".join(ALLOWED[use])
        plural = "rows are" if len(wrong) > 1 else "row is"
        raise UserError(f"{where}: {len(wrong)} {plural} not for {WORDS[use]}, which takes role {allowed}: {rows}")
