"""Episodes with tools under verl: its agent loop draws the turns, ours decides what follows each of them.

The conversation is an Episode of rollout/episodes.py, the one that the hf engine plays: the same calls, budgets and
result tokens, and nothing that was sampled is tokenised again. Results have no loss (response_mask 0). What the record
needs of an episode beside its tokens (who wrote which of them, and why it ended) travels in verl's extra_fields. A tool
that the machine fails at is tried again for a while; after that the answer is unjudged, as it is without tools.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any
from uuid import uuid4

from rlvrlab.envs.tool_calls import Call, Result
from rlvrlab.errors import InfrastructureError
from rlvrlab.rollout.episodes import Episode, carried_out
from rlvrlab.scale.verl.job import current
from rlvrlab.scale.verl.reward import EPISODE, problem_of, scored, tries
from rlvrlab.scale.verl.seeds import loop_class, seeded
from rlvrlab.types import Completion, Finish, Problem, Request, Sampling, Tokenizer, unjudged

Draw = Callable[[Request], Awaitable[Completion]]


async def played(problem: Problem, prompt: tuple[int, ...], most: int, draw: Draw, tokenizer: Tokenizer) -> Completion:
    """One episode to its end, every turn drawn by `draw`; InfrastructureError where a tool could not be used."""
    first = Request(prompt, 1, (), Sampling(most))
    episode = Episode(problem, first, (0,), [await draw(first)])
    while episode.wants_result:
        request = episode.told(await _result(problem, episode.allowed_call), tokenizer)
        if request is not None:
            episode.parts.append(await draw(request))
    return episode.completion(tokenizer)


async def _result(problem: Problem, call: Call) -> Result:
    """What the tool answers, asked again with growing pauses while the machine fails at it."""
    async for last in tries():
        try:
            [result] = await asyncio.to_thread(carried_out, [(problem, call)])
            break
        except (InfrastructureError, OSError) as error:
            if last:
                raise InfrastructureError(f"the tool {call.tool} could not be used: {error}") from None
    return result


def told_of(completion: Completion) -> dict[str, Any]:
    """What the tokens alone do not say, as plain data."""
    return {"turns": [list(turn) for turn in completion.turns], "finish": str(completion.finish)}


class EpisodeHooks:
    """Mixin placed before verl's AgentLoopBase."""

    server_manager: Any
    tokenizer: Any

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """One answer to a row of the data, over as many turns as it takes."""
        from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

        job = current()
        problem = problem_of(job, row.get("extra_info") or {}, "")
        prompt = await self.ct_build_initial_tokens(list(row["raw_prompt"]))  # type: ignore[attr-defined]
        words, conversation, facts = _words(self.tokenizer), uuid4().hex, dict[str, Any]()
        drawn: list[Completion] = []
        spent_s = 0.0

        async def draw(request: Request) -> Completion:
            nonlocal spent_s
            start, most = time.monotonic(), request.sampling.max_tokens
            output = await self.server_manager.generate(
                request_id=conversation,  # the same server for all turns: it still has the beginning in its cache
                prompt_ids=list(request.tokens),
                sampling_params={**seeded(sampling_params, row, len(drawn)), "max_tokens": most},
            )
            spent_s += time.monotonic() - start
            oldest = facts.get("min_global_steps")
            # What the server said of a turn joins the turns before: the oldest policy that wrote any of it stays.
            facts.update(output.extra_fields or {})
            if oldest is not None:
                facts["min_global_steps"] = oldest
            tokens = tuple(output.token_ids[:most])
            whole = len(tokens) < most or tokens[-1:] == (words.end,)
            finish = Finish.STOP if whole else Finish.LENGTH
            drawn.append(Completion(words.decode(tokens), tokens, tuple(output.log_probs or ())[:most], finish))
            return drawn[-1]

        begun, reward = time.monotonic(), dict[str, float]()
        try:
            answer = await played(problem, tuple(prompt), job.resolved.recipe.rollout.max_tokens, draw, words)
        except InfrastructureError as error:  # the score is NaN, never 0, and verl does not ask for another
            answer, reward = drawn[0], {"reward_score": math.nan}
            facts["reward_extra_info"] = scored(job, problem, answer, unjudged(str(error)))
        mask = [1] * len(answer.tokens)
        for start, end in answer.given:
            mask[start:end] = [0] * (end - start)
        return AgentLoopOutput(
            prompt_ids=list(prompt),
            response_ids=list(answer.tokens),
            response_mask=mask,
            response_logprobs=list(answer.logprobs) or None,
            num_turns=1 + max(1, len(answer.turns)),
            metrics=AgentLoopMetrics(generate_sequences=spent_s, tool_calls=time.monotonic() - begun - spent_s),
            extra_fields={**facts, "turn_scores": [], "tool_rewards": [], EPISODE: told_of(answer)},
            **reward,
        )


@cache
def _words(tokenizer: Any) -> Tokenizer:
    """verl's tokenizer behind our protocol, with results in the chat template where the recipe uses one."""
    from rlvrlab.engines.hf.tokenizer import HfTokenizer

    engine = current().resolved.recipe.engine
    return HfTokenizer(tokenizer, len(tokenizer), str(engine["model"]), chat=bool(engine["chat"]))


def episode_loop(**named: Any) -> Any:
    """An agent loop, as verl instantiates them."""
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase

    return loop_class("RlvrEpisodes", EpisodeHooks, AgentLoopBase)(**named)
