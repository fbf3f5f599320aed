"""What step credit may leave out: answers not worth replays, equal answers, bodies that nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from test_counterfactual import RIGHT, SAMPLING, Echo, Words, credits, on_group, rollout

from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.envs.minicode import Minicode
from rlvrlab.rewards.binary import Binary
from rlvrlab.rollout.python_steps import HEADER, canonical_python
from rlvrlab.rollout.unseen import unseen
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Completion, Rollout

BLOCKED = "load crash solve print"


def test_answers_that_earned_nothing_are_left_to_their_group() -> None:
    env, every = Words(), Words()
    found, whole = credits([RIGHT, BLOCKED], env, examined="earning"), credits([RIGHT, BLOCKED], every)
    assert set(found.answers) == {"g/0"} and found.metrics["credit/examined"] == 0.5
    np.testing.assert_array_equal(found.answers["g/0"].raw_S, whole.answers["g/0"].raw_S)
    assert len(env.calls[0]) == 4 < len(every.calls[0])
    advantage_BT, loss_BT = on_group(found, [RIGHT, BLOCKED], env, -0.5)
    assert (advantage_BT[1][loss_BT[1]] == -0.5).all(), "the failed answer keeps its group's advantage"


def test_live_leaves_groups_alone_in_which_all_earned_the_same() -> None:
    assert credits([RIGHT, RIGHT], Words(), examined="live").answers == {}
    assert set(credits([RIGHT, BLOCKED], Words(), examined="live").answers) == {"g/0"}
    env = Words()
    rollouts = [rollout(RIGHT, env, 0, "a"), rollout(RIGHT, env, 0, "b"), rollout("idle", env, 1, "b")]
    plugin = Counterfactual(segmentation="words", examined="live")
    assert set(credit_of(plugin, rollouts, env, Binary(), Echo(), SAMPLING).answers) == {"b/0"}


def test_step_groups_compare_failed_answers_too() -> None:
    found = credits([RIGHT, BLOCKED], Words(), estimator="step_groups", examined="earning")
    assert set(found.answers) == {"g/0", "g/1"}


def test_choosing_answers_by_their_outcome_is_shaping() -> None:
    keys = {"estimator": "tail", "counterfactual_k": 0, "segmentation": "words"}
    assert Counterfactual(**keys).label == "unbiased"
    assert {Counterfactual(**keys, examined=one).label for one in ("earning", "live")} == {"shaping"}


def test_equal_answers_count_as_before_and_are_altered_once() -> None:
    once, thrice = credits([RIGHT], Words(silent_without="load")), credits([RIGHT] * 3, Words(silent_without="load"))
    for name in ("replays", "valid", "repaired", "invalid", "unjudged", "timeouts"):
        assert thrice.metrics[f"credit/{name}"] == 3 * once.metrics[f"credit/{name}"], name
    assert thrice.metrics["credit/verifier_calls"] == once.metrics["credit/verifier_calls"]
    assert all(
        np.array_equal(thrice.answers[f"g/{i}"].raw_S, once.answers["g/0"].raw_S, equal_nan=True) for i in (1, 2)
    )


@pytest.mark.parametrize(
    ("body", "hidden"),
    [
        (" pass\n", True),
        (" x=[v for v in x if v>4]\n x=sorted(set(x))[:3]\n", True),
        (" x=x\n return x\n", False),
        (" x.sort()\n", False),
        (" y=x.pop()\n", False),
        (" x[0]=1\n", False),
        (" print(x)\n", False),
        (" y=print(x)\n", False),
        (" y=(x:=1)\n", False),
        (" yield 1\n", False),
        (" global y\n y=1\n", False),
        (" for v in x:\n  y=v\n", False),
        (" y=f(x)\n", False),
        (" x=\n", False),
        (" pass\nx=1\n", False),
    ],
)
def test_what_can_be_seen_of_a_body(body: str, hidden: bool) -> None:
    assert unseen(body, HEADER) is hidden
    assert not unseen(body, ""), "a program of its own may be asked for its names"


def test_programs_cut_before_their_return_are_judged_once() -> None:
    env, sampler = Minicode(skills=("gen",), levels=(2,)), Echo()
    problem = env.problems("train", 1, 0)[0]
    texts = [" x=x[:3]\n x=[v+1 for v in x]\n return x\n", " x=[0]+x\n return x\n", str(env.gold(problem))]
    verdicts = env.verify_many([(problem, text) for text in texts])
    rollouts = []
    for i, (text, verdict) in enumerate(zip(texts, verdicts, strict=True)):
        completion = Completion(text, sampler.tokenizer.encode(text), ())
        reward = Binary()(problem, completion, verdict)
        rollouts.append(Rollout(f"g/{i}", "g", problem, (1,), completion, verdict, reward))
    plugin = Counterfactual(estimator="tail", counterfactual_k=0)
    found = credit_of(plugin, rollouts, env, Binary(), sampler, SAMPLING)
    plain = credit_of(plugin, rollouts, env, Binary(), sampler, SAMPLING, cached=False)
    assert found.metrics["credit/verifier_calls"] == 1 < plain.metrics["credit/verifier_calls"]
    assert all(np.array_equal(one.raw_S, plain.answers[key].raw_S) for key, one in found.answers.items())


def test_a_program_that_python_itself_stumbles_over_is_its_own_form(monkeypatch) -> None:
    """Python 3.12's tokenizer answers some programs with a SystemError."""

    def stumbles(_):
        raise SystemError("returned a result with an exception set")

    monkeypatch.setattr("rlvrlab.rollout.python_steps.tokenize.generate_tokens", stumbles)
    assert canonical_python.__wrapped__(" x=1\n") == " x=1\n"
