"""Which credit is unbiased from tokens to text and back: exact expected gradients over all answers of small policies.

Unlike test_bias_table.py, whose steps are actions and whose answers have a fixed length, this goes through the product:
tokens are decoded, the text is cut into steps, altered answers are judged, credit is mapped onto tokens, and an answer
ends when the policy says so.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from pieces import END, CountedPieces, Pieces
from slow_cases import some_slow

from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.rewards.binary import Binary
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, Request, Reward, Rollout, Sampling, Verdict

LENGTH, POLICIES = 4, 6
WORDS = ("", "a ", "b ")
CHARACTERS = ("", "a", " ")
PIECES = ("", "a", "b ", "\n")
STEPS = {
    "words, one token each": (WORDS, "words"),
    "characters": (CHARACTERS, "characters"),
    "words of several tokens": (PIECES, "words"),
    "text": (PIECES, "text"),
}
CREDITS = {
    "tail": {"estimator": "tail"},
    "truncate": {"intervention_types": ("truncate",)},
    "delete": {"intervention_types": ("delete",)},
    "step_groups": {"estimator": "step_groups"},
}


@dataclass
class Silent:
    """A sampler that is never asked."""

    tokenizer: Pieces

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        raise AssertionError("no estimator here lets the policy write again")


@dataclass
class Chance:
    """Some texts are right and some are not, by a hash."""

    number: int

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        return [self.verify(text) for _, text in items]

    def verify(self, text: str) -> Verdict:
        right = zlib.crc32(f"{self.number} {text}".encode()) % 3 == 0
        return Verdict(right, float(right), ErrorKind.NONE if right else ErrorKind.WRONG)


def answers(size: int) -> list[tuple[int, ...]]:
    """Every answer: it ends with END, or at the greatest length."""
    shorter = [(*body, END) for n in range(LENGTH) for body in itertools.product(range(1, size), repeat=n)]
    return shorter + list(itertools.product(range(1, size), repeat=LENGTH))


def cosine(texts: tuple[str, ...], plugin: Counterfactual, number: int) -> tuple[float, float]:
    """Of the expected gradient of the credit with that of the reward, and what the metrics say of its bias."""
    env, tokenizer, rng = Chance(number), CountedPieces(texts), np.random.default_rng(number)
    policy: dict[tuple[int, ...], np.ndarray] = {}
    for answer in answers(len(texts)):
        for t in range(len(answer)):
            if answer[:t] not in policy:
                logits = rng.standard_normal(len(texts))
                policy[answer[:t]] = np.exp(logits) / np.exp(logits).sum()
    problem, rollouts = Problem("p", "chance", "chance", "?"), []
    for at, answer in enumerate(answers(len(texts))):
        verdict = env.verify(tokenizer.decode(answer))
        done = Completion(tokenizer.decode(answer), answer, (0.0,) * len(answer), Finish.STOP)
        rollouts.append(Rollout(f"g/{at}", "g", problem, (), done, verdict, Reward(verdict.score)))
    credits = credit_of(plugin, rollouts, env, Binary(), Silent(tokenizer), Sampling(max_tokens=LENGTH))
    places = {history: i for i, history in enumerate(policy)}
    true, found = np.zeros((2, len(places), len(texts)))
    for rollout in rollouts:
        answer = rollout.completion.tokens
        chance = np.prod([policy[answer[:t]][token] for t, token in enumerate(answer)])
        one = credits.answers.get(rollout.id)
        credit_T = np.zeros(len(answer))
        if one is not None:
            credit_T = plugin.mapped(credit_T, one.trajectory.step_T, one.credit_S)
        for t, token in enumerate(answer):
            score = -policy[answer[:t]]
            score[token] += 1
            true[places[answer[:t]]] += chance * rollout.reward.value * score
            found[places[answer[:t]]] += chance * credit_T[t] * score
    norms = np.linalg.norm(true) * np.linalg.norm(found)
    return float((true * found).sum() / norms), credits.metrics["credit/unbiased"]


@cache
def measured(where: str, how: str, policies: int = POLICIES) -> tuple[float, set[float]]:
    """Least cosine over some policies and verifiers, and the labels that were recorded."""
    texts, segmentation = STEPS[where]
    plugin = Counterfactual(**CREDITS[how], segmentation=segmentation, counterfactual_k=0)
    rows = [cosine(texts, plugin, number) for number in range(policies)]
    return min(row[0] for row in rows), {row[1] for row in rows}


@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize("how", CREDITS)
@pytest.mark.parametrize("policies", some_slow([2, POLICIES], {2}))
def test_unbiased_is_recorded_exactly_where_the_expected_gradient_is_the_true_one(
    where: str, how: str, policies: int
) -> None:
    least, labels = measured(where, how, policies)
    assert labels == {float(least > 1 - 1e-9)}, least


if __name__ == "__main__":
    for how in CREDITS:  # the table of docs/credit.md
        cells = [f"{measured(where, how)[0]:.3f}".replace("-", "−") for where in STEPS]
        print(f"| `{how}` | {' | '.join(cells)} |")
