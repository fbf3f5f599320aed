"""Episodes with tools as verl's agent loop plays them, without verl: a scripted server draws the turns."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from talking import Scripted, good

from rlvrlab.envs.agent.environment import Agent
from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import resolve
from rlvrlab.rewards.binary import Binary
from rlvrlab.rollout.collect import collect
from rlvrlab.scale.verl import EPISODES, episode_loop, reward
from rlvrlab.scale.verl.episode_loop import played, told_of
from rlvrlab.scale.verl.keys import settings
from rlvrlab.scale.verl.reward import completion_of
from rlvrlab.types import Completion, Finish, Problem, Request, Sampling, Turn

needs_jail = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
ENV = Agent(tools=("python",), style="bare")
[PROBLEM] = ENV.problems("train", 1, 0)


def episode(speak: Callable[[str], str], most: int = 500) -> Completion:
    """Played turn by turn, as verl asks for them."""
    server = Scripted(speak)

    async def draw(request: Request) -> Completion:
        return server.sample([request])[0][0]

    prompt = server.tokenizer.encode(PROBLEM.prompt)
    return asyncio.run(played(PROBLEM, prompt, most, draw, server.tokenizer))


@needs_jail
@pytest.mark.parametrize("most", [500, 30, 12, 8])
def test_an_episode_is_the_one_that_the_hf_engine_plays(most: int) -> None:
    """Token by token, with the same turns, masks and end, whatever the budget cuts."""
    [other] = collect(Scripted(good(ENV, PROBLEM)), ENV, Binary(), [PROBLEM], n=1, sampling=Sampling(most), key=(0,))
    assert episode(good(ENV, PROBLEM), most) == other.completion


@needs_jail
def test_what_the_tokens_do_not_say_survives_the_way_through_verl() -> None:
    done = episode(good(ENV, PROBLEM))
    again = completion_of(None, done.text, done.tokens, told_of(done))  # type: ignore[arg-type]
    assert again.turns == done.turns and again.given == done.given and again.finish is done.finish is Finish.STOP
    assert [turn.by for turn in again.turns] == ["policy", "tool", "policy"]


def test_a_tool_that_the_machine_fails_at_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Problem] = []

    def broken(pairs: list) -> list:
        asked.extend(problem for problem, _ in pairs)
        raise InfrastructureError("no processes left")

    monkeypatch.setattr(episode_loop, "carried_out", broken)
    monkeypatch.setattr(reward, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(reward, "PATIENCE_S", 0.05)
    with pytest.raises(InfrastructureError, match="the tool python could not be used: no processes left"):
        episode(good(ENV, PROBLEM))
    assert len(asked) > 1


@pytest.mark.parametrize(("env", "loop"), [("agent", EPISODES), ("countdown", None)])
def test_verl_is_told_to_use_it_where_there_are_tools(env: str, loop: str | None) -> None:
    engine = {"type": "verl", "model": "owner/model", "gpus": 1, "prompt_tokens": 768}
    resolved = resolve({"phases": ["grpo"], "env": {"type": env}, "engine": engine}, {}, Path())
    assert settings(resolved, "home").get("actor_rollout_ref.rollout.agent.default_agent_loop") == loop


def test_what_a_tool_wrote_has_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = (Turn("policy", "a", (0, 1)), Turn("tool", "bc", (1, 3), "python"), Turn("policy", "d", (3, 4)))
    done = Completion("abcd", (1, 2, 3, 4), (-0.1, 0.0, 0.0, -0.4), turns=turns)
    job = SimpleNamespace(resolved=SimpleNamespace(recipe=SimpleNamespace(rollout=SimpleNamespace(max_tokens=9))))

    async def ready(*_: object) -> object:
        return done

    async def begun(_: object) -> list[int]:
        return [7, 8]

    verls = SimpleNamespace(AgentLoopMetrics=SimpleNamespace, AgentLoopOutput=SimpleNamespace)
    for name in (
        "verl",
        "verl.experimental",
        "verl.experimental.agent_loop",
        "verl.experimental.agent_loop.agent_loop",
    ):
        monkeypatch.setitem(sys.modules, name, verls)  # type: ignore[arg-type]
    for name, stand_in in (("current", lambda: job), ("problem_of", lambda *_: PROBLEM), ("_words", lambda _: None)):
        monkeypatch.setattr(episode_loop, name, stand_in)
    monkeypatch.setattr(episode_loop, "played", ready)
    loop = SimpleNamespace(tokenizer=None, ct_build_initial_tokens=begun)
    output = asyncio.run(episode_loop.EpisodeHooks.run(loop, {}, raw_prompt=[]))  # type: ignore[arg-type]
    assert (output.prompt_ids, output.response_ids, output.response_mask) == ([7, 8], [1, 2, 3, 4], [1, 0, 0, 1])
