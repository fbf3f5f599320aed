"""A table of a recipe as the plug-in that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rlvrlab.errors import UserError
from rlvrlab.recipe.remedies import first_words
from rlvrlab.registry import find


def instantiate(kind: str, table: dict[str, Any], folder: Path | None = None) -> Any:
    """The plug-in object of a table (own files: in `folder`); raises pydantic's ValidationError or UnknownName."""
    table = dict(table)
    cls = find(kind, table.pop("type"), folder)
    # Strict JSON mode takes TOML's arrays for tuples but no text for numbers.
    return adapter(cls).validate_json(json.dumps(table, default=str))


def instantiate_part(kind: str, table: dict[str, Any], where: str, folder: Path | None = None) -> Any:
    """A plug-in within the table of another one; a mistake is told with its place."""
    if not isinstance(table.get("type"), str):
        raise UserError(f"{where} needs `type = NAME`")
    try:
        return instantiate(kind, table, folder)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except ValueError as error:  # pydantic's own, several lines long
        raise UserError(f"{where} ({table['type']}): {first_words(error)}") from None


_adapters: dict[type[Any], TypeAdapter[Any]] = {}
"""Building one takes ten times as long as using it, and a study checks thousands of tables of the same classes."""


def adapter(cls: type[Any]) -> TypeAdapter[Any]:
    """What checks tables of this class, and writes its objects as tables."""
    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]
