"""Arguments that a function does not have, and those that it hands on."""

from __future__ import annotations

from typing import Any

import pytest

from rlvrlab import UserError
from rlvrlab.api.short_errors import short_errors


@short_errors
def strict(size: int = 0) -> int:
    return size


@short_errors
def handing_on(size: int = 0, **options: Any) -> dict[str, Any]:
    return {"size": size, **options}


def test_an_unknown_argument_is_refused_unless_any_is_taken() -> None:
    assert strict(size=1) == 1 and handing_on(size=1, siez=3) == {"size": 1, "siez": 3}
    with pytest.raises(UserError, match="strict: unknown argument 'siez'; did you mean 'size'"):
        strict(siez=3)  # type: ignore[call-arg]
