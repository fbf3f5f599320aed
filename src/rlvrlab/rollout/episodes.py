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
from math import prod
from typing import TYPE_CHECKING, Any

from rlvrlab.envs.base import ShowsTurns
from rlvrlab.envs.tool_calls import RESULT, Call, Result, call_in
from rlvrlab.rollout.prompts import answer_tokens, prompt_tokens, result_tokens
from rlvrlab.types import Branch, Completion, Finish, Problem, Request, Sampler, Tokenizer, Turn

if TYPE_CHECKING:
    from rlvrlab.credit.base import Shape

OVER_BUDGET = "no calls are left; give your answer"


def with_tools(
    sampler: Sampler, problems: Sequence[Problem], requests: Sequence[Request], answers: list[list[Completion]]
) -> list[list[Completion]]:
    """First turns gone on with to whole episodes where a problem has tools; other answers as they are."""
    episodes = [
        Episode(problem, request, (sample,), [first])
        for problem, request, group in zip(problems, requests, answers, strict=True)
        for sample, first in enumerate(group)
        if "tools" in problem.meta
    ]
    _played(sampler, episodes)
    whole = iter(episodes)
    return [
        [next(whole).completion(sampler.tokenizer) if "tools" in problem.meta else one for one in group]
        for problem, group in zip(problems, answers, strict=True)
    ]


def grow_episodes(
    sampler: Sampler, problems: Sequence[Problem], requests: Sequence[Request], shape: Shape
) -> list[list[Completion]]:
    """Episodes on trees: after so many turns of the policy, and the results they got, each goes on in several ways.

    As in tree.py, episodes are drawn whole, beside the tree, in place of those that ended before they could branch.
    """
    share = prod(shape.branches) // shape.branches[0]
    first = [replace(request, n=shape.branches[0], key=(*request.key, "tree")) for request in requests]
    living = [
        Episode(problem, request, (way,), [turn], shares=(share,))
        for problem, request, turns in zip(problems, requests, sampler.sample(first), strict=True)
        for way, turn in enumerate(turns)
    ]
    ended: list[Episode] = []
    for ways in shape.branches[1:]:
        for _ in range(shape.every - 1):
            _one_round(sampler, living)
        ended += [episode for episode in living if not episode.wants_result]
        living = _forked(sampler, [episode for episode in living if episode.wants_result], ways)
    _played(sampler, living)
    grown: dict[tuple[Any, ...], list[Episode]] = {request.key: [] for request in requests}
    for episode in sorted([*ended, *living], key=lambda episode: episode.path):
        grown[episode.request.key].append(episode)
    beside = [replace(r, n=r.n - len(grown[r.key]), key=(*r.key, "beside")) for r in requests]
    more = with_tools(sampler, problems, beside, [sampler.sample([r])[0] if r.n else [] for r in beside])
    return [
        [episode.completion(sampler.tokenizer) for episode in grown[request.key]]
        + [replace(one, branches=(Branch((-1 - at,), len(one.tokens), 1),)) for at, one in enumerate(others)]
        for request, others in zip(requests, more, strict=True)
    ]


def _played(sampler: Sampler, episodes: Sequence[Episode]) -> None:
    """All episodes to their end."""
    while _one_round(sampler, episodes):
        pass


def _one_round(sampler: Sampler, episodes: Sequence[Episode]) -> bool:
    """A turn more for every episode that waits for a result; False where none did."""
    going = _told(sampler, [episode for episode in episodes if episode.wants_result])
    if going:
        for (episode, _), [turn] in zip(going, sampler.sample([one for _, one in going]), strict=True):
            episode.parts.append(turn)
    return bool(going)


def _told(sampler: Sampler, waiting: Sequence[Episode]) -> list[tuple[Episode, Request]]:
    """Results for all that wait; those with tokens left, and the request for their next turn."""
    results = carried_out([(episode.problem, episode.allowed_call) for episode in waiting]) if waiting else []
    both = [(one, one.told(result, sampler.tokenizer)) for one, result in zip(waiting, results, strict=True)]
    return [(episode, request) for episode, request in both if request is not None]


def _forked(sampler: Sampler, waiting: Sequence[Episode], ways: int) -> list[Episode]:
    """Each of these in several ways on from the result it gets; what has no tokens left stays as it is."""
    going = _told(sampler, waiting)
    asked = [replace(request, n=ways) for _, request in going]
    forks = [
        episode.fork(way, ways, turn)
        for (episode, _), turns in zip(going, sampler.sample(asked) if asked else [], strict=True)
        for way, turn in enumerate(turns)
    ]
    return [*(episode for episode in waiting if episode.over), *forks]


@dataclass
class Episode:
    """One conversation as far as it has come; whoever plays it draws the turns."""

    problem: Problem
    request: Request
    path: tuple[int, ...]
    """Number of the sample; on a tree, which way of which way."""
    parts: list[Completion | tuple[Call, Result, tuple[int, ...]]]
    """Turns of the policy and results, alternating."""
    over: bool = False
    shares: tuple[int, ...] = ()
    """On a tree: answers that were to grow from each of its branches."""
    ends: tuple[int, ...] = ()
    """On a tree: where each branch but the last ends, in tokens."""

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
        if self.over or "tools" not in self.problem.meta:
            return False
        return turns < self.problem.meta["tools"]["turns"] and self.call is not None

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
        key = (*self.request.key, "episode", *self.path, len(self.parts))
        sampling = replace(self.request.sampling, max_tokens=left)
        seen = (*self.request.tokens, *tokens, *given)
        return Request(seen, 1, key, sampling, begun=len(tokens) + len(given))

    @property
    def tokens(self) -> tuple[int, ...]:
        """Everything after the prompt."""
        parts = [part.tokens if isinstance(part, Completion) else part[2] for part in self.parts]
        return tuple(token for part in parts for token in part)

    def fork(self, way: int, ways: int, turn: Completion) -> Episode:
        """One of the ways on from here, which is a branch of its own."""
        shares, ends = (*self.shares, self.shares[-1] // ways), (*self.ends, len(self.tokens))
        return Episode(self.problem, self.request, (*self.path, way), [*self.parts, turn], False, shares, ends)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Its way from the root of its tree; empty where it is on none."""
        ends = (*self.ends, len(self.tokens))
        known = zip(self.shares, ends, strict=True) if self.shares else ()
        return tuple(Branch(self.path[: at + 1], end, share) for at, (share, end) in enumerate(known))

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
        version, branches = first.policy_version, self.branches
        whole = Completion(text, self.tokens, tuple(logprobs), finish, version, tuple(turns), branches)
        return whole if len(turns) > 1 or self.over else replace(first, branches=branches)


def demonstrations(env: ShowsTurns, problems: Sequence[Problem], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Reference episodes as examples for SFT, one per turn of the policy: what it saw, and what it should say."""
    said = [(problem, text) for problem in problems for text in env.gold_turns(problem)]
    calls = [_called(problem, text) for problem, text in said]
    results = iter(carried_out([(one, call) for (one, _), call in zip(said, calls, strict=True) if call is not None]))
    examples, seen = [], dict[str, tuple[int, ...]]()
    for (problem, text), call in zip(said, calls, strict=True):
        before = seen.get(problem.id) or prompt_tokens(tokenizer, problem.prompt)
        answer = answer_tokens(tokenizer, text)
        examples.append({"problem": problem.id, "prompt": before, "answer": answer})
        if call is not None:
            given = next(results).text
            seen[problem.id] = (*before, *answer, *result_tokens(tokenizer, RESULT.format(given), given))
    return examples


def carried_out(asked: Sequence[tuple[Problem, Call]]) -> list[Result]:
    """What the tools answer. They are imported by the first call: they bring the judge, which most runs do without."""
    from rlvrlab.envs.agent import environment

    return environment.carried_out(asked)


def _called(problem: Problem, text: str) -> Call | None:
    """The call that a turn holds, by the rules of the problem's tools."""
    allowed = problem.meta["tools"]
    return call_in(text, allowed["style"], allowed["names"])


def metrics_of_turns(completions: Sequence[Completion]) -> dict[str, float]:
    """Turns and calls per episode, and the share of calls that failed."""
    episodes = [one.turns for one in completions]
    calls = [turn for turns in episodes for turn in turns if turn.by == "tool"]
    found = {"agent/turns": sum(sum(t.by == "policy" for t in turns) for turns in episodes) / len(episodes)}
    found["agent/calls"] = len(calls) / len(episodes)
    found["agent/failed_calls"] = sum(not turn.ok for turn in calls) / max(1, len(calls))
    return found | {
        f"agent/calls/{tool}": sum(turn.tool == tool for turn in calls) / len(episodes)
        for tool in sorted({turn.tool for turn in calls if turn.tool})
    }
