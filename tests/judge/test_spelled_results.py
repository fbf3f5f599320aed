"""A wrong result is shown to people and policies as Python writes it, whatever a candidate made of its report."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.judge.jail import plain
from rlvrlab.judge.modes.calls import spelled

scalars = st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.floats(allow_nan=False, allow_infinity=False)
keys = scalars | any_text(max_size=5)
values = st.recursive(
    keys,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner) | st.sets(keys, min_size=1)
    ),
    max_leaves=12,
)


@given(values)
def test_plain_values_are_spelled_as_python_reads_them(value: object) -> None:
    assert ast.literal_eval(spelled(plain.encode(value))) == value


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (["int", "0x20000000000000"], "int('0x20000000000000')"),
        (["set", []], "set()"),
        (["dict", [["a", 1], ["b"]]], 'dict([["a", 1], ["b"]])'),
        (["list", "no items"], "list('no items')"),
        (["range", [0, 5, 1]], "range([0, 5, 1])"),
        ([], "[]"),
        (["\ud800", 1], '["\\ud800", 1]'),
    ],
)
def test_other_forms_are_shown_as_they_came(form: object, text: str) -> None:
    assert spelled(form) == text


@given(
    st.recursive(
        scalars | any_text(), lambda inner: st.lists(inner) | st.dictionaries(any_text(), inner), max_leaves=20
    )
)
def test_nothing_a_candidate_reports_fails_to_be_shown(form: object) -> None:
    assert isinstance(spelled(json.loads(json.dumps(form))).encode(), bytes)
