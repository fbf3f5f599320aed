"""Repair and own-answer phases on the toy policy: they run, keep their pairs, resume exactly, and refuse in words."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from rlvrlab.errors import UserError
from rlvrlab.evals.cards import change, read_cards
from rlvrlab.record.files import read_lines
from rlvrlab.train.card import card_table
from rlvrlab.train.phases.repair import hindsight

FEEDBACK_ENV = """
from dataclasses import dataclass
from rlvrlab.envs.countdown import Countdown
from rlvrlab.registry import register

@register("env", "asks_again")
@dataclass(frozen=True)
class AsksAgain(Countdown):
    '''Countdown that repeats its question.'''

    def second_turn(self, problem, text, verdict):
        return problem.prompt
"""
TURNS = runs.TINY.replace('"sft", "dpo", "grpo", "ppo"', '"sft", "repair", "grpo_turns"').replace(
    'type = "countdown"', 'type = "again.py:AsksAgain"'
) + """
[repair]
steps = 3
batch_size = 6
problems = 20
[grpo_turns]
steps = 2
batch_size = 4
"""  # fmt: skip


def turns_run(folder: Path, *overrides: str):
    folder.mkdir(parents=True)
    (folder / "again.py").write_text(FEEDBACK_ENV)
    return runs.run(folder, *overrides, text=TURNS)


def test_repair_learns_from_pairs_of_one_group_and_second_tries_are_recorded(tmp_path: Path) -> None:
    folder = turns_run(tmp_path / "a").folder
    pairs = read_lines(folder / "artifacts" / "repair_pairs.jsonl")
    assert {row["turn"] for row in pairs} == {0, 1}
    assert all(row["previous"] != row["text"] for row in pairs if row["turn"] == 1)
    metrics = [row for row in runs.read_metrics(folder) if row["phase"] == "repair" and row["phase_step"]]
    assert len(metrics) == 3 and all(row["repair/pairs"] > 0 for row in metrics)
    second = [r for path in (folder / "rollouts").iterdir() for r in read_lines(path) if r["turn"] == 1]
    assert second and all(r["previous"] and r["group"].endswith("turn1") for r in second)


def test_own_answers_are_those_judged_right(tmp_path: Path) -> None:
    text = runs.TINY + "[rft]\nsteps = 2\nbatch_size = 16\n"
    with pytest.raises(UserError, match="solved none"):
        runs.run(tmp_path / "untrained", 'phases=["rft"]', "rollout.n=1", "rft.problems=2", text=text)
    ended = runs.run(tmp_path / "trained", 'phases=["sft", "rft"]', "sft.steps=20", "rft.problems=30", text=text)
    kept = read_lines(ended.folder / "artifacts" / "rft_answers.jsonl")
    assert kept and len({(row["problem"], tuple(row["answer"])) for row in kept}) == len(kept)


def test_hindsight_pairs_need_both_kinds() -> None:
    from test_collections import answer

    group = [answer("a", *one) for one in (("bad", False), ("good", True), ("bad", False), ("worse", False))]
    assert [(w.completion.text, r.completion.text) for w, r in hindsight([*group, answer("b", "bad", False)], 5)] == [
        ("bad", "good"),
        ("worse", "good"),
    ]
    assert len(hindsight(group, 1)) == 1


@pytest.mark.slow
def test_cards_between_phases_are_comparable_and_reproducible(tmp_path: Path) -> None:
    first = turns_run(tmp_path / "a", "eval.test_size=6", "eval.test_n=4").folder
    second = turns_run(tmp_path / "b", "eval.test_size=6", "eval.test_n=4").folder
    cards = read_cards(first)
    assert [card.phase for card in cards] == ["baseline", "sft", "repair", "grpo_turns"]
    assert [card.step for card in cards] == [0, 5, 8, 10]
    assert len({frozenset(card.outcomes) for card in cards}) == 1 and len(cards[0].outcomes) == 6
    assert all({"recovery_rate", "blind_recovery_rate", "pass@4"} <= card.metrics.keys() for card in cards)
    assert [card.outcomes for card in cards] == [card.outcomes for card in read_cards(second)]
    solved = [sum(card.outcomes.values()) / 6 for card in cards]
    assert change(cards[0], cards[1]).mean == pytest.approx(solved[1] - solved[0])
    head, rows = card_table(cards)
    assert head[1:] == [card.phase for card in cards] and all(len(row) == len(head) for row in rows)
    assert "recovery_rate" in (first / "EXPERIMENT.md").read_text()
    kept = read_lines(first / "analysis/cards/2_repair.answers.jsonl")
    failed = {row["problem"] for row in kept if row["turn"] == 0 and row["correct"] is False}
    assert all({row["problem"] for row in kept if row["turn"] == turn} == failed for turn in (1, -1))


def test_a_control_arm_leaves_the_policy_as_it_was(tmp_path: Path) -> None:
    text = runs.TINY + "[more_sft]\nsteps = 4\nbatch_size = 8\nlearning_rate = 0.5\n"
    plain = runs.run(tmp_path / "plain", 'phases=["sft", "grpo"]', "eval.test_size=6", text=text).folder
    with_arm = runs.run(tmp_path / "arm", 'phases=["sft", "more_sft", "grpo"]', "eval.test_size=6", text=text).folder
    cards = {folder: {card.phase: card for card in read_cards(folder)} for folder in (plain, with_arm)}
    answers = read_lines(plain / "analysis/cards/2_grpo.answers.jsonl")
    assert {row["problem"]: row["correct"] for row in answers} == cards[plain]["grpo"].outcomes
    assert all(row["prompt"] and row["turn"] == 0 for row in answers)
    assert cards[plain]["grpo"].outcomes == cards[with_arm]["grpo"].outcomes
    learnt = [[r for r in runs.read_metrics(f) if r["phase"] == "grpo" and r["phase_step"]] for f in (plain, with_arm)]
    assert [r["critic/rewards/mean"] for r in learnt[0]] == [r["critic/rewards/mean"] for r in learnt[1]]
    assert cards[with_arm]["more_sft"].control and "more_sft\n(control)" in card_table(read_cards(with_arm))[0]
    with pytest.raises(UserError, match="cannot be the first"):
        runs.run(tmp_path / "first", 'phases=["more_sft"]', text=text)
