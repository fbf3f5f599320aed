"""Finding the program in a completion."""

from __future__ import annotations

import pytest

from rlvrlab.judge.extract import extract_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("Sure!\n```\nx = 1\n```\nDone.", "x = 1\n"),
        ("```py\na = 1\n```\ntext\n```python\nb = 2\n```", "b = 2\n"),
        ("```bash\nls\n```\n```python\nb = 2\n```", "b = 2\n"),
        ("~~~python\na = 1\n~~~", "a = 1\n"),
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("```python\nprint(1)", "print(1)"),
        ("```python\r\nprint(1)\r\n```", "print(1)\r\n"),
    ],
)
def test_found(text: str, code: str) -> None:
    assert extract_code(text).code == code


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot do that.", "prose"),
        ("", "prose"),
        ("```python\n\n```", "empty"),
        ("```bash\nls\n```", "no code block in python"),
    ],
)
def test_not_found(text: str, reason: str) -> None:
    found = extract_code(text)
    assert found.code is None and reason in found.reason


def test_several_blocks_on_demand() -> None:
    text = "```python\na = 1\n```\n```python\nb = 2\n```"
    assert extract_code(text, which="all").code == "a = 1\n\nb = 2\n"
    assert extract_code(text, which="first").code == "a = 1\n"
    assert extract_code(text, which="only").code is None
