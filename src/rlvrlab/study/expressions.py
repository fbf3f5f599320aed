"""The only expression a study file knows: best("volume") and best("volume").data.train_size."""

from __future__ import annotations

import re
from typing import NamedTuple

from rlvrlab.errors import UserError

_FORM = re.compile(r"""\s*best\(\s*(?:"([^"]*)"|'([^']*)')\s*\)\s*(?:\.\s*([A-Za-z_][\w.]*))?\s*""", re.ASCII)


class Best(NamedTuple):
    """The winner of a stage, or one of its settings."""

    stage: str
    key: str | None


def parse_best(text: str, where: str, *, keyed: bool) -> Best:
    """Read it, or say what it should look like; `keyed` asks for a recipe key after it."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise UserError(f'{where}: {text!r} is not of the form best("STAGE"){".recipe.key" if keyed else ""}')
    stage, key = found[1] if found[1] is not None else found[2], found[3]
    if keyed and key is None:
        raise UserError(f'{where}: {text!r} names no recipe key; write e.g. best("{stage}").data.train_size')
    if key is not None and not all(part.isidentifier() for part in key.split(".")):
        raise UserError(f"{where}: {key!r} is not a dotted recipe key")
    if not keyed and key is not None:
        raise UserError(f'{where}: takes a whole winner, best("{stage}"); single keys belong into inputs')
    return Best(stage, key)
