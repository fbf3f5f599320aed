"""A policy for episodes that says what a function of the conversation says, one token per character."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlvrlab.envs.agent.environment import Agent
from rlvrlab.types import Completion, Finish, Problem, Request

END = 1


class Letters:
    """One token per character; 1 ends a turn."""

    vocab_size, end, ends = 0x110000, END, frozenset({END})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(token) for token in tokens if token != END)


class Scripted:
    """Says what a function of the conversation so far says."""

    def __init__(self, speak: Callable[[str], str]) -> None:
        self.speak, self.tokenizer, self.seen = speak, Letters(), list[Request]()

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.seen += requests
        return [[self._one(request) for _ in range(request.n)] for request in requests]

    def _one(self, request: Request) -> Completion:
        text = self.speak(self.tokenizer.decode(request.tokens))
        tokens = (*self.tokenizer.encode(text), END)[: request.sampling.max_tokens]
        finish = Finish.STOP if tokens[-1:] == (END,) else Finish.LENGTH
        return Completion(self.tokenizer.decode(tokens), tokens, (-0.5,) * len(tokens), finish)


def good(env: Agent, problem: Problem) -> Callable[[str], str]:
    call, answer = env.gold_turns(problem)
    return lambda talk: answer if "<tool_response>" in talk.removeprefix(problem.prompt) else call
