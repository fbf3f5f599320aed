"""The page's tables of what verl trains are what the plug-ins declare: a new one cannot be forgotten on either side."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from rlvrlab.registry import names

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cluster.md").read_text(encoding="utf-8")
script = runpy.run_path(str(DOCS / "make_verl_table.py"))
refused = script["refused"]


def test_the_tables_of_the_page_are_what_is_declared() -> None:
    assert script["table"]() in PAGE


@pytest.mark.parametrize("kind", script["KINDS"])
def test_every_plug_in_is_in_the_table_once(kind: str) -> None:
    lines = PAGE.partition(script["HEAD"])[2].splitlines()
    line = next(line for line in lines if line.startswith(f"| {kind} |"))
    assert [name for name in names(kind) if line.count(f"`{name}`") != 1] == []


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"guard": {"type": "replay"}}, ""), ({"guard": {"type": "l2"}}, ""), ({"guard": {"type": "ewc"}}, ""),
        ({"surgery": {"type": "mgda", "group_strategy": "difficulty"}}, ""),
        ({"protocol": {"type": "curriculum", "lengths": [8, 16]}}, "one longest answer"),
        ({"phases": ["grpo_turns"]}, "one answer at a time"), ({"env": {"type": "agent"}}, ""),
        ({"guard": {"type": "average"}}, "between steps"),
    ],
)  # fmt: skip
def test_what_is_trained_and_what_is_refused(tables: dict, expected: str) -> None:
    found = refused(tables)
    assert found is not None and (expected in found if expected else found == "")


def test_what_no_engine_takes_is_not_held_against_verl() -> None:
    assert refused({"guard": {"type": "l2", "no_such_key": 1}}) is None
