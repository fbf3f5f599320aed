"""Protocols: stages without gaps, draws in proportion, lengths and optimiser state from stage to stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.errors import UserError
from rlvrlab.notes import hearing
from rlvrlab.randomness import drawn
from rlvrlab.train.checks import note_left_out, ready_lab
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import stage_ended
from rlvrlab.train.protocols.base import cut
from rlvrlab.train.protocols.curriculum import Curriculum
from rlvrlab.train.protocols.mixed import dealt
from rlvrlab.train.state import Memory, State, stage_at
from rlvrlab.train.step import enter
from rlvrlab.types import Problem, Request

SKILLS = """
name = "tiny"
phases = ["sft", "grpo"]
[env]
type = "mixture"
members = [
  {type = "countdown", label = "plus", numbers = [2], high = 9, operators = "+", style = "bare"},
  {type = "countdown", label = "times", numbers = [2], high = 9, operators = "*", style = "bare"},
]
[engine]
type = "toy"
max_number = 90
buckets = 4
[data]
train_size = 40
dev_size = 8
[rollout]
n = 4
max_tokens = 6
[eval]
every = 0
[checkpoint]
every = 4
[sft]
steps = 12
batch_size = 16
references = 30
learning_rate = 0.2
[grpo]
steps = 6
batch_size = 6
"""
"""Two skills that share the policy."""


@given(st.integers(1, 60), st.lists(st.floats(0.1, 5), min_size=1, max_size=6))
def test_stages_are_cut_without_gaps(steps: int, shares: list[float]) -> None:
    if steps < len(shares):
        with pytest.raises(UserError, match="stages in"):
            cut(steps, shares, "protocol")
        return
    bounds = cut(steps, shares, "protocol")
    assert bounds[0][0] == 0 and bounds[-1][1] == steps
    assert all(first < last for first, last in bounds)
    assert all(a[1] == b[0] for a, b in pairwise(bounds))


def test_a_stream_visits_everything_once_per_epoch() -> None:
    problems = [Problem(f"p{i}", "s", "k", str(i)) for i in range(7)]
    seen = Counter(p.id for start in range(0, 21, 3) for p in drawn(problems, (0, "x"), start, start + 3))
    assert sum(seen.values()) >= 20 and max(seen.values()) <= 3, "a draw over an epoch's edge may lose a double"
    assert drawn(problems, (0, "x"), 5, 5) == []


def lab_of(folder: Path, *overrides: str):
    lab = ready_lab(runs.recipe(folder, *overrides, text=SKILLS))
    return lab, lab.resolved.phase("grpo")


def skills_drawn(lab, phase, step: int, size: int = 6) -> Counter:
    return Counter(p.skill for p in problems_at(lab, phase, step, size))


def problems_at(lab, phase, step: int, size: int = 6) -> list[Problem]:
    stage = stage_at(lab.stages(phase.steps), step)
    return lab.protocol.problems(lab.train, lab.recipe.seed, stage, "grpo", step - stage.first, size)


def entered(lab, phase, step: int, memory: Memory | None = None) -> Memory:
    return enter(lab, phase, phase.estimators(lab.resolved), State(phase_step=step, step=step), memory or Memory())[1]


def test_sequential_trains_one_skill_after_the_other(tmp_path: Path) -> None:
    words = ["protocol.type=sequential", 'protocol.order=["times","plus"]', "protocol.shares=[2,1]"]
    lab, phase = lab_of(tmp_path, *words)
    stages = lab.stages(phase.steps)
    assert [(s.name, s.first, s.last) for s in stages] == [("times", 0, 4), ("plus", 4, 6)]
    assert set(skills_drawn(lab, phase, 3)) == {"times"} and set(skills_drawn(lab, phase, 4)) == {"plus"}
    assert [stage_ended(lab, phase, i) for i in range(1, 7)] == [False, False, False, True, False, True]


def test_single_and_mixed(tmp_path: Path) -> None:
    lab, phase = lab_of(tmp_path, "protocol.type=single", "protocol.skill=times")
    assert set(skills_drawn(lab, phase, 0)) == {"times"}
    lab, phase = lab_of(tmp_path, "protocol.type=mixed", "protocol.ratios={plus = 9, times = 1}")
    total = sum((skills_drawn(lab, phase, step, size=4) for step in range(20)), Counter())
    assert total["times"] == 8 and total["plus"] == pytest.approx(72, abs=6), "one in ten, though a batch holds four"
    lab, phase = lab_of(tmp_path, "protocol.type=mixed")
    assert skills_drawn(lab, phase, 0) == {"plus": 3, "times": 3}


def test_one_skill_that_nobody_named_is_told(tmp_path: Path) -> None:
    """Asked for in place of all of them, it trains the first alone, and a curve of one skill is not that of six."""
    told: list[str] = []
    with hearing(lambda _, words: told.append(words)):
        for words in ("protocol.type=single", "protocol.type=mixed"):
            note_left_out(lab_of(tmp_path, words)[0])
        note_left_out(lab_of(tmp_path, "protocol.type=single", "protocol.skill=times")[0])
    (said,) = told
    assert said == (
        "protocol.skill: not named, so plus alone is trained; the others (times) are only evaluated; "
        'name one, or train all with protocol.type = "mixed"'
    )


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=7), st.integers(1, 40), st.integers(0, 400))
def test_places_are_dealt_by_weight_without_remainder(weights: list[float], size: int, step: int) -> None:
    before, after = dealt(step * size, weights), dealt((step + 1) * size, weights)
    assert sum(before) == step * size and sum(after) == (step + 1) * size
    assert all(a <= b for a, b in zip(before, after, strict=True)), "nobody loses a place by dealing on"
    fair = [(step + 1) * size * weight / sum(weights) for weight in weights]
    assert all(abs(a - f) <= (len(weights) + 1) / 2 for a, f in zip(after, fair, strict=True))


def test_dealing_starts_near_the_end_and_ends_as_if_begun_at_the_first_place() -> None:
    weights, had = [5.0, 3.0, 1.0, 0.2], [0, 0, 0, 0]
    for places in range(300):
        assert dealt(places, weights) == had
        had[max(range(4), key=lambda i: weights[i] / (had[i] + 0.5))] += 1


def test_every_step_of_a_mixture_is_a_full_batch(tmp_path: Path) -> None:
    third = '  {type = "countdown", label = "minus", numbers = [2], high = 9, operators = "-", style = "bare"},\n]'
    text = SKILLS.replace("]\n[engine]", f"{third}\n[engine]").replace("train_size = 40", "train_size = 60")
    lab = build_lab(runs.recipe(tmp_path, "protocol.type=mixed", text=text))
    phase = lab.resolved.phase("grpo")
    draws = [skills_drawn(lab, phase, step, size=4) for step in range(3)]
    assert [sum(draw.values()) for draw in draws] == [4, 4, 4]
    assert sum(draws, Counter()) == {"plus": 4, "times": 4, "minus": 4}


def test_curriculum_has_levels_lengths_and_keeps_the_optimiser(tmp_path: Path) -> None:
    text = SKILLS.replace('label = "plus", numbers = [2]', 'label = "plus", numbers = [2, 3]')
    words = ["protocol.type=curriculum", "protocol.lengths=[4,6]", "sft.references=40"]
    lab = build_lab(runs.recipe(tmp_path, *words, text=text))
    phase = lab.resolved.phase("grpo")
    stages = lab.stages(phase.steps)
    assert [(s.name, s.carry, s.max_tokens) for s in stages] == [("level2", False, 4), ("level3", True, 6)]
    memory = entered(lab, phase, 0)
    assert {p.meta["level"] for p in problems_at(lab, phase, 0)} == {2}
    lab.engine._optimizer.count = 7
    entered(lab, phase, 5, memory)
    assert lab.engine._optimizer.count == 7
    assert {p.meta["level"] for p in problems_at(lab, phase, 5)} == {3}
    drawn_lengths = []
    for step in (0, 5):
        outcome = phase.step(lab, phase.estimators(lab.resolved), State(phase_step=step, step=step), Memory())
        drawn_lengths.append(max(len(rollout.completion.tokens) for rollout in outcome.rollouts))
    assert drawn_lengths[0] <= 4 and drawn_lengths[1] == 6, "an untrained policy fills the room it has"


def longest_asked(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Collects the room that every answer of the policy is given from now on."""
    asked: set[int] = set()
    sample = type(lab.engine).sample

    def watched(engine: Any, requests: Sequence[Request]) -> Any:
        asked.update(request.sampling.max_tokens for request in requests)
        return sample(engine, requests)

    monkeypatch.setattr(type(lab.engine), "sample", watched)
    return asked


@pytest.mark.parametrize(
    "words",
    [
        ["guard.type=skill_safe", "guard.gradient=policy", 'guard.protected=["times"]', "guard.trigger=drop"],
        ["credit.type=counterfactual", "credit.replay=resample", "reward.type=random"],
    ],
)
def test_a_stages_length_holds_for_guards_and_credit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    text = SKILLS.replace('label = "plus", numbers = [2]', 'label = "plus", numbers = [2, 3]')
    lengths = ["protocol.type=curriculum", "protocol.lengths=[6,4]", "sft.references=40"]
    lab = build_lab(runs.recipe(tmp_path, *lengths, *words, text=text))
    phase = lab.resolved.phase(lab.recipe.phases[-1])
    asked = longest_asked(lab, monkeypatch)
    phase.step(lab, phase.estimators(lab.resolved), State(phase_step=3, step=3), Memory())
    assert asked <= {1, 2, 3, 4} and 4 in asked


def test_a_stages_length_holds_for_second_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SKILLS.replace('label = "plus", numbers = [2]', 'label = "plus", numbers = [2, 3]')
    words = ["protocol.type=curriculum", "protocol.lengths=[4,6]", "sft.references=40", 'phases=["grpo_turns"]']
    lab = build_lab(runs.recipe(tmp_path, *words, "grpo_turns.steps=6", "grpo_turns.batch_size=6", text=text))
    phase = lab.resolved.phase("grpo_turns")
    monkeypatch.setattr("rlvrlab.rollout.turns.feedback", lambda env, tries: [problem.prompt for problem, *_ in tries])
    asked = longest_asked(lab, monkeypatch)
    outcome = phase.step(lab, phase.estimators(lab.resolved), State(), Memory())
    assert asked == {4} and any(rollout.turn for rollout in outcome.rollouts)


def test_a_new_skill_begins_with_a_fresh_optimiser_and_reference(tmp_path: Path) -> None:
    for carry, left in (("false", 0), ("true", 7)):
        lab, phase = lab_of(tmp_path, "protocol.type=sequential", f"protocol.carry_optimizer={carry}")
        memory = entered(lab, phase, 0)
        lab.engine._optimizer.count = 7
        lab.engine.theta = lab.engine.theta + 1
        entered(lab, phase, 3, memory)
        assert lab.engine._optimizer.count == left
        assert np.array_equal(lab.engine.reference, lab.engine.theta) is (carry == "false")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["protocol.type=single", "protocol.skill=tmies"], "did you mean 'times'"),
        (["protocol.type=sequential", 'protocol.order=["plus","plus"]'], "names a skill twice"),
        (["protocol.type=sequential", "protocol.shares=[1,2,3]"], "3 shares for 2 stages"),
        (["protocol.type=sequential", "grpo.steps=1"], "2 stages in 1 steps"),
        (["protocol.type=curriculum", "protocol.levels=[9]"], "no training problem of level"),
        (["protocol.type=curriculum", "protocol.lengths=[3,4]"], "2 lengths for 1 levels"),
        (["guard.type=l2"], "nothing to protect"),
        (["guard.type=l2", 'guard.protected=["pluss"]'], "did you mean 'plus'"),
    ],
)
def test_what_cannot_work_is_said_before_the_first_step(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        lab_of(tmp_path, *words)


def test_every_skill_is_evaluated_when_a_stage_ends(tmp_path: Path) -> None:
    ended = runs.run(tmp_path, "protocol.type=sequential", text=SKILLS)
    rows = [r for r in runs.read_metrics(ended.folder) if r["phase"] == "grpo"]
    measured = [r["phase_step"] for r in rows if "val-core/mixture/plus/acc" in r]
    assert measured == [0, 3, 6]
    for row in (r for r in rows if r["phase_step"] in measured):
        accuracies = [row[f"val-core/mixture/{skill}/acc"] for skill in ("plus", "times")]
        assert row["val-core/mixture/acc"] == pytest.approx(np.mean(accuracies))
        assert row["val-core/mixture/worst_skill/acc"] == min(accuracies)
        assert sum(row[f"val-core/mixture/{skill}/n"] for skill in ("plus", "times")) == 8, "every judged answer counts"
    assert [r["stage/index"] for r in rows if r["phase_step"]] == [0, 0, 0, 1, 1, 1]
    assert runs.events(ended.folder, "stage") == ["stage 1 of 2 begins: plus", "stage 2 of 2 begins: times"]


def test_a_curriculum_over_problems_without_levels_says_so() -> None:
    unlevelled = [Problem(str(i), "own", "own", "?", {}) for i in range(3)]
    with pytest.raises(UserError, match="these training problems have none; give the rows a level"):
        Curriculum().stages(unlevelled, 4)
