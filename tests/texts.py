"""Any text there can be, as `hypothesis.strategies.text()` draws it, without asking UTF-8 about every character.

On a fresh clone that question takes seven seconds, and every process of the tests asks it anew.
"""

from __future__ import annotations

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=["Cs"])
"""All that UTF-8 can hold: everything but surrogates."""


def any_text(*, min_size: int = 0, max_size: int | None = None) -> st.SearchStrategy[str]:
    """A text of these characters."""
    return st.text(CHARACTERS, min_size=min_size, max_size=max_size)
