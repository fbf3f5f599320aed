"""An environment whose answers are sums, and answerers that say what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.evals.answering import Answer, Ask, Ready
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, Role, Verdict, unjudged


class Sums(BaseEnvironment):
    """`3 + 4` wants 7; half right (one off) scores 0.5; `broken` cannot be judged."""

    name, version = "sums", "1"

    def __init__(self) -> None:
        self.judged = 0

    def problems(self, role: Role, size: int, seed: int = 0) -> list[Problem]:
        return [
            Problem(f"s{i}", "sums", ("even", "odd")[i % 2], f"{i} + {seed}", i + seed, {"level": i % 3}, role)
            for i in range(size)
        ]

    def verify(self, problem: Problem, text: str) -> Verdict:
        self.judged += 1
        if text == "broken":
            return unjudged("the judge fell over")
        if not text.lstrip("-").isdigit():
            return Verdict(False, 0.0, ErrorKind.FORMAT)
        off = abs(int(text) - problem.reference)
        error = ErrorKind.NONE if off == 0 else ErrorKind.WRONG
        return Verdict(off == 0, {0: 1.0, 1: 0.5}.get(off, 0.0), error, answer=text)


def answer(text: str, tokens: int = 4, finish: Finish = Finish.STOP, **facts: Any) -> Answer:
    return Answer(Completion(text, (), (), finish), tokens, **facts)


FAILED = Answer(Completion("", (), (), Finish.ERROR), 0, error="status 500: boom", attempts=4)


class Scripted:
    """Says `reply(ask)`; batches of `size`; remembers what it was asked."""

    def __init__(self, reply: Callable[[Ask], Answer], size: int = 3, **facts: Any) -> None:
        self.reply, self.size, self.asked, self.facts = reply, size, [], facts

    def identity(self) -> dict[str, Any]:
        return {"kind": "scripted", **self.facts}

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        batch: Ready = []
        for ask in asks:
            self.asked.append((ask.problem.id, ask.sample))
            batch.append((ask, self.reply(ask)))
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch:
            yield batch


def right(ask: Ask) -> Answer:
    return answer(str(ask.problem.reference))
