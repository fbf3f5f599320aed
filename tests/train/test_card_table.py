"""The table of cards: diversity beside accuracy."""

from __future__ import annotations

from rlvrlab.evals.cards import Card
from rlvrlab.train.card import card_table


def test_distinct_right_answers_stand_beside_accuracy_and_pass_at_k() -> None:
    measured = {"accepted_at_1": 0.5, "pass@8": 0.75, "distinct_accepted": 2.25}
    before = Card("baseline", 0, {"accepted_at_1": 0.25}, {"a": 0.0, "b": 1.0})
    _, rows = card_table([before, Card("grpo", 5, measured, {"a": 1.0, "b": 1.0})])
    told = {row[0]: row[1:] for row in rows}
    assert told["distinct right answers"] == ["–", "2.25"] and told["pass@8"] == ["–", "75.0"]


def test_what_the_recipes_reward_pays_stands_beside_accuracy_where_it_is_something_else() -> None:
    def paid(mean: float, **parts: float) -> dict[str, float]:
        return {"accepted_at_1": 0.5, "zero_reward_rate": 0.5, "reward_mean": mean, "reward_zero_rate": 0.25, **parts}

    _, rows = card_table([Card("grpo", 5, paid(0.5), {"a": 1.0})])
    assert "mean reward" not in [row[0] for row in rows], "a reward of 1 for right and 0 for wrong says nothing new"
    parts = {"reward/correct": 0.5, "reward/near": 0.125}
    _, rows = card_table([Card("sft", 2, paid(0.5), {"a": 1.0}), Card("grpo", 5, paid(0.625, **parts), {"a": 1.0})])
    told = {row[0]: row[1:] for row in rows}
    assert told["mean reward"] == ["0.500", "0.625"] and told["… near"] == ["–", "0.125"]
    assert told["reward is 0"] == ["25.0", "25.0"] and told["verifier gave 0"] == ["50.0", "50.0"]


def test_a_change_beyond_all_doubt_has_no_p_value_in_scientific_notation() -> None:
    outcomes = [{str(i): float(i < right) for i in range(200)} for right in (0, 150)]
    _, rows = card_table([Card("sft", 1, {"accepted_at_1": 0.0}, outcomes[0]), Card("grpo", 2, {}, outcomes[1])])
    assert rows[-1][-1].endswith("\np<0.0001")
