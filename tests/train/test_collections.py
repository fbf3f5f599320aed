"""From problems to mini-batches: epochs, groups, pairs, refills, KL and the sampler's correction."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.record.files import read_lines
from rlvrlab.surgery.pcgrad import PcGrad
from rlvrlab.train.batches import assemble, minibatches, sort_groups
from rlvrlab.train.guards.memory import with_answers
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.phases.dpo import DpoPhase, pair_batch
from rlvrlab.train.state import Difficulty, Kept
from rlvrlab.train.surgery import Grouping
from rlvrlab.types import Completion, Finish, Problem, Reward, Rollout, Verdict


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return build_lab(runs.recipe(tmp_path_factory.mktemp("lab")))


@given(size=st.integers(1, 30), step=st.integers(0, 200))
def test_every_problem_once_per_epoch(lab: Lab, size: int, step: int) -> None:
    """Any run of steps that makes up whole epochs visits each problem equally often, edges merged."""
    total = len(lab.train)
    first = step * total  # a multiple of `total` steps starts at an epoch's beginning, whatever the size
    seen: Counter[str] = Counter()
    short = 0
    for i in range(total):
        batch = lab.problems_at("x", first + i, size)
        assert len({p.id for p in batch}) == len(batch), "never one problem twice in a batch"
        short += size - len(batch)
        seen.update(p.id for p in batch)
    assert set(seen) == {p.id for p in lab.train}
    assert sum(seen.values()) + short == total * size
    assert max(seen.values()) <= size and short <= size * size


def test_problems_are_reshuffled_by_epoch_seed_and_stream(lab: Lab) -> None:
    total = len(lab.train)
    epochs = [[p.id for p in lab.problems_at("x", step, total)] for step in range(2)]
    assert epochs[0] != epochs[1] and sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] == [p.id for p in lab.problems_at("x", 0, total)]
    assert epochs[0] != [p.id for p in lab.problems_at("y", 0, total)]


PROBLEM = Problem("p", "test", "test", "1 2 = 3\n")


def answer(group: str, text: str, correct: bool | None, reward: float | None = None) -> Rollout:
    given = None if correct is None else Reward(float(correct) if reward is None else reward)
    completion = Completion(text, (5, 6, 0), (-1.0, -2.0, -0.5), Finish.STOP)
    problem = replace(PROBLEM, id=group)
    return Rollout(f"{group}/{text}", group, problem, (3, 4), completion, Verdict(correct), given)


def test_groups_are_sorted_by_what_they_teach() -> None:
    rollouts = [
        answer("live", "a", True), answer("live", "b", False), answer("live", "c", None),
        answer("right", "a", True), answer("right", "b", True),
        answer("wrong", "a", False), answer("wrong", "b", False),
        answer("same", "a", True, 0.5), answer("same", "b", False, 0.5),
        answer("unjudged", "a", None), answer("unjudged", "b", None),
        answer("single", "a", True), answer("single", "b", None),
    ]  # fmt: skip
    found = sort_groups(rollouts)
    assert {r.group_id for r in found.live} == {"live"} and len(found.live) == 3 and len(found.dead) == 10
    kinds = ("live", "all_right", "all_wrong", "same_reward", "unjudged", "singleton")
    assert found.reasons == dict.fromkeys(kinds, 1)
    assert found.groups == 6


def test_an_unjudged_row_is_seen_but_not_trained_on() -> None:
    batch = assemble([answer("g", "a", True), answer("g", "b", None)], horizon=8)
    assert batch.seen_BT.all() and batch.loss_BT[0].all() and not batch.loss_BT[1].any()
    assert (batch.scale.rows, batch.scale.tokens) == (1, 3)


@given(groups=st.integers(1, 9), size=st.integers(1, 4), count=st.integers(1, 5), epochs=st.integers(1, 3))
def test_minibatches_keep_groups_whole(groups: int, size: int, count: int, epochs: int) -> None:
    rollouts = [answer(f"g{g}", str(i), bool(i % 2)) for g in range(groups) for i in range(size)]
    batch = assemble(rollouts, horizon=8)
    parts = list(minibatches(batch, count, epochs, 0, "grpo", 3))
    assert len(parts) == epochs * min(count, groups)
    seen = Counter(int(g) for part in parts for g in part.group_B)
    assert seen == dict.fromkeys(range(groups), size * epochs)
    for part in parts:
        assert all(n == size for n in Counter(part.group_B.tolist()).values())
        assert part.scale.tokens == int(part.loss_BT.sum()), "every part is an update of its own"


def test_pairs_are_right_against_wrong_of_one_problem() -> None:
    rollouts = [
        answer("a", "good", True), answer("a", "good", True), answer("a", "bad", False), answer("a", "worse", False),
        answer("a", "unknown", None),
        answer("b", "good", True),
        answer("c", "bad", False), answer("c", "lost", None),
    ]  # fmt: skip
    pairs = DpoPhase(pairs_per_problem=5).own_pairs(rollouts)
    assert [(p["problem"], p["chosen_text"], p["rejected_text"]) for p in pairs] == [
        ("a", "good", "bad"),
        ("a", "good", "worse"),
    ]
    assert len(DpoPhase(pairs_per_problem=1).own_pairs(rollouts)) == 1
    batch = pair_batch(pairs)
    assert batch.pair_B.tolist() == [0, 0, 1, 1] and batch.chosen_B.tolist() == [True, False, True, False]


def test_pairs_can_ask_for_a_margin_and_like_lengths() -> None:
    right, near, far = answer("a", "good", True), answer("a", "near", False), answer("a", "far", False)
    right, near = (replace(r, verdict=replace(r.verdict, score=s)) for r, s in ((right, 1.0), (near, 0.9)))
    far = replace(far, completion=replace(far.completion, tokens=(5,) * 9))
    texts = [p["rejected_text"] for p in DpoPhase(margin=0.5, pairs_per_problem=5).own_pairs([right, near, far])]
    assert texts == ["far"], "a near miss is no clear loser"
    texts = [p["rejected_text"] for p in DpoPhase(length_ratio=2.0, pairs_per_problem=5).own_pairs([right, near, far])]
    assert texts == ["near"], "three tokens against nine is a lesson about length"


def grpo(folder: Path) -> list[dict]:
    return [row for row in runs.read_metrics(folder) if row["phase"] == "grpo" and row["phase_step"]]


def test_refill_asks_other_problems(whole: Path, tmp_path: Path) -> None:
    drop = grpo(whole)
    folder = runs.run(tmp_path / "refill", "filter.dead_groups=refill", "filter.max_refills=2", text=runs.ONLINE).folder
    refill = grpo(folder)
    assert all(row["groups/collected"] == 4 for row in drop)
    assert all(row["groups/collected"] in (4, 8, 12) for row in refill)
    assert any(row["groups/collected"] > 4 for row in refill)
    assert refill[0]["groups/live"] > drop[0]["groups/live"]
    ids = [row["id"] for path in (folder / "rollouts").glob("*.jsonl") for row in read_lines(path)]
    assert len(ids) == len(set(ids)), "an id is unique within a run"


TWICE = ["grpo.steps=3", "grpo.epochs=2"]


@pytest.fixture(scope="module")
def without_kl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("plain"), *TWICE, text=runs.ONLINE).folder


@pytest.mark.parametrize(
    ("place", "estimator"),
    [("loss", "k3"), ("reward", "k1"),
     *(pytest.param(*more, marks=pytest.mark.slow) for more in (("loss", "k2"), ("reward", "k2"), ("reward", "k3")))],
)  # fmt: skip
def test_kl_in_loss_and_in_reward(tmp_path: Path, without_kl: Path, place: str, estimator: str) -> None:
    settings = ["kl.coef=0.5", f"kl.place={place}", f"kl.estimator={estimator}", *TWICE]
    folder = runs.run(tmp_path, *settings, text=runs.ONLINE).folder
    mine, other = (runs.arrays(runs.last_checkpoint(f))["theta"] for f in (folder, without_kl))
    assert np.isfinite(mine).all() and not np.array_equal(mine, other)
    if place == "loss":
        assert any("kl" in key for row in grpo(folder) for key in row)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_a_sampler_at_another_temperature_is_corrected(tmp_path: Path, level: str) -> None:
    settings = ["rollout.temperature=1.3", f"correction.level={level}", "grpo.steps=3"]
    rows = [r for r in grpo(runs.run(tmp_path, *settings, text=runs.ONLINE).folder) if "actor/grad_norm" in r]
    assert rows
    for row in rows:
        assert 0 < row["rollout_is/mean"] <= 2 and 0 < row["rollout_is/ess"] <= 1
        assert row["rollout_is/min"] < 1 < row["rollout_is/max"]


@pytest.mark.slow
def test_no_refill_where_no_group_is_dead(tmp_path: Path) -> None:
    """A draw over the edge of two epochs is short of a problem; that alone asks for no other."""
    words = ["reward.type=random", "filter.dead_groups=refill", 'phases=["grpo"]', "grpo.batch_size=29", "grpo.steps=3"]
    folder = runs.run(tmp_path, *words, "rollout.n=24").folder  # so many coins never fall alike
    groups = {row["group"] for path in (folder / "rollouts").iterdir() for row in read_lines(path)}
    assert groups and not [group for group in groups if "refill" in group]


def test_a_guard_remembers_first_tries_only() -> None:
    kept = Kept({}, {"problems": {PROBLEM.skill: [replace(PROBLEM, id="p")]}})
    first = answer("p", "a", True)
    second = replace(
        answer("p", "b", True), turn=1, prompt_tokens=(9, 9), completion=Completion("b", (7, 0), (0.0, 0.0))
    )
    stored = with_answers(kept, [second, first, second], 2).memory["answers"][PROBLEM.skill]["p"]
    assert stored == {"prompt": [3, 4], "answers": [[5, 6, 0]]}


def test_what_was_not_judged_is_no_evidence_of_difficulty() -> None:
    grouping = Grouping(PcGrad(group_strategy="difficulty"), [], 0)
    seen = [answer("p", "a", True), answer("p", "b", False), answer("q", "a", None), answer("q", "b", None)]
    second = replace(answer("p", "c", False), group_id="p/turn1", turn=1)
    assert grouping.observed(Difficulty(), [*seen, second]).rates == {"p": 0.5}
