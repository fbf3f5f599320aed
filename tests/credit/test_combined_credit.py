"""Credits one after the other: the same as working them out alone and putting them together by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.cli.credit import NoPolicy
from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.combined import Combined
from rlvrlab.credit.doubly_robust import DoublyRobust
from rlvrlab.credit.trace import Trace
from rlvrlab.credit.tree import Tree
from rlvrlab.envs.minicode.environment import Minicode
from rlvrlab.errors import RecipeError, UserError
from rlvrlab.record.run import read_metrics
from rlvrlab.rewards.binary import Binary
from rlvrlab.scale.verl.refusals import refusals
from rlvrlab.train import session
from rlvrlab.train.credit.credited import StepCredits
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Branch, Completion, Problem, Reward, Rollout, Sampling

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import runs

LINES = [(" x=x[:3]\n", " return max(x+[0])\n"), (" x=x[:3]\n", " return min(x+[0])\n"),
         (" x=x[1:]\n", " return max(x+[0])\n"), (" x=x[1:]\n", " return 0\n")]  # fmt: skip
"""Two first lines with two ways on each; the first answer is right."""
TABLES = ({"type": "tree"}, {"type": "trace", "before": "zero"}, {"type": "doubly_robust", "weight": 0.5})
PARTS = (Tree(), Trace(before="zero"), DoublyRobust(weight=0.5))
MEMORY = '{type="doubly_robust", invalid="count", segmentation="characters"}'
TREE_AND_MEMORY = f'credit.of=[{{type="tree", boundary="tokens", every=2}}, {MEMORY}]'


@pytest.fixture(scope="module")
def grown() -> list[Rollout]:
    cases = [[[[3, 1, 4, 1]], 4], [[[9, 2]], 9], [[[1, 2, 3, 8]], 3], [[[5, 5, 6]], 6]]
    problem = Problem("p", "minicode", "gen", "", {"skill": "gen", "header": "def f(x):\n", "hidden": cases})
    verdicts = Minicode().verify_many([(problem, first + second) for first, second in LINES])
    assert [verdict.correct for verdict in verdicts] == [True, False, False, False]
    rollouts = []
    for at, ((first, second), verdict) in enumerate(zip(LINES, verdicts, strict=True)):
        whole = first + second
        branches = Branch((at // 2,), len(first), 2), Branch((at // 2, at % 2), len(whole), 1)
        answer = Completion(whole, tuple(map(ord, whole)), (), branches=branches)
        rollouts.append(Rollout(f"g/{at}", "g", problem, (1,), answer, verdict, Reward(float(bool(verdict.correct)))))
    return rollouts


def credits(plugin: StepCredit, rollouts: list[Rollout]) -> StepCredits:
    return credit_of(plugin, rollouts, Minicode(), Binary(), NoPolicy(), Sampling())


def batch(rollouts: list[Rollout]) -> TokenBatch:
    """GRPO's advantages of one right answer among four."""
    tokens = [rollout.completion.tokens for rollout in rollouts]
    advantage_BT = np.zeros((len(rollouts), max(map(len, tokens))))
    for row, written in enumerate(tokens):
        advantage_BT[row, : len(written)] = 1.5 if row == 0 else -0.5
    return batch_of([(1,)] * len(rollouts), tokens, advantage_BT=advantage_BT)


def test_tree_trace_and_replays_are_put_together_as_by_hand(grown: list[Rollout]) -> None:
    alone = [credits(part, grown) for part in PARTS]
    together = credits(Combined(TABLES), grown)
    found_BT = together.on(batch(grown), grown).advantage_BT
    for row, (first, second) in enumerate(LINES):
        # V(first line) is 1/2 and 0; siblings are compared with one another.
        tree_T = np.repeat([[0.5, 0.5, -0.5, -0.5][row], [1.0, -1.0, 0.0, 0.0][row]], [len(first), len(second)])
        blamed_T = np.repeat([row > 1, row == 1], [len(first), len(second)]) | (row == 0)
        replayed = alone[2].answers[f"g/{row}"]
        by_hand_T = tree_T * blamed_T + 0.5 * replayed.credit_S[replayed.trajectory.step_T]
        assert found_BT[row, : len(by_hand_T)] == pytest.approx(by_hand_T), row
    assert np.abs(alone[2].answers["g/0"].credit_S).sum() > 0, "replays say something here"


def test_credits_that_add_are_their_sum_in_any_order(grown: list[Rollout]) -> None:
    count = {"type": "counterfactual", "counterfactual_k": 0, "intervention_types": ["delete"], "invalid": "count"}
    plain = batch(grown)
    single = [credits(Combined((table,)), grown).on(plain, grown) for table in (count, TABLES[2])]
    by_hand_BT = plain.advantage_BT + sum(one.advantage_BT - plain.advantage_BT for one in single)
    for tables in ((count, TABLES[2]), (TABLES[2], count)):
        assert credits(Combined(tables), grown).on(plain, grown).advantage_BT == pytest.approx(by_hand_BT)
    assert not np.allclose(by_hand_BT, plain.advantage_BT)


def test_what_the_parts_need_cost_and_remember_is_told_of_the_whole(grown: list[Rollout]) -> None:
    plugin, together = Combined(TABLES), credits(Combined(TABLES), grown)
    assert plugin.grows and plugin.follows and plugin.remembers and plugin.needs_replays and plugin.keeps_dead_groups
    assert not plugin.needs_sampling and plugin.label == "shaping" and plugin.shape(8).branches == (4, 2)
    alone = [credits(part, grown) for part in PARTS]
    for key in ("tree/drawn_tokens", "credit/traced", "credit/verifier_calls"):
        assert together.metrics[key] == next(one.metrics[key] for one in alone if key in one.metrics), key
    assert together.metrics["credit/unbiased"] == 0 and together.remembered == alone[2].remembered != {}
    assert together.speaking(grown) == grown and not credits(Combined(TABLES[:2]), grown).speaking(grown)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((), "at least one"),
        (({"weight": 1.0},), r"of\[0\] needs"),
        (({"type": "trace"}, {"type": "tree"}), "put it first"),
        (({"type": "doubly_robust"}, {"type": "doubly_robust"}), "one memory"),
        (({"type": "combined"},), "hold no combined"),
        (({"type": "trace"}, {"type": "trade"}), r"of\[1\].*did you mean 'trace'"),
        (({"type": "trace", "weight": -1},), r"of\[0\] \(trace\)"),
    ],
)
def test_what_cannot_be_combined_is_refused(tables: tuple[dict, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Combined(tables)


def test_a_run_grows_its_tree_remembers_and_resumes_exactly(tmp_path: Path) -> None:
    words = ("credit.type=combined", TREE_AND_MEMORY, "grpo.steps=4")
    whole = runs.run(tmp_path / "a", *words, text=runs.ONLINE).folder
    rows = [row for row in read_metrics(whole) if "tree/shared" in row]
    assert len(rows) == 4 and rows[-1]["credit/statements"] > 0 and min(row["credit/asked"] for row in rows) < 1
    broken = runs.run(tmp_path / "b", *words, text=runs.ONLINE).folder
    for late in (broken / "checkpoints").glob("global_step_9"):
        (late / "manifest.json").unlink()
    session.resume(broken, runs.quiet)
    runs.assert_same(whole, broken)


def test_a_recipe_is_told_what_its_parts_ask_for(tmp_path: Path) -> None:
    resolved = runs.recipe(tmp_path, "credit.type=combined", TREE_AND_MEMORY, text=runs.ONLINE)
    assert resolved.recipe.rollout.grows and resolved.origins["rollout.type"] == "by credit"
    assert any("combined learns from step to step" in line for line in refusals(resolved))
    with pytest.raises(RecipeError, match=r"rollout\.n = 6"):
        runs.recipe(tmp_path, "credit.type=combined", 'credit.of=[{type="tree", branches=[3, 2]}]', text=runs.ONLINE)
