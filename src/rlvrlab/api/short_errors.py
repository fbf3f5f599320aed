"""A user's mistake, told without the frames of the laboratory: the line of the script, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rlvrlab.errors import RunError, UserError

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def short_errors(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The same function; what it raises on purpose begins its traceback here, not deep inside."""

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except (UserError, RunError) as error:
            raise error.with_traceback(None) from None

    return called
