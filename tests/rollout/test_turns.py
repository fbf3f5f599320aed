"""Second turns: what is asked, which tokens, whose group, and what recovery means."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rlvrlab.errors import UserError
from rlvrlab.evals.recovery import recovery
from rlvrlab.rollout.collect import as_row, collect
from rlvrlab.rollout.turns import try_again
from rlvrlab.types import Completion, ErrorKind, Problem, Reward, Sampling, Verdict, unjudged


class Letters:
    """One token per character; 0 ends."""

    vocab_size, end, ends = 200, 0, frozenset({0})

    def encode(self, text):
        return tuple(map(ord, text))

    def decode(self, tokens):
        return "".join(chr(t) for t in tokens if t)


@dataclass
class Scripted:
    """Answers by what the prompt says."""

    answers: dict[str, str]
    tokenizer: Letters = field(default_factory=Letters)
    asked: list = field(default_factory=list)

    def sample(self, requests):
        self.asked += requests
        texts = [self.answers[self.tokenizer.decode(r.tokens)] for r in requests]
        return [
            [Completion(t, (*self.tokenizer.encode(t), 0), (-1.0,) * (len(t) + 1)) for _ in range(r.n)]
            for t, r in zip(texts, requests, strict=True)
        ]


class Env:
    name, version = "say", "1"

    def verify_many(self, items):
        return [
            unjudged("lost")
            if text == "?"
            else Verdict(text == problem.reference, float(text == problem.reference), ErrorKind.WRONG)
            for problem, text in items
        ]

    def second_turn(self, problem, text, verdict):
        return f"{problem.prompt}not {text}:"


def score(problem, completion, verdict):
    return Reward(verdict.score)


def problem(name, right):
    return Problem(name, "say", "say", f"{name}:", right)


PROBLEMS = [problem("a", "1"), problem("b", "2"), problem("c", "3")]
ANSWERS = {"a:": "1", "b:": "7", "c:": "9", "b:not 7:": "2", "c:not 9:": "9"}
GREEDY = Sampling(8, 0.0)


def firsts(sampler):
    return collect(sampler, Env(), score, PROBLEMS, n=1, sampling=GREEDY, key=("k",))


def test_a_second_try_is_a_group_of_its_own_and_knows_its_first():
    sampler = Scripted(ANSWERS)
    failed = firsts(sampler)[1:]
    again = try_again(sampler, Env(), score, failed, n=2, sampling=GREEDY, key=("k",))
    assert [(r.turn, r.previous, r.group_id, r.verdict.correct) for r in again] == [
        (1, "k/b/0", "k/b/0/turn1", True),
        (1, "k/b/0", "k/b/0/turn1", True),
        (1, "k/c/0", "k/c/0/turn1", False),
        (1, "k/c/0", "k/c/0/turn1", False),
    ]
    assert len({r.id for r in again}) == 4
    row = as_row(again[0])
    assert row["prompt"] == "b:not 7:" and row["turn"] == 1 and row["previous"] == "k/b/0"
    assert try_again(sampler, Env(), score, [], n=2, sampling=GREEDY, key=("k",)) == []


def test_a_conversation_keeps_the_very_tokens_of_the_first_turn():
    sampler = Scripted(ANSWERS | {"b:7b:not 7:": "2"})
    [first] = firsts(sampler)[1:2]
    [second] = try_again(sampler, Env(), score, [first], n=1, sampling=GREEDY, key=("k",), context="conversation")
    head = (*first.prompt_tokens, *first.completion.tokens)
    assert second.prompt_tokens[: len(head)] == head and 0 in head
    assert second.prompt_tokens[len(head) :] == sampler.tokenizer.encode("b:not 7:")


def test_recovery_counts_second_tries_and_blind_ones_apart():
    sampler = Scripted(ANSWERS)
    found, again, blind = recovery(sampler, Env(), firsts(sampler), 8, "test")
    assert (found.failed, found.judged, found.recovered, found.repeated, found.blind) == (2, 2, 1, 1, 0)
    assert found.metrics()["recovery_rate"] == 0.5 and found.metrics()["repeated_answer_rate"] == 0.5
    assert [r.verdict.correct for r in again] == [True, False] and [r.verdict.correct for r in blind] == [False, False]
    free = [r for r in sampler.asked if r.sampling.temperature == 1.0]
    assert [sampler.tokenizer.decode(r.tokens) for r in free] == ["b:", "c:"]


def test_what_could_not_be_judged_is_no_failure():
    sampler = Scripted(ANSWERS | {"b:": "?", "c:not 9:": "?"})
    found, _, _ = recovery(sampler, Env(), firsts(sampler), 8, "test")
    assert (found.failed, found.judged, found.recovered) == (1, 0, 0)
    assert found.metrics()["recovery_rate_high"] == 1.0


def test_an_environment_without_feedback_is_named():
    class Mute:
        name, version = "mute", "1"
        verify_many = Env.verify_many

    sampler = Scripted(ANSWERS)
    with pytest.raises(UserError, match="'mute' gives no feedback"):
        try_again(sampler, Mute(), score, firsts(sampler)[1:], n=1, sampling=GREEDY, key=("k",))
