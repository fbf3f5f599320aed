"""How much a filter or a method would make, before it makes it: what a chat template can grow without a loop.

Pure: texts and numbers in, a number of characters out, or a TemplateError where no conversation asks for so much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

from jinja2 import TemplateError
from jinja2.utils import Namespace

WIDEST, DEEPEST_INDENT = 10**4, 16
CONTAINER = 16
"""Characters that a list or a table counts as, beside what is in it; it takes more bytes of memory."""
LONGEST_WRAPPED = 10**5
"""Characters that are cut into lines at a time, which takes their square of time."""
LONGEST_DATE = 100
"""Characters of a form of a date."""
SIZED = {"center", "indent", "batch", "slice", "round", "ljust", "rjust", "zfill", "expandtabs", "to_bytes", "wordwrap"}
"""Filters and methods whose numbers say how much they make."""
_WIDE = re.compile(r"%[^a-zA-Z%]*?(\*|\d{5,})")
_WIDTHS = re.compile(r"\d+")


def made_by(name: str, owner: Any, given: tuple[Any, ...]) -> int:
    """Characters or entries, beside those that come in, that a filter or a method of this name can make."""
    if name in SIZED:
        bound_widths(given)
    wide = max((_width(one) for one in given), default=0)
    if name in ("indent", "expandtabs"):
        return (str(owner).count("\n" if name == "indent" else "\t") + 1) * max(wide, 8)
    if name == "wordwrap":
        if len(str(owner)) > LONGEST_WRAPPED:
            raise TemplateError(f"wordwrap of more than {LONGEST_WRAPPED} characters")
        return len(str(owner)) * (1 + max((len(one) for one in given if isinstance(one, str)), default=0))
    if name == "translate" and given and isinstance(given[0], dict):
        return len(owner) * max((len(one) for one in given[0].values() if isinstance(one, str)), default=1)
    if name == "replace" and len(given) > 1:
        return str(owner).count(str(given[0])) * len(str(given[1]))
    if name == "join" and given and hasattr(given[0], "__len__"):
        return len(owner) * len(given[0])
    if name == "sum" and given and not isinstance(given[-1], int | float | str):
        return 100 * len(owner)  # lists are added one by one, each time anew
    return 0


def made_by_format(text: str, given: tuple[Any, ...]) -> int:
    """Characters that `{}` and their widths make of these values."""
    specs = [spec or "" for _, _, spec, _ in Formatter().parse(text)]
    if any("{" in spec or re.search(r"\d{5}", spec) for spec in specs):
        raise TemplateError("a format of changing or great width")
    return sum(int(width) for spec in specs for width in _WIDTHS.findall(spec)) + max(1, len(specs)) * weight(given)


def made_by_percent(text: str, given: tuple[Any, ...]) -> int:
    """The same of `%s`; names may be asked for more than once."""
    if _WIDE.search(text):
        raise TemplateError("a format of changing or great width")
    widths = sum(int(width) for width in re.findall(r"%[^a-zA-Z%]*?(\d{1,4})", text))
    return widths + max(1, text.count("%(")) * weight(given)


def weight(value: Any, most: int | None = None) -> int:
    """Characters and entries of a value, each as often as it is written; counting ends beyond `most`."""
    total, left = 0, [value]
    while left and (most is None or max(total, len(left)) <= most):
        one = left.pop()
        total += len(one) if isinstance(one, str | bytes) else 1
        if not isinstance(one, dict | list | tuple | set | Namespace):
            continue
        total += CONTAINER
        if isinstance(one, Namespace):
            left.append(one._Namespace__attrs)
        elif isinstance(one, dict):
            left += [*one, *one.values()]
        else:
            left += one
    return max(total, len(left))


def bound_widths(given: Iterable[Any]) -> None:
    """TemplateError for a number, or a text in its place, that is wider than any line."""
    if any(_width(one) > WIDEST for one in given):
        raise TemplateError(f"a width of more than {WIDEST}")


def _width(one: Any) -> int:
    return one if isinstance(one, int) else len(one) if isinstance(one, str) else 0
