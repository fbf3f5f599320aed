"""A user's mistake, told without the frames of the laboratory: the line of the script, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from rlvrlab.errors import RunError, UserError, suggestion

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def short_errors(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The same function; what it raises on purpose begins its traceback here, not deep inside.

    An argument that it does not have is such a mistake, too.
    """
    known = signature(function).parameters
    allowed = [name for name in known if name != "self"]
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            for name in kwargs.keys() - known.keys() if not takes_any else ():
                raise UserError(f"{function.__qualname__}: unknown argument {name!r}{suggestion(name, allowed)}")
            return function(*args, **kwargs)
        except (UserError, RunError) as error:
            raise error.with_traceback(None) from None

    return called
