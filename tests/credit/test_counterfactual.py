"""Step credit from rollout to advantage: known truths, failing verifiers, caches, traps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from rlvrlab.batch import Advantages
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.steps import GLUE
from rlvrlab.engines.toy.features import ToyTokenizer
from rlvrlab.recipe import load_recipe
from rlvrlab.rewards.binary import Binary
from rlvrlab.train.batches import assemble
from rlvrlab.train.credit.credited import StepCredits
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, Request, Reward, Rollout, Sampling, Verdict, unjudged

SAMPLING = Sampling(max_tokens=64)


@dataclass
class Words:
    """Accepted when every required word is there and no harmful one; the true credit of a word is known."""

    required: tuple[str, ...] = ("load", "solve", "print")
    harmful: tuple[str, ...] = ("crash",)
    silent_without: str = ""
    """The verifier has no opinion on answers without this word."""
    calls: list[list[str]] = field(default_factory=list)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        self.calls.append([text for _, text in items])
        return [self.verify(text) for _, text in items]

    def verify(self, text: str) -> Verdict:
        words = text.split()
        if self.silent_without and self.silent_without not in words:
            return unjudged("the verifier gave up")
        if not words:
            return Verdict(False, 0.0, ErrorKind.FORMAT)
        right = all(w in words for w in self.required) and not any(w in words for w in self.harmful)
        return Verdict(right, float(right), ErrorKind.NONE if right else ErrorKind.WRONG)


class Echo:
    """A sampler that goes on with a fixed text."""

    def __init__(self, text: str = "") -> None:
        self.tokenizer, self.text = ToyTokenizer(9), text
        self.asked: list[Request] = []

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.asked += requests
        tokens = self.tokenizer.encode(self.text)
        return [[Completion(self.text, tokens, (0.0,) * len(tokens))] * request.n for request in requests]


def rollout(text: str, env: Words, number: int = 0, group: str = "g") -> Rollout:
    tokenizer = ToyTokenizer(9)
    tokens = (*tokenizer.encode(text), tokenizer.end)
    verdict = env.verify(text)
    reward = None if verdict.correct is None else Reward(float(verdict.correct))
    problem = Problem(f"p{group}", "words", "words", "do it")
    completion = Completion(text, tokens, (0.0,) * len(tokens), Finish.STOP)
    return Rollout(f"{group}/{number}", group, problem, tokenizer.encode("do it"), completion, verdict, reward)


def credits(texts: Sequence[str], env: Words, sampler: Echo | None = None, cached: bool = True, **keys) -> StepCredits:
    keys = {"segmentation": "words", "counterfactual_k": 0, "intervention_types": ("delete",), **keys}
    rollouts = [rollout(text, env, number) for number, text in enumerate(texts)]
    return credit_of(Counterfactual(**keys), rollouts, env, Binary(), sampler or Echo(), SAMPLING, cached=cached)


def raw(found: StepCredits, number: int = 0) -> list[float]:
    return found.answers[f"g/{number}"].raw_S.tolist()


RIGHT = "idle load solve print"


def test_required_words_earn_the_reward_and_idle_ones_nothing() -> None:
    assert raw(credits([RIGHT], Words())) == [0, 1, 1, 1]
    assert raw(credits(["load crash solve print"], Words())) == [0, -1, 0, 0], "only the harmful word blocks"
    assert raw(credits(["load load solve print"], Words())) == [0, 0, 1, 1], "a repeated word hides its twin"
    shared = raw(credits(["load load solve print"], Words(), estimator="shapley"))
    assert shared == pytest.approx([1 / 12, 1 / 12, 5 / 12, 5 / 12]) and sum(shared) == pytest.approx(1)


def test_prefix_tail_and_reorder_on_a_known_truth() -> None:
    assert raw(credits([RIGHT], Words(), estimator="prefix")) == [0, 0, 0, 1]
    tail = credits([RIGHT], Words(), estimator="tail", invalid="count")
    assert raw(tail) == [1, 1, 1, 1]
    assert raw(credits([RIGHT], Words(), intervention_types=("reorder",))) == [0, 0, 0, 0]
    assert np.isnan(raw(credits(["load"], Words(), intervention_types=("reorder",)))).all(), "nothing to swap with"


@pytest.mark.parametrize(("invalid", "first"), [("skip", np.nan), ("zero", 0.0), ("count", 1.0)])
def test_an_alteration_that_breaks_the_answer(invalid: str, first: float) -> None:
    """The empty answer has no form: that the first word is needed for there to be one earns it nothing by default."""
    found = credits([RIGHT], Words(), estimator="tail", invalid=invalid)
    np.testing.assert_array_equal(raw(found), [first, 1, 1, 1])
    assert found.metrics["credit/invalid"] == 1 and found.metrics["credit/valid"] == 3


def test_one_call_of_the_verifier_whatever_is_asked() -> None:
    env = Words()
    found = credits([RIGHT, "load solve", RIGHT], env)
    assert len(env.calls) == 1 and len(env.calls[0]) == found.metrics["credit/verifier_calls"]
    assert found.metrics["credit/replays"] == 4 + 2 + 4
    assert len(set(env.calls[0])) == len(env.calls[0]), "equal programs are judged once"
    assert found.metrics["credit/hit_rate"] == pytest.approx(1 - len(env.calls[0]) / 10)


@pytest.mark.parametrize("estimator", ["leave_one_out", "prefix", "shapley", "banzhaf"])
def test_results_do_not_depend_on_the_cache(estimator: str) -> None:
    texts = [RIGHT, "load solve print idle", "load solve", RIGHT, "crash"]
    with_cache = credits(texts, Words(), estimator=estimator)
    without = credits(texts, Words(), estimator=estimator, cached=False)
    for name, one in with_cache.answers.items():
        np.testing.assert_array_equal(one.credit_S, without.answers[name].credit_S)
    assert without.metrics["credit/cache_hits"] == 0 < with_cache.metrics["credit/cache_hits"]
    assert with_cache.metrics["credit/verifier_calls"] < without.metrics["credit/verifier_calls"]


def test_a_verifier_that_fails_midway_leaves_the_step_unknown_and_is_counted() -> None:
    found = credits([RIGHT], Words(silent_without="load"))
    np.testing.assert_array_equal(raw(found), [0, np.nan, 1, 1])
    assert found.metrics["credit/unjudged"] == 1 and found.metrics["credit/known"] == 0.75
    unjudged_answer = credits(["idle"], Words(silent_without="load"))
    assert unjudged_answer.answers == {}, "what could not be judged is not replayed"


def on_group(found: StepCredits, texts: Sequence[str], env: Words, advantage: float) -> tuple[np.ndarray, np.ndarray]:
    rollouts = [rollout(text, env, number) for number, text in enumerate(texts)]
    batch = assemble(rollouts, 64)
    given = Advantages(np.where(batch.loss_BT, advantage, 0.0), None, {})
    return found.on(replace(batch, advantage_BT=given.advantage_BT), rollouts).advantage_BT, batch.loss_BT


def test_tokens_get_the_credit_of_their_step_and_unknown_ones_the_groups_advantage() -> None:
    env = Words(silent_without="load")
    found = credits([RIGHT], env)
    advantage_BT, loss_BT = on_group(found, [RIGHT], env, 0.5)
    per_word = [0.5, 0.5, 1.5, 1.5]
    want = [value for word, value in zip(RIGHT.split(), per_word, strict=True) for _ in f"{word} "]
    assert advantage_BT[0].tolist() == [*want[:-1], 0.5], "the end token is glue"
    assert loss_BT.all()
    assert (found.answers["g/0"].trajectory.step_T[-1:] == GLUE).all()


def test_padding_and_rows_without_steps_stay_as_they_are() -> None:
    env = Words()
    texts = [RIGHT, " ", "load"]
    found = credits(texts, env)
    advantage_BT, loss_BT = on_group(found, texts, env, -0.25)
    assert found.metrics["credit/no_steps"] == 1
    assert (advantage_BT[1][loss_BT[1]] == -0.25).all() and not advantage_BT[~loss_BT].any()


def test_dead_groups_are_kept_when_credit_has_something_to_say() -> None:
    env = Words()
    speaking, dumb = ["load crash solve print", "idle idle"], ["idle idle", "idle"]
    for texts, kept in ((speaking, 2), (dumb, 0)):
        rollouts = [rollout(text, env, number) for number, text in enumerate(texts)]
        assert len(credits(texts, env).speaking(rollouts)) == kept
    rollouts = [rollout(text, env, number) for number, text in enumerate(speaking)]
    assert credits(speaking, env, mapping="gate").speaking(rollouts) == [], "gating zero leaves zero"
    assert StepCredits().speaking(rollouts) == []


def test_equal_inputs_give_equal_credit_and_the_budget_is_kept() -> None:
    texts = [RIGHT, "load load solve idle print idle", "idle"]
    first, second = (credits(texts, Words(), counterfactual_k=2) for _ in range(2))
    for name, one in first.answers.items():
        np.testing.assert_array_equal(one.credit_S, second.answers[name].credit_S)
        assert (~np.isnan(one.raw_S)).sum() <= 2
    assert first.metrics == second.metrics


def test_resampling_continues_from_the_tokens_before_the_step() -> None:
    sampler = Echo("print")
    found = credits(["load solve idle"], Words(), sampler, replay="resample", samples=3)
    prompt = sampler.tokenizer.encode("do it")
    prefixes = [sampler.tokenizer.decode(request.tokens[len(prompt) :]) for request in sampler.asked]
    assert prefixes == ["", "load ", "load solve "] and all(request.n == 3 for request in sampler.asked)
    assert raw(found) == [0, 0, -1], "going on from `load solve ` with `print` would have been right"
    assert found.metrics["credit/extra_tokens"] == 3 * 3 * len("print")
    assert [request.sampling.max_tokens for request in sampler.asked] == [64, 59, 53]


def test_vine_takes_the_difference_of_the_values_around_a_step() -> None:
    found = credits(["load solve idle"], Words(), Echo("print"), estimator="vine", samples=2)
    assert raw(found) == [0, 1, -1]


def test_substitute_puts_one_step_of_the_policy_in_its_place() -> None:
    env = Words()
    found = credits([RIGHT], env, Echo("crash load"), intervention_types=("substitute",), samples=1)
    assert raw(found) == [1, 1, 1, 1]
    assert "idle crash solve print" in env.calls[0]


def test_sum_preserving_uses_the_empty_answer() -> None:
    found = credits([RIGHT], Words(), credit_normalization="sum_preserving")
    assert found.answers["g/0"].credit_S.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.answers["g/0"].credit_S, np.array([0, 1, 1, 1]) - 0.5)


def test_step_groups_need_no_replay() -> None:
    env = Words()
    found = credits([RIGHT, "idle load solve"], env, estimator="step_groups")
    np.testing.assert_array_equal(raw(found, 0), [1, 1, 1, np.nan])
    assert found.metrics["credit/replays"] == 0 and env.calls in ([], [[]])


@pytest.fixture(scope="module")
def minicode():
    from rlvrlab.envs.minicode import Minicode

    env = Minicode(skills=("gen",), levels=(2,))
    return env, env.problems("train", 1, 0)[0]


def judged(env, problem: Problem, texts: Sequence[str]) -> list[Rollout]:
    tokenizer = ToyTokenizer(9)
    verdicts = env.verify_many([(problem, text) for text in texts])
    return [
        Rollout(
            f"m/{i}", "m", problem, (), Completion(text, tokenizer.encode(text), ()), verdict,
            Reward(float(verdict.correct)),
        )
        for i, (text, verdict) in enumerate(zip(texts, verdicts, strict=True))
    ]  # fmt: skip


def test_real_programs_with_dependency_and_endless_loop_traps(minicode) -> None:
    """first 2; rotate; largest: rotating is idle, what is used must be defined, a loop without increment never ends."""
    env, problem = minicode
    texts = [
        " x=x[:2]\n x=x[1:]+x[:1]\n return max(x+[0])\n",
        " n=2\n x=x[:n]\n return max(x+[0])\n",
        " i=0\n while i<2:\n  i+=1\n x=x[:i]\n return max(x+[0])\n",
        " x=x[:2]\n return max(x+[0]\n",
    ]
    plugin = Counterfactual(intervention_types=("delete",), counterfactual_k=0)
    found = credit_of(plugin, judged(env, problem, texts), env, Binary(), Echo(), SAMPLING)
    rows = [found.answers[f"m/{i}"].raw_S for i in range(4)]
    np.testing.assert_array_equal(rows[0], [1, 0, 1])
    np.testing.assert_array_equal(rows[1], [np.nan, 1, 1])
    np.testing.assert_array_equal(rows[2], [np.nan, 1, 1, 1, 1])
    np.testing.assert_array_equal(rows[3], [0, 0])
    assert found.metrics["credit/timeouts"] == 1 and found.metrics["credit/unparsed"] == 1
    assert found.metrics["credit/invalid"] == 2 and found.metrics["credit/repaired"] == 2


def test_a_recipe_switches_it_on_with_one_line(tmp_path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('[credit]\ntype = "counterfactual"\n')
    resolved = load_recipe(path)
    assert resolved.build("credit") == Counterfactual()
    assert (Counterfactual().counterfactual_k, Counterfactual().intervention_types) == (4, ("delete", "truncate"))
    path.write_text("")
    assert load_recipe(path).build("credit") is None


def test_a_query_whose_unused_part_earns_nothing() -> None:
    from rlvrlab.envs.sql import Sql

    env = Sql()
    problem = next(p for p in env.problems("train", 40, 0) if " WHERE " in p.reference["gold"])
    gold = f"```sql\nWITH unused AS (SELECT 1) {problem.reference['gold']}\n```"
    [rollout] = judged(env, problem, [gold])
    assert rollout.verdict.correct, rollout.verdict.detail
    plugin = Counterfactual(intervention_types=("delete",), counterfactual_k=0)
    found = credit_of(plugin, [rollout], env, Binary(), Echo(), SAMPLING).answers["m/0"]
    credit = {step.kind: c for step, c in zip(found.trajectory.segments.steps, found.raw_S, strict=True)}
    assert credit["cte"] == 0 and credit["conjunct"] == 1
