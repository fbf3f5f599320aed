"""What a problem may be used for, enforced where data is used.

| role  | train, sft, preference | tune (choose settings, checkpoints) | evaluate |
|-------|------------------------|-------------------------------------|----------|
| train | yes                    | no                                  | yes      |
| dev   | no                     | yes                                 | yes      |
| test  | no                     | no                                  | yes      |

The role stands in each row and in the manifest. Some published sets are test whatever a file says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rlvrlab.envs.base import TEST_ONLY
from rlvrlab.errors import UserError, first_few
from rlvrlab.types import Problem, Role

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
