"""Counts of answers and of credited turns of the runs with calls in plain text."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "studies" / "agents"))
import fence_tables


def test_untrained_answers_are_counted_by_what_they_lack() -> None:
    call = '{"name": "python", "arguments": {"code": "1 + 1"}}'
    answers = [f"tool\n{call}\n<tool_response>2</tool_response>", f"```tool\n{call}\n```", "tool\n{broken", "### 2"]
    assert [*fence_tables.forms(answers).values()] == [4, 1, 2, 1, 1]


def test_turns_with_credit_are_counted_by_kind_and_sign() -> None:
    def episode(group: str, right: bool, call: float | None, last: float | None) -> dict:
        steps = [{"kind": "turn", "credit": call}, {"kind": "final", "credit": last}]
        return {"group": group, "correct": right, "steps": steps}

    found = fence_tables.credited(
        [episode("a", True, 0.5, 0.0), episode("a", False, -1.0, None), episode("b", True, 0.0, 0.0)]
    )
    assert (found["turns"], found["turns with a call, credit known"], found["last turns, credit known"]) == (6, 3, 2)
    assert (found["turns with a call, credit above zero"], found["turns with a call, credit below zero"]) == (1, 1)
    assert found["groups with credit"] == 1 and found["credit below zero in an episode that is right"] == 0
