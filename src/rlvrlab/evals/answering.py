"""Who answers in an evaluation: an engine, which speaks tokens, or servers, which may speak text only.

`Sampler` in types.py is for training and speaks tokens alone. An evaluation needs less and more: a text, how long it
was, and whether getting it worked. Two adapters give that; everything after them is one path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from rlvrlab.batch import batch_of, without
from rlvrlab.engines.base import ScoringSampler
from rlvrlab.errors import UserError
from rlvrlab.notes import ANSWERS, counted, is_counting, made
from rlvrlab.randomness import plain_seed
from rlvrlab.rollout.prompts import prompt_tokens
from rlvrlab.types import Completion, Finish, Problem, Request, Sampling, StreamingSampler, Verdict

if TYPE_CHECKING:  # asyncio, TLS and all that servers need; an engine of one's own should not wait for them
    from rlvrlab.engines.openai import Servers

BLIND = -1
"""The turn of a second try that was told nothing: the control beside second tries after feedback."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for one answer."""

    problem: Problem
    sample: int
    """Which of the n answers to the problem this is, from 0."""
    sampling: Sampling
    key: tuple[Any, ...]
    """Randomness key of this one answer: it does not depend on the others, nor on an interruption."""
    turn: int = 0
    """0 for the first try, 1 for a second one after feedback, BLIND for a second one without."""
    told: str = ""
    """What is asked in place of the problem's own prompt: the feedback on a failed try."""

    @property
    def prompt(self) -> str:
        """What the policy is asked."""
        return self.told or self.problem.prompt

    @property
    def name(self) -> tuple[str, int, int]:
        """Which answer of the evaluation this is."""
        return self.problem.id, self.sample, self.turn


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for an `Ask`."""

    completion: Completion
    """`tokens` and `logprobs` are empty where a server does not tell them."""
    gen_tokens: int
    """Tokens generated, also where their ids are not known."""
    entropy: float | None = None
    """Mean token entropy at temperature 1 in nats, where it can be known: exact, or from below by the top log-probs."""
    attempts: int = 1
    """Requests it took; above 1 something had failed before."""
    server: str = ""
    """Address of the server that answered."""
    error: str = ""
    """Why there is no answer, where `completion.finish` is ERROR."""
    verdict: Verdict | None = None
    """Set where whoever answered has judged it too, as in a fan-out; else it still has to be judged."""
    judge_s: float = 0.0
    """Seconds that judging took there."""


Ready = list[tuple[Ask, Answer]]
HandIn = Callable[[Sequence[tuple[Problem, str]]], None]
"""Hears of answers that can be judged already."""


class Answerer(Protocol):
    """Whoever answers in an evaluation."""

    def identity(self) -> dict[str, Any]:
        """Who answers, as recorded: engine or model id really served, addresses, checkpoint."""

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        """All answers, in any order, in lists as they become ready."""


@runtime_checkable
class HandsInEarly(Protocol):
    """An answerer that knows answers before it gives them back."""

    def handing_in(self, asks: Iterable[Ask], hand_in: HandIn) -> Iterator[Ready]:
        """As `answers`; `hand_in` hears of every answer once it is complete, and may hear of one twice."""


AT_ONCE = 256
"""Answers an engine draws before they are judged and kept."""


class EngineAnswerer:
    """An engine under examination."""

    def __init__(
        self, engine: ScoringSampler, facts: dict[str, Any] | None = None, at_once: int | None = None,
        entropy: bool = False, system: str = "",
    ) -> None:  # fmt: skip
        """`at_once` answers are drawn together (None: all); `entropy` scores them once more to know their entropy.

        `system` is a system message before every prompt, for engines that use a chat template.
        """
        self._engine, self._facts, self._at_once, self._entropy = engine, facts or {}, at_once, entropy
        self._system = system

    def identity(self) -> dict[str, Any]:
        """The engine's name and whatever the caller knows about its weights."""
        return {"kind": "engine", "engine": self._engine.name, **self._facts, **system_fact(self._system)}

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        """Draws and yields `at_once` answers at a time."""
        return self._answers(asks, None)

    def handing_in(self, asks: Iterable[Ask], hand_in: HandIn) -> Iterator[Ready]:
        """The same: an answer can be judged while others are drawn, and while their entropy is computed."""
        return self._answers(asks, hand_in)

    def _answers(self, asks: Iterable[Ask], hand_in: HandIn | None) -> Iterator[Ready]:
        waiting = iter(asks)
        while chunk := list(islice(waiting, self._at_once)):
            prompts = [prompt_tokens(self._engine.tokenizer, ask.prompt, self._system) for ask in chunk]
            requests = [Request(tokens, 1, ask.key, ask.sampling) for tokens, ask in zip(prompts, chunk, strict=True)]
            problems = [ask.problem for ask in chunk]
            with counted(ANSWERS, len(chunk)):
                groups = self._drawn(requests, problems, hand_in)
            if any("tools" in problem.meta for problem in problems):
                from rlvrlab.rollout.episodes import with_tools

                groups = with_tools(self._engine, problems, requests, groups)
            answers = [group[0] for group in groups]
            entropies = self._entropies(prompts, answers) if self._entropy else [None] * len(answers)
            yield [
                (ask, Answer(completion, len(completion.tokens), entropy))
                for ask, completion, entropy in zip(chunk, answers, entropies, strict=True)
            ]

    def _drawn(
        self, requests: Sequence[Request], problems: Sequence[Problem], hand_in: HandIn | None
    ) -> list[list[Completion]]:
        """The engine's answers; those to problems with tools go on after this, so they are not handed in."""
        if hand_in is None and not is_counting():
            return self._engine.sample(requests)

        def told(complete: Sequence[tuple[int, int, Completion]]) -> None:
            made(len(complete))
            if hand_in is None:
                return
            whole = [(problems[i], one) for i, _, one in complete if "tools" not in problems[i].meta]
            hand_in([(problem, one.text) for problem, one in whole if one.finish is not Finish.ERROR])

        if isinstance(self._engine, StreamingSampler):
            return self._engine.sample_streaming(requests, told)
        groups = self._engine.sample(requests)
        told([(i, 0, group[0]) for i, group in enumerate(groups)])
        return groups

    def _entropies(self, prompts: Sequence[tuple[int, ...]], answers: Sequence[Completion]) -> list[float | None]:
        """Mean entropy of the tokens that the policy wrote, of each completion; None for an empty one."""
        whole = [i for i, completion in enumerate(answers) if completion.tokens]
        means: list[float | None] = [None] * len(answers)
        if whole:
            batch = batch_of([prompts[i] for i in whole], [answers[i].tokens for i in whole])
            own_BT = without(batch.seen_BT, [answers[i].given for i in whole])
            entropy_BT = np.where(own_BT, self._engine.logprobs(batch)[1], 0.0)
            for i, mean in zip(whole, entropy_BT.sum(axis=1) / np.maximum(own_BT.sum(axis=1), 1), strict=True):
                means[i] = float(mean)
        return means


class ServerAnswerer:
    """OpenAI-compatible servers under examination: the problem's prompt as a chat message, or as plain text."""

    def __init__(self, servers: Servers, top_logprobs: int = 0, system: str = "") -> None:
        """`top_logprobs` above 0 asks for log-probabilities, where the server tells them.

        `system` is a system message before every prompt.
        """
        self._servers, self._top, self._system = servers, top_logprobs, system
        if system and not servers.chat:
            raise UserError("a system prompt needs a chat template; leave it out, or ask without --completions")

    def identity(self) -> dict[str, Any]:
        """Addresses and the model id really served."""
        return {"kind": "servers", **self._servers.identity(), **system_fact(self._system)}

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        """Sends all requests at once and yields answers as the servers give them."""
        from rlvrlab.engines.openai.wire import chat_body, text_body

        asks = self._without_tools(asks)
        body = partial(chat_body, system=self._system) if self._servers.chat else text_body
        orders = ((ask, body(ask.prompt, ask.sampling, plain_seed(*ask.key), self._top)) for ask in asks)
        for ready in self._servers.replies(orders):
            yield [
                (ask, Answer(Completion(r.text, r.tokens, r.logprobs, r.finish), r.gen_tokens, r.entropy, r.attempts,
                             r.server, r.error))
                for ask, r in ready
            ]  # fmt: skip

    @staticmethod
    def _without_tools(asks: Iterable[Ask]) -> Iterator[Ask]:
        for ask in asks:
            if "tools" in ask.problem.meta:
                raise UserError(
                    f"{ask.problem.id}: has tools, and servers answer in one turn here; load the model itself"
                )
            yield ask


def system_fact(system: str) -> dict[str, str]:
    """The system prompt as part of who answers; nothing where there is none, as in older records."""
    return {"system_prompt": system} if system else {}


def failed(error: str) -> Answer:
    """The answer that stands for a request that failed, with the reason."""
    return Answer(Completion("", (), (), Finish.ERROR), 0, error=error)
