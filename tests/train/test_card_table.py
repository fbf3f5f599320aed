"""The table of cards: diversity beside accuracy."""

from __future__ import annotations

from rlvrlab.train.card import Card, card_table


def test_distinct_right_answers_stand_beside_accuracy_and_pass_at_k() -> None:
    measured = {"accepted_at_1": 0.5, "pass@8": 0.75, "distinct_accepted": 2.25}
    before = Card("baseline", 0, {"accepted_at_1": 0.25}, {"a": 0.0, "b": 1.0})
    _, rows = card_table([before, Card("grpo", 5, measured, {"a": 1.0, "b": 1.0})])
    told = {row[0]: row[1:] for row in rows}
    assert told["distinct right answers"] == ["–", "2.25"] and told["pass@8"] == ["–", "75.0"]
