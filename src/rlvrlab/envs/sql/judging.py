"""Asking the judge that environments share; when it fails, answers stay unjudged instead of wrong."""

from __future__ import annotations

from collections.abc import Sequence

from rlvrlab.envs.code.shared_judge import shared_judge
from rlvrlab.errors import LabError
from rlvrlab.judge.judge import Item
from rlvrlab.types import Verdict, unjudged


def judged(items: Sequence[Item]) -> list[Verdict]:
    """Verdicts in order."""
    try:
        return shared_judge().verify_many(items) if items else []
    except (LabError, OSError) as error:
        return [unjudged(f"the judge failed: {error}") for _ in items]
