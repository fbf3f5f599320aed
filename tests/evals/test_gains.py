"""What each phase added: in words, with advice, and where an earlier state was better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.evals.cards import Card, better_before, gain_lines, gains, on_test


def card(phase: str, right: int, of: int = 40, *, control: bool = False) -> Card:
    return Card(phase, 0, {}, {f"p{i}": float(i < right) for i in range(of)}, control)


@pytest.mark.parametrize(
    ("before", "after", "said", "advice"),
    [
        (0, 30, "grpo raised accepted@1: test 0.0 → 75.0 %, +75.0 points [", ""),
        (30, 0, "grpo lowered accepted@1: test 75.0 → 0.0 %, -75.0 points [", "rlvr check reward"),
        (
            20,
            21,
            "grpo is not shown to add anything to accepted@1: test 50.0 → 52.5 %, +2.5 points [",
            "more test problems",
        ),
        (21, 20, "grpo is not shown to add anything to accepted@1: test 52.5 → 50.0 %, -2.5 points [", "several seeds"),
        (40, 40, "grpo is not shown to add anything to accepted@1", "nearly all was solved before it"),
        (0, 0, "grpo is not shown to add anything to accepted@1", "no answer is right"),
    ],
)
def test_a_phase_says_what_it_added_and_what_follows(before: int, after: int, said: str, advice: str) -> None:
    [line] = gain_lines(on_test([card("sft", before), card("grpo", after)]))
    assert line.startswith(said) and ("Try: " in line) is bool(advice) and advice in line


def test_less_training_before_is_advised_only_where_there_was_some() -> None:
    baseline, sft = card("baseline", 20), card("sft", 21)._replace(step=30)
    lines = gain_lines(on_test([baseline, sft, card("grpo", 22)._replace(step=60)]))
    assert ["less training before it" in line for line in lines] == [False, True]
    assert "with 40 test problems a true gain is found reliably only above" in lines[0]


def test_a_phase_is_compared_with_what_it_started_from() -> None:
    cards = [card("baseline", 0), card("sft", 10), card("more_sft", 30, control=True), card("grpo", 20)]
    told = {gain.phase: (gain.before, gain.after) for gain in on_test(cards)}
    assert told == {"sft": (0, 0.25), "more_sft": (0.25, 0.75), "grpo": (0.25, 0.5)}


def run_of(folder: Path, *accuracies: tuple[float, float, float]) -> Path:
    """A run of one phase with these dev accuracies, ten steps apart."""
    names = ("val-core/answers/acc", "val-core/answers/acc_low", "val-core/answers/acc_high")
    rows: list[dict[str, Any]] = [
        {"step": 10 * i, "phase": "grpo", **dict(zip(names, one, strict=True))} for i, one in enumerate(accuracies)
    ]
    (folder / "logs").mkdir()
    (folder / "logs" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_without_test_problems_a_phase_is_measured_on_dev(tmp_path: Path) -> None:
    [gain] = gains(run_of(tmp_path, (0.0, 0.0, 0.13), (0.76, 0.57, 0.89)))
    assert gain.role == "dev" and gain.verdict == "higher"


def test_an_earlier_state_is_pointed_to_only_where_it_was_better_beyond_chance(tmp_path: Path) -> None:
    high, low, middle = (0.76, 0.57, 0.89), (0.2, 0.09, 0.39), (0.6, 0.41, 0.77)
    (tmp_path / "fell").mkdir()
    fell = run_of(tmp_path / "fell", middle, high, low)
    assert f"dev 76.0 % at step 10, 20.0 % at step 20. It is kept as {fell}@best" in better_before(fell)
    (tmp_path / "level").mkdir()
    assert better_before(run_of(tmp_path / "level", low, high, middle)) == ""


@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 3), (0, 3)])
def test_few_test_problems_are_the_reason_whatever_came_of_them(before: int, after: int) -> None:
    [line] = gain_lines(on_test([card("grpo", before, 3), card("grpo", after, 3)]))
    assert "is not shown to add anything" in line
    assert "Try: 3 test problems can hardly show a gain: add rows" in line and "sft.steps" not in line
