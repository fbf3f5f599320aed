"""The page's tables of what verl trains are what the plug-ins declare: a new one cannot be forgotten on either side."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.registry import names
from rlvrlab.scale.verl import honoured

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_what_is_declared() -> None:
    assert honoured.table() in PAGE


@pytest.mark.parametrize("kind", honoured.KINDS)
def test_every_plug_in_is_in_the_table_once(kind: str) -> None:
    lines = PAGE.partition(honoured.HEAD)[2].splitlines()
    line = next(line for line in lines if line.startswith(f"| {kind} |"))
    assert [name for name in names(kind) if line.count(f"`{name}`") != 1] == []


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"guard": {"type": "replay"}}, ""), ({"guard": {"type": "l2"}}, ""), ({"guard": {"type": "ewc"}}, ""),
        ({"surgery": {"type": "mgda", "group_strategy": "difficulty"}}, ""),
        ({"protocol": {"type": "curriculum", "lengths": [8, 16]}}, "one longest answer"),
        ({"phases": ["grpo_turns"]}, "one turn"), ({"env": {"type": "agent"}}, "one turn"),
        ({"guard": {"type": "average"}}, "between steps"),
    ],
)  # fmt: skip
def test_what_is_trained_and_what_is_refused(tables: dict, expected: str) -> None:
    found = honoured.refused(tables)
    assert found is not None and (expected in found if expected else found == "")


def test_what_no_engine_takes_is_not_held_against_verl() -> None:
    assert honoured.refused({"guard": {"type": "l2", "no_such_key": 1}}) is None
