"""Answers over several turns with tools in between, token by token as they were sampled.

    P  |  call, sampled  | result, given |  answer, sampled      one Completion; `given` marks the result's tokens

A turn ends with the policy's own end token. A turn that holds a call is answered by the tool's result, in the model's
chat template where it has one, and the policy writes on; what it wrote is never tokenised again. Result tokens are
context: they have no loss and no log-probability. Budgets: turns and calls are the problem's, tokens (results included)
are rollout.max_tokens of the whole episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvrlab.envs.base import ShowsTurns
from rlvrlab.envs.tool_calls import RESULT, Call, Result, call_in
from rlvrlab.rollout.prompts import answer_tokens, prompt_tokens, result_tokens
from rlvrlab.types import Completion, Finish, Problem, Request, Sampler, Tokenizer, Turn

OVER_BUDGET = "no calls are left; give your answer"


def with_tools(
    sampler: Sampler,
    problems: Sequence[Problem],
    requests: Sequence[Request],
    answers: list[list[Completion]],
) -> list[list[Completion]]:
    """First turns gone on with to whole episodes where a problem has tools; other answers as they are."""
    episodes = [
        _Episode(problem, request, sample, [first])
        for problem, request, group in zip(problems, requests, answers, strict=True)
        for sample, first in enumerate(group)
        if "tools" in problem.meta
    ]
    while waiting := [episode for episode in episodes if episode.wants_result]:
        results = _results([(episode.problem, episode.allowed_call) for episode in waiting])
        going = [
            (episode, request)
            for episode, result in zip(waiting, results, strict=True)
            if (request := episode.told(result, sampler.tokenizer)) is not None
        ]
        if going:
            for (episode, _), [turn] in zip(going, sampler.sample([one for _, one in going]), strict=True):
                episode.parts.append(turn)
    whole = iter(episodes)
    return [
        [next(whole).completion(sampler.tokenizer) if "tools" in problem.meta else one for one in group]
        for problem, group in zip(problems, answers, strict=True)
    ]


@dataclass
class _Episode:
    """One conversation as far as it has come."""

    problem: Problem
    request: Request
    sample: int
    parts: list[Completion | tuple[Call, Result, tuple[int, ...]]]
    """Turns of the policy and results, alternating."""
    over: bool = False

    @property
    def call(self) -> Call | None:
        """The call that waits for its result."""
        last = self.parts[-1]
        if not isinstance(last, Completion) or last.finish is not Finish.STOP:
            return None
        return _called(self.problem, last.text)

    @property
    def wants_result(self) -> bool:
        """Is there a call to carry out, and a turn left to read its result in?"""
        turns = sum(isinstance(part, Completion) for part in self.parts)
        return not self.over and turns < self.problem.meta["tools"]["turns"] and self.call is not None

    @property
    def allowed_call(self) -> Call:
        """The call, or why it is refused."""
        call = self.call
        assert call is not None
        before = sum(not isinstance(part, Completion) for part in self.parts)
        return call if before < self.problem.meta["tools"]["calls"] else Call("", "", OVER_BUDGET)

    def told(self, result: Result, tokenizer: Tokenizer) -> Request | None:
        """Add the result; the request for the next turn, or None where no token is left for one."""
        call = self.allowed_call
        given = result_tokens(tokenizer, RESULT.format(result.text), result.text)
        tokens = self.tokens
        left = self.request.sampling.max_tokens - len(tokens) - len(given)
        if left <= 0:
            self.over = True
            return None
        self.parts.append((call, result, given))
        key = (*self.request.key, "episode", self.sample, len(self.parts))
        sampling = replace(self.request.sampling, max_tokens=left)
        seen = (*self.request.tokens, *tokens, *given)
        return Request(seen, 1, key, sampling, begun=len(tokens) + len(given))

    @property
    def tokens(self) -> tuple[int, ...]:
        """Everything after the prompt."""
        parts = [part.tokens if isinstance(part, Completion) else part[2] for part in self.parts]
        return tuple(token for part in parts for token in part)

    def completion(self, tokenizer: Tokenizer) -> Completion:
        """The whole episode as one answer; one without a call is the answer it was."""
        first, last = self.parts[0], self.parts[-1]
        assert isinstance(first, Completion) and isinstance(last, Completion)
        turns, logprobs, at, text = [], list[float](), 0, ""
        for part in self.parts:
            if isinstance(part, Completion):
                tokens, said = part.tokens, part.text
                turns.append(Turn("policy", said, (at, at + len(tokens))))
                logprobs += part.logprobs
            else:
                call, result, tokens = part
                said = tokenizer.decode(tokens)
                turns.append(Turn("tool", result.text, (at, at + len(tokens)), call.tool, result.ok))
                logprobs += [0.0] * len(tokens)
            text, at = text + said, at + len(tokens)
        finish = Finish.LENGTH if self.over else last.finish
        whole = Completion(text, self.tokens, tuple(logprobs), finish, first.policy_version, tuple(turns))
        return whole if len(turns) > 1 or self.over else first


def demonstrations(env: ShowsTurns, problems: Sequence[Problem], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Reference episodes as examples for SFT, one per turn of the policy: what it saw, and what it should say."""
    said = [(problem, text) for problem in problems for text in env.gold_turns(problem)]
    calls = [_called(problem, text) for problem, text in said]
    results = iter(_results([(one, call) for (one, _), call in zip(said, calls, strict=True) if call is not None]))
    examples, seen = [], dict[str, tuple[int, ...]]()
    for (problem, text), call in zip(said, calls, strict=True):
        before = seen.get(problem.id) or prompt_tokens(tokenizer, problem.prompt)
        answer = answer_tokens(tokenizer, text)
        examples.append({"problem": problem.id, "prompt": before, "answer": answer})
        if call is not None:
            given = next(results).text
            seen[problem.id] = (*before, *answer, *result_tokens(tokenizer, RESULT.format(given), given))
    return examples


def _results(asked: Sequence[tuple[Problem, Call]]) -> list[Result]:
    """The tools are imported by the first call: they bring the whole judge, which most runs do without."""
    from rlvrlab.envs.agent.environment import carried_out

    return carried_out(asked)


def _called(problem: Problem, text: str) -> Call | None:
    """The call that a turn holds, by the rules of the problem's tools."""
    allowed = problem.meta["tools"]
    return call_in(text, allowed["style"], allowed["names"])


def metrics_of_turns(completions: Sequence[Completion]) -> dict[str, float]:
    """Turns and calls per episode, and the share of calls that failed; nothing where no answer has turns."""
    episodes = [one.turns for one in completions if one.turns]
    if not episodes:
        return {}
    calls = [turn for turns in episodes for turn in turns if turn.by == "tool"]
    found = {"agent/turns": sum(sum(t.by == "policy" for t in turns) for turns in episodes) / len(episodes)}
    found["agent/calls"] = len(calls) / len(episodes)
    found["agent/failed_calls"] = sum(not turn.ok for turn in calls) / max(1, len(calls))
    return found | {
        f"agent/calls/{tool}": sum(turn.tool == tool for turn in calls) / len(episodes)
        for tool in sorted({turn.tool for turn in calls if turn.tool})
    }
