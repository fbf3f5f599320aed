"""Trees of answers: exact expectations over all trees of small policies, and what such a run asks and keeps."""

from __future__ import annotations

import json
import signal
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from answers import rounded
from pieces import END, Pieces

from rlvrlab.credit.base import Shape
from rlvrlab.credit.tree import Tree, tree_credit
from rlvrlab.engines.toy.engine import Toy
from rlvrlab.errors import RecipeError, UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.record.run import read_metrics
from rlvrlab.rollout.tree import grow
from rlvrlab.scale.verl.refusals import refusals
from rlvrlab.train import session
from rlvrlab.train.batches import assemble
from rlvrlab.train.checks import ready_lab
from rlvrlab.train.plan import phase_plans
from rlvrlab.types import Branch, Completion, ErrorKind, Finish, Problem, Request, Reward, Rollout, Sampling, Verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import faults
import runs

SHAPES = {
    "tokens": (("", "a"), 3, Shape((2, 2), "tokens", 1)),
    "more tokens": (("", "a", "b"), 2, Shape((2, 2), "tokens", 1)),
    "lines": (("", "a", "\n"), 2, Shape((2, 2), "lines", 1)),
    "three ways": (("", "a"), 2, Shape((3, 2), "tokens", 1)),
}
TREE = ("rollout.type=tree", "credit.boundary=tokens", "credit.every=2", "grpo.steps=4")


@dataclass
class EveryChoice:
    """A sampler that makes given choices first and then always the first one; it notes all of them."""

    tokenizer: Pieces
    policy: dict[tuple[int, ...], np.ndarray]
    choices: list[int]
    made: list[int] = field(default_factory=list)
    chance: float = 1.0

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        return [[self.draw(request) for _ in range(request.n)] for request in requests]

    def draw(self, request: Request) -> Completion:
        tokens: list[int] = []
        while len(tokens) < request.sampling.max_tokens:
            seen = (*request.tokens, *tokens)
            choice = self.choices[len(self.made)] if len(self.made) < len(self.choices) else 0
            self.made.append(choice)
            self.chance *= self.policy[seen][choice]
            tokens.append(choice)
            if choice == END or self.tokenizer.texts[choice] in request.sampling.stop:
                return Completion(self.tokenizer.decode(tokens), tuple(tokens), (0.0,) * len(tokens), Finish.STOP)
        return Completion(self.tokenizer.decode(tokens), tuple(tokens), (0.0,) * len(tokens), Finish.LENGTH)


def every_tree(texts: tuple[str, ...], length: int, shape: Shape, policy: dict) -> Iterator[tuple[float, list]]:
    """All trees that this policy can grow, with their chances."""
    choices: list[int] = []
    while True:
        sampler = EveryChoice(Pieces(texts), policy, choices)
        request = Request((), int(np.prod(shape.branches)), ("p",), Sampling(max_tokens=length))
        [answers] = grow(sampler, [request], shape)
        yield sampler.chance, answers
        choices = sampler.made
        while choices and choices[-1] == len(texts) - 1:
            choices = choices[:-1]
        if not choices:
            return
        choices = [*choices[:-1], choices[-1] + 1]


def random_policy(texts: tuple[str, ...], length: int, number: int) -> dict[tuple[int, ...], np.ndarray]:
    rng, policy, histories = np.random.default_rng(number), {}, [()]
    for _ in range(length):
        for history in histories:
            weights = np.exp(rng.standard_normal(len(texts)))
            policy[history] = weights / weights.sum()
        histories = [(*history, token) for history in histories for token in range(1, len(texts))]
    return policy


def reward(tokens: Sequence[int]) -> float:
    return zlib.crc32(bytes(tokens)) % 4 / 3


def truth(texts: tuple[str, ...], length: int, policy: dict) -> tuple[dict[tuple[int, ...], float], dict]:
    """The value of every beginning, and the gradient of the expected reward by history."""
    value: dict[tuple[int, ...], float] = {}

    def worth(history: tuple[int, ...]) -> float:
        if history[-1:] == (END,) or len(history) == length:
            value[history] = reward(history)
        else:
            value[history] = sum(policy[history][t] * worth((*history, t)) for t in range(len(texts)))
        return value[history]

    worth(())
    gradient = {}
    for history, chances in policy.items():
        reach = np.prod([policy[history[:t]][token] for t, token in enumerate(history)])
        gradient[history] = (
            reach * chances * (np.array([value[*history, t] for t in range(len(texts))]) - value[history])
        )
    return value, gradient


@pytest.mark.parametrize("name", SHAPES)
def test_the_expected_credit_of_a_step_is_its_advantage_given_what_came_before(name: str) -> None:
    texts, length, shape = SHAPES[name]
    policy = random_policy(texts, length, 3)
    value, _ = truth(texts, length, policy)
    mass, total = dict[tuple, float](), dict[tuple, float]()
    for chance, answers in every_tree(texts, length, shape, policy):
        rewards = np.array([reward(one.tokens) for one in answers])
        for one, (credit_S, _) in zip(answers, tree_credit([one.branches for one in answers], rewards), strict=True):
            begins = 0
            for branch, credit in zip(one.branches, credit_S, strict=True):
                if branch.path[0] < 0:  # drawn only where others ended early, which says something about the others
                    continue
                key = branch.path, one.tokens[:begins], one.tokens[: branch.end]
                mass[key], total[key] = mass.get(key, 0) + chance, total.get(key, 0) + chance * credit
                begins = branch.end
    assert len(mass) > 10
    for (path, before, after), chance in mass.items():
        assert total[path, before, after] / chance == pytest.approx(value[after] - value[before], abs=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_the_expected_update_is_the_policy_gradient(name: str) -> None:
    """Also where the policy ends before it could branch; answers beside the tree are counted by themselves."""
    texts, length, shape = SHAPES[name]
    policy = random_policy(texts, length, 4)
    _, true = truth(texts, length, policy)
    on_tree, off_tree = ({history: np.zeros(len(texts)) for history in policy} for _ in range(2))
    extra = all_of_it = 0.0
    for chance, answers in every_tree(texts, length, shape, policy):
        all_of_it += chance
        assert len(answers) == np.prod(shape.branches)
        rewards = np.array([reward(one.tokens) for one in answers])
        credits = Tree().grown([one.branches for one in answers], rewards)
        for one, (_, trained_S) in zip(answers, credits, strict=True):
            is_beside = one.branches[0].path[0] < 0
            extra += chance * is_beside
            for t, token in enumerate(one.tokens):
                step = next(i for i, branch in enumerate(one.branches) if t < branch.end)
                score = -policy[one.tokens[:t]]
                score[token] += 1
                (off_tree if is_beside else on_tree)[one.tokens[:t]] += chance * trained_S[step] * score
    assert all_of_it == pytest.approx(1.0)
    for history, wanted in true.items():
        assert on_tree[history] == pytest.approx(np.prod(shape.branches) * wanted, abs=1e-12)
        assert off_tree[history] == pytest.approx(extra * wanted, abs=1e-12)
    assert extra > 0


def test_unjudged_leaves_are_left_out_and_a_lone_step_is_unknown() -> None:
    answers = [[Branch((i // 2,), 1, 2), Branch((i // 2, i % 2), 2, 1)] for i in range(4)]
    credit = tree_credit(answers, np.array([1.0, np.nan, 0.0, 1.0]))
    assert credit[0][0].tolist()[0] == pytest.approx(0.5) and np.isnan(credit[0][0][1])
    assert credit[2][0].tolist() == pytest.approx([-0.5, -1.0]) and np.isnan(credit[1][0][1])


def toy_engine():
    engine = Toy(max_number=99, buckets=8).build(Optimizer())
    engine.theta = np.random.default_rng(0).standard_normal(engine.theta.size) * 0.3
    return engine


def requests(engine, count: int) -> list[Request]:
    settings = Sampling(max_tokens=12)
    return [Request(engine.tokenizer.encode(f"{i} 17 = 51\n"), 8, ("q", i), settings) for i in range(3, 3 + count)]


@pytest.mark.parametrize(
    "shape", [Shape((4, 2), "tokens", 3), Shape((2, 2, 2), "tokens", 2), Shape((2, 4), "lines", 2)]
)
def test_the_order_of_answers_and_what_they_are_depend_on_key_and_policy_alone(shape: Shape) -> None:
    engine = toy_engine()
    together = grow(engine, requests(engine, 3), shape)
    alone = [grow(engine, [one], shape)[0] for one in requests(engine, 3)]
    assert rounded(together) == rounded(alone)
    assert [len(group) for group in together] == [8, 8, 8]
    for group in together:
        paths = [one.branches[-1].path for one in group if one.branches[0].path[0] >= 0]
        assert paths == sorted(paths) and len(set(paths)) == len(paths)
        for one in group:
            ends = [branch.end for branch in one.branches]
            assert ends == sorted(ends) and ends[-1] == len(one.tokens) <= 12
            for other in group:
                for mine, theirs in zip(one.branches, other.branches, strict=False):
                    if mine.path == theirs.path:
                        assert mine == theirs and one.tokens[: mine.end] == other.tokens[: mine.end]


@pytest.mark.parametrize("shape", [Shape((4, 2), "tokens", 3), Shape((2, 4), "lines", 1)])
def test_answers_grow_in_the_contexts_that_training_sees_them_in(shape: Shape) -> None:
    """The sampler's log-probabilities are those of the whole answer after the prompt."""
    engine = toy_engine()
    asked = requests(engine, 3)
    judged = Verdict(True, 1.0, ErrorKind.NONE)
    rollouts = [
        Rollout(str(i), "g", Problem("p", "s", "k", ""), request.tokens, one, judged, Reward(1.0))
        for request, group in zip(asked, grow(engine, asked, shape), strict=True)
        for i, one in enumerate(group)
    ]
    batch = assemble(rollouts, 12)
    logp_BT, _ = engine.logprobs(batch)
    assert batch.behaviour_BT[batch.seen_BT] == pytest.approx(logp_BT[batch.seen_BT], abs=1e-12)


def stored(folder: Path) -> list[dict]:
    return [json.loads(line) for path in folder.glob("rollouts/*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.parametrize("more", [(), ("pipeline.lag=1",)])
def test_a_run_on_trees_goes_on_exactly_after_an_interruption(tmp_path: Path, more: tuple[str, ...]) -> None:
    whole = runs.run(tmp_path / "a", *TREE, *more, text=runs.ONLINE).folder
    rows = [row for row in read_metrics(whole) if "tree/shared" in row]
    assert len(rows) == 4 and all(row["credit/unbiased"] == 1 and row["tree/shared"] > 0 for row in rows)
    broken = runs.run(tmp_path / "b", *TREE, *more, text=runs.ONLINE).folder
    for late in (broken / "checkpoints").glob("global_step_9"):
        (late / "manifest.json").unlink()
    session.resume(broken, runs.quiet)
    runs.assert_same(whole, broken)


@pytest.mark.slow
@pytest.mark.parametrize("words", [TREE, ("credit.type=doubly_robust", "credit.segmentation=characters")])
def test_a_run_that_is_killed_ends_as_one_that_was_not(tmp_path: Path, words: tuple[str, ...]) -> None:
    whole = runs.run(tmp_path / "a", *words, text=runs.ONLINE).folder
    resolved = runs.recipe(tmp_path / "b", *words, text=runs.ONLINE)

    def work() -> session.Ended:
        faults.kill_at_change(90)
        return session.start(resolved, runs.quiet)

    assert runs.in_child(work) == -signal.SIGKILL
    killed = runs.only_run(tmp_path / "b")
    assert killed is not None and any("tree/shared" in row or "credit/asked" in row for row in read_metrics(killed))
    session.resume(killed, runs.quiet)
    runs.assert_same(whole, killed)


def test_as_many_answers_are_judged_as_without_a_tree_and_fewer_tokens_drawn(tmp_path: Path) -> None:
    tree = runs.run(tmp_path / "a", *TREE, text=runs.ONLINE).folder
    apart = runs.run(tmp_path / "b", "grpo.steps=4", text=runs.ONLINE).folder
    assert len(stored(tree)) == len(stored(apart)) == 4 * 4 * 4
    for row in (row for row in read_metrics(tree) if "tree/drawn_tokens" in row):
        lines = (tree / f"rollouts/step_{row['step']}.jsonl").read_text().splitlines()
        written = sum(len(json.loads(line)["tokens"]) for line in lines)
        assert row["tree/drawn_tokens"] == pytest.approx(written * (1 - row["tree/shared"]))
        assert row["tree/drawn_tokens"] < written
        steps = [step for line in lines for step in json.loads(line)["steps"]]
        assert all(step["kind"] == "branch" for step in steps)
    text = runs.recipe(tmp_path / "c", *TREE, text=runs.ONLINE)
    plain = runs.recipe(tmp_path / "c", "grpo.steps=4", text=runs.ONLINE)
    assert [one.answers for one in phase_plans(text)] == [one.answers for one in phase_plans(plain)]


def test_the_tree_brings_its_credit_and_the_credit_its_tree(tmp_path: Path) -> None:
    by_rollout = runs.recipe(tmp_path, "rollout.type=tree", text=runs.ONLINE)
    by_credit = runs.recipe(tmp_path, "credit.type=tree", text=runs.ONLINE)
    assert by_rollout.recipe.credit == by_credit.recipe.credit
    assert by_rollout.recipe.rollout == by_credit.recipe.rollout
    assert by_rollout.origins["credit.type"] == "by rollout" and by_credit.origins["rollout.type"] == "by credit"
    assert by_rollout.build("credit").shape(4) == Shape((2, 2), "lines", 1)
    assert any(line.startswith("rollout.type") for line in refusals(by_rollout))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("rollout.type=tree", "credit.type=counterfactual"), "credit.type"),
        (("rollout.type=apart", "credit.type=tree"), "rollout.type"),
        (("rollout.type=tree", "credit.branches=[3, 2]"), "rollout.n = 6"),
        (("rollout.type=tree", "rollout.n=8", "credit.branches=[8, 1]"), "2 or more"),
        (("rollout.type=bush",), "'apart' or 'tree'"),
    ],
)
def test_what_cannot_grow_is_refused_with_a_remedy(tmp_path: Path, overrides: tuple[str, ...], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        runs.recipe(tmp_path, *overrides, text=runs.ONLINE)


def test_turns_are_for_tools_and_lines_for_answers_of_one_turn(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='"lines" or "tokens"'):
        ready_lab(runs.recipe(tmp_path, "credit.type=tree", "credit.boundary=turns", text=runs.ONLINE))
    agent = runs.ONLINE.replace('"countdown"\nnumbers = [2]\nhigh = 12', '"agent"').replace(
        '["sft", "grpo"]', '["grpo"]'
    )
    with pytest.raises(UserError, match='use "turns"'):
        ready_lab(runs.recipe(tmp_path, "credit.type=tree", text=agent))
