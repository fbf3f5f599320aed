"""Reading without the texts finds what reading everything finds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.report.reading import NEEDED, decoded, judged

TEXT = any_text(max_size=8) | st.sampled_from([', "tokens": [1, 2]', ', "prompt": ', "\\", '"', "]", "}, {", '\\\\"'])
SMALL = st.none() | st.booleans() | st.integers() | TEXT
NESTED = st.dictionaries(
    TEXT | st.sampled_from(["prompt", "tokens", "skill"]), SMALL | st.lists(SMALL, max_size=3), max_size=4
)
ROW = st.fixed_dictionaries(
    {"id": TEXT, "skill": TEXT, "previous": TEXT, "prompt": TEXT, "reference": NESTED | SMALL, "completion": TEXT,
     "tokens": st.lists(st.integers(0, 9), max_size=4), "correct": st.none() | st.booleans(), "error": TEXT,
     "detail": TEXT, "reward": st.none() | st.floats(allow_nan=False), "parts": NESTED}
)  # fmt: skip


def truth(line: bytes) -> dict[str, Any]:
    row = json.loads(line)
    count = len(row["tokens"]) if isinstance(row.get("tokens"), list) else row.get("tokens")
    return {"tokens": count} | {key: row.get(key) for key in NEEDED}


@given(row=ROW, order=st.none() | st.permutations(list(range(12))), ascii_only=st.booleans())
def test_what_was_judged_is_what_the_line_says(row: dict[str, Any], order: list[int] | None, ascii_only: bool) -> None:
    """As training writes it, and in any other order of keys."""
    keys = list(row) if order is None else [list(row)[i] for i in order]
    line = json.dumps({key: row[key] for key in keys}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = judged(line)
    assert {key: found.get(key) for key in ("tokens", *NEEDED)} == truth(line)


def test_texts_are_left_out_of_lines_as_training_writes_them() -> None:
    row = {"id": "a", "skill": "s", "prompt": "p", "completion": "c", "tokens": [1, 2, 3], "correct": True,
           "error": "none", "reward": 1.0}  # fmt: skip
    found = judged(json.dumps(row).encode())
    assert found["tokens"] == 3 and "completion" not in found


@pytest.mark.parametrize(
    "line",
    [b'"\\ud800"', b"[1e400, NaN]", b'{"a": 1, "a": 2}', b"12345678901234567890123"],
)
def test_odd_json_is_read_as_the_standard_library_does(line: bytes) -> None:
    assert repr(decoded(line)) == repr(json.loads(line))


@pytest.mark.parametrize("line", [b'{"a": 1', b"{'a': 1}", b'{"a": 1} x', b"\xff\xfe", b"[" * 100_000, b'"\x01"'])
def test_what_is_no_json_is_refused(line: bytes) -> None:
    for read in (decoded, judged):
        with pytest.raises((ValueError, RecursionError)):
            read(line)
