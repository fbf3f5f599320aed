"""Texts of random tests come from one place, which costs a tenth of what Hypothesis' own default costs."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
COSTLY = re.compile(r"\bst\.text\((?:\)|m(?:in|ax)_size)|\bcodec=[\"']utf-8")


def test_no_test_asks_utf8_about_every_character() -> None:
    own = Path(__file__).name
    found = [path.name for path in TESTS.rglob("*.py") if path.name != own and COSTLY.search(path.read_text("utf-8"))]
    assert found == [], "use texts.any_text"
    assert COSTLY.search("st.text(max_size=3)") and COSTLY.search("st.text()") and not COSTLY.search('st.text("ab")')
